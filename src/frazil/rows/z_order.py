"""Z-order: one number per row that is close for rows that are close in several columns.

Each value is ranked among quantiles of its column, and ranks are spread over the same number of
bits, so that columns of unlike ranges weigh the same; the bits are then interleaved.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil.errors import InvalidInput, Unsupported
from frazil.iceberg.schema import Schema
from frazil.value_classes import dataclass

Codes = npt.NDArray[np.uint64]
SAMPLE_ROWS: Final = 100_000
"""How many rows are enough to know the quantiles of columns."""
_BITS: Final = 63
_MAX_BITS: Final = 16
_SIGN: Final = np.uint64(1 << 63)


@dataclass(frozen=True, slots=True, kw_only=True)
class ZOrder:
    """An order by several columns at once."""

    columns: tuple[str, ...]

    @staticmethod
    def of(columns: Sequence[str], schema: Schema) -> ZOrder:
        """Check that these are two or more columns of a table."""
        names = {column.name for column in schema.fields}
        for name in columns:
            if name not in names:
                raise InvalidInput(
                    f"z-order: unknown column {name!r}; the table has {', '.join(names)}"
                )
        if len(set(columns)) < 2:
            raise InvalidInput("z-order takes two columns or more; for one, sort by it")
        return ZOrder(columns=tuple(columns))


@dataclass(frozen=True, slots=True, eq=False)
class ZValue:
    """Computes Z-values; travels to executors."""

    columns: tuple[str, ...]
    cuts: tuple[Codes, ...]
    bits: int

    @staticmethod
    def sampled(columns: Sequence[str], sample: pa.Table) -> ZValue:
        """Ranks by the quantiles of a sample of the rows, whose columns are in the same order."""
        bits = min(_MAX_BITS, _BITS // len(columns))
        cuts = tuple(
            _quantiles(ordered(column.combine_chunks(), name), 1 << bits)
            for name, column in zip(columns, sample.columns, strict=True)
        )
        return ZValue(tuple(columns), cuts, bits)

    def of(self, values: pa.Array) -> pa.Array:
        """One number per row; nulls come first."""
        ranks = []
        for at, (name, cuts) in enumerate(zip(self.columns, self.cuts, strict=True)):
            rank = np.searchsorted(cuts, ordered(values.field(at), name), side="right")
            spread = (rank.astype(np.int64) << self.bits) // (len(cuts) + 1)
            ranks.append(spread.astype(np.uint64))
        return pa.array(interleaved(ranks, self.bits).astype(np.int64))


def interleaved(ranks: Sequence[Codes], bits: int) -> Codes:
    """The low bits of several numbers, taken in turn, highest first."""
    codes = np.zeros(len(ranks[0]), dtype=np.uint64)
    for bit in range(bits - 1, -1, -1):
        for rank in ranks:
            codes = (codes << np.uint64(1)) | ((rank >> np.uint64(bit)) & np.uint64(1))
    return codes


def _quantiles(codes: Codes, ranks: int) -> Codes:
    """Cuts between this many ranks of about equal weight."""
    ordered_codes = np.sort(codes)
    if not len(ordered_codes):
        return ordered_codes
    at = np.linspace(0, len(ordered_codes) - 1, num=min(ranks, len(ordered_codes)), dtype=np.int64)
    return np.unique(ordered_codes[at])[1:][: ranks - 1]


def ordered(array: pa.Array, name: str) -> Codes:
    """Values as unsigned numbers in the same order; equal for texts that begin alike."""
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    kind = array.type
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        integers = array.cast(pa.int64())
    elif pa.types.is_date32(kind):
        integers = array.cast(pa.int32()).cast(pa.int64())
    elif pa.types.is_temporal(kind):
        integers = array.cast(pa.int64())
    elif pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return _floats(array.cast(pa.float64()))
    elif _is_text(kind) or _is_fixed(kind):
        return _texts(array.cast(pa.large_binary()))
    else:
        raise Unsupported(f"z-order cannot use column {name} of type {kind}", feature="z-order")
    numbers = np.asarray(integers.fill_null(np.iinfo(np.int64).min)).astype(np.int64)
    return numbers.view(np.uint64) ^ _SIGN


def _is_text(kind: pa.DataType) -> bool:
    return kind in (pa.string(), pa.binary(), pa.large_string(), pa.large_binary())


def _is_fixed(kind: pa.DataType) -> bool:
    return bool(pa.types.is_fixed_size_binary(kind))


def _floats(array: pa.Array) -> Codes:
    bits = np.asarray(array.fill_null(float("-inf"))).astype(np.float64).view(np.uint64)
    negative = (bits & _SIGN) != 0
    return np.where(negative, ~bits, bits | _SIGN)


def _texts(array: pa.Array) -> Codes:
    first: Any = pc.binary_slice(array, 0, 8).fill_null(b"").to_pylist()
    joined = b"".join(value.ljust(8, b"\0") for value in first)
    return np.frombuffer(joined, dtype=">u8").astype(np.uint64)
