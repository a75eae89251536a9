"""Assignments of an update: column to expression, checked against the schema, applied to batches.

A value that is text is an expression (`"price * 1.1"`, `"'shipped'"`); anything else is a value:
a Python object, an Arrow scalar, a PyIceberg literal. All expressions see the row as it was before
the update. `a.b` assigns a field of a struct; a struct that is null becomes one whose other fields
are null.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType, ListType, MapType, NestedField, StructType

from frazil.errors import InvalidInput
from frazil.expr.filter_columns import Column, ColumnIndex
from frazil.expr.scalar import Constant, Node, Rows, coerced, columns_in
from frazil.expr.scalar_cast import Values
from frazil.expr.scalar_text import parse_scalar
from frazil.format.types import arrow_type, scalar

_SHOWN = 80


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Given:
    """A value given as such."""

    value: pa.Scalar

    def values(self, rows: Rows) -> Values:
        return self.value


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Assignment:
    """One column, what it becomes, and how that was written."""

    column: Column
    field: NestedField
    source: Node | _Given
    shown: str

    def values(self, rows: Rows) -> pa.Array:
        """The new values, one per row; refuses those the column cannot hold."""
        try:
            found = rows.array(self.source.values(rows))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OverflowError) as problem:
            raise self.refused(_worded(problem)) from problem
        if self.field.required and found.null_count:
            count = found.null_count
            raise self.refused(
                f"gives {count} null{'s' if count > 1 else ''}, but the column is required"
            )
        return found

    def refused(self, problem: str) -> InvalidInput:
        """The error that names column and expression."""
        return InvalidInput(f"column '{self.column.name}' = {self.shown}: {problem}")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Assignments:
    """Compiled assignments: what to read, and what to set."""

    assignments: tuple[Assignment, ...]
    columns_read: tuple[str, ...]


def compile_assignments(
    assignments: Mapping[str, Any], schema: Schema, *, case_sensitive: bool = True
) -> Assignments:
    """Check assignments against the schema; refuses unknown columns and types that do not fit."""
    if not isinstance(assignments, Mapping):
        raise InvalidInput(
            "assignments are a mapping of columns to expressions: "
            f"{{'price': 'price * 2'}}, not {type(assignments).__name__}"
        )
    if not assignments:
        raise InvalidInput("there is nothing to assign; name at least one column")
    columns = ColumnIndex.of(schema)
    made: dict[tuple[str, ...], Assignment] = {}
    for name, value in assignments.items():
        column = columns.named(name, case_sensitive=case_sensitive)
        for other in made:
            shorter = min(len(other), len(column.path))
            if other[:shorter] == column.path[:shorter]:
                other_name = ".".join(other)
                raise InvalidInput(f"column '{name}' is assigned twice: also as '{other_name}'")
        made[column.path] = _compiled(column, value, columns, case_sensitive=case_sensitive)
    return Assignments(
        assignments=tuple(made.values()), columns_read=tuple(_columns_read(made.values()))
    )


def apply(compiled: Assignments, batch: pa.RecordBatch, schema: Schema) -> pa.RecordBatch:
    """The rows with new values: exactly the table's columns, in schema order."""
    missing = [field.name for field in schema.fields if field.name not in batch.schema.names]
    assigned = {a.column.path[0] for a in compiled.assignments if len(a.column.path) == 1}
    missing = [name for name in missing if name not in assigned or name in compiled.columns_read]
    if missing:
        raise InvalidInput(f"the rows lack the columns {', '.join(missing)}")
    rows = Rows(
        columns={name: batch.column(name) for name in compiled.columns_read},
        num_rows=batch.num_rows,
    )
    arrays: list[pa.Array] = []
    fields: list[pa.Field] = []
    for field in schema.fields:
        mine = [a for a in compiled.assignments if a.column.path[0] == field.name]
        if mine and len(mine[0].column.path) == 1:
            array = mine[0].values(rows)
        else:
            array = batch.column(field.name)
            if mine:
                array = _with_fields(array, field, mine, rows, depth=1)
        arrays.append(array)
        fields.append(pa.field(field.name, array.type, nullable=not field.required))
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _compiled(
    column: Column, value: Any, columns: ColumnIndex, *, case_sensitive: bool
) -> Assignment:
    field = columns.schema.find_field(column.field.field_id)
    kind = field.field_type
    is_text = isinstance(value, str)
    shown = value.strip() if is_text else repr(value)
    shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"
    source: Node | _Given
    try:
        if is_text:
            node = parse_scalar(value, columns, case_sensitive=case_sensitive)
            is_null = isinstance(node, Constant) and node.literal is None
            if is_null and not kind.is_primitive:
                source = _Given(value=pa.scalar(None, _arrow(kind)))
            else:
                source = coerced(node, kind)
        else:
            source = _Given(value=_given(value, kind))
            is_null = not source.value.is_valid
    except InvalidInput as problem:
        raise InvalidInput(f"column '{column.name}' = {shown}: {problem}") from None
    made = Assignment(column=column, field=field, source=source, shown=shown)
    if is_null and field.required:
        raise made.refused(f"found null, expected {kind}: the column is required")
    return made


