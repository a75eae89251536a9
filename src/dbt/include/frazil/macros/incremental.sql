{% materialization incremental, adapter='frazil' %}
  {%- set target = this.incorporate(type='table') -%}
  {%- set old = load_cached_relation(this.main) -%}
  {%- set changed = incremental_validate_on_schema_change(config.get('on_schema_change'), default='ignore') -%}
  {%- set strategy = config.get('incremental_strategy') or 'default' -%}
  {%- set strategy_sql = adapter.get_incremental_strategy_macro(context, strategy) -%}
  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}
  {% if old is not none and old.is_view %}{% do adapter.drop_relation(old) %}{% set old = none %}{% endif %}
  {% set step = none %}
  {% if old is not none and target.branch and not adapter.has_branch(target) %}
    {% do adapter.ensure_branch(target, sql) %}
  {% endif %}
  {% if old is none or should_full_refresh() %}
    {% if target.branch %}
      {% set build = frazil__write_branch(target, sql) %}
    {% else %}
      {% set build = create_table_as(False, target, sql) %}
    {% endif %}
  {% else %}
    {# The new rows are a view: they are computed once, by the statement that writes them. #}
    {% set step = make_temp_relation(target).incorporate(type='view') %}
    {% do run_query("create or replace view " ~ step.render() ~ " as " ~ sql) %}
    {% set columns = process_schema_changes(changed, step, target) or adapter.get_columns_in_relation(target) %}
    {% set build = strategy_sql({
      'target_relation': target, 'temp_relation': step, 'unique_key': config.get('unique_key'),
      'dest_columns': columns,
      'incremental_predicates': config.get('predicates') or config.get('incremental_predicates'),
    }) %}
  {% endif %}
  {% call statement('main') %}{{ build }}{% endcall %}
  {% if step is not none %}{% do adapter.drop_relation(step) %}{% endif %}
  {% do apply_grants(target, config.get('grants')) %}
  {% do persist_docs(target, model) %}
  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {{ run_hooks(post_hooks, inside_transaction=False) }}
  {{ return({'relations': [target.main]}) }}
{% endmaterialization %}

{% macro frazil__get_incremental_default_sql(arg_dict) %}
  {% if arg_dict['unique_key'] %}
    {% do return(get_incremental_merge_sql(arg_dict)) %}
  {% endif %}
  {% do return(get_incremental_append_sql(arg_dict)) %}
{% endmacro %}

{# Both statements are one transaction, and one snapshot. #}
{% macro frazil__get_delete_insert_merge_sql(target, source, unique_key, dest_columns, incremental_predicates) %}
  begin;
  {{ default__get_delete_insert_merge_sql(target, source, unique_key, dest_columns, incremental_predicates) }};
  commit
{% endmacro %}

{% macro frazil__get_incremental_insert_overwrite_sql(arg_dict) %}
  {%- set names = get_quoted_csv(arg_dict['dest_columns'] | map(attribute='name')) -%}
  {%- set parts = config.get('partition_by') -%}
  {%- if parts is string -%}{%- set parts = [parts] -%}{%- endif -%}
  insert overwrite {{ arg_dict['target_relation'].render() }}
  {%- if parts %} partition ({{ adapter.partition_columns(parts) | join(', ') }}){% endif %}
  select {{ names }} from {{ arg_dict['temp_relation'].render() }}
{% endmacro %}

{% macro frazil__get_incremental_microbatch_sql(arg_dict) %}
  {%- set names = get_quoted_csv(arg_dict['dest_columns'] | map(attribute='name')) -%}
  {%- set batch = model.batch -%}
  {%- set event_time = model.config.event_time -%}
  begin;
  delete from {{ arg_dict['target_relation'].render() }}
    where {{ event_time }} >= timestamp '{{ batch.event_time_start.replace(tzinfo=None) }}'
      and {{ event_time }} < timestamp '{{ batch.event_time_end.replace(tzinfo=None) }}';
  insert into {{ arg_dict['target_relation'].render() }} ({{ names }})
    select {{ names }} from {{ arg_dict['temp_relation'].render() }};
  commit
{% endmacro %}
