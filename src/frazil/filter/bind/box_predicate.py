"""What a filter asks of the bounding box of a shape.

It prunes and says nothing of single rows: an engine evaluates the condition that it stands for.
"""

from __future__ import annotations

from typing import Any

from pyiceberg.expressions import AlwaysTrue, BooleanExpression, BoundPredicate, UnboundPredicate

from frazil.filter.bind.filter_columns import Column


class BoxPredicate(BoundPredicate):
    """Rows whose shape may reach into a window, or may cover all of it.

    A window whose west is greater than its east goes across the antimeridian.
    """

    west: float
    south: float
    east: float
    north: float
    covers: bool = False

    def __init__(self, term: Column, **window: Any) -> None:
        super().__init__(term=term, **window)

    @property
    def window(self) -> dict[str, Any]:
        """Everything but the column."""
        names = ("west", "south", "east", "north", "covers")
        return {name: getattr(self, name) for name in names}

    def __eq__(self, other: Any) -> bool:
        """Whether both ask the same of the same column."""
        same = isinstance(other, BoxPredicate) and self.term == other.term
        return same and self.window == other.window

    __hash__ = None  # type: ignore[assignment]

    def __invert__(self) -> BooleanExpression:
        """Every row: one whose box reaches into a window may be of either kind."""
        return AlwaysTrue()

    def __str__(self) -> str:
        """As it is written in a filter."""
        window = (self.west, self.south, self.east, self.north)
        ends = ", ".join(repr(end).removesuffix(".0") for end in window)
        name = self.term.name if isinstance(self.term, Column) else self.term.ref().field.name
        if self.covers:
            return f"st_contains({name}, st_makeenvelope({ends}))"
        return f"bbox({name}, {ends})"

    @property
    def as_unbound(self) -> type[UnboundPredicate]:
        """It has no form without a column."""
        raise NotImplementedError("a box predicate is always bound")
