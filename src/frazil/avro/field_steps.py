"""The fields of an Avro record as steps, each taken by many records at once.

A step reads the values that are wanted into the `Walker`'s captures and moves every record past
them. What was not asked for is skipped, not decoded: runs of numbers in one go. There is a step
for every Avro type, so that any schema can be walked.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np

from frazil.avro.walker import PADDING, Longs, Path, Walker
from frazil.value_classes import dataclass


class FieldStep:
    """One field, read or stepped over in every record at once."""

    __slots__ = ()

    @abstractmethod
    def walk(self, walker: Walker, rows: Longs, position: Longs) -> Longs:
        """Capture what is wanted of records `rows`, now at `position`; where they are after."""

    @property
    def varints(self) -> int | None:
        """How many numbers this step only steps over; None when it does more, or other things."""
        return None


@dataclass(frozen=True, slots=True)
class Nothing(FieldStep):
    """Avro's null."""

    def walk(self, walker: Walker, rows: Longs, position: Longs) -> Longs:
        return position


@dataclass(frozen=True, slots=True)
class Number(FieldStep):
    """int, long or enum."""

    path: Path | None

    @property
    def varints(self) -> int | None:
        return 1 if self.path is None else None

    def walk(self, walker: Walker, rows: Longs, position: Longs) -> Longs:
        if self.path is None:
            return walker.skip_varints(position, 1)
        value, position = walker.varint(position)
        walker.capture(self.path, rows, value)
        return position


@dataclass(frozen=True, slots=True)
class Text(FieldStep):
    """string or bytes: a length and that many bytes."""

    path: Path | None

    def walk(self, walker: Walker, rows: Longs, position: Longs) -> Longs:
        length, start = walker.varint(position)
        # A length past the data is clamped before it is added: the sum must not wrap around.
        after = walker.clamp(start + np.minimum(length, walker.poison), length < 0)
        if self.path is not None:
            walker.capture(self.path, rows, start, np.maximum(after - start, 0))
        return after


@dataclass(frozen=True, slots=True)
class Fixed(FieldStep):
    """A value of known width: float, double, boolean, fixed."""

    path: Path | None
    width: int
    dtype: str | None = None
    """How the bytes read as numbers; None keeps them as bytes."""

    def walk(self, walker: Walker, rows: Longs, position: Longs) -> Longs:
        if self.width > walker.length:
            return np.full(len(position), walker.poison)
        if self.path is not None:
            inside = np.minimum(position, walker.length + PADDING - self.width)
            window = walker.buffer[np.maximum(inside, 0)[:, None] + np.arange(self.width)]
            values = window if self.dtype is None else window.view(self.dtype).reshape(-1)
            walker.capture(self.path, rows, values)
        return np.minimum(position + self.width, walker.poison)


@dataclass(frozen=True, slots=True)
class Flag(FieldStep):
    """A boolean: one byte, 0 or 1."""

    path: Path | None

    def walk(self, walker: Walker, rows: Longs, position: Longs) -> Longs:
        byte = walker.buffer[position]
        if self.path is not None:
            walker.capture(self.path, rows, byte != 0)
        return walker.clamp(position + 1, byte > 1)


@dataclass(frozen=True, slots=True)
class Choice(FieldStep):
    """A union: which branch, then the branch."""

    branches: tuple[FieldStep, ...]

    def walk(self, walker: Walker, rows: Longs, position: Longs) -> Longs:
        index, position = walker.varint(position)
        if not index.size:
            return position
        first = int(index[0])
        if 0 <= first < len(self.branches) and (index == first).all():
            return self.branches[first].walk(walker, rows, position)
        position = walker.clamp(position, (index < 0) | (index >= len(self.branches)))
        for number, branch in enumerate(self.branches):
            chosen = np.flatnonzero(index == number)
            if chosen.size and not isinstance(branch, Nothing):
                position[chosen] = branch.walk(walker, rows[chosen], position[chosen])
        return position


@dataclass(frozen=True, slots=True)
class Record(FieldStep):
    """Fields one after the other."""

    fields: tuple[FieldStep, ...]

    @property
    def varints(self) -> int | None:
        total = 0
        for step in self.fields:
            if step.varints is None:
                return None
            total += step.varints
        return total

    def walk(self, walker: Walker, rows: Longs, position: Longs) -> Longs:
        pending = 0
        for step in self.fields:
            numbers = step.varints
            if numbers is not None:
                pending += numbers
                continue
            if pending:
                position = walker.skip_varints(position, pending)
                pending = 0
            position = step.walk(walker, rows, position)
        return walker.skip_varints(position, pending) if pending else position


