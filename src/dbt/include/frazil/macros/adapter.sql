{% macro frazil__create_schema(relation) %}{% do adapter.create_schema(relation) %}{% endmacro %}
{% macro frazil__drop_schema(relation) %}{% do adapter.drop_schema(relation) %}{% endmacro %}

{% macro frazil__get_columns_in_relation(relation) %}
  {{ return(adapter.get_columns_in_relation(relation)) }}
{% endmacro %}

{% macro frazil__current_timestamp() %}now(){% endmacro %}
{% macro frazil__snapshot_get_time() %}cast(now() as timestamp){% endmacro %}
{% macro frazil__snapshot_string_as_time(timestamp) %}
  {{ return("cast('" ~ timestamp ~ "' as timestamp)") }}
{% endmacro %}

{# A step of a build is a table or view of its own, beside the model: there are no temporary ones. #}
{% macro frazil__make_temp_relation(base_relation, suffix) %}
  {{ return(base_relation.main.incorporate(path={"identifier": base_relation.identifier ~ suffix})) }}
{% endmacro %}

{% macro frazil__post_snapshot(staging_relation) %}
  {% do adapter.drop_relation(staging_relation.incorporate(type='table')) %}
{% endmacro %}

{% macro frazil__apply_grants(relation, grant_config, should_revoke=True) %}
  {% if grant_config %}
    {% do exceptions.raise_compiler_error(
      "grants of " ~ relation ~ ": a Frazil catalog has no grants; rights are given by the server"
    ) %}
  {% endif %}
{% endmacro %}

{% macro frazil__alter_column_type(relation, column_name, new_column_type) %}
  {% call statement('alter_column_type') %}
    alter table {{ relation.main.render() }}
      alter column {{ adapter.quote(column_name) }} type {{ new_column_type }}
  {% endcall %}
{% endmacro %}

{% macro frazil__alter_relation_add_remove_columns(relation, add_columns, remove_columns) %}
  {% for column in add_columns or [] %}
    {% do run_query("alter table " ~ relation.main.render() ~ " add column " ~ column.quoted ~ " " ~ column.data_type) %}
  {% endfor %}
  {% for column in remove_columns or [] %}
    {% do run_query("alter table " ~ relation.main.render() ~ " drop column " ~ column.quoted) %}
  {% endfor %}
{% endmacro %}

{% macro frazil__alter_relation_comment(relation, comment) %}
  comment on {{ relation.type }} {{ relation.main.render() }} is '{{ comment | replace("'", "''") }}'
{% endmacro %}

{# Columns of views have their comments from the statement that creates the view. #}
{% macro frazil__alter_column_comment(relation, column_dict) %}
  {% if not relation.is_view %}
    {% for name in column_dict if column_dict[name]['description'] %}
      comment on column {{ relation.main.render() }}.{{ adapter.quote(name) }}
        is '{{ column_dict[name]['description'] | replace("'", "''") }}';
    {% endfor %}
  {% endif %}
{% endmacro %}

{# Fast-forwards main of every model that is built on a branch: dbt run-operation publish_branch #}
{% macro publish_branch(branch) %}
  {% for node in graph.nodes.values() if node.config.get('branch') == branch %}
    {% set name = node.schema ~ '.' ~ node.alias %}
    {% do run_query("call system.fast_forward('" ~ name ~ "', 'main', '" ~ branch ~ "')") %}
    {% do log("published " ~ name ~ " from branch " ~ branch, info=True) %}
  {% endfor %}
{% endmacro %}
