"""Filters of scan requests: expressions in the JSON of the REST catalog, bound to a schema.

Literals come without types and take those of their columns. What the planner has no word for (a
transform, a metadata column) matches every row here, negated or not: a plan may hold more files
than needed, and clients filter rows themselves. Iceberg's `not-eq`, `not-in` and
`not-starts-with` match nulls where SQL's do not, so files with nulls are kept for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pyiceberg.expressions import AlwaysFalse, AlwaysTrue, BooleanExpression
from pyiceberg.expressions.literals import Literal, LongLiteral, literal
from pyiceberg.schema import Schema
from pyiceberg.types import BinaryType, FixedType, IcebergType

from frazil import cancellation
from frazil.errors import InvalidInput
from frazil.filter.bind.bind import conjunction, disjunction, predicate
from frazil.filter.bind.filter_columns import Column, ColumnIndex
from frazil.filter.bind.operators import SETS, UNARY, Op
from frazil.serve.limits import MAX_FILTER_DEPTH, MAX_FILTER_PARTS
from frazil.value_classes import dataclass

_OPERATORS: Final = {
    "is-null": Op.IS_NULL,
    "not-null": Op.NOT_NULL,
    "is-nan": Op.IS_NAN,
    "not-nan": Op.NOT_NAN,
    "lt": Op.LT,
    "lt-eq": Op.LE,
    "gt": Op.GT,
    "gt-eq": Op.GE,
    "eq": Op.EQ,
    "not-eq": Op.NE,
    "starts-with": Op.STARTS_WITH,
    "not-starts-with": Op.NOT_STARTS_WITH,
    "in": Op.IN,
    "not-in": Op.NOT_IN,
}
_MATCH_NULLS: Final = frozenset({Op.NE, Op.NOT_IN, Op.NOT_STARTS_WITH})
_METADATA_PREFIX: Final = "_"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFilter:
    """A filter for planning. When it `is_exact`, a file that it says matches whole does so for
    every client; otherwise clients must look at the rows."""

    where: BooleanExpression
    is_exact: bool = True


def bound_filter(raw: Any, schema: Schema, *, case_sensitive: bool = True) -> PlanFilter:
    """The filter of a request, or None."""
    if raw is None:
        return PlanFilter(where=AlwaysTrue())
    _check_size(raw)
    work = _Binding(ColumnIndex.of(schema), case_sensitive)
    where = work.bind(raw, negated=False, depth=0)
    return PlanFilter(where=where, is_exact=work.is_exact)


def _check_size(raw: Any) -> None:
    """Refuse a filter of too many conditions and values before anything is made of it."""
    parts, left = 0, [raw]
    while left and parts <= MAX_FILTER_PARTS:
        node = left.pop()
        if isinstance(node, Mapping):
            values = node.get("values")
            parts += 1 + (len(values) if isinstance(values, list) else 0)
            left += [node[side] for side in ("left", "right", "child") if side in node]
    if parts > MAX_FILTER_PARTS:
        raise InvalidInput(
            f"the filter has more than {MAX_FILTER_PARTS:,} conditions and values; plan with a "
            "filter that matches more files, and filter the rows yourself"
        )


class _Binding:
    def __init__(self, columns: ColumnIndex, case_sensitive: bool) -> None:
        self._columns = columns
        self._case_sensitive = case_sensitive
        self.is_exact = True

    def bind(self, raw: Any, *, negated: bool, depth: int) -> BooleanExpression:
        if depth > MAX_FILTER_DEPTH:
            raise InvalidInput(f"the filter is nested more than {MAX_FILTER_DEPTH} levels deep")
        if isinstance(raw, bool):
            return AlwaysTrue() if raw != negated else AlwaysFalse()
        if not isinstance(raw, Mapping):
            raise InvalidInput(f"a filter is true, false or an object, not {raw!r}")
        kind = raw.get("type")
        if kind in ("true", "false"):
            return AlwaysTrue() if (kind == "true") != negated else AlwaysFalse()
        if kind == "not":
            return self.bind(_part(raw, "child"), negated=not negated, depth=depth + 1)
        if kind in ("and", "or"):
            sides = [
                self.bind(_part(raw, side), negated=negated, depth=depth + 1)
                for side in ("left", "right")
            ]
            return conjunction(sides) if (kind == "and") != negated else disjunction(sides)
        op = _OPERATORS.get(str(kind))
        if op is None:
            raise InvalidInput(f"a filter has type {kind!r}, which is not known")
        return self._predicate(op.negated if negated else op, op, raw)

    def _predicate(self, op: Op, stated: Op, raw: Mapping[str, Any]) -> BooleanExpression:
        name = _name(_part(raw, "term"))
        if name is None or (
            name.startswith(_METADATA_PREFIX) and name not in self._columns.by_name
        ):
            self.is_exact = False
            return AlwaysTrue()
        column = self._columns.named(name, case_sensitive=self._case_sensitive)
        bound = predicate(op, column, _literals(stated, raw, column))
        if op not in _MATCH_NULLS:
            return bound
        self.is_exact = False
        return disjunction([bound, predicate(Op.IS_NULL, column)])


def _part(raw: Mapping[str, Any], key: str) -> Any:
    if key not in raw:
        raise InvalidInput(f"a filter of type {raw.get('type')!r} has no '{key}'")
    return raw[key]


def _name(term: Any) -> str | None:
    """The column that a term names; None when it is something made of one."""
    if isinstance(term, str):
        return term
    if isinstance(term, Mapping) and term.get("type") == "reference":
        return _name(term.get("term"))
    if isinstance(term, Mapping) and term.get("type") == "transform":
        return None
    raise InvalidInput(f"a filter has the term {term!r}, which is not known")


def _literals(op: Op, raw: Mapping[str, Any], column: Column) -> Sequence[Literal[Any]]:
    if op in UNARY:
        return ()
    kind = column.field.field_type
    if op in SETS:
        values = _part(raw, "values")
        if not isinstance(values, list):
            raise InvalidInput(f"the values of column '{column.name}' are not a list")
        literals: list[Literal[Any]] = []
        for value in values:
            cancellation.check()
            literals.append(_literal(value, kind, column))
        return literals
    return [_literal(_part(raw, "value"), kind, column)]


def _literal(value: Any, kind: IcebergType, column: Column) -> Literal[Any]:
    if isinstance(value, str) and isinstance(kind, BinaryType | FixedType):
        try:
            return literal(bytes.fromhex(value))
        except ValueError:
            raise InvalidInput(
                f"column '{column.name}': {value!r} is not bytes in hexadecimal digits"
            ) from None
    if isinstance(value, bool | float | str):
        return literal(value)
    if isinstance(value, int):
        return LongLiteral(value)
    raise InvalidInput(f"column '{column.name}': {value!r} is not a value")


__all__ = ["PlanFilter", "bound_filter"]
