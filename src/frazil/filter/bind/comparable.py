"""Columns of values that can be compared with literals, fast.

Fixed-width types are compared in numpy on the Arrow buffers; text, bytes and wide decimals with
Arrow's kernels. A null is *unknown*: comparisons give an arbitrary answer there and `known` says
where to believe them. Knows nothing of statistics, partitions or filters.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final, Protocol, TypeAlias

import numpy as np
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil.arrow_values import scalar, to_numpy
from frazil.format.entries.batch import single_chunk
from frazil.format.values.types import arrow_type
from frazil.iceberg.types import DecimalType, IcebergType

Mask: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]

_NARROW_DIGITS: Final = 18
_NUMPY: Final[dict[pa.DataType, str]] = {
    pa.bool_(): "u1",
    pa.int32(): "<i4",
    pa.int64(): "<i8",
    pa.float32(): "<f4",
    pa.float64(): "<f8",
    pa.date32(): "<i4",
    pa.time64("us"): "<i8",
    pa.timestamp("us"): "<i8",
    pa.timestamp("us", "UTC"): "<i8",
    pa.timestamp("ns"): "<i8",
    pa.timestamp("ns", "UTC"): "<i8",
}


class Comparable(Protocol):
    """Values of one type, compared with plain values of that type."""

    @property
    def known(self) -> Mask | None:
        """Where the value is not null; None when it never is."""

    def less(self, value: Any) -> Mask:
        """Where the vector is less than the value."""

    def greater(self, value: Any) -> Mask:
        """Where the vector is greater than the value."""

    def equal(self, value: Any) -> Mask:
        """Where the vector equals the value."""

    def same(self, other: Comparable) -> Mask:
        """Where the vector equals another of the same type, row by row."""

    def among(self, values: Sequence[Any]) -> Mask:
        """Where the vector equals one of the values."""

    def rank(self, ordered: Sequence[Any], *, right: bool) -> np.ndarray[Any, Any]:
        """How many of the ascending values lie before each element (or, right, up to it)."""

    def starts_with(self, prefix: str | bytes) -> Mask:
        """Where the text or bytes begin with the prefix."""

    def nan(self) -> Mask:
        """Where the value is NaN."""


def vector(
    column: pa.ChunkedArray, type_: IcebergType, *, nan_known: bool = False
) -> Comparable | None:
    """The column as values of the type; None when nothing is known of any row.

    A column written before the type was widened is cast. NaN counts as unknown unless `nan_known`:
    it is not a bound, whatever a writer put there.
    """
    if column.null_count == len(column):
        return None
    array = single_chunk(column)
    target = arrow_type(type_)
    if array.type != target:
        try:
            array = pc.cast(array, target)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return None
    is_value: Mask | None = None
    if array.null_count:
        is_value = to_numpy(pc.is_valid(array))
    if isinstance(type_, DecimalType):
        if type_.precision > _NARROW_DIGITS:
            return _ArrowVector(array, is_value)
        pairs = _buffer(array, "<i8", width=2)
        return _NumpyVector(pairs[:, 0], is_value, scale=type_.scale)
    code = _NUMPY.get(target)
    if code is None:
        return _ArrowVector(array, is_value)
    if target == pa.bool_():
        array = pc.cast(array, pa.uint8())
    values = _buffer(array, code)
    if values.dtype.kind == "f" and not nan_known:
        nan = np.isnan(values)
        if nan.any():
            is_value = ~nan if is_value is None else is_value & ~nan
    return _NumpyVector(values, is_value)


def _buffer(array: pa.Array, code: str, *, width: int = 1) -> np.ndarray[Any, Any]:
    count = (len(array) + array.offset) * width
    values = np.frombuffer(array.buffers()[1], dtype=code, count=count)[array.offset * width :]
    return values if width == 1 else values.reshape(-1, width)


class _NumpyVector:
    """Numbers, booleans, dates, times, timestamps, and decimals of up to 18 digits."""

    __slots__ = ("_scale", "_values", "known")

    def __init__(
        self, values: np.ndarray[Any, Any], known: Mask | None, *, scale: int | None = None
    ) -> None:
        self._values = values
        self._scale = scale
        self.known = known

    def _plain(self, value: Any) -> Any:
        if self._scale is not None and isinstance(value, Decimal):
            return int(value.scaleb(self._scale))
        return int(value) if isinstance(value, bool) else value

    def less(self, value: Any) -> Mask:
        return self._values < self._plain(value)  # type: ignore[no-any-return]

    def greater(self, value: Any) -> Mask:
        return self._values > self._plain(value)  # type: ignore[no-any-return]

    def equal(self, value: Any) -> Mask:
        return self._values == self._plain(value)  # type: ignore[no-any-return]

    def same(self, other: Comparable) -> Mask:
        assert isinstance(other, _NumpyVector)
        return self._values == other._values  # type: ignore[no-any-return]

    def _plain_array(self, values: Sequence[Any]) -> np.ndarray[Any, Any]:
        comparable = [self._plain(value) for value in values]
        if self._values.dtype.kind == "f":
            return np.array(comparable, dtype=np.float64)
        # What no 64-bit column can hold equals nothing in it and lies between nothing in it.
        return np.array([v for v in comparable if -(2**63) <= v < 2**63], dtype=np.int64)

    def among(self, values: Sequence[Any]) -> Mask:
        return np.isin(self._values, self._plain_array(values))

    def rank(self, ordered: Sequence[Any], *, right: bool) -> np.ndarray[Any, Any]:
        side = "right" if right else "left"
        return np.searchsorted(self._plain_array(ordered), self._values, side=side)  # type: ignore[call-overload, no-any-return]

    def starts_with(self, prefix: str | bytes) -> Mask:
        raise TypeError("numbers have no prefix")

    def nan(self) -> Mask:
        if self._values.dtype.kind != "f":
            return np.zeros(len(self._values), dtype=np.bool_)
        is_nan: Mask = np.isnan(self._values)
        return is_nan


class _ArrowVector:
    """Text, bytes, uuids and wide decimals."""

    __slots__ = ("_array", "known")

    def __init__(self, array: pa.Array, known: Mask | None) -> None:
        self._array = array
        self.known = known

    def _mask(self, matches: pa.Array) -> Mask:
        # The answer at a null is arbitrary: read the bits under it rather than fill them in.
        bits = np.frombuffer(matches.buffers()[1], dtype=np.uint8)
        end: int = matches.offset + len(matches)
        mask: Mask = np.unpackbits(bits, count=end, bitorder="little")[matches.offset :].view(
            np.bool_
        )
        return mask

    def _scalar(self, value: Any) -> pa.Scalar:
        try:
            return scalar(value, self._array.type)
        except pa.ArrowInvalid:  # a decimal of more digits than the column's type has
            return pa.scalar(value)

    def _compare(self, function: str, value: Any) -> Mask:
        array = self._array
        if isinstance(value, bytes) and not pa.types.is_fixed_size_binary(array.type):
            # A prefix's successor need not be valid text: compare as bytes.
            array = pc.cast(array, pa.binary())
            compared = scalar(value, pa.binary())
        else:
            compared = self._scalar(value)
        return self._mask(pc.call_function(function, [array, compared]))

    def less(self, value: Any) -> Mask:
        return self._compare("less", value)

    def greater(self, value: Any) -> Mask:
        return self._compare("greater", value)

    def equal(self, value: Any) -> Mask:
        return self._compare("equal", value)

    def same(self, other: Comparable) -> Mask:
        assert isinstance(other, _ArrowVector)
        return self._mask(pc.equal(self._array, other._array))

    def among(self, values: Sequence[Any]) -> Mask:
        value_set = pa.array(list(values), self._array.type)
        return self._mask(pc.is_in(self._array, value_set=value_set))

    def rank(self, ordered: Sequence[Any], *, right: bool) -> np.ndarray[Any, Any]:
        side = "right" if right else "left"
        bounds = pa.array(list(ordered), self._array.type)
        if not pa.types.is_decimal(bounds.type) and hasattr(pc, "search_sorted"):
            bounds = pc.cast(bounds, pa.binary())
            places = pc.search_sorted(bounds, pc.cast(self._array, pa.binary()), side)
            return np.asarray(pc.fill_null(places, 0).to_numpy())
        # Arrow cannot search decimals, nor anything before pyarrow 23: rank both together, then
        # compare the ranks.
        ranks = pc.rank(pa.concat_arrays([self._array, bounds]), tiebreaker="dense").to_numpy()
        mine, theirs = ranks[: len(self._array)], ranks[len(self._array) :]
        return np.searchsorted(theirs, mine, side=side)  # type: ignore[call-overload, no-any-return]

    def starts_with(self, prefix: str | bytes) -> Mask:
        return self._mask(pc.starts_with(self._array, pattern=prefix))

    def nan(self) -> Mask:
        return np.zeros(len(self._array), dtype=np.bool_)
