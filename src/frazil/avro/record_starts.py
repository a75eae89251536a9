"""Where records start inside decompressed Avro blocks, and the walk over them.

A block says how many records it holds, not where each begins. When it holds one, its start is the
record's. Otherwise places that could be starts are walked all at once, and the chain that leads
from each block's start to its end, in as many records as the block says, is what it holds: a wrong
place costs a little time and never a wrong result. Places are taken first from what begins like the
first record of a block, then from whatever the first fields allow. When both fail, blocks are
stepped through record by record.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

import numpy as np

from frazil.avro import avro_types
from frazil.avro.avro_types import AvroType
from frazil.avro.field_steps import Choice, FieldStep, Items, Number, Record, Text
from frazil.avro.walker import Longs, Path, Stretch, Walker
from frazil.errors import FormatError
from frazil.value_classes import dataclass

_MAX_CANDIDATES: Final = 8
"""Maximum number of positions tried per record; more means that the guess is wrong."""

_MAX_LOOKS: Final = 8
_LETTERS: Final = 4


@dataclass(frozen=True, slots=True)
class Blocks:
    """Some decompressed blocks in a row: where each ends, and how many records it holds."""

    stretch: Stretch
    ends: Longs
    counts: Longs

    @property
    def starts(self) -> Longs:
        return np.concatenate(([0], self.ends[:-1]))

    @staticmethod
    def of(blocks: Sequence[bytes], counts: Sequence[int]) -> Blocks:
        """Blocks joined into one stretch."""
        ends = np.cumsum([len(block) for block in blocks])
        return Blocks(Stretch(b"".join(blocks)), ends, np.array(counts, dtype=np.int64))


def walk(
    blocks: Blocks,
    schema: AvroType,
    plan: FieldStep,
    domains: Mapping[Path, int],
    path: str | None,
) -> tuple[Walker, Longs | None]:
    """The stretch walked, and which of the places walked are records (None: all)."""
    if (blocks.counts == 1).all():
        starts = blocks.starts
        walker = Walker(blocks.stretch, len(starts))
        ends = plan.walk(walker, np.arange(len(starts)), starts)
        if (ends == blocks.ends).all():
            return walker, None
        raise _misfit(path)
    for guess in (_alike, partial(_plausible, domains=domains)):
        guesses = guess(blocks, schema)
        if guesses is None:
            continue
        walker = Walker(blocks.stretch, len(guesses))
        ends = plan.walk(walker, np.arange(len(guesses)), guesses.copy())
        keep = _chain(blocks, guesses, ends)
        if keep is not None:
            return walker, None if len(keep) == len(guesses) else keep
    starts, expected = _step_through(blocks, schema, path)
    walker = Walker(blocks.stretch, len(starts))
    ends = plan.walk(walker, np.arange(len(starts)), starts.copy())
    if not (ends == expected).all():
        raise _misfit(path)
    return walker, None


def _misfit(path: str | None) -> FormatError:
    return FormatError("its records do not fit their blocks: the file is corrupt", path=path)


def _alike(blocks: Blocks, schema: AvroType) -> Longs | None:
    """Places that look like the first record of a block, up to the first letters of its first text.

    Entries that one commit added begin alike (status, snapshot, sequence number, scheme of the
    path), so one search over bytes often finds every record. None when it cannot be enough.
    """
    leading = _leading(avro_types.steps(schema, frozenset()))
    before = list(itertools.takewhile(lambda step: not isinstance(step, Text), leading))
    if len(before) == len(leading):
        return None
    starts, data = blocks.starts, blocks.stretch.data
    probe = Walker(blocks.stretch, 0)
    position = Record(tuple(before)).walk(probe, starts, starts.copy())
    length, text = probe.varint(position)
    if (text + length > probe.length).any() or (length < _LETTERS).any():
        return None
    # The bytes before the text, a length of one or two bytes, the first letters of the text.
    looks = {
        re.escape(data[start:at])
        + rb"[\x80-\xff]?[\x00-\x7f]"
        + re.escape(data[letters : letters + _LETTERS])
        for start, at, letters in zip(
            starts.tolist(), position.tolist(), text.tolist(), strict=True
        )
    }
    if len(looks) > _MAX_LOOKS:
        return None
    # Too few places: a record looks otherwise. Too many: walking every record is cheaper.
    matches = [match.start() for look in looks for match in re.finditer(look, data, re.DOTALL)]
    records = int(blocks.counts.sum())
    if not records <= len(matches) <= _MAX_CANDIDATES * records:
        return None
    return np.unique(np.array(matches, dtype=np.int64))


def _plausible(blocks: Blocks, schema: AvroType, domains: Mapping[Path, int]) -> Longs | None:
    """Places whose first fields could be a record's: all starts and a few more; None if many."""
    first = schema.fields[0] if schema.fields else None
    if first is None or first.id is None or (first.id,) not in domains:
        return None
    probe = Walker(blocks.stretch, 0)
    leading = _leading(avro_types.steps(schema, frozenset(domains)))
    data = probe.buffer[: probe.length]
    possible = data <= 2 * (domains[(first.id,)] - 1)
    if len(leading) > 1 and isinstance(leading[1], Choice):
        possible[:-1] &= data[1:] <= 2 * (len(leading[1].branches) - 1)
    places = np.flatnonzero(possible)
    position = places
    limit = _MAX_CANDIDATES * int(blocks.counts.sum())
    for step in leading:
        if isinstance(step, Number) and step.path is not None:
            value, position = probe.varint(position)
            fits = (value >= 0) & (value < domains[step.path]) & (position <= probe.length)
        else:
            position = step.walk(probe, places, position.copy())
            fits = position <= probe.length
        places, position = places[fits], position[fits]
    return places if len(places) <= limit else None


