"""A data file's columns as the columns a reader asked for, matched by field id.

Covers renamed, reordered, added, dropped and promoted columns at every level of nesting, files
without field ids (through a name mapping), constants of identity partitions and initial defaults.
Knows Arrow schemas, not file formats; `read` does the reading.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from frazil.data import reshape
from frazil.data.conform import fits
from frazil.data.reshape import Cast, Fill, Keep, Made, Plan
from frazil.data.schema import (
    FIELD_ID_KEY,
    arrow_schema,
    is_bytes,
    is_list,
    is_text,
    nested_arrow_type,
    plain_type,
)
from frazil.errors import FormatError
from frazil.format.values.types import scalar
from frazil.iceberg import types as ice
from frazil.iceberg.schema import Schema
from frazil.iceberg.types import VariantType
from frazil.value_classes import dataclass, replace

if TYPE_CHECKING:
    from frazil.iceberg.name_mapping import MappedField, NameMapping

_ORC_ID_KEY: Final = b"iceberg.id"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileField:
    """A field of a data file: its id, if it has one, and where it lies."""

    index: int
    """Place among its siblings."""
    name: str
    field_id: int | None
    type: pa.DataType
    leaves: range
    """Its leaf columns, counted over the whole file, depth first."""
    children: tuple[FileField, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """How batches of one file become batches of the schema asked for."""

    schema: Schema
    arrow: pa.Schema
    plans: tuple[tuple[int | None, Plan], ...]

    def project(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch in the schema asked for."""
        columns = [
            reshape.reshape(plan, None if at is None else batch.column(at), batch.num_rows)
            for at, plan in self.plans
        ]
        return reshape.record_batch(columns, self.arrow, batch.num_rows)


def file_fields(arrow: pa.Schema, mapping: NameMapping | None = None) -> tuple[FileField, ...]:
    """The fields of a file, by their own ids or, when no field has one, by the name mapping."""
    fields = _known_fields(arrow.serialize().to_pybytes())
    if any(_has_id(field) for field in fields):
        return fields
    if mapping is None:
        raise FormatError(
            "no column has a field id, and the table has no schema.name-mapping.default; "
            "set that property to say which column is which"
        )
    return _mapped(fields, mapping.fields)


@lru_cache(maxsize=128)
def _known_fields(serialized: bytes) -> tuple[FileField, ...]:
    """The fields of a schema. Files of a table are mostly alike, and planning them is most of the
    work that a small one takes; schemas that differ only in field ids count as equal in Arrow."""
    return _file_fields(list(pa.ipc.read_schema(pa.py_buffer(serialized))), 0)


def needed_leaves(fields: tuple[FileField, ...], columns: Iterable[ice.NestedField]) -> list[int]:
    """The leaf columns of a file that hold values of these fields, in file order."""
    leaves: set[int] = set()
    sources = _by_id(fields)
    for field in columns:
        source = sources.get(field.field_id)
        if source is not None:
            leaves.update(_needed_below(source, field.field_type))
    return sorted(leaves)


def _needed_below(source: FileField, target: ice.IcebergType) -> Iterable[int]:
    if not isinstance(target, ice.StructType) or not source.children:
        return source.leaves
    # A struct that lost all its columns still says by one of them where it is null.
    return needed_leaves(source.children, target.fields) or source.leaves[:1]


def projection(
    fields: tuple[FileField, ...], schema: Schema, *, constants: Mapping[int, Any] | None = None
) -> Projection:
    """Plan the columns of `schema` from a file's fields.

    `constants` gives values by field id for columns the file lacks (identity partitions).
    """
    plans = _Planner(constants=constants or {}).fields(schema.fields, fields, "")
    return Projection(schema=schema, arrow=arrow_schema(schema), plans=plans)


def _file_fields(fields: list[pa.Field], leaf: int) -> tuple[FileField, ...]:
    columns = []
    for index, field in enumerate(fields):
        children = _file_fields(_children(field.type), leaf)
        end = children[-1].leaves.stop if children else leaf + 1
        columns.append(
            FileField(
                index=index,
                name=field.name,
                field_id=_field_id(field.metadata or {}),
                type=field.type,
                leaves=range(leaf, end),
                children=children,
            )
        )
        leaf = end
    return tuple(columns)


def _children(kind: pa.DataType) -> list[pa.Field]:
    if pa.types.is_struct(kind):
        return list(kind)
    if is_list(kind):
        return [kind.value_field]
    if pa.types.is_map(kind):
        return [kind.key_field, kind.item_field]
    return []


def _field_id(metadata: Mapping[bytes, bytes]) -> int | None:
    text = metadata.get(FIELD_ID_KEY) or metadata.get(_ORC_ID_KEY)
    return int(text) if text else None


