"""Paimon schemas as Iceberg schemas: ids, partition spec, name mapping, and which changes fit.

Field ids stay Paimon's own, from 0 on: Paimon writes them into its Parquet files, and a reader
binds columns by those. Files without ids (pypaimon, Paimon before 1.0, ORC) are bound by the name
mapping, which works while no name was given to a second column. Reads no files.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from frazil.errors import InvalidInput, Unsupported
from frazil.iceberg.name_mapping import MappedField, NameMapping
from frazil.iceberg.partitioning import PartitionField, PartitionSpec
from frazil.iceberg.schema import Schema
from frazil.iceberg.transforms import IdentityTransform
from frazil.iceberg.types import IcebergType, ListType, MapType, NestedField, StructType
from frazil.paimon.read.data_types import (
    BINARIES,
    STRINGS,
    TIMESTAMPS,
    DataField,
    DataType,
    TypeName,
    iceberg_field,
)
from frazil.paimon.read.table_schema import TableSchema
from frazil.value_classes import replace

FIRST_PARTITION_FIELD_ID: Final = 1000
_INTEGERS: Final = (TypeName.TINYINT, TypeName.SMALLINT, TypeName.INT, TypeName.BIGINT)
_FLOATS: Final = (TypeName.FLOAT, TypeName.DOUBLE)


def partition_field_ids(schema: TableSchema) -> tuple[int, ...]:
    """The partition field id of each partition key, in key order."""
    first = FIRST_PARTITION_FIELD_ID
    return tuple(range(first, first + len(schema.partition_keys)))


def iceberg_schema(
    schema: TableSchema,
    *,
    earlier: Iterable[TableSchema] = (),
    exclude: Collection[str] = (),
) -> Schema:
    """One schema version with Paimon's own field ids.

    A column is required only if every `earlier` version has it and allows no null there: their
    files may still be alive. `exclude` leaves columns out by name; `Unsupported` says, for all
    columns at once, which types Iceberg cannot read from Paimon's files.
    """
    for name in exclude:
        if name in (*schema.partition_keys, *schema.primary_keys):
            raise InvalidInput(f"column {name!r} is part of a key and cannot be left out")
    fields: list[NestedField] = []
    problems: list[str] = []
    versions = list(earlier)
    for column in schema.fields:
        if column.name in exclude:
            continue
        try:
            field = iceberg_field(column)
        except Unsupported as error:
            problems.append(str(error))
            continue
        if field.required and not all(_is_required_in(version, column.id) for version in versions):
            field = replace(field, required=False)
        fields.append(field)
    if problems:
        raise Unsupported(
            "; ".join(problems) + ". Leave such columns out with `exclude`",
            feature="paimon-types",
        )
    required = {field.name: field.field_id for field in fields if field.required}
    keys = [required[name] for name in schema.primary_keys if name in required]
    complete = len(keys) == len(schema.primary_keys)
    return Schema(*fields, schema_id=schema.id, identifier_field_ids=keys if complete else [])


def _is_required_in(schema: TableSchema, field_id: int) -> bool:
    return any(field.id == field_id and not field.type.nullable for field in schema.fields)


def check_excluded(schemas: Iterable[TableSchema], exclude: Collection[str]) -> None:
    """Refuse to leave out columns that no version has."""
    names = {field.name for schema in schemas for field in schema.fields}
    unknown = sorted(set(exclude) - names)
    if unknown:
        raise InvalidInput(f"cannot leave out {', '.join(unknown)}: unknown column")


def partition_spec(schema: TableSchema) -> PartitionSpec:
    """Identity partitioning on the partition keys; Paimon knows no other."""
    fields = [
        PartitionField(
            source_id=field.id, field_id=field_id, name=field.name, transform=IdentityTransform()
        )
        for field, field_id in zip(
            schema.partition_fields, partition_field_ids(schema), strict=True
        )
    ]
    return PartitionSpec(*fields, spec_id=0)


def name_mapping(
    current: TableSchema, others: Iterable[TableSchema], *, exclude: Collection[str] = ()
) -> NameMapping:
    """Names under which files without field ids hold their columns.

    A name belongs to the current column that has it, else to the column that had it last among
    `others`; `misbound` tells for which files that is wrong.
    """
    older = sorted((schema for schema in others if schema.id != current.id), key=lambda s: -s.id)
    levels = [[field for field in current.fields if field.name not in exclude]]
    levels += [list(schema.fields) for schema in older]
    return NameMapping(tuple(_mapped(levels)))


def _mapped(levels: Sequence[Sequence[DataField]]) -> list[MappedField]:
    """Mapped fields of the same level of several versions, the one to prefer first."""
    owners: dict[str, int] = {}
    versions: dict[int, list[DataField]] = {}
    for level in levels:
        for field in level:
            owners.setdefault(field.name, field.id)
            versions.setdefault(field.id, []).append(field)
    mapped = []
    for field_id, items in versions.items():
        names = list(dict.fromkeys(i.name for i in items if owners[i.name] == field_id))
        try:
            converted = iceberg_field(items[0]).field_type
        except Unsupported:
            continue
        if names:
            nested = _nested(converted, [item.type for item in items])
            mapped.append(_mapped_field(field_id, names, nested))
    return mapped


def _mapped_field(field_id: int, names: list[str], fields: list[MappedField]) -> MappedField:
    return MappedField(names=tuple(names), field_id=field_id, fields=tuple(fields))


def _nested(converted: IcebergType, types: Sequence[DataType]) -> list[MappedField]:
    if isinstance(converted, StructType):
        return _mapped([type.fields for type in types if type.name is TypeName.ROW])
    elements = [type.element for type in types if type.element is not None]
    if isinstance(converted, ListType):
        below = _nested(converted.element_type, elements)
        return [_mapped_field(converted.element_id, ["element"], below)]
    if isinstance(converted, MapType):
        below = _nested(converted.value_type, elements)
        key = _mapped_field(converted.key_id, ["key"], [])
        return [key, _mapped_field(converted.value_id, ["value"], below)]
    return []


def misbound(version: TableSchema, reading: TableSchema, mapping: NameMapping) -> list[str]:
    """Names that the mapping binds to the wrong column in files of a version without field ids.

    `reading` is the schema under which the files are read: columns it does not have do not matter.
    """
    return _misbound(version.fields, {field.id: field for field in reading.fields}, mapping.fields)


def _misbound(
    fields: Sequence[DataField], expected: Mapping[int, DataField], mapping: Iterable[MappedField]
) -> list[str]:
    items = {name: item for item in mapping for name in item.names}
    problems = []
    for field in fields:
        bound = items.get(field.name)
        bound_id = None if bound is None else bound.field_id
        if bound_id != field.id and (field.id in expected or bound_id in expected):
            problems.append(field.name)
        elif bound is not None and field.id in expected:
            inner = _misbound_below(field.type, expected[field.id].type, bound.fields)
            problems += [f"{field.name}.{name}" for name in inner]
    return problems


def _misbound_below(
    type: DataType, expected: DataType, mapping: Iterable[MappedField]
) -> list[str]:
    if type.name is TypeName.ROW and expected.name is TypeName.ROW:
        return _misbound(type.fields, {field.id: field for field in expected.fields}, mapping)
    if type.element is None or expected.element is None:
        return []
    below = next((item.fields for item in mapping if item.names[0] in ("element", "value")), ())
    return _misbound_below(type.element, expected.element, below)


def misfits(old: TableSchema, current: TableSchema, exclude: Collection[str] = ()) -> list[str]:
    """Why files of an older version cannot be read under the current one, column by column.

    Paimon casts old values when it reads; Iceberg only widens. Every other change of a type would
    show other values than Paimon does.
    """
    before = {field.id: field for field in old.fields}
    problems = []
    for field in current.fields:
        if field.name in exclude or field.id not in before:
            continue
        problems += _type_misfits(field.name, before[field.id].type, field.type)
    return problems


def _type_misfits(name: str, old: DataType, new: DataType) -> list[str]:
    if old.name is TypeName.ROW and new.name is TypeName.ROW:
        before = {field.id: field for field in old.fields}
        return [
            problem
            for field in new.fields
            if field.id in before
            for problem in _type_misfits(f"{name}.{field.name}", before[field.id].type, field.type)
        ]
    if old.name is new.name and old.element is not None and new.element is not None:
        problems = _type_misfits(f"{name}.element", old.element, new.element)
        if old.key is not None and new.key is not None:
            problems += _type_misfits(f"{name}.key", old.key, new.key)
        return problems
    return [] if _widens(old, new) else [f"column {name!r} changed from {old} to {new}"]


def _widens(old: DataType, new: DataType) -> bool:
    """Whether every old value reads the same under the new type."""
    for ladder in (_INTEGERS, _FLOATS):
        if old.name in ladder and new.name in ladder:
            return ladder.index(old.name) <= ladder.index(new.name)
    for family in (STRINGS, BINARIES):
        if old.name in family and new.name in family:
            varies = new.name in (TypeName.VARCHAR, TypeName.VARBINARY) or new.name is old.name
            return varies and old.length <= new.length
    if old.name is not new.name:
        return False
    if old.name is TypeName.DECIMAL:
        return old.scale == new.scale and old.precision <= new.precision
    if old.name in TIMESTAMPS:
        return old.precision <= new.precision
    return True


def unsupported_columns(schema: TableSchema, exclude: Collection[str] = ()) -> dict[str, str]:
    """Columns whose type cannot be adopted, with the reason."""
    problems = {}
    for column in schema.fields:
        if column.name in exclude:
            continue
        try:
            iceberg_field(column)
        except Unsupported as error:
            problems[column.name] = str(error)
    return problems
