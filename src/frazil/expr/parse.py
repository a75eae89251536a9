"""The way in for filters: text, PyIceberg expressions, or nothing at all."""

from __future__ import annotations

from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyiceberg.schema import Schema

from frazil.errors import InvalidInput
from frazil.expr.bind import bind
from frazil.expr.filter_columns import ColumnIndex
from frazil.expr.filter_text import parse_text


def parse(
    where: str | BooleanExpression | None, schema: Schema, *, case_sensitive: bool = True
) -> BooleanExpression:
    """A filter bound to the schema, with literals of the columns' types and no NOT.

    None selects every row. Expressions that were bound before, also to an older
    schema, are bound again by field id.
    """
    if where is None:
        return AlwaysTrue()
    columns = ColumnIndex.of(schema)
    if isinstance(where, BooleanExpression):
        return bind(where, columns, case_sensitive=case_sensitive)
    if not isinstance(where, str):
        raise InvalidInput(
            f"a filter is text or a PyIceberg expression, not {type(where).__name__}"
        )
    if not where.strip():
        raise InvalidInput("the filter is empty; write 'true' to match every row")
    return parse_text(where, columns, case_sensitive=case_sensitive)
