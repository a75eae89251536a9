"""Conditions of a query as filters that prune files.

A filter may let more rows pass than its condition, never fewer: the engine evaluates the condition
itself afterwards. So whatever is not understood, or where the engine compares in another way than
bounds do (floats beside decimals, escapes in LIKE), is left out.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from pyiceberg import types as ice
from pyiceberg.expressions import AlwaysTrue, BooleanExpression, Or
from pyiceberg.schema import Schema
from sqlglot import exp

from frazil.errors import InvalidInput
from frazil.expr.bind import conjunction
from frazil.expr.filter_columns import Column, ColumnIndex
from frazil.expr.parse import parse
from frazil.expr.quotes import literal, quoted

_SIGNS: Final[dict[type[exp.Expr], str]] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_MIRRORED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>"}
_CONSTANT: Final = (
    exp.Literal,
    exp.Neg,
    exp.Cast,
    exp.DataType,
    exp.DataTypeParam,
    exp.Add,
    exp.Sub,
    exp.Interval,
    exp.Var,
    exp.Boolean,
    exp.Paren,
)
_UNDERSTOOD: Final = frozenset(
    {"this", "expression", "expressions", "low", "high", "table", "db", "catalog", "to"}
)
"""Parts of a parsed expression. Others change its meaning: `negate` is the NOT of NOT LIKE."""
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?")
_STAMPS: Final = (ice.TimestampType, ice.TimestamptzType)
_TEXT: Final = re.compile(r"'((?:[^']|'')*)'")
_LETTER: Final = re.compile(r"[^\W\d_]")
_MAX_EXACT: Final = 2**52
_MAX_VALUES: Final = 1000

Evaluate = Callable[[str], Any]
"""The value of a constant SQL expression; InvalidInput when it has none."""


class _Unknown(Exception):
    """A condition that cannot prune."""


@dataclass(frozen=True, slots=True)
class Constants:
    """Values of constant expressions, each evaluated once."""

    evaluate: Evaluate
    _known: dict[str, Any] = field(default_factory=dict)

    @property
    def are_lasting(self) -> bool:
        """Whether they have the same values at any time, unlike `'today'::DATE`."""
        quoted = (part for text in self._known for part in _TEXT.findall(text))
        return not any(_LETTER.search(part) for part in quoted)

    def of(self, node: exp.Expr) -> Any:
        """The value of a constant expression."""
        plain = node.unnest()
        if isinstance(plain, exp.Literal):
            return _literal(plain)
        if isinstance(plain, exp.Boolean):
            return bool(plain.this)
        if not all(isinstance(each, _CONSTANT) for each in plain.walk()):
            raise _Unknown
        day = _day(plain)
        if day is not None:
            return day
        text = plain.sql("duckdb")
        if text not in self._known:
            self._known[text] = self.evaluate(text)
        return self._known[text]


def _day(node: exp.Expr) -> date | None:
    """`DATE '1995-03-15'`, the most frequent of constants, without asking the engine."""
    if not isinstance(node, exp.Cast) or not node.to.is_type(exp.DataType.Type.DATE):
        return None
    inner = _understood(node).this
    if not isinstance(inner, exp.Literal) or not inner.is_string or not _DAY.fullmatch(inner.this):
        return None
    try:
        return date.fromisoformat(inner.this)
    except ValueError:  # the engine says that there is no such day
        return None


def _literal(node: exp.Literal) -> Any:
    text = node.this
    if node.is_string:
        return text
    if re.fullmatch(r"\d+", text):
        return int(text)
    if re.fullmatch(r"\d*\.\d*", text):
        return Decimal(text)
    return float(text)


def filter_of(
    alternatives: Sequence[Sequence[exp.Expr]], schema: Schema, constants: Constants
) -> BooleanExpression:
    """A filter that passes every row which fulfils one of the alternatives."""
    columns = ColumnIndex.of(schema)
    made: BooleanExpression | None = None
    for alternative in alternatives:
        translate = _Translate(schema, columns, constants)
        part = conjunction(
            [found for each in alternative if (found := translate.whole(each)) is not None]
            or [AlwaysTrue()]
        )
        made = part if made is None else Or(made, part)
    return AlwaysTrue() if made is None else made


def key_filter(column: str, values: Iterable[Any], schema: Schema) -> BooleanExpression | None:
    """A filter for the rows whose column has one of these values; None when there is none."""
    columns = ColumnIndex.of(schema)
    translate = _Translate(schema, columns, Constants(_refuse))
    found = [value for value in values if value is not None]
    try:
        target = translate.named((column,))
        if not found:
            return None
        if len(found) <= _MAX_VALUES:
            texts = [translate.value(value, target) for value in found]
            return parse(f"{_name(target)} in ({', '.join(texts)})", schema)
        low, high = (translate.value(value, target) for value in (min(found), max(found)))
        return parse(f"{_name(target)} between {low} and {high}", schema)
    except (_Unknown, InvalidInput, TypeError):
        return None


def _refuse(text: str) -> Any:
    raise _Unknown


class _Translate:
    def __init__(self, schema: Schema, columns: ColumnIndex, constants: Constants) -> None:
        self._schema = schema
        self._columns = columns
        self._constants = constants

    def whole(self, condition: exp.Expr) -> BooleanExpression | None:
        """The filter of one condition; None when it cannot prune."""
        try:
            return parse(self._text(condition), self._schema)
        except (_Unknown, InvalidInput):
            return None

    def _text(self, node: exp.Expr) -> str:
        node = _understood(node)
        match node:
            case exp.And():
                return self._and(node)
            case exp.Or():
                return f"({self._text(node.this)} or {self._text(node.expression)})"
            case exp.Not():
                return self._not(_understood(node.this))
            case exp.In():
                return self._in(node)
            case exp.Between():
                low = self._comparison(node.this, ">=", node.args["low"])
                return f"({low} and {self._comparison(node.this, '<=', node.args['high'])})"
            case exp.Is() if isinstance(node.expression, exp.Null):
                return f"{_name(self._column(node.this))} is null"
            case exp.Like():
                return self._like(node)
            case exp.StartsWith():
                return self._prefix(node.this, self._constants.of(node.expression))
            case exp.Column() | exp.Dot():
                column = self._column(node)
                if not isinstance(column.field.field_type, ice.BooleanType):
                    raise _Unknown
                return f"{_name(column)} = true"
        sign = _SIGNS.get(type(node))
        if sign is None:
            raise _Unknown
        if self._is_term(node.this):
            return self._comparison(node.this, sign, node.expression)
        return self._comparison(node.expression, _MIRRORED[sign], node.this)

    def _and(self, node: exp.And) -> str:
        """One side is enough."""
        parts = []
        for side in (node.this, node.expression):
            try:
                parts.append(self._text(side))
            except _Unknown:
                continue
        if not parts:
            raise _Unknown
        return f"({' and '.join(parts)})"

    def _not(self, node: exp.Expr) -> str:
        match node:
            case exp.Is() if isinstance(node.expression, exp.Null):
                return f"{_name(self._column(node.this))} is not null"
            case exp.Column() | exp.Dot():
                return f"not ({self._text(node)})"
            case exp.In():
                self._exactly(self._column(node.this))
                return f"not ({self._in(node)})"
        raise _Unknown

    def _exactly(self, column: Column) -> None:
        """Refuse floats, whose NaN a negated comparison would lose."""
        if isinstance(column.field.field_type, ice.FloatType | ice.DoubleType):
            raise _Unknown

    def _in(self, node: exp.In) -> str:
        column = self._column(node.this)
        values = [self._constants.of(each) for each in node.expressions]
        if not values or len(values) > _MAX_VALUES or any(value is None for value in values):
            raise _Unknown
        return f"{_name(column)} in ({', '.join(self.value(v, column) for v in values)})"

    def _like(self, node: exp.Like) -> str:
        pattern = self._constants.of(node.expression)
        if not isinstance(pattern, str) or "\\" in pattern or "_" in pattern:
            raise _Unknown
        start, _, rest = pattern.partition("%")
        if not start or rest.strip("%"):
            if not start:
                raise _Unknown
            return self._prefix(node.this, start)
        if "%" not in pattern:
            return self._comparison(node.this, "=", node.expression)
        return self._prefix(node.this, start)

    def _prefix(self, node: exp.Expr, start: Any) -> str:
        column = self._column(node)
        if not isinstance(start, str) or not isinstance(column.field.field_type, ice.StringType):
            raise _Unknown
        return f"{_name(column)} starts with {literal(start)}"

    def _comparison(self, term: exp.Expr, sign: str, other: exp.Expr) -> str:
        value = self._constants.of(other)
        if value is None:
            raise _Unknown
        term = _understood(term)
        if isinstance(term, exp.Cast):
            return self._day(term, sign, value)
        column = self._column(term)
        made = f"{_name(column)} {sign} {self.value(value, column)}"
        kind = column.field.field_type
        if isinstance(kind, ice.FloatType | ice.DoubleType) and sign in (">", ">=", "<>"):
            return f"({made} or {_name(column)} is nan)"  # the engine has NaN above every number
        return made

    def _day(self, term: exp.Cast, sign: str, value: Any) -> str:
        """CAST(ts AS DATE) beside a day: a range of times."""
        column = self._column(term.this)
        if not term.is_type("date") or not isinstance(column.field.field_type, _STAMPS):
            raise _Unknown
        if isinstance(value, str) and _DAY.fullmatch(value):
            value = date.fromisoformat(value)
        if isinstance(value, datetime) or not isinstance(value, date):
            raise _Unknown
        try:
            start, end = (self.value(day, column) for day in (value, value + timedelta(days=1)))
        except OverflowError:
            raise _Unknown from None
        name = _name(column)
        match sign:
            case "=":
                return f"({name} >= {start} and {name} < {end})"
            case "<" | ">=":
                return f"{name} {sign} {start}"
            case "<=":
                return f"{name} < {end}"
            case ">":
                return f"{name} >= {end}"
        raise _Unknown

    # Columns and values

    def _is_term(self, node: exp.Expr) -> bool:
        return node.find(exp.Column) is not None

    def _column(self, node: exp.Expr) -> Column:
        parts: list[str] = []
        node = node.unnest()
        while isinstance(node, exp.Dot):
            parts.insert(0, node.expression.name)
            node = node.this
        if not isinstance(node, exp.Column) or node.table:
            raise _Unknown
        return self.named((node.name, *parts))

    def named(self, path: tuple[str, ...]) -> Column:
        """The column of a path of names, in any case."""
        wanted = tuple(part.lower() for part in path)
        found = [
            column
            for column in self._columns.by_id.values()
            if tuple(part.lower() for part in column.path) == wanted
        ]
        if len(found) != 1:
            raise _Unknown
        return found[0]

    def value(self, value: Any, column: Column) -> str:
        """A value as filter text; refused where engine and bounds may compare differently."""
        kind = column.field.field_type
        match kind, value:
            case ice.BooleanType(), bool():
                return str(value).lower()
            case _, bool():
                raise _Unknown
            case ((ice.IntegerType() | ice.LongType() | ice.DecimalType()), (int() | Decimal())):
                return _number(Decimal(value))
            case ((ice.IntegerType() | ice.LongType()), float()) if abs(value) < _MAX_EXACT:
                return _number(Decimal(value))
            case ice.DoubleType(), (int() | float()) if abs(value) < _MAX_EXACT:
                return _number(Decimal(value))
            case ice.DoubleType(), Decimal() if len(value.as_tuple().digits) <= 15:
                return _number(Decimal(float(value)))
            case ice.FloatType(), (int() | float() | Decimal()) if _is_single(float(value)):
                return _number(Decimal(float(value)))
            case ice.StringType(), str():
                return literal(value)
            case ice.UUIDType(), (str() | UUID()):
                return f"uuid {literal(str(UUID(str(value))))}"
            case ice.DateType(), datetime() if value.tzinfo is None:
                return f"timestamp {literal(value.isoformat(sep=' '))}"
            case ice.DateType(), date():
                return f"date {literal(value.isoformat())}"
            case ice.DateType(), str() if _DAY.fullmatch(value):
                return f"date {literal(value)}"
            case ((ice.TimestampType() | ice.TimestamptzType()), _):
                return _stamp(value, kind)
        raise _Unknown


def _understood(node: exp.Expr) -> exp.Expr:
    """A node without its parentheses; refused when it has a part that would be passed over."""
    plain: exp.Expr = node.unnest()
    if any(value and part not in _UNDERSTOOD for part, value in plain.args.items()):
        raise _Unknown
    return plain


def _stamp(value: Any, kind: ice.IcebergType) -> str:
    zone = "+00:00" if isinstance(kind, ice.TimestamptzType) else ""
    if isinstance(value, str) and _TIME.fullmatch(value):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise _Unknown from None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if not isinstance(value, datetime):
        raise _Unknown
    if value.tzinfo is not None:
        if not zone or value.utcoffset() != timedelta(0):
            raise _Unknown
        value = value.replace(tzinfo=None)
    return f"timestamp {literal(value.isoformat(sep=' ') + zone)}"


def _is_single(value: float) -> bool:
    try:
        return math.isfinite(value) and struct.unpack("<f", struct.pack("<f", value))[0] == value
    except OverflowError:
        return False


def _number(value: Decimal) -> str:
    if not value.is_finite() or len(value.as_tuple().digits) > 30:
        raise _Unknown
    return f"{value:f}"


def _name(column: Column) -> str:
    return ".".join(map(quoted, column.path))
