"""Terms as text: once as a plain filter, if it can say it, and once as SQL of DuckDB.

Negations are moved to the tests themselves. What is left has only AND and OR, so a null beside
false makes no difference, and each test says by itself which rows it takes.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from typing import Any, Final

from frazil.filter.frames import terms as t
from frazil.filter.text.quotes import literal, quoted
from frazil.filter.text.sql_values import value_text
from frazil.iceberg import types as ice
from frazil.iceberg.expressions import Op
from frazil.iceberg.schema import Schema
from frazil.value_classes import dataclass

_ABOVE: Final = (Op.GT, Op.GE)
_BELOW: Final = (Op.LT, Op.LE)


@dataclass(frozen=True, slots=True)
class Written:
    """The same test in two languages; `plain` None where plain filters cannot say it."""

    plain: str | None
    sql: str


def written_parts(term: t.Term, schema: Schema, logic: t.Logic) -> list[Written]:
    """The conditions that all have to hold."""
    return _Writer(schema, logic).parts(term, negated=False)


def _both(text: str) -> Written:
    return Written(text, text)


def _joined(parts: Iterable[Written], word: str) -> Written:
    parts = list(parts)
    if len(parts) == 1:
        return parts[0]
    plain = [part.plain for part in parts]
    return Written(
        None if None in plain else "(" + f" {word} ".join(map(str, plain)) + ")",
        "(" + f" {word} ".join(part.sql for part in parts) + ")",
    )


def _every(*parts: Written) -> Written:
    return _joined(parts, "AND")


def _some(*parts: Written) -> Written:
    return _joined(parts, "OR")


class _Writer:
    def __init__(self, schema: Schema, logic: t.Logic) -> None:
        self._schema = schema
        self._logic = logic

    def parts(self, term: t.Term, *, negated: bool) -> list[Written]:
        match term:
            case t.Opposite(part):
                return self.parts(part, negated=not negated)
            case t.All(parts) if not negated:
                return [text for part in parts for text in self.parts(part, negated=False)]
            case t.AnyOf(parts) if negated:
                return [text for part in parts for text in self.parts(part, negated=True)]
        return [self._test(term, negated=negated)]

    def _test(self, term: t.Term, *, negated: bool) -> Written:
        match term:
            case t.Opposite(part):
                return self._test(part, negated=not negated)
            case t.All(parts) | t.AnyOf(parts):
                is_all = isinstance(term, t.All) != negated
                return _joined(
                    [self._test(part, negated=negated) for part in parts], "AND" if is_all else "OR"
                )
            case t.Compared():
                return self._compared(term, negated=negated)
            case t.OneOf():
                return self._one_of(term, negated=negated)
            case t.Missing(column, or_nan):
                return self._missing(column, or_nan=or_nan, negated=negated)
            case t.NotNumber(column):
                return self._has_number(column) if negated else self._nan(column)
            case t.HasText():
                return self._has_text(term, negated=negated)
            case t.Col():
                return _both(f"{_name(term)} = {'false' if negated else 'true'}")
            case t.Const(bool() as value):
                return _both("true" if value != negated else "false")
        what = f"the value {term.value!r} where a condition is expected"
        raise t.refusal(what, self._logic)

    # Comparisons

    def _compared(self, term: t.Compared, *, negated: bool) -> Written:
        op, left, right = term.op, term.left, term.right
        if isinstance(left, t.Const):
            op, left, right = op.mirrored, right, left
        if isinstance(left, t.Const):
            raise t.refusal(
                f"a comparison of two values, {left.value!r} and {right!r}", self._logic
            )
        if isinstance(right, t.Const):
            test = self._beside_value(left, op, right.value, negated=negated)
        else:
            test = self._beside_column(left, op, right, negated=negated)
        if self._logic is t.Logic.PANDAS and (op is Op.NE) != negated:
            columns = [side for side in (left, right) if isinstance(side, t.Col)]
            return _some(test, *(self._null(column) for column in columns))
        return test

    def _beside_value(self, column: t.Col, op: Op, value: Any, *, negated: bool) -> Written:
        if value is None or value != value:
            what = "null" if value is None else "NaN"
            raise t.refusal(
                f"a comparison with {what}", self._logic, "use its test for missing values"
            )
        says = op.negated if negated else op
        kind = self._kind(column)
        if isinstance(kind, ice.FloatType) and isinstance(value, int | float):
            single = _single(value)
            if self._logic is t.Logic.ARROW and single != value:
                return self._beside_inexact(column, says, op, value, single)
            value = single
        test = _both(f"{_name(column)} {says.value} {value_text(value)}")
        return self._without_nan(test, column, says, op)

    def _beside_inexact(
        self, column: t.Col, says: Op, op: Op, value: float, single: float
    ) -> Written:
        """A float column beside a double that lies between two floats."""
        if says in (Op.EQ, Op.NE):
            return _both("false") if says is Op.EQ else self._null(column, negated=True)
        if says in _ABOVE:
            sign = ">=" if single > value else ">"
        else:
            sign = "<=" if single < value else "<"
        test = _both(f"{_name(column)} {sign} {value_text(single)}")
        return self._without_nan(test, column, says, op)

    def _without_nan(self, test: Written, column: t.Col, says: Op, op: Op) -> Written:
        """In SQL, NaN is greater than every number. Elsewhere it is in no order, so that only
        the opposite of an order holds for it."""
        if self._logic is t.Logic.POLARS or not self._is_float(column):
            return test
        if says in _ABOVE and says is op:
            return _every(test, self._has_number(column))
        if says in _BELOW and says is not op:
            return _some(test, self._nan(column))
        return test

    def _beside_column(self, left: t.Col, op: Op, right: t.Col, *, negated: bool) -> Written:
        says = op.negated if negated else op
        test = Written(None, f"{_name(left)} {says.value} {_name(right)}")
        floats = [column for column in (left, right) if self._is_float(column)]
        if self._logic is t.Logic.POLARS or not floats:
            return test
        if says is Op.NE or (says is not op and says is not Op.EQ):
            opposite_sides = {left: right, right: left}
            return _some(
                test,
                *(
                    _every(self._nan(column), self._null(opposite_sides[column], negated=True))
                    for column in floats
                ),
            )
        return _every(test, *(self._has_number(column) for column in floats))

    # Other tests

    def _one_of(self, term: t.OneOf, *, negated: bool) -> Written:
        column, nulls = term.column, term.null_is_value and None in term.values
        values = [value for value in term.values if value is not None]
        if isinstance(self._kind(column), ice.FloatType) and self._logic is not t.Logic.ARROW:
            values = [_single(value) for value in values]
        if values:
            listed = ", ".join(map(value_text, values))
            test = _both(f"{_name(column)} {'NOT IN' if negated else 'IN'} ({listed})")
        else:
            test = self._null(column, negated=True) if negated else _both("false")
        if not term.null_is_value:
            return test
        if negated:
            return (
                _every(test, self._null(column, negated=True))
                if nulls
                else (_some(test, self._null(column)))
            )
        return _some(test, self._null(column)) if nulls else test

    def _missing(self, column: t.Col, *, or_nan: bool, negated: bool) -> Written:
        test = self._null(column, negated=negated)
        if not or_nan or not self._is_float(column):
            return test
        if negated:
            return _every(test, self._has_number(column))
        return _some(test, self._nan(column))

    def _has_text(self, term: t.HasText, *, negated: bool) -> Written:
        name, text = _name(term.column), literal(term.text)
        sql = f"{'NOT ' if negated else ''}{term.place}({name}, {value_text(term.text)})"
        is_start = term.place == "starts_with" and "\0" not in term.text
        plain = f"{name} {'NOT ' if negated else ''}STARTS WITH {text}" if is_start else None
        test = Written(plain, sql)
        if negated and self._logic is t.Logic.PANDAS:
            return _some(test, self._null(term.column))
        return test

    def _null(self, column: t.Operand, *, negated: bool = False) -> Written:
        assert isinstance(column, t.Col)
        return _both(f"{_name(column)} IS {'NOT ' if negated else ''}NULL")

    def _nan(self, column: t.Col) -> Written:
        return Written(f"{_name(column)} IS NAN", f"isnan({_name(column)})")

    def _has_number(self, column: t.Col) -> Written:
        """Neither NaN nor null; `IS NOT NAN` alone holds for a null."""
        name = _name(column)
        return Written(f"({name} IS NOT NAN AND {name} IS NOT NULL)", f"NOT isnan({name})")

    # Columns

    def _is_float(self, column: t.Col) -> bool:
        return isinstance(self._kind(column), ice.FloatType | ice.DoubleType)

    def _kind(self, column: t.Col) -> ice.IcebergType | None:
        """The type of a column; None where it is unknown, which binding will say."""
        kind: ice.IcebergType | None = self._schema.as_struct()
        for name in column.path:
            fields = kind.fields if isinstance(kind, ice.StructType) else ()
            kind = next((field.field_type for field in fields if field.name == name), None)
        return kind


def _name(column: t.Col) -> str:
    return ".".join(map(quoted, column.path))


def _single(value: Any) -> float:
    """The float of 32 bits that is nearest."""
    try:
        single: float = struct.unpack("<f", struct.pack("<f", value))[0]
        return single
    except OverflowError:
        return math.inf if value > 0 else -math.inf
