"""Conditions judged by the statistics of many files at once.

`might` is false only where no row can match; `must` is true only where every row matches. Both hold
for files and for manifest entries, whose statistics enclose those of their files: sums of counts,
least lower and greatest upper bound.

Bounds only enclose: a truncated or stale bound is a bound, so neither answer asks whether they are
tight. NaN lies outside the bounds and is greater than every number; null lies outside everything.
What is not recorded is unknown, and unknown never prunes and never proves.

A result of None stands for "true everywhere" from `might` and "false everywhere" from `must`: the
columns say nothing, and nothing was computed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import and_
from typing import Any, Final, TypeAlias

import numpy as np

from frazil.filter.bind.comparable import Comparable, Mask
from frazil.filter.prune.partition_test import ComparedValues
from frazil.format.entries.fields import stats_key
from frazil.format.values.types import is_floating
from frazil.iceberg.expressions import PREFIX, UNARY, Op
from frazil.value_classes import frozen

Counts: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]

_NULL_COUNT: Final = "null_value_count"
_NAN_COUNT: Final = "nan_value_count"
_VALUE_COUNT: Final = "value_count"
_EQUALS: Final = frozenset({Op.EQ, Op.IN})
_DIFFERS: Final = frozenset({Op.NE, Op.NOT_IN})
_ABOVE: Final = frozenset({Op.GT, Op.GE})


@frozen
class Stats:
    """The statistics of one column over many entries; None where a statistic is absent.

    Counts are −1 where they are unknown. `required` says that the column holds no null.
    """

    lower: Comparable | None
    upper: Comparable | None
    values: Counts | None
    nulls: Counts | None
    nans: Counts | None
    required: bool
    floating: bool

    def all_null(self) -> Mask | None:
        """Where every value is null; None when that is nowhere known."""
        if self.nulls is None or self.values is None:
            return None
        mask: Mask = (self.nulls >= 0) & (self.nulls == self.values)
        return mask

    def all_nan(self) -> Mask | None:
        """Where every value is NaN."""
        if self.nans is None or self.values is None:
            return None
        mask: Mask = (self.nans >= 0) & (self.nans == self.values)
        return mask

    def incomparable(self) -> Mask | None:
        """Where every value is null or NaN, so that none equals or is less than a number."""
        mask = either(self.all_null(), self.all_nan())
        if self.nulls is None or self.nans is None or self.values is None:
            return mask
        counted = (self.nulls >= 0) & (self.nans >= 0) & (self.nulls + self.nans == self.values)
        return either(mask, counted)

    def no_nulls(self) -> Mask | bool:
        """Where there is certainly no null: everywhere, nowhere, or a mask."""
        if self.required:
            return True
        return False if self.nulls is None else self.nulls == 0

    def no_nans(self) -> Mask | bool:
        """Where there is certainly no NaN: everywhere, nowhere, or a mask."""
        if not self.floating:
            return True
        return False if self.nans is None else self.nans == 0


def either(left: Mask | None, right: Mask | None) -> Mask | None:
    """OR of masks where None is false everywhere."""
    if left is None:
        return right
    return left if right is None else left | right


def both(left: Mask | None, right: Mask | None) -> Mask | None:
    """AND of masks where None is true everywhere."""
    if left is None:
        return right
    return left if right is None else left & right


def keys(condition: ComparedValues, field_id: int, *, required: bool) -> frozenset[str]:
    """The statistics columns that judging the condition needs."""
    names = {_VALUE_COUNT}
    if not required:
        names.add(_NULL_COUNT)
    if is_floating(condition.type):
        names.add(_NAN_COUNT)
    if condition.op not in UNARY:
        names |= {"lower_bound", "upper_bound"}
    if required and names == {_VALUE_COUNT, "lower_bound", "upper_bound"}:
        names.remove(_VALUE_COUNT)
    return frozenset(stats_key(field_id, name) for name in names)


# --- might match ---------------------------------------------------------------------------------


def might(condition: ComparedValues, stats: Stats) -> Mask | None:
    """Where some row can match; None when that is everywhere."""
    op = condition.op
    if op is Op.IS_NULL:
        return None if stats.nulls is None else stats.nulls != 0
    if op is Op.NOT_NULL:
        return _not(stats.all_null())
    if op is Op.IS_NAN:
        some = None if stats.nans is None else stats.nans != 0
        return both(some, _not(stats.all_null()))
    if op is Op.NOT_NAN:
        return _not(stats.all_nan())
    if op in _DIFFERS or op is Op.NOT_STARTS_WITH:
        return both(_not(stats.all_null()), _not(_all_excluded(condition, stats)))
    if op in _ABOVE and stats.floating:
        return both(_not(stats.all_null()), _or_nan(_reachable(condition, stats), stats))
    return both(_not(stats.incomparable()), _reachable(condition, stats))


def _or_nan(reached: Mask | None, stats: Stats) -> Mask | None:
    """Where a number or a NaN is reached; NaNs that were not counted may be anywhere."""
    if reached is None or stats.nans is None:
        return None
    mask: Mask = reached | (stats.nans != 0)
    return mask


def _not(mask: Mask | None) -> Mask | None:
    return None if mask is None else ~mask


def _possible(vector: Comparable | None, compared: Callable[[Comparable], Mask]) -> Mask | None:
    """The comparison where the bound is known, true where it is not."""
    if vector is None:
        return None
    mask = compared(vector)
    return mask if vector.known is None else mask | ~vector.known


def _reachable(condition: ComparedValues, stats: Stats) -> Mask | None:
    """Where the bounds leave room for a matching value."""
    op = condition.op
    lower, upper = stats.lower, stats.upper
    if op is Op.LT:
        return _possible(lower, lambda v: v.less(condition.value))
    if op is Op.LE:
        return _possible(lower, lambda v: ~v.greater(condition.value))
    if op is Op.GT:
        return _possible(upper, lambda v: v.greater(condition.value))
    if op is Op.GE:
        return _possible(upper, lambda v: ~v.less(condition.value))
    if op is Op.STARTS_WITH:
        first, past = prefix_range(condition.value)
        above = _possible(upper, lambda v: ~v.less(first))
        return above if past is None else both(above, _possible(lower, lambda v: v.less(past)))
    lowest, greatest = min(condition.values), max(condition.values)
    reached = both(
        _possible(lower, lambda v: ~v.greater(greatest)),
        _possible(upper, lambda v: ~v.less(lowest)),
    )
    if len(condition.values) == 1 or lower is None or upper is None:
        return reached
    return both(reached, either(_between(condition, lower, upper), _unknown(lower, upper)))


def _between(condition: ComparedValues, lower: Comparable, upper: Comparable) -> Mask:
    """Where one of the values lies between the bounds (if both are known)."""
    ordered = sorted(condition.values)
    return lower.rank(ordered, right=False) < upper.rank(ordered, right=True)


def _unknown(*vectors: Comparable) -> Mask | None:
    return reduce(either, (None if v.known is None else ~v.known for v in vectors))


def _all_excluded(condition: ComparedValues, stats: Stats) -> Mask | None:
    """Where every value that is not null is one that the (negative) condition excludes."""
    mask = _confined(condition, stats)
    no_nans = stats.no_nans()
    if mask is None or no_nans is False:
        return None
    return mask if no_nans is True else mask & no_nans


def _confined(condition: ComparedValues, stats: Stats) -> Mask | None:
    """Where the bounds confine the values to those named by the condition's positive form."""
    lower, upper = stats.lower, stats.upper
    if lower is None or upper is None:
        return None
    if condition.op in PREFIX:
        mask = lower.starts_with(condition.value) & upper.starts_with(condition.value)
    elif len(condition.values) == 1:
        mask = lower.equal(condition.value) & upper.equal(condition.value)
    else:
        mask = lower.among(condition.values) & lower.same(upper)
    return _certain(mask, lower, upper)


