"""Which rows: a filter that prunes, and SQL for an engine where the filter does not say it all.

Plain filters (`frazil.filter.text.filter_text`) say everything themselves. Any other SQL is read by
DuckDB's parser; of the conditions that all have to hold, those that are plain filters prune, and an
engine evaluates the whole. Expressions of data frames are written as both (`frazil.filter.frames`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from frazil.errors import InvalidInput
from frazil.filter.bind.bind import conjunction
from frazil.filter.text.filter_text import parse
from frazil.filter.text.sql_text import (
    ROWS,
    Expression,
    SqlText,
    columns_of_schema,
    judged,
    with_params,
)
from frazil.iceberg.expressions import AlwaysTrue, BooleanExpression
from frazil.iceberg.schema import Schema
from frazil.value_classes import frozen

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow.compute as pc

    from frazil.filter.frames.term_text import Written
    from frazil.filter.prune.expression_terms import Expressions
    from frazil.iceberg.pyiceberg_values import AnyExpression

_METADATA = ("_file", "_pos", "_spec_id", "_row_id", "_last_updated_sequence_number")


@frozen
class Condition:
    """Every row that matches passes `filter`; `sql` None says that no other row does."""

    filter: BooleanExpression
    sql: SqlText | None = None

    @property
    def is_everything(self) -> bool:
        """Whether every row matches."""
        return self.sql is None and isinstance(self.filter, AlwaysTrue)


Matching: TypeAlias = (
    "str | AnyExpression | Condition | Expression | polars.Expr | pc.Expression"
    " | pandas.api.typing.Expression"
)
Where: TypeAlias = "Matching | None"


def condition(
    where: Where,
    schema: Schema,
    *,
    params: Sequence[Any] = (),
    case_sensitive: bool = True,
    expressions: Callable[[], Expressions | None] | None = None,
) -> Condition:
    """What the text or expression says, bound to the schema. `expressions` gives those of the
    table, where an engine evaluates them as its writers did."""
    if not isinstance(where, str):
        if params:
            raise InvalidInput("params requires text with placeholders (?)")
        if isinstance(where, Condition):
            return where
        if isinstance(where, Expression):
            return condition(
                where.text,
                schema,
                params=where.params,
                case_sensitive=case_sensitive,
                expressions=expressions,
            )
        parts = _frame_parts(where, schema)
        if parts is not None:
            return _of_frames(parts, schema, case_sensitive=case_sensitive, expressions=expressions)
        return Condition(filter=parse(where, schema, case_sensitive=case_sensitive))
    text = with_params(where, params, what="filter")
    try:
        return Condition(filter=parse(text, schema, case_sensitive=case_sensitive))
    except InvalidInput as error:
        if error.is_certain or not text.strip():
            raise
        plain_problem = error
    try:
        sql, tree = judged(
            Expression(text=where, params=tuple(params)),
            {ROWS.name: {**columns_of_schema(schema), **_metadata(schema)}},
            case_sensitive=case_sensitive,
            what="filter",
        )
    except InvalidInput as error:
        raise (error if error.is_certain else plain_problem) from None
    from frazil.filter.prune.tree_filter import filter_of

    declared = None if expressions is None else expressions()
    return Condition(filter=filter_of([[tree]], schema, expressions=declared), sql=sql)


def text_of(where: Where, params: Sequence[Any], schema: Schema) -> str | None:
    """A condition as SQL text; None for those that have no text."""
    if isinstance(where, str):
        return with_params(where, params, what="filter")
    if isinstance(where, Expression):
        return str(where)
    parts = _frame_parts(where, schema)
    return None if parts is None else " AND ".join(part.sql for part in parts)


def _frame_parts(where: Any, schema: Schema) -> list[Written] | None:
    """What an expression of polars, pyarrow or pandas says; None for anything else. Told by the
    class, so that no library is loaded."""
    package, name = type(where).__module__.partition(".")[0], type(where).__name__
    if (package, name) == ("polars", "Expr"):
        from frazil.filter.frames.polars_terms import polars_term as term
    elif (package, name) == ("pyarrow", "Expression"):
        from frazil.filter.frames.arrow_terms import arrow_term as term
    elif (package, name) == ("pandas", "Expression"):
        from frazil.filter.frames.pandas_terms import pandas_term as term
    else:
        return None
    from frazil.filter.frames.term_text import written_parts
    from frazil.filter.frames.terms import Logic

    logic = Logic(package)
    return written_parts(term(where), schema, logic)


def _of_frames(
    parts: Sequence[Written],
    schema: Schema,
    *,
    case_sensitive: bool,
    expressions: Callable[[], Expressions | None] | None,
) -> Condition:
    """Plain filters prune; if some part is not one, an engine evaluates all of them."""
    filters, is_plain = [], True
    for part in parts:
        try:
            if part.plain is not None:
                filters.append(parse(part.plain, schema, case_sensitive=case_sensitive))
                continue
        except InvalidInput as error:
            if error.is_certain:
                raise
        one = condition(part.sql, schema, case_sensitive=case_sensitive, expressions=expressions)
        filters.append(one.filter)
        is_plain &= one.sql is None
    conjoined = conjunction(filters)
    if is_plain:
        return Condition(filter=conjoined)
    text = " AND ".join(part.sql for part in parts)
    sql = condition(f"({text})", schema, case_sensitive=case_sensitive).sql
    assert sql is not None
    return Condition(filter=conjoined, sql=sql)


def _metadata(schema: Schema) -> dict[str, None]:
    """Metadata columns whose names the table does not use itself."""
    column_names = {field.name for field in schema.fields}
    return {name: None for name in _METADATA if name not in column_names}
