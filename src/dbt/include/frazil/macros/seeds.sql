{# A seed is the rows of its file: each load replaces them in one commit and keeps the history. #}
{% macro frazil__seed_types(model, agate_table) %}
  {%- set given = model['config'].get('column_types', {}) -%}
  {%- set types = [] -%}
  {%- for name in agate_table.column_names -%}
    {%- do types.append(given.get(name, adapter.convert_type(agate_table, loop.index0))) -%}
  {%- endfor -%}
  {{ return(types) }}
{% endmacro %}

{% macro frazil__create_csv_table(model, agate_table) %}
  {%- set types = frazil__seed_types(model, agate_table) -%}
  {% set text %}
    create or replace table {{ this.main.render() }} (
      {%- for name in agate_table.column_names -%}
        {{ adapter.quote(name) }} {{ types[loop.index0] }}{{ ", " if not loop.last }}
      {%- endfor -%}
    ) {{ frazil__table_clauses() }}
  {% endset %}
  {% call statement('_') %}{{ text }}{% endcall %}
  {{ return(text) }}
{% endmacro %}

{% macro frazil__reset_csv_table(model, full_refresh, old_relation, agate_table) %}
  {% if full_refresh %}
    {{ return(create_csv_table(model, agate_table)) }}
  {% endif %}
  {% if agate_table.rows | length == 0 %}{% do adapter.truncate_relation(old_relation) %}{% endif %}
  {{ return("") }}
{% endmacro %}

{% macro frazil__load_csv_rows(model, agate_table) %}
  {% do adapter.write_seed(this.main, agate_table, frazil__seed_types(model, agate_table)) %}
  {{ return("insert overwrite " ~ this.main.render()) }}
{% endmacro %}
