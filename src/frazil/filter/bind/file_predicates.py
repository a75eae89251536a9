"""Predicates that judge files alone: on bounding boxes of shapes, and on expressions.

They prune and say nothing of single rows: an engine evaluates the conditions that they stand for.
"""

from __future__ import annotations

from frazil.iceberg.expressions import AlwaysTrue, BooleanExpression, BoundPredicate, Column
from frazil.iceberg.types import IcebergType, NestedField
from frazil.value_classes import frozen


@frozen
class Window:
    """A rectangle; one whose west is greater than its east goes across the antimeridian.

    Rows match whose shape may reach into it or, with `covers`, may cover all of it.
    """

    west: float
    south: float
    east: float
    north: float
    covers: bool = False


class BoxPredicate(BoundPredicate):
    """Rows whose shape may be in a window."""

    __slots__ = ("window",)

    def __init__(self, term: Column, window: Window) -> None:
        super().__init__(None, term)
        self.window = window

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BoxPredicate):
            return NotImplemented
        return self.term == other.term and self.window == other.window

    def __hash__(self) -> int:
        return hash((self.term, self.window))

    def __invert__(self) -> BooleanExpression:
        """Every row: one whose box reaches into a window may be of either kind."""
        return AlwaysTrue()

    def __str__(self) -> str:
        """As it is written in a filter."""
        window = self.window
        ends = ", ".join(
            repr(end).removesuffix(".0")
            for end in (window.west, window.south, window.east, window.north)
        )
        if window.covers:
            return f"st_contains({self.term.name}, st_makeenvelope({ends}))"
        return f"bbox({self.term.name}, {ends})"


class ExpressionColumn(Column):
    """The values of an expression such as `lower(name)` that files have statistics of and rows do
    not have, under an id of their own."""

    __slots__ = ()

    def __init__(self, field_id: int, text: str, type: IcebergType) -> None:
        field = NestedField(field_id=field_id, name=text, field_type=type, required=False)
        super().__init__(field, (text,))


def is_of_files(expression: BooleanExpression) -> bool:
    """Whether a predicate judges files alone, so that any row may match."""
    term = getattr(expression, "term", None)
    return isinstance(expression, BoxPredicate) or isinstance(term, ExpressionColumn)
