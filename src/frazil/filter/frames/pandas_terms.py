"""Expressions of pandas (`pd.col`), which are functions of a frame: called with one that records.

They mean what pandas makes of `table.to_pandas()`, where null and NaN are both missing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from frazil.filter.frames import terms as t
from frazil.iceberg.expressions import Op

_BOUNDS: Final = {
    "both": (Op.GE, Op.LE),
    "left": (Op.GE, Op.LT),
    "right": (Op.GT, Op.LE),
    "neither": (Op.GT, Op.LT),
}
_NAMED: Final = {
    "eq": Op.EQ,
    "ne": Op.NE,
    "lt": Op.LT,
    "le": Op.LE,
    "gt": Op.GT,
    "ge": Op.GE,
}


def pandas_term(expression: Any) -> t.Term:
    """The condition that the expression says."""
    evaluate = getattr(expression, "_eval_expression", None)
    if evaluate is None:
        raise t.refusal("no form that is known", t.Logic.PANDAS, "write this filter as SQL text")
    try:
        recorded = evaluate(_Frame())
    except TypeError as error:  # an argument that is not known here
        raise t.refusal(f"{expression!r} ({error})", t.Logic.PANDAS) from None
    if not isinstance(recorded, _Recorded):
        raise t.refusal(f"the value {recorded!r} where a condition is expected", t.Logic.PANDAS)
    return recorded.term


class _EveryName:
    """Names of columns; whether the table has them is checked when the filter is bound."""

    def __contains__(self, name: object) -> bool:
        return True


class _Frame:
    columns = _EveryName()

    def __getitem__(self, name: object) -> _Recorded:
        if not isinstance(name, str):
            raise t.refusal(f"the column name {name!r}, which is not text", t.Logic.PANDAS)
        return _Recorded(t.Col((name,)))


class _Recorded:
    """Stands for a column or a condition and records what is asked of it."""

    __slots__ = ("term",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, term: t.Term) -> None:
        self.term = term

    def __getattr__(self, name: str) -> Any:
        if name == "str":
            return _Text(self._column())
        if name in _NAMED:
            return lambda other: self._compared(_NAMED[name], other)
        raise t.refusal(f".{name.strip('_')}", t.Logic.PANDAS)

    def __array_ufunc__(self, function: Any, *_: Any, **__: Any) -> Any:
        raise t.refusal(f"numpy.{function.__name__}", t.Logic.PANDAS)

    def _compared(self, op: Op, other: Any) -> _Recorded:
        return _Recorded(t.Compared(op, self._operand(), _operand(other)))

    def _operand(self) -> t.Operand:
        if not isinstance(self.term, t.Col | t.Const):
            raise t.refusal("a comparison of a condition", t.Logic.PANDAS)
        return self.term

    def _column(self) -> t.Col:
        if not isinstance(self.term, t.Col):
            raise t.refusal("a condition where a column is expected", t.Logic.PANDAS)
        return self.term

    def __eq__(self, other: object) -> _Recorded:  # type: ignore[override]
        return self._compared(Op.EQ, other)

    def __ne__(self, other: object) -> _Recorded:  # type: ignore[override]
        return self._compared(Op.NE, other)

    def __lt__(self, other: Any) -> _Recorded:
        return self._compared(Op.LT, other)

    def __le__(self, other: Any) -> _Recorded:
        return self._compared(Op.LE, other)

    def __gt__(self, other: Any) -> _Recorded:
        return self._compared(Op.GT, other)

    def __ge__(self, other: Any) -> _Recorded:
        return self._compared(Op.GE, other)

    def __and__(self, other: Any) -> _Recorded:
        return _Recorded(t.All((self.term, _term(other))))

    def __or__(self, other: Any) -> _Recorded:
        return _Recorded(t.AnyOf((self.term, _term(other))))

    def __xor__(self, other: Any) -> _Recorded:
        return _Recorded(t.either_not_both(self.term, _term(other)))

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __invert__(self) -> _Recorded:
        return _Recorded(t.Opposite(self.term))

    def isna(self) -> _Recorded:
        return _Recorded(t.Missing(self._column(), or_nan=True))

    def notna(self) -> _Recorded:
        return _Recorded(t.Opposite(t.Missing(self._column(), or_nan=True)))

    isnull, notnull = isna, notna

    def isin(self, values: Iterable[Any]) -> _Recorded:
        if isinstance(values, _Recorded):
            raise t.refusal("isin of another column", t.Logic.PANDAS)
        python_values = tuple(_value(value) for value in values)
        if any(value is None or value != value for value in python_values):
            raise t.refusal("isin with a missing value", t.Logic.PANDAS, "add | column.isna()")
        return _Recorded(t.OneOf(self._column(), python_values, null_is_value=True))

    def between(self, left: Any, right: Any, inclusive: str = "both") -> _Recorded:
        if inclusive not in _BOUNDS:
            raise t.refusal(f"between with inclusive={inclusive!r}", t.Logic.PANDAS)
        low, high = _BOUNDS[inclusive]
        column = self._operand()
        parts = (t.Compared(low, column, _operand(left)), t.Compared(high, column, _operand(right)))
        return _Recorded(t.All(parts))


class _Text:
    """What `.str` of a column is asked for."""

    def __init__(self, column: t.Col) -> None:
        self._column = column

    def __getattr__(self, name: str) -> Any:
        raise t.refusal(f".str.{name}", t.Logic.PANDAS)

    def startswith(self, pat: Any) -> _Recorded:
        return self._any(pat, "starts_with")

    def endswith(self, pat: Any) -> _Recorded:
        return self._any(pat, "ends_with")

    def contains(self, pat: Any, case: bool = True, *, regex: bool = True) -> _Recorded:
        if not case:
            raise t.refusal(".str.contains with case=False", t.Logic.PANDAS)
        return self._any(t.plain_pattern(pat, t.Logic.PANDAS) if regex else pat, "contains")

    def _any(self, pattern: Any, place: Any) -> _Recorded:
        texts = pattern if isinstance(pattern, tuple) else (pattern,)
        if not texts or not all(isinstance(text, str) for text in texts):
            raise t.refusal(f"the text {pattern!r} to look for", t.Logic.PANDAS)
        terms = tuple(t.HasText(self._column, place, text) for text in texts)
        return _Recorded(t.AnyOf(terms) if len(terms) > 1 else terms[0])


def _operand(value: Any) -> t.Operand:
    return value._operand() if isinstance(value, _Recorded) else t.Const(_value(value))


def _term(value: Any) -> t.Term:
    return value.term if isinstance(value, _Recorded) else t.Const(_value(value))


def _value(value: Any) -> Any:
    """A value of Python; NumPy's times count from the epoch."""
    if type(value).__module__ == "numpy":
        if getattr(value, "ndim", 0):
            raise t.refusal("an array where one value is expected", t.Logic.PANDAS)
        if value.dtype.kind == "M":
            import pandas

            return pandas.Timestamp(value)
        return value.item()
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    return value