def _has_id(field: FileField) -> bool:
    return field.field_id is not None or any(_has_id(child) for child in field.children)


def _by_id(fields: tuple[FileField, ...]) -> dict[int | None, FileField]:
    """Fields by their ids; of several with one id, the first."""
    return {field.field_id: field for field in reversed(fields)}


def _mapped(fields: tuple[FileField, ...], mapping: Iterable[MappedField]) -> tuple[FileField, ...]:
    mapped_by_name = {name: mapped for mapped in mapping for name in mapped.names}
    mapped = []
    for field in fields:
        entry = mapped_by_name.get(field.name)
        children = _mapped(_standard_names(field), entry.fields if entry is not None else ())
        field_id = entry.field_id if entry is not None else None
        mapped.append(replace(field, field_id=field_id, children=children))
    return tuple(mapped)


def _standard_names(field: FileField) -> tuple[FileField, ...]:
    """The children; those of lists and maps under the names that mappings use."""
    if is_list(field.type):
        return (replace(field.children[0], name="element"),)
    if pa.types.is_map(field.type):
        key, value = field.children
        return replace(key, name="key"), replace(value, name="value")
    return field.children


@dataclass(frozen=True, slots=True, kw_only=True)
class _Planner:
    constants: Mapping[int, Any]

    def fields(
        self, columns: tuple[ice.NestedField, ...], file_fields: tuple[FileField, ...], prefix: str
    ) -> tuple[tuple[int | None, Plan], ...]:
        plans: list[tuple[int | None, Plan]] = []
        sources = _by_id(file_fields)
        for field in columns:
            source = sources.get(field.field_id)
            path = f"{prefix}{field.name}"
            if source is None:
                plans.append((None, self.absent(field, path)))
            else:
                plans.append((source.index, self.plan(field.field_type, source, path)))
        return tuple(plans)

    def absent(self, field: ice.NestedField, path: str) -> Plan:
        if field.field_id in self.constants:
            value = self.constants[field.field_id]
            return Fill(_constant(value, field.field_type))
        if field.initial_default is not None:
            return Fill(scalar(field.initial_default, field.field_type))
        if field.required:
            raise FormatError(
                f"required column {path} (field id {field.field_id}) is not in the file and has "
                "no initial default"
            )
        return Fill(pa.scalar(None, nested_arrow_type(field.field_type)))

    def plan(self, type_: ice.IcebergType, source: FileField, path: str) -> Plan:
        target = nested_arrow_type(type_)
        match type_:
            case ice.StructType() if pa.types.is_struct(source.type):
                children = self.fields(type_.fields, source.children, f"{path}.")
                return reshape.simplified(reshape.Struct(target, children), source.type)
            case ice.ListType() if is_list(source.type):
                element = self.plan(type_.element_type, source.children[0], f"{path}.element")
                return reshape.simplified(reshape.List(target, element), source.type)
            case ice.MapType() if pa.types.is_map(source.type):
                key = self.plan(type_.key_type, source.children[0], f"{path}.key")
                value = self.plan(type_.value_type, source.children[1], f"{path}.value")
                return reshape.simplified(reshape.Map(target, key, value), source.type)
            case VariantType() if pa.types.is_struct(source.type):
                return Keep(target) if source.type == target else self.variants(source, path)
            case ice.PrimitiveType() if readable(source.type, type_):
                return Keep(target) if source.type == target else Cast(target)
        raise FormatError(f"found {source.type}; expected {type_}", field=path)

    def variants(self, source: FileField, path: str) -> Plan:
        from frazil.data.variants import holds_variants, whole

        if not holds_variants(source.type):
            raise FormatError(f"found {source.type}; expected the parts of a variant", field=path)
        return Made(nested_arrow_type(VariantType()), whole)


def _constant(value: Any, kind: ice.IcebergType) -> pa.Scalar:
    if isinstance(kind, ice.StructType):
        return pa.scalar(value, nested_arrow_type(kind))
    return scalar(value, kind)


def readable(source: pa.DataType, target: ice.PrimitiveType) -> bool:
    """Whether a file's column can be read as a table type: as written, promoted, or as other
    engines write it (timestamps without a zone for UTC, text without its annotation)."""
    source = plain_type(source)
    if fits(source, target) or pa.types.is_null(source):
        return True
    match target:
        case ice.TimestampType() | ice.TimestampNanoType():
            return bool(pa.types.is_timestamp(source) or pa.types.is_date(source))
        case ice.TimestamptzType() | ice.TimestamptzNanoType():
            return bool(pa.types.is_timestamp(source))
        case ice.UUIDType() | ice.FixedType():
            return is_bytes(source)  # ORC has no type for bytes of one length
    if is_text(nested_arrow_type(target)):
        return is_bytes(source)
    if is_bytes(nested_arrow_type(target)):
        return is_text(source)
    return False