def _certain(mask: Mask, *vectors: Comparable) -> Mask:
    value_masks = [vector.known for vector in vectors if vector.known is not None]
    return reduce(and_, value_masks, mask)


# --- must match ----------------------------------------------------------------------------------


def must(condition: ComparedValues, stats: Stats) -> Mask | None:
    """Where every row certainly matches; None when that is nowhere."""
    op = condition.op
    if op is Op.IS_NULL:
        return stats.all_null()
    if op is Op.NOT_NULL:
        return _as_mask(stats.no_nulls())
    if op is Op.IS_NAN:
        return stats.all_nan()
    if op is Op.NOT_NAN:
        return either(_as_mask(stats.no_nans()), stats.all_null())
    if op in _DIFFERS:
        mask = either(_avoided(condition, stats), stats.all_nan())
        return _where(mask, stats.no_nulls())
    if op is Op.NOT_STARTS_WITH:
        return _where(_avoided(condition, stats), stats.no_nulls())
    if op in _ABOVE:
        mask = either(_ordered(condition, stats), stats.all_nan())
        return _where(mask, stats.no_nulls())
    if op in _EQUALS or op is Op.STARTS_WITH:
        mask = _confined(condition, stats)
    else:
        mask = _ordered(condition, stats)
    return _where(_where(mask, stats.no_nulls()), stats.no_nans())


def _as_mask(answer: Mask | bool) -> Mask | None:
    # "Everywhere" comes only from columns whose IS NOT NULL or IS NOT NAN was folded at binding.
    return None if isinstance(answer, bool) else answer


def _where(mask: Mask | None, condition: Mask | bool) -> Mask | None:
    if mask is None or condition is False:
        return None
    return mask if condition is True else mask & condition


def _ordered(condition: ComparedValues, stats: Stats) -> Mask | None:
    op = condition.op
    bound = stats.upper if op in (Op.LT, Op.LE) else stats.lower
    if bound is None:
        return None
    if op is Op.LT:
        mask = bound.less(condition.value)
    elif op is Op.LE:
        mask = ~bound.greater(condition.value)
    elif op is Op.GT:
        mask = bound.greater(condition.value)
    else:
        mask = ~bound.less(condition.value)
    return _certain(mask, bound)


def _avoided(condition: ComparedValues, stats: Stats) -> Mask | None:
    """Where the bounds exclude every value that the (negative) condition names."""
    lower, upper = stats.lower, stats.upper
    if condition.op is Op.NOT_STARTS_WITH:
        first, past = prefix_range(condition.value)
        under = None if upper is None else _certain(upper.less(first), upper)
        if lower is None or past is None:
            return under
        return either(under, _certain(~lower.less(past), lower))
    lowest, greatest = min(condition.values), max(condition.values)
    mask = either(
        None if upper is None else _certain(upper.less(lowest), upper),
        None if lower is None else _certain(lower.greater(greatest), lower),
    )
    if len(condition.values) == 1 or lower is None or upper is None:
        return mask
    return either(mask, _certain(~_between(condition, lower, upper), lower, upper))


def prefix_range(prefix: str) -> tuple[bytes, bytes | None]:
    """The least text with the prefix, and the least text after all of those (None: no prefix).

    As bytes: the successor is not always valid UTF-8, but text is ordered by its bytes.
    """
    first = prefix.encode("utf-8", "surrogatepass")
    return first, (first[:-1] + bytes([first[-1] + 1]) if first else None)
