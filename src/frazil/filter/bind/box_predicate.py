"""What a filter asks of the bounding box of a shape.

It prunes and says nothing of single rows: an engine evaluates the condition that it stands for.
"""

from __future__ import annotations

from frazil.iceberg.expressions import AlwaysTrue, BooleanExpression, BoundPredicate, Column
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
