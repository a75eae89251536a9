{% macro frazil__table_clauses() %}
  {%- set parts = config.get('partition_by') -%}
  {%- set order = config.get('order_by') -%}
  {%- set properties = config.get('properties') -%}
  {%- if parts %} partitioned by ({{ parts if parts is string else parts | join(', ') }}){% endif %}
  {%- if order %} write ordered by {{ order if order is string else order | join(', ') }}{% endif %}
  {%- if config.get('location') %} location '{{ config.get('location') | replace("'", "''") }}'{% endif %}
  {%- if properties %} tblproperties (
    {%- for key, value in properties.items() -%}
      '{{ key }}' = '{{ value | string | replace("'", "''") }}'{{ ", " if not loop.last }}
    {%- endfor -%}
  ){% endif %}
{% endmacro %}

{% macro frazil__create_table_as(temporary, relation, sql) %}
  {%- set header = config.get('sql_header') -%}
  {{ header if header is not none }}
  {% if temporary %}
    create or replace table {{ relation.main.render() }} as {{ sql }}
  {% elif config.get('contract').enforced %}
    {{ get_assert_columns_equivalent(sql) }}
    {%- set step = make_temp_relation(relation, '__dbt_step') -%}
    {%- set columns = get_table_columns_and_constraints() -%}
    {# Rows that break a constraint are found in a step, before the table is replaced. #}
    create or replace table {{ step.render() }} {{ columns }};
    insert into {{ step.render() }} {{ get_select_subquery(sql) }};
    create or replace table {{ relation.main.render() }} {{ columns }} {{ frazil__table_clauses() }};
    insert into {{ relation.main.render() }} select * from {{ step.render() }};
    drop table {{ step.render() }} purge
  {% else %}
    create or replace table {{ relation.main.render() }} {{ frazil__table_clauses() }} as {{ sql }}
  {% endif %}
{% endmacro %}

{% macro frazil__create_view_as(relation, sql) %}
  {%- set header = config.get('sql_header') -%}
  {%- if config.get('contract').enforced %}{{ get_assert_columns_equivalent(sql) }}{% endif -%}
  {{ header if header is not none }}
  create or replace view {{ relation.main.render() }}
  {%- if config.persist_column_docs() and model.columns %} (
    {%- for column in get_column_schema_from_query(sql) -%}
      {%- set known = model.columns.get(column.name, {}) -%}
      {{ column.quoted }}
      {%- if known.get('description') %} comment '{{ known['description'] | replace("'", "''") }}'{% endif -%}
      {{ ", " if not loop.last }}
    {%- endfor -%}
  ){% endif %} as {{ sql }}
{% endmacro %}

{# Builds a table on a branch: main keeps its rows. A new table starts empty on main. #}
{% macro frazil__write_branch(relation, sql) %}
  {% if load_cached_relation(relation.main) is none %}
    {% do run_query(create_table_as(False, relation.main, get_empty_subquery_sql(sql))) %}
  {% endif %}
  {% do adapter.ensure_branch(relation, sql) %}
  insert overwrite {{ relation.render() }} {{ sql }}
{% endmacro %}

{% materialization table, adapter='frazil' %}
  {%- set target = this.incorporate(type='table') -%}
  {%- set old = load_cached_relation(this.main) -%}
  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}
  {% if old is not none and old.is_view %}{% do adapter.drop_relation(old) %}{% endif %}
  {% if target.branch %}
    {% set build = frazil__write_branch(target, sql) %}
  {% else %}
    {% set build = create_table_as(False, target, sql) %}
  {% endif %}
  {% call statement('main') %}{{ build }}{% endcall %}
  {% do apply_grants(target, config.get('grants')) %}
  {% do persist_docs(target, model) %}
  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {{ run_hooks(post_hooks, inside_transaction=False) }}
  {{ return({'relations': [target.main]}) }}
{% endmaterialization %}

{% materialization view, adapter='frazil' %}
  {%- set target = this.main.incorporate(type='view') -%}
  {%- set old = load_cached_relation(this.main) -%}
  {% if this.branch %}
    {% do exceptions.raise_compiler_error("branch of " ~ target ~ ": a view has no branches") %}
  {% endif %}
  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}
  {% if old is not none and old.is_table %}{% do adapter.drop_relation(old) %}{% endif %}
  {% call statement('main') %}{{ create_view_as(target, sql) }}{% endcall %}
  {% do apply_grants(target, config.get('grants')) %}
  {% do persist_docs(target, model) %}
  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {{ run_hooks(post_hooks, inside_transaction=False) }}
  {{ return({'relations': [target]}) }}
{% endmaterialization %}
