"""A scan as a lazy polars frame: polars says which columns, how many rows and which condition.

Of the condition, the parts that compare a column with a value prune files; polars itself evaluates
the whole, so a part that is not understood costs reading and never a row.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from frazil.errors import FrazilError
from frazil.extras import needed
from frazil.filter.bind.bind import conjunction, predicate
from frazil.filter.bind.filter_columns import ColumnIndex
from frazil.filter.bind.literals import typed
from frazil.iceberg import types as ice
from frazil.iceberg.expressions import BooleanExpression, Column, Op
from frazil.value_classes import replace

if TYPE_CHECKING:
    import polars

    from frazil.rows.scan import Scan

_OPS: Final = {"Eq": Op.EQ, "Lt": Op.LT, "LtEq": Op.LE, "Gt": Op.GT, "GtEq": Op.GE}
_WHOLE: Final = frozenset({"Int", "Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32"})
_EXACT: Final = 1 << 53


def lazy_frame(scan: Scan) -> polars.LazyFrame:
    """The frame; nothing is read before it is collected."""
    pl = needed("polars", "to_polars")
    plugins = needed("polars.io.plugins", "to_polars")
    empty = pl.DataFrame(scan.arrow_schema.empty_table())

    def read(
        columns: list[str] | None,
        condition: polars.Expr | None,
        rows: int | None,
        batch_rows: int | None,
    ) -> Iterator[polars.DataFrame]:
        chosen = scan if rows is None else scan.limit(rows)
        if condition is not None:
            chosen = narrowed(chosen, condition)  # polars takes the first rows before it filters
        if columns is not None:
            names_read = {*columns, *(condition.meta.root_names() if condition is not None else ())}
            names = [field.name for field in scan.read_schema.fields if field.name in names_read]
            chosen = replace(chosen, columns=tuple(names or [scan.read_schema.fields[0].name]))
        for batch in chosen.to_batches():
            frame = pl.DataFrame(batch)
            if condition is not None:
                frame = frame.filter(condition)
            yield frame if columns is None else frame.select(columns)

    frame: polars.LazyFrame = plugins.register_io_source(read, schema=empty.schema)
    return frame


def narrowed(scan: Scan, condition: polars.Expr) -> Scan:
    """The scan without rows that a condition of polars surely rules out."""
    if scan.condition.sql is not None or scan.max_rows is not None:
        return scan
    parts = list(_pushed(scan, json.loads(condition.meta.serialize(format="json"))))
    if not parts:
        return scan
    return replace(scan, matching=conjunction([scan.condition.filter, *parts]), params=())


def _pushed(scan: Scan, node: Any) -> Iterator[BooleanExpression]:
    columns = ColumnIndex.of(scan.table_schema)
    ids_by_name = {field.name: field.field_id for field in scan.table_schema.fields}
    for part in _conjuncts(node):
        try:
            comparison = _comparison(part)
            if comparison is None or comparison[0] not in ids_by_name:
                continue
            column = columns.with_id(ids_by_name[comparison[0]])
            test = _predicate(column, comparison[1], comparison[2])
        except (KeyError, TypeError, ValueError, FrazilError):
            continue  # another form of expressions than this one is not pushed
        if test is not None:
            yield test


def _conjuncts(node: Any) -> Iterator[Any]:
    stack = [node]
    while stack:
        part = stack.pop()
        binary = part.get("BinaryExpr") if isinstance(part, dict) else None
        if binary is not None and binary["op"] in ("And", "LogicalAnd"):
            stack += [binary["right"], binary["left"]]
        else:
            yield part


def _comparison(node: Any) -> tuple[str, Op, Any] | None:
    """A column, how it is compared, and the literal."""
    binary = node["BinaryExpr"]
    op, left, right = _OPS.get(binary["op"]), binary["left"], binary["right"]
    if op is None:
        return None
    if "Column" in left:
        return left["Column"], op, right["Literal"]
    return right["Column"], op.mirrored, left["Literal"]


def _predicate(column: Column, op: Op, literal: Any) -> BooleanExpression | None:
    kind = column.field.field_type
    ((form, value),) = (literal.get("Scalar") or literal["Dyn"]).items()
    if value is None or not _is_alike(kind, form, value):
        return None
    if form == "Datetime":
        value = value[0]
    return predicate(
        op, column, [typed(float(value) if isinstance(kind, ice.DoubleType) else value, kind)]
    )


def _is_alike(kind: ice.IcebergType, form: str, value: Any) -> bool:
    """Whether polars compares such a column with such a literal as we do, without rounding."""
    match kind:
        case ice.IntegerType() | ice.LongType():
            return form in _WHOLE
        case ice.DoubleType():
            return form in ("Float", "Float64") or (form in _WHOLE and abs(value) < _EXACT)
        case ice.StringType():
            return form in ("String", "Str")
        case ice.BooleanType():
            return form == "Boolean"
        case ice.DateType():
            return form == "Date"
        case ice.TimestampType():
            return form == "Datetime" and value[1:] == ["Microseconds", None]
        case ice.TimestamptzType():
            zones = ("UTC", {"inner": "UTC"})
            return form == "Datetime" and value[1] == "Microseconds" and value[2] in zones
    return False