def _leading(step: FieldStep) -> list[FieldStep]:
    """The steps of a record up to its first array."""
    if not isinstance(step, Record):
        return []
    steps: list[FieldStep] = []
    for field in step.fields:
        if isinstance(field, Record):
            inner = _leading(field)
            steps.extend(inner)
            if len(inner) < len(field.fields):
                break
        elif isinstance(field, Items) or _holds_items(field):
            break
        else:
            steps.append(field)
    return steps


def _holds_items(step: FieldStep) -> bool:
    match step:
        case Choice():
            return any(_holds_items(branch) for branch in step.branches)
        case Record():
            return any(_holds_items(field) for field in step.fields)
        case _:
            return isinstance(step, Items)


def _chain(blocks: Blocks, guesses: Longs, ends: Longs) -> Longs | None:
    """Which guesses are records: the chain from each block's start that ends where it ends."""
    records = int(blocks.counts.sum())
    if len(guesses) == records:
        last = np.cumsum(blocks.counts) - 1
        if (np.append(guesses[1:], ends[-1]) == ends).all() and (ends[last] == blocks.ends).all():
            return np.arange(records)
    index = np.searchsorted(guesses, ends)
    chained = guesses[np.minimum(index, len(guesses) - 1)] == ends
    following = np.where(chained, index, -1).tolist()
    keep: list[int] = []
    for start, block_end, count in zip(
        np.searchsorted(guesses, blocks.starts).tolist(),
        blocks.ends.tolist(),
        blocks.counts.tolist(),
        strict=True,
    ):
        position = start
        for _ in range(count):
            if not 0 <= position < len(following):
                return None
            keep.append(position)
            position = following[position]
        if ends[keep[-1]] != block_end:
            return None
    chosen = np.array(keep, dtype=np.int64)
    first = np.cumsum(blocks.counts) - blocks.counts
    return chosen if (guesses[chosen[first]] == blocks.starts).all() else None


def _step_through(blocks: Blocks, schema: AvroType, path: str | None) -> tuple[Longs, Longs]:
    """Starts and ends of all records, found one after the other."""
    skip = avro_types.skipper(schema)
    starts: list[int] = []
    at = 0
    try:
        for block_end, count in zip(blocks.ends.tolist(), blocks.counts.tolist(), strict=True):
            for _ in range(count):
                starts.append(at)
                at = skip(blocks.stretch.data, at)
            if at != block_end:
                raise _misfit(path)
    except (IndexError, RecursionError) as error:
        raise FormatError(f"a record is cut short or corrupt: {error}", path=path) from error
    return np.array(starts, dtype=np.int64), np.array([*starts[1:], at], dtype=np.int64)
