"""Shapes of scan planning, from the OpenAPI text of the Iceberg REST catalog, and their filters.

Filters are expressions in JSON, bound to a schema. Literals come without types and take those of
their columns. What the planner has no word for (a transform, a metadata column) matches every row
here, negated or not: a plan may hold more files than needed, and clients filter rows themselves.
Iceberg's `not-eq`, `not-in` and `not-starts-with` match nulls where SQL's do not, so files with
nulls are kept for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from frazil import cancellation
from frazil.errors import InvalidInput
from frazil.filter.bind.bind import conjunction, disjunction, predicate
from frazil.filter.bind.filter_columns import ColumnIndex
from frazil.iceberg.expressions import (
    SETS,
    UNARY,
    AlwaysFalse,
    AlwaysTrue,
    BooleanExpression,
    Column,
    Op,
)
from frazil.iceberg.literals import Literal, LongLiteral, literal
from frazil.iceberg.schema import Schema
from frazil.iceberg.types import BinaryType, FixedType, IcebergType
from frazil.serve.limits import MAX_FILTER_DEPTH, MAX_FILTER_PARTS
from frazil.serve.wire.wire import Long, Shape
from frazil.value_classes import frozen


class PlanScan(Shape):
    """POST plan."""

    snapshot_id: Long | None = None
    select: list[str] | None = None
    filter: Any = None
    min_rows_requested: Long | None = None
    case_sensitive: bool = True
    use_snapshot_schema: bool = False
    start_snapshot_id: Long | None = None
    end_snapshot_id: Long | None = None
    stats_fields: list[str] | None = None


class FetchTasks(Shape):
    """POST tasks."""

    plan_task: str


class IdMap(Shape, gc=False):
    """Values by field id."""

    keys: list[int]
    values: list[Any]


class ContentFile(Shape, gc=False):
    """A data or delete file."""

    spec_id: int
    content: str
    file_path: str
    file_format: str
    partition: list[Any]
    file_size_in_bytes: int
    record_count: int
    first_row_id: int | None = None
    split_offsets: list[int] | None = None
    sort_order_id: int | None = None
    value_counts: IdMap | None = None
    null_value_counts: IdMap | None = None
    nan_value_counts: IdMap | None = None
    lower_bounds: IdMap | None = None
    upper_bounds: IdMap | None = None
    equality_ids: list[int] | None = None
    referenced_data_file: str | None = None
    content_offset: int | None = None
    content_size_in_bytes: int | None = None


class ScanTask(msgspec.Struct, rename="kebab", gc=False):
    """One data file to read and the deletes that apply; the residual filter is always stated."""

    data_file: ContentFile
    residual_filter: msgspec.Raw
    delete_file_references: list[int] | msgspec.UnsetType = msgspec.UNSET


class Tasks(Shape):
    """Some tasks of a plan, and where the others are."""

    file_scan_tasks: list[ScanTask] = []
    delete_files: list[ContentFile] = []
    plan_tasks: list[str] = []


class Planned(msgspec.Struct, rename="kebab"):
    """A finished plan."""

    status: str
    plan_id: str
    plan_tasks: list[str]
    file_scan_tasks: list[ScanTask]
    delete_files: list[ContentFile] | msgspec.UnsetType = msgspec.UNSET


class PlanState(msgspec.Struct, array_like=True):
    """All there is to know of a plan, and of one part of it: servers keep nothing.

    `leaf` is the ordinal of the first leaf to read, -1 the root; `skip` how many of its files came
    before; `end` the leaf to stop at.
    """

    plan: str
    snapshot_id: int
    filter: Any = None
    case_sensitive: bool = True
    use_snapshot_schema: bool = False
    start_snapshot_id: int | None = None
    stats_fields: list[str] = []
    leaf: int = -1
    skip: int = 0
    end: int | None = None


# Filters


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


@frozen
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
            raise InvalidInput(f"unknown filter type {kind!r}")
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
    raise InvalidInput(f"unknown term {term!r} in a filter")


def _literals(op: Op, raw: Mapping[str, Any], column: Column) -> Sequence[Literal]:
    if op in UNARY:
        return ()
    kind = column.field.field_type
    if op in SETS:
        values = _part(raw, "values")
        if not isinstance(values, list):
            raise InvalidInput(f"the values of column '{column.name}' are not a list")
        literals: list[Literal] = []
        for value in values:
            cancellation.check()
            literals.append(_literal(value, kind, column))
        return literals
    return [_literal(_part(raw, "value"), kind, column)]


def _literal(value: Any, kind: IcebergType, column: Column) -> Literal:
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


__all__ = [
    "ContentFile",
    "FetchTasks",
    "IdMap",
    "PlanFilter",
    "PlanScan",
    "PlanState",
    "Planned",
    "ScanTask",
    "Tasks",
    "bound_filter",
]
