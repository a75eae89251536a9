"""Columns of a filter that stand for an expression such as `lower(name)`.

Files have statistics of it and rows have no such column: a predicate on one prunes and says nothing
of single rows, as one on the box of a shape does. An engine evaluates the condition.
"""

from __future__ import annotations

from frazil.filter.bind.box_predicate import BoxPredicate
from frazil.iceberg.expressions import BooleanExpression, Column
from frazil.iceberg.types import IcebergType, NestedField


class ExpressionColumn(Column):
    """The values of an expression that a table keeps statistics of, under an id of their own."""

    __slots__ = ()

    def __init__(self, field_id: int, text: str, type: IcebergType) -> None:
        field = NestedField(field_id=field_id, name=text, field_type=type, required=False)
        super().__init__(field, (text,))


def is_of_files(expression: BooleanExpression) -> bool:
    """Whether a predicate judges files alone, so that any row may match."""
    term = getattr(expression, "term", None)
    return isinstance(expression, BoxPredicate) or isinstance(term, ExpressionColumn)


__all__ = ["ExpressionColumn", "is_of_files"]
