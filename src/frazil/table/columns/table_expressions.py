"""The expressions of a table: as texts, and as the change that declares them."""

from __future__ import annotations

from collections.abc import Sequence

from frazil.commit.updates import SetExpressions
from frazil.errors import InvalidInput
from frazil.format.metadata.metadata import TableMetadata


def expression_texts(metadata: TableMetadata) -> tuple[str, ...]:
    """What files have statistics of beside columns, with the columns' current names."""
    if not metadata.has_sql_expressions:
        return ()
    from frazil.format.expressions import sql_columns, text_of

    schema = metadata.schema()
    texts = []
    for column in sql_columns(metadata.expressions):
        text = text_of(column, schema)
        texts.append(text if _is_sql(text) else text_of(column, schema, quotes_all=True))
    return tuple(texts)


def _is_sql(text: str) -> bool:
    from frazil.parser.tree import parse_expression

    try:
        parse_expression(text)
    except InvalidInput:
        return False
    return True


def expressions_update(metadata: TableMetadata, expressions: Sequence[str]) -> SetExpressions:
    """The change after which a table has exactly these expressions."""
    from frazil.data.statistics.declare import declarations

    declared = declarations(expressions, metadata.schema())
    return SetExpressions(declared=tuple(declared), based_on_schema_id=metadata.current_schema_id)


__all__ = ["expression_texts", "expressions_update"]
