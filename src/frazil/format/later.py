"""Values that are made when they are first used: a table is opened without its columns' classes.

PyIceberg's schemas, specs and sort orders take longer to import than a table takes to open, and
much that is done with a table (its location, its snapshots, its properties) needs none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar, overload

Value = TypeVar("Value")


class Later(Sequence[Value]):
    """As many values as there are makers, all made on first use; equal to the tuple of them.

    What a maker raises comes up on first use, and again on the next. Pickled as the tuple.
    """

    __slots__ = ("_made", "_makers")

    def __init__(self, makers: Sequence[Callable[[], Value]]) -> None:
        self._makers = tuple(makers)
        self._made: tuple[Value, ...] | None = None

    def _values(self) -> tuple[Value, ...]:
        if self._made is None:
            self._made = tuple(make() for make in self._makers)
        return self._made

    @overload
    def __getitem__(self, index: int) -> Value: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Value, ...]: ...
    def __getitem__(self, index: int | slice) -> Value | tuple[Value, ...]:
        return self._values()[index]

    def __len__(self) -> int:
        return len(self._makers)

    def __iter__(self) -> Iterator[Value]:
        return iter(self._values())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Later):
            return other is self or self._values() == other._values()
        return self._values() == other if isinstance(other, tuple) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._values())

    def __repr__(self) -> str:
        return repr(self._values())

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (self._values(),)


__all__ = ["Later"]
