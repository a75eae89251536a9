"""Where values of a column lie between the least and the greatest bound of a tree: 0 to 1.

Numbers and times lie on a line, or on a logarithmic one where a few large values would press the
others together. Text has no distances, so bounds lie at their rank among all bounds.
"""

from __future__ import annotations

from bisect import bisect_left
from datetime import UTC, date, datetime, timedelta
from math import exp, isfinite, log
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import stats_key
from frazil.format.values.types import promote
from frazil.iceberg.types import IcebergType
from frazil.serve.explorer import display_values
from frazil.value_classes import field, frozen

Kind = Literal["linear", "log", "rank"]
Floats = npt.NDArray[np.float64]
_TICKS = 5
_SKEWED = 50
_DIGITS = 5
_EPOCH = date(1970, 1, 1)


@frozen
class Bounds:
    """Lower and upper bounds of one column over some entries, as Arrow arrays."""

    lower: pa.Array
    upper: pa.Array

    @staticmethod
    def of(batch: EntryBatch, field_id: int, kind: IcebergType) -> Bounds | None:
        """The bounds of a column; None when no entry has any."""
        columns: list[pa.Array] = []
        for name in ("lower_bound", "upper_bound"):
            key = stats_key(field_id, name)
            if not batch.has(key):
                return None
            column = promote(batch.column(key), kind)
            columns.append(
                column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
            )
        if columns[0].null_count == len(columns[0]) and columns[1].null_count == len(columns[1]):
            return None
        return Bounds(lower=columns[0], upper=columns[1])


@frozen
class Scale:
    """A scale of one column."""

    kind: Kind
    arrow: pa.DataType
    low: float = 0.0
    high: float = 0.0
    ranks: tuple[Any, ...] = field(default=(), repr=False)

    @staticmethod
    def over(bounds: Bounds) -> Scale:
        """The scale on which all of these bounds lie."""
        arrow = bounds.lower.type
        numbers = _numbers(bounds.lower)
        if numbers is None:
            both = {*bounds.lower.to_pylist(), *bounds.upper.to_pylist()} - {None}
            return Scale(kind="rank", arrow=arrow, ranks=tuple(sorted(both)))
        upper = _numbers(bounds.upper)
        assert upper is not None
        all_bounds = np.concatenate([numbers, upper])
        all_bounds = all_bounds[np.isfinite(all_bounds)]
        if not all_bounds.size:
            return Scale(kind="linear", arrow=arrow)
        low, high = float(all_bounds.min()), float(all_bounds.max())
        tops = upper[np.isfinite(upper)]
        middle = float(np.median(tops)) if tops.size else high
        skewed = low > 0 and high > middle * _SKEWED and not pa.types.is_temporal(arrow)
        return Scale(kind="log" if skewed else "linear", arrow=arrow, low=low, high=high)

    def places(self, column: pa.Array) -> list[float | None]:
        """Where each value lies; None where there is none."""
        if self.kind == "rank":
            return [None if value is None else self.place(value) for value in column.to_pylist()]
        numbers = _numbers(column)
        assert numbers is not None
        places = np.round(self._line(numbers), _DIGITS)
        return [None if np.isnan(place) else float(place) for place in places]

    def place(self, value: Any) -> float | None:
        """Where one value lies; what is beyond the scale lies at its end."""
        if self.kind == "rank":
            last = len(self.ranks) - 1
            if last < 1:
                return 0.5
            try:
                at = bisect_left(self.ranks, value)
            except TypeError:
                return None
            exact = at <= last and self.ranks[at] == value
            return round(min(max(at if exact else at - 0.5, 0), last) / last, _DIGITS)
        number = _number(value)
        if number is None:
            return None
        return round(float(self._line(np.array([number]))[0]), _DIGITS)

    def _line(self, numbers: Floats) -> Floats:
        if self.high <= self.low:
            return np.where(np.isnan(numbers), np.nan, 0.5)
        if self.kind == "log":
            start, length = log(self.low), log(self.high) - log(self.low)
            with np.errstate(divide="ignore", invalid="ignore"):
                places = (np.log(np.maximum(numbers, self.low)) - start) / length
        else:
            places = (numbers - self.low) / (self.high - self.low)
        clipped: Floats = np.clip(places, 0, 1)
        return clipped

    def text_at(self, place: float) -> str:
        """What lies at a place."""
        if self.kind == "rank":
            if not self.ranks:
                return ""
            return (
                display_values.text(self.ranks[round(place * (len(self.ranks) - 1))], max_length=60)
                or ""
            )
        if self.kind == "log" and self.high > self.low:
            number = exp(log(self.low) + place * (log(self.high) - log(self.low)))
        else:
            number = self.low + place * (self.high - self.low)
        return _worded(number, self.arrow)

    def ticks(self) -> list[list[Any]]:
        """A few places with what lies there."""
        if self.kind == "rank":
            last = len(self.ranks) - 1
            picked = sorted({round(at * last / (_TICKS - 1)) for at in range(_TICKS)})
            return [[self.place(self.ranks[at]), self.text_at(at / last)] for at in picked if last]
        if self.high <= self.low:
            return [[0.5, self.text_at(0.5)]]
        places = [at / (_TICKS - 1) for at in range(_TICKS)]
        return [[place, self.text_at(place)] for place in places]

    def about(self) -> dict[str, Any]:
        """The scale for the page."""
        return {
            "scale": self.kind,
            "lo": self.text_at(0.0),
            "hi": self.text_at(1.0),
            "ticks": self.ticks(),
        }


def _numbers(column: pa.Array) -> Floats | None:
    """A column as numbers with NaN for what is not known; None for what has no distances."""
    kind = column.type
    if pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    elif pa.types.is_date32(kind) or pa.types.is_time32(kind):
        column = column.cast(pa.int32())
    elif pa.types.is_timestamp(kind) or pa.types.is_time64(kind):
        column = column.cast(pa.int64())
    elif pa.types.is_decimal(kind):
        column = column.cast(pa.float64())
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return None
    numbers: Floats = pc.fill_null(column.cast(pa.float64(), safe=False), float("nan")).to_numpy(
        zero_copy_only=False
    )
    return np.where(np.isfinite(numbers), numbers, np.nan)


def _number(value: Any) -> float | None:
    """A literal of a filter as a number; dates and times come as numbers already."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if isfinite(number) else None


_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def _worded(number: float, arrow: pa.DataType) -> str:
    try:
        if pa.types.is_date(arrow):
            return (_EPOCH + timedelta(days=round(number))).isoformat()
        if pa.types.is_timestamp(arrow):
            seconds = number / _PER_SECOND[arrow.unit]
            return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError):
        return str(round(number))
    if pa.types.is_time(arrow):
        return str(timedelta(seconds=round(number / _PER_SECOND[arrow.unit])))
    if pa.types.is_boolean(arrow):
        return "true" if number >= 0.5 else "false"
    if pa.types.is_integer(arrow):
        return str(round(number))
    return f"{number:.6g}"
