{# Functions that dbt's packages call, where the engine has another word for them. #}
{% macro frazil__dateadd(datepart, interval, from_date_or_timestamp) %}
  ({{ from_date_or_timestamp }} + (interval 1 {{ datepart }}) * ({{ interval }}))
{% endmacro %}

{% macro frazil__datediff(first_date, second_date, datepart) %}
  date_diff('{{ datepart }}', cast({{ first_date }} as timestamp), cast({{ second_date }} as timestamp))
{% endmacro %}

{% macro frazil__date(year, month, day) %}
  date '{{ modules.datetime.date(year, month, day).isoformat() }}'
{% endmacro %}

{% macro frazil__last_day(date, datepart) %}
  cast(date_trunc('{{ datepart }}', {{ date }}) + interval 1 {{ datepart }} - interval 1 day as date)
{% endmacro %}

{% macro frazil__listagg(measure, delimiter_text, order_by_clause, limit_num) %}
  {%- set ordered = measure ~ " " ~ (order_by_clause or "") -%}
  {%- if limit_num -%}
    array_to_string(list_slice(list({{ ordered }}), 1, {{ limit_num }}), {{ delimiter_text }})
  {%- else -%}
    array_to_string(list({{ ordered }}), {{ delimiter_text }})
  {%- endif -%}
{% endmacro %}