@dataclass(frozen=True, slots=True)
class Items(FieldStep):
    """An array: runs of items, each led by a count, up to a count of zero.

    Subclasses take one run. A negative count is followed by the run's size in bytes.
    """

    def walk(self, walker: Walker, rows: Longs, position: Longs) -> Longs:
        after = position.copy()
        active = np.arange(len(position))
        items_read = np.zeros(len(position), dtype=np.int64)
        while active.size:
            count, start = walker.varint(after[active])
            sized = np.flatnonzero(count < 0)
            if sized.size:
                _, start[sized] = walker.varint(start[sized])
                count = np.abs(count)
            # An item takes a byte at least; more of them than bytes left is a poisoned record.
            too_many = count > walker.length - start
            start = walker.clamp(start, too_many & (count > 0))
            count = np.where(too_many, 0, count)
            after[active] = start
            going = np.flatnonzero(count > 0)
            if going.size != active.size:
                active, count = active[going], count[going]
            if active.size:
                at = after[active]
                after[active] = self.run(walker, rows[active], at, count, items_read[active])
                items_read[active] += count
        return after

    @abstractmethod
    def run(self, walker: Walker, rows: Longs, position: Longs, count: Longs, seen: Longs) -> Longs:
        """Read `count` items, of which `seen` came before in earlier runs."""


@dataclass(frozen=True, slots=True)
class Numbers(Items):
    """An array of records of `width` numbers each, not asked for: stepped over in one go."""

    width: int

    def run(self, walker: Walker, rows: Longs, position: Longs, count: Longs, seen: Longs) -> Longs:
        return walker.skip_varints(position, count * self.width)


@dataclass(frozen=True, slots=True)
class NumberMap(Items):
    """A map from number to number, of which some keys are wanted."""

    path: Path
    keys: frozenset[int]

    def run(self, walker: Walker, rows: Longs, position: Longs, count: Longs, seen: Longs) -> Longs:
        starts, record = walker.varint_starts(position, count * 2)
        key, _ = walker.varint(starts[0::2])
        owner = record[0::2]
        for field_id in self.keys:
            matching = np.flatnonzero(key == field_id)
            if matching.size:
                value, _ = walker.varint(starts[1::2][matching])
                walker.capture((*self.path, field_id), rows[owner[matching]], value)
        return walker.skip_varints(position, count * 2)


@dataclass(frozen=True, slots=True)
class NumberList(Items):
    """A list of numbers, wanted whole. Captured as ragged values: see `list_array`."""

    path: Path

    def walk(self, walker: Walker, rows: Longs, position: Longs) -> Longs:
        # Captured as empty first: an empty list has no run, and is not null.
        walker.capture(self.path, rows, position, np.zeros(len(position), dtype=np.int64))
        return Items.walk(self, walker, rows, position)

    def run(self, walker: Walker, rows: Longs, position: Longs, count: Longs, seen: Longs) -> Longs:
        # Where the numbers start and how many there are; they are decoded once, at the end.
        if not seen.any():
            walker.capture(self.path, rows, position, count)
        else:  # a list in several runs: its later runs get a path of their own
            for earlier in np.unique(seen):
                chosen = np.flatnonzero(seen == earlier)
                path = self.path if earlier == 0 else (*self.path, int(earlier))
                walker.capture(path, rows[chosen], position[chosen], count[chosen])
        return walker.skip_varints(position, count)


@dataclass(frozen=True, slots=True)
class TextMap(Items):
    """A map from number to bytes, of which some keys are wanted."""

    path: Path
    keys: frozenset[int]

    def run(self, walker: Walker, rows: Longs, position: Longs, count: Longs, seen: Longs) -> Longs:
        after = position.copy()
        active, at, left = np.arange(len(position)), position, count
        while active.size:
            key, at = walker.varint(at)
            length, start = walker.varint(at)
            at = walker.clamp(start + np.minimum(length, walker.poison), length < 0)
            self._keep(walker, rows[active], key, start, at)
            left = left - 1
            going = (left > 0) & (at <= walker.length)
            if not going.all():
                after[active] = at
                active, at, left = active[going], at[going], left[going]
        return after

    def _keep(self, walker: Walker, rows: Longs, key: Longs, start: Longs, end: Longs) -> None:
        first = int(key[0])
        if (key == first).all():
            if first in self.keys:
                walker.capture((*self.path, first), rows, start, np.maximum(end - start, 0))
            return
        for field_id in self.keys:
            matching = np.flatnonzero(key == field_id)
            if matching.size:
                lengths = np.maximum(end - start, 0)[matching]
                walker.capture((*self.path, field_id), rows[matching], start[matching], lengths)


@dataclass(frozen=True, slots=True)
class ItemSlots(Items):
    """An array of anything: the item steps at slot 0, 1, … capture under the slot's number."""

    slots: Sequence[FieldStep]
    """A step per slot; the last one serves every further item."""

    def run(self, walker: Walker, rows: Longs, position: Longs, count: Longs, seen: Longs) -> Longs:
        after = position.copy()
        active, at, left, slot = np.arange(len(position)), position, count, seen
        while active.size:
            for number in np.unique(slot):
                chosen = np.flatnonzero(slot == number)
                step = self.slots[min(int(number), len(self.slots) - 1)]
                at[chosen] = step.walk(walker, rows[active[chosen]], at[chosen])
            left, slot = left - 1, slot + 1
            going = (left > 0) & (at <= walker.length)
            if not going.all():
                after[active] = at
                active, at, left, slot = active[going], at[going], left[going], slot[going]
        return after
