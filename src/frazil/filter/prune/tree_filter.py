"""Conditions of DuckDB's tree as filters that prune files.

A filter may let more rows pass than its condition, never fewer: an engine evaluates the condition
itself afterwards. So whatever is not understood, or where the engine compares in another way than
bounds do (floats beside decimals, escapes in LIKE), is left out. Nothing here raises.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from frazil.errors import FrazilError
from frazil.filter.bind.bind import conjunction, disjunction, keys_predicate, predicate
from frazil.filter.bind.filter_columns import ColumnIndex
from frazil.filter.prune import shape_terms
from frazil.iceberg import types as ice
from frazil.iceberg.expressions import COMPARISONS, AlwaysTrue, BooleanExpression, Column, Op
from frazil.iceberg.literals import (
    BooleanLiteral,
    DecimalLiteral,
    Literal,
    LongLiteral,
    StringLiteral,
    UUIDLiteral,
    literal,
)
from frazil.iceberg.schema import Schema
from frazil.iceberg.types import VariantType
from frazil.parser import nodes as n
from frazil.parser.duckdb_parser import values_of
from frazil.value_classes import dataclass, field

if TYPE_CHECKING:
    from frazil.filter.prune.expression_terms import Expressions

MAX_VALUES: Final = 1000
"""Values of an IN; a condition with more prunes nothing, keys beyond are a range."""
_FLOATS: Final = (ice.FloatType, ice.DoubleType)
_STAMPS: Final = (ice.TimestampType, ice.TimestamptzType)
_LIKE: Final = "~~"
_PREFIXES: Final = ("prefix", "starts_with", "^@")
_ARITHMETIC: Final = ("+", "-", "trunc")
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?")
_LETTER: Final = re.compile(r"[^\W\d_]")
_MAX_EXACT: Final = 2**52
_NOT_COMPARABLE: Final = (FrazilError, ValueError, TypeError, ArithmeticError, RecursionError)
Path = tuple[str, ...]


class _Unknown(Exception):
    """A condition that cannot prune."""


@dataclass(slots=True)
class Constants:
    """Values of constant expressions."""

    are_lasting: bool = True
    """Whether they have the same values at any time, unlike `'today'::DATE`."""
    _known: dict[int, tuple[n.Expression, Any]] = field(default_factory=dict)

    def of(self, node: n.Expression) -> Any:
        """The value of an expression without columns."""
        if isinstance(node, n.Constant):
            return node.value
        if not self._is_constant(node):
            raise _Unknown
        if (day := _written_day(node)) is not None:
            return day
        if id(node) not in self._known:
            # The node is kept, so that no other one gets its id.
            self._known[id(node)] = node, values_of([node.raw])[0]
        return self._known[id(node)][1]

    def _is_constant(self, node: n.Expression) -> bool:
        if node.queries:
            return False
        match node:
            case n.Constant():
                if isinstance(node.value, str) and _LETTER.search(node.value):
                    self.are_lasting = False
                return True
            case n.Cast(is_try=False):
                return self._is_constant(node.children[0])
            case n.Function(is_plain=True):
                is_pure = node.name in _ARITHMETIC or node.name.startswith("to_")
                return is_pure and all(map(self._is_constant, node.children))
        return False


def _written_day(node: n.Expression) -> date | None:
    """`DATE '1995-03-15'`, the most frequent of constants, without asking DuckDB."""
    if not isinstance(node, n.Cast) or node.type != "DATE" or node.is_try:
        return None
    inner = node.children[0]
    if not isinstance(inner, n.Constant) or not isinstance(inner.value, str):
        return None
    try:
        return date.fromisoformat(inner.value) if _DAY.fullmatch(inner.value) else None
    except ValueError:  # DuckDB says that there is no such day
        return None


def filter_of(
    alternatives: Sequence[Sequence[n.Expression]],
    schema: Schema,
    constants: Constants | None = None,
    *,
    path_of: Callable[[n.ColumnRef], Path | None] = lambda node: node.names,
    expressions: Expressions | None = None,
) -> BooleanExpression:
    """A filter that passes every row which fulfils all conditions of one of the alternatives.

    `path_of` says which path of names in the schema a column means, or None for another table's.
    """
    translate = _Translate(ColumnIndex.of(schema), constants or Constants(), path_of, expressions)
    parts = [translate.all_of(alternative) for alternative in alternatives]
    return disjunction(parts) if parts else AlwaysTrue()


def exact_filter_of(
    condition: n.Expression,
    schema: Schema,
    *,
    path_of: Callable[[n.ColumnRef], Path | None] = lambda node: node.names,
    expressions: Expressions | None = None,
) -> tuple[BooleanExpression, bool]:
    """The same for one condition; and whether no other row passes, so that the filter says it all
    at any time."""
    constants = Constants()
    translate = _Translate(ColumnIndex.of(schema), constants, path_of, expressions)
    filter_ = translate.all_of([condition])
    return filter_, translate.is_exact and constants.are_lasting


def key_filter(column: str, values: Iterable[Any], schema: Schema) -> BooleanExpression | None:
    """A filter for the rows whose column has one of these values; None when there is none."""
    translate = _Translate(ColumnIndex.of(schema), Constants(), lambda node: node.names)
    return translate.keys(column, [value for value in values if value is not None])


class _Translate:
    def __init__(
        self,
        columns: ColumnIndex,
        constants: Constants,
        path_of: Callable[[n.ColumnRef], Path | None],
        expressions: Expressions | None = None,
    ) -> None:
        self._columns = columns
        self._expressions = expressions
        self._constants = constants
        self._path_of = path_of
        self._has_variants = any(
            isinstance(column.field.field_type, VariantType) for column in columns.by_id.values()
        )
        self.is_exact = True
        """Whether filters pass no more rows than their conditions."""

    def all_of(self, conditions: Iterable[n.Expression]) -> BooleanExpression:
        """A filter for conditions that all hold, from those that can prune."""
        parts = [
            part
            for clause in conditions
            for condition in n.conjuncts(clause)
            if (part := self._maybe(condition)) is not None
        ]
        return conjunction(parts) if parts else AlwaysTrue()

    def _maybe(self, condition: n.Expression) -> BooleanExpression | None:
        try:
            return self._filter(condition)
        except (_Unknown, *_NOT_COMPARABLE):
            self.is_exact = False
            return None

    def keys(self, name: str, values: list[Any]) -> BooleanExpression | None:
        """A filter for rows with one of these keys."""
        try:
            column = self.named((name,))
            if not values:
                return None
            numbers = [value for value in values if value == value]
            is_all = len(numbers) <= MAX_VALUES
            ends = numbers if is_all else [min(numbers), max(numbers)]
            literals = [self._literal(value, column) for value in ends]
            has_nan = len(numbers) < len(values)
            return keys_predicate(column, literals, is_all=is_all, has_nan=has_nan)
        except (_Unknown, *_NOT_COMPARABLE):
            return None

    def _filter(self, node: n.Expression) -> BooleanExpression:
        declared = self._declared(node)
        if declared is not None:
            return self._truth(declared, value=True)
        match node:
            case n.Conjunction(operator="AND"):
                return self.all_of(node.children)
            case n.Conjunction():
                return disjunction([self._filter(child) for child in node.children])
            case n.Comparison():
                return self._comparison(node)
            case n.Between():
                value, low, high = node.children
                return conjunction(
                    [self._compared(value, Op.GE, low), self._compared(value, Op.LE, high)]
                )
            case n.Operator():
                return self._operator(node)
            case n.Function(is_plain=True, name=name) if name in shape_terms.NAMES:
                return self._box(node)
            case n.Function(is_plain=True, name=name) if len(node.children) == 2:
                if name == _LIKE:
                    return self._like(node)
                if name in _PREFIXES:
                    return self._prefix(node.children[0], self._constants.of(node.children[1]))
            case n.ColumnRef():
                return self._flag(node, value=True)
        raise _Unknown

    def _box(self, node: n.Function) -> BooleanExpression:
        """A window for the boxes of a column; rows are for the engine."""
        self.is_exact = False
        part = shape_terms.box_predicate(node, self._column, self._constants.of)
        if part is None:
            raise _Unknown
        return part

    def _flag(self, node: n.Expression, *, value: bool) -> BooleanExpression:
        return self._truth(self._column(node), value=value)

    def _truth(self, column: Column, *, value: bool) -> BooleanExpression:
        if not isinstance(column.field.field_type, ice.BooleanType):
            raise _Unknown
        return predicate(Op.EQ, column, [BooleanLiteral(value)])

    def _operator(self, node: n.Operator) -> BooleanExpression:
        match node.name:
            case "IS NULL":
                return predicate(Op.IS_NULL, self._column(node.children[0]))
            case "IS NOT NULL":
                return predicate(Op.NOT_NULL, self._column(node.children[0]))
            case "IN":
                return self._in(node, Op.IN)
            case "NOT IN":
                return self._in(node, Op.NOT_IN)
            case "NOT":
                return self._not(node.children[0])
        raise _Unknown

    def _not(self, node: n.Expression) -> BooleanExpression:
        declared = self._declared(node)
        if declared is not None:
            return self._truth(declared, value=False)
        match node:
            case n.Operator(name="IS NULL"):
                return predicate(Op.NOT_NULL, self._column(node.children[0]))
            case n.Operator(name="IS NOT NULL"):
                return predicate(Op.IS_NULL, self._column(node.children[0]))
            case n.Operator(name="IN"):
                return self._in(node, Op.NOT_IN)
            case n.ColumnRef():
                return self._flag(node, value=False)
        raise _Unknown

    def _in(self, node: n.Operator, op: Op) -> BooleanExpression:
        values = [self._constants.of(child) for child in node.children[1:]]
        column = self._inside(node.children[0], values) or self._column(node.children[0])
        if op is Op.NOT_IN and isinstance(column.field.field_type, _FLOATS):
            raise _Unknown  # its NaN would be lost
        if not values or len(values) > MAX_VALUES or any(value is None for value in values):
            raise _Unknown
        return predicate(op, column, [self._literal(value, column) for value in values])

    def _like(self, node: n.Function) -> BooleanExpression:
        pattern = self._constants.of(node.children[1])
        if not isinstance(pattern, str) or "\\" in pattern or "_" in pattern:
            raise _Unknown
        start, sign, rest = pattern.partition("%")
        if not sign:
            return self._compared(node.children[0], Op.EQ, node.children[1])
        self.is_exact &= not rest.strip("%")
        return self._prefix(node.children[0], start)

    def _prefix(self, node: n.Expression, start: Any) -> BooleanExpression:
        column = self._inside(node, [start]) or self._column(node)
        if not isinstance(start, str) or not isinstance(column.field.field_type, ice.StringType):
            raise _Unknown
        return predicate(Op.STARTS_WITH, column, [StringLiteral(start)])

    def _comparison(self, node: n.Comparison) -> BooleanExpression:
        op = COMPARISONS.get(node.operator)
        if op is None:
            raise _Unknown
        if any(isinstance(inner, n.ColumnRef) for inner in node.left.walk()):
            return self._compared(node.left, op, node.right)
        return self._compared(node.right, op.mirrored, node.left)

    def _compared(self, term: n.Expression, op: Op, other: n.Expression) -> BooleanExpression:
        value = self._constants.of(other)
        if value is None:
            raise _Unknown
        column = self._declared(term) or self._inside(term, [value])
        if column is None:
            if isinstance(term, n.Cast):
                return self._day(term, op, value)
            column = self._column(term)
        part = predicate(op, column, [self._literal(value, column)])
        # A field of variants that may be NaN has no bounds.
        may_be_nan = isinstance(column.field.field_type, _FLOATS) and not hasattr(column, "inside")
        if may_be_nan and op in (Op.GT, Op.GE, Op.NE):  # the engine has NaN above every number
            return disjunction([part, predicate(Op.IS_NAN, column)])
        return part

    def _day(self, term: n.Cast, op: Op, value: Any) -> BooleanExpression:
        """CAST(ts AS DATE) beside a day: a range of times."""
        column = self._column(term.children[0])
        if term.type != "DATE" or term.is_try or type(column.field.field_type) not in _STAMPS:
            raise _Unknown
        if isinstance(value, str) and _DAY.fullmatch(value):
            value = date.fromisoformat(value)
        if isinstance(value, datetime) or not isinstance(value, date):
            raise _Unknown
        start, end = (self._literal(day, column) for day in (value, value + timedelta(days=1)))
        match op:
            case Op.EQ:
                return conjunction(
                    [predicate(Op.GE, column, [start]), predicate(Op.LT, column, [end])]
                )
            case Op.LT | Op.GE:
                return predicate(op, column, [start])
            case Op.LE:
                return predicate(Op.LT, column, [end])
            case Op.GT:
                return predicate(Op.GE, column, [end])
        raise _Unknown

    # Columns and values

    def _declared(self, node: n.Expression) -> Column | None:
        """The expression of the table that a term is; rows are for the engine."""
        if self._expressions is None:
            return None
        column = self._expressions.column(node, self._maybe_column)
        if column is not None:
            self.is_exact = False
        return column

    def _inside(self, node: n.Expression, values: list[Any]) -> Column | None:
        """The field inside a variant that a term is; rows are for the engine."""
        if not self._has_variants:
            return None
        from frazil.filter.prune.variant_terms import variant_term

        term = variant_term(node, list(self._columns.by_id.values()), self._path_of)
        if term is None:
            return None
        column = term.beside(values)
        if column is None:
            raise _Unknown
        self.is_exact = False
        return column

    def _maybe_column(self, node: n.Expression) -> Column | None:
        try:
            return self._own_column(node)
        except (_Unknown, *_NOT_COMPARABLE):
            return None

    def _column(self, node: n.Expression) -> Column:
        return self._declared(node) or self._own_column(node)

    def _own_column(self, node: n.Expression) -> Column:
        fields: list[str] = []
        while isinstance(node, n.Function) and node.name == "struct_extract" and node.is_plain:
            node, part = node.children
            if not isinstance(part, n.Constant) or not isinstance(part.value, str):
                raise _Unknown
            fields.insert(0, part.value)
        if not isinstance(node, n.ColumnRef):
            raise _Unknown
        path = self._path_of(node)
        if path is None:
            raise _Unknown
        return self.named((*path, *fields))

    def named(self, path: Path) -> Column:
        """The column of a path of names, in any case."""
        lower = tuple(part.lower() for part in path)
        columns = [
            column
            for column in self._columns.by_id.values()
            if tuple(part.lower() for part in column.path) == lower
        ]
        if len(columns) != 1:
            raise _Unknown
        return columns[0]

    def _literal(self, value: Any, column: Column) -> Literal:
        """A value as a literal; refused where engine and bounds may compare differently."""
        kind = column.field.field_type
        match kind, value:
            case ice.BooleanType(), bool():
                return BooleanLiteral(value)
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
                return StringLiteral(value)
            case ice.UUIDType(), (str() | UUID()):
                return UUIDLiteral(UUID(str(value)).bytes)
            case ice.DateType(), datetime() if value.tzinfo is None:
                return StringLiteral(value.isoformat())
            case ice.DateType(), date():
                return literal(value)
            case ice.DateType(), str() if _DAY.fullmatch(value):
                return StringLiteral(value)
            case ((ice.TimestampType() | ice.TimestamptzType()), _):
                return _stamp(value, kind)
        raise _Unknown


def _stamp(value: Any, kind: ice.IcebergType) -> Literal:
    zone = "+00:00" if isinstance(kind, ice.TimestamptzType) else ""
    if isinstance(value, str) and _TIME.fullmatch(value):
        value = datetime.fromisoformat(value)
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if not isinstance(value, datetime):
        raise _Unknown
    if value.tzinfo is not None:
        if not zone or value.utcoffset() != timedelta(0):
            raise _Unknown
        value = value.replace(tzinfo=None)
    return StringLiteral(value.isoformat() + zone)


def _is_single(value: float) -> bool:
    try:
        return math.isfinite(value) and struct.unpack("<f", struct.pack("<f", value))[0] == value
    except OverflowError:
        return False


def _number(value: Decimal) -> Literal:
    if not value.is_finite():
        raise _Unknown
    if value == value.to_integral_value() and abs(value) < 10**30:
        return LongLiteral(int(value))
    if len(value.as_tuple().digits) > 30:
        raise _Unknown
    return DecimalLiteral(value)