def _columns_read(assignments: Any) -> Iterator[str]:
    seen: set[str] = set()
    for assignment in assignments:
        if isinstance(assignment.source, _Given):
            continue
        for column in columns_in(assignment.source):
            if column.path[0] not in seen:
                seen.add(column.path[0])
                yield column.path[0]


def _with_fields(
    array: pa.Array, field: NestedField, mine: Sequence[Assignment], rows: Rows, *, depth: int
) -> pa.Array:
    """A struct column with some of its fields set."""
    kind = field.field_type
    assert isinstance(kind, StructType)
    children: list[pa.Array] = []
    fields: list[pa.Field] = []
    for child in kind.fields:
        values = pc.struct_field(array, child.name)
        path = (*mine[0].column.path[:depth], child.name)
        inner = [a for a in mine if a.column.path[: depth + 1] == path]
        if inner and len(inner[0].column.path) == depth + 1:
            values = inner[0].values(rows)
        elif inner:
            values = _with_fields(values, child, inner, rows, depth=depth + 1)
        elif child.required and values.null_count:
            raise mine[0].refused(
                f"'{'.'.join(path[:-1])}' is null in some rows, and its field '{child.name}' is "
                "required; assign the whole struct"
            )
        children.append(values)
        fields.append(pa.field(child.name, values.type, nullable=not child.required))
    return pa.StructArray.from_arrays(children, fields=fields)


def _given(value: Any, kind: IcebergType) -> pa.Scalar:
    """A value as such, in the column's Arrow type."""
    if kind.is_primitive:
        return scalar(value, kind)
    if isinstance(value, pa.Scalar):
        value = value.as_py()
    problem = next(_misfits(value, kind, ""), None)
    if problem is not None:
        raise InvalidInput(problem)
    try:
        return pa.scalar(value, _arrow(kind))
    except (pa.ArrowInvalid, pa.ArrowTypeError, ValueError, TypeError) as error:
        raise InvalidInput(f"{value!r} is not a value of type {kind}: {error}") from error


def _misfits(value: Any, kind: IcebergType, path: str) -> Iterator[str]:
    """Unknown fields and missing required ones, anywhere in a nested value."""
    if value is None:
        return
    if isinstance(kind, StructType):
        if not isinstance(value, Mapping):
            yield f"found {type(value).__name__}{_at(path)}, expected a mapping for {kind}"
            return
        known = {field.name for field in kind.fields}
        extra = [str(name) for name in value if name not in known]
        if extra:
            yield f"unknown field {', '.join(extra)}{_at(path)}; expected {', '.join(known)}"
        for field in kind.fields:
            inner = f"{path}.{field.name}" if path else field.name
            if field.required and value.get(field.name) is None:
                yield f"the field '{inner}' is required"
            yield from _misfits(value.get(field.name), field.field_type, inner)
    elif isinstance(kind, ListType):
        if isinstance(value, str | bytes | Mapping) or not hasattr(value, "__iter__"):
            yield f"found {type(value).__name__}{_at(path)}, expected a list for {kind}"
            return
        for item in value:
            if item is None and kind.element_required:
                yield f"null in a list{_at(path)} whose elements are required"
            yield from _misfits(item, kind.element_type, f"{path}.element")
    elif isinstance(kind, MapType):
        pairs = value.items() if isinstance(value, Mapping) else value
        for _, item in pairs:
            if item is None and kind.value_required:
                yield f"null in a map{_at(path)} whose values are required"
            yield from _misfits(item, kind.value_type, f"{path}.value")


def _at(path: str) -> str:
    return f" at '{path}'" if path else ""


def _arrow(kind: IcebergType) -> pa.DataType:
    if isinstance(kind, StructType):
        return pa.struct([_arrow_field(field) for field in kind.fields])
    if isinstance(kind, ListType):
        return pa.list_(_arrow_field(kind.element_field))
    if isinstance(kind, MapType):
        return pa.map_(_arrow_field(kind.key_field), _arrow_field(kind.value_field))
    return arrow_type(kind)


def _arrow_field(field: NestedField) -> pa.Field:
    return pa.field(field.name, _arrow(field.field_type), nullable=not field.required)


def _worded(problem: Exception) -> str:
    text = str(problem).strip().splitlines()[0] if str(problem).strip() else repr(problem)
    lowered = text.lower()
    if "divide by zero" in lowered:
        return "division by zero in some rows; guard it with nullif(…, 0) or case"
    if lowered == "overflow":
        return "the result overflows its type in some rows; cast an operand to a wider one"
    return f"a value does not fit: {text}"


__all__ = ["Assignment", "Assignments", "apply", "compile_assignments"]
