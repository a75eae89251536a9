"""Names under which Spark's Parquet reader may read columns.

Spark matches columns by field id, yet pushes filters and takes types by name. A name that another
field had at that level, in any schema of the table, is therefore not safe to read by: rows would be
lost. Such columns are read under names no file has (`_f<id>`) and renamed afterwards. Knows schemas
only; whether a file has field ids at all is for `bulk_reads` to decide.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import types as sql

from frazil.data.metadata_columns import RESERVED_IDS
from frazil.format.metadata.metadata import TableMetadata
from frazil.iceberg.schema import Schema
from frazil.iceberg.types import IcebergType, ListType, MapType, NestedField, StructType, UUIDType
from frazil.spark.types.defaults import default_metadata
from frazil.spark.types.spark_types import FIELD_ID, spark_type
from frazil.value_classes import frozen

_ROOT = -1


@frozen
class ReadNames:
    """Which fields may be read under their own names."""

    clean_ids: frozenset[int]
    prefix: str

    @staticmethod
    def of(metadata: TableMetadata, schema: Schema) -> ReadNames:
        """The names of a schema of the table, judged by every schema the table has had."""
        users: dict[tuple[int, str], set[int]] = {}
        levels: dict[int, tuple[int, str]] = {}
        for version in (*metadata.schemas, schema):
            _collect(version.fields, _ROOT, users, levels, is_wanted=version is schema)
        clean = (
            frozenset(
                field_id
                for field_id, level in levels.items()
                if len(users[level]) == 1 and field_id not in RESERVED_IDS
            )
            if _has_every_schema(metadata)
            else frozenset()
        )
        return ReadNames(clean_ids=clean, prefix=_prefix(name for _, name in users))

    def is_clean(self, field: NestedField) -> bool:
        """Whether the field and everything in it may go by their own names."""
        return field.field_id in self.clean_ids and all(
            self.is_clean(child) for child in _children(field.field_type)
        )

    def read_name(self, field: NestedField) -> str:
        """The name to read the column under."""
        return field.name if self.is_clean(field) else f"{self.prefix}{field.field_id}"

    def read_field(self, field: NestedField) -> sql.StructField:
        """The column as Spark's reader is asked for it: a UUID as bytes, a column that files may
        lack with its default."""
        part = self._read_part(field, clean=self.is_clean(field))
        if isinstance(field.field_type, UUIDType):
            part.dataType = sql.BinaryType()
        if field.initial_default is not None:
            part.metadata.update(default_metadata(field))
        return part

    def _read_part(self, field: NestedField, *, clean: bool) -> sql.StructField:
        return sql.StructField(
            field.name if clean else f"{self.prefix}{field.field_id}",
            self._read_type(field.field_type, clean=clean),
            True,
            {FIELD_ID: field.field_id},
        )

    def _read_type(self, kind: IcebergType, *, clean: bool) -> sql.DataType:
        match kind:
            case StructType():
                return sql.StructType(
                    [self._read_part(child, clean=clean) for child in kind.fields]
                )
            case ListType():
                return sql.ArrayType(self._read_type(kind.element_type, clean=clean), True)
            case MapType():
                return sql.MapType(
                    self._read_type(kind.key_type, clean=clean),
                    self._read_type(kind.value_type, clean=clean),
                    True,
                )
        return spark_type(kind)


def _has_every_schema(metadata: TableMetadata) -> bool:
    """Whether no schema was removed: one that is gone may have used any name."""
    ids = {schema.schema_id for schema in metadata.schemas}
    return ids == set(range(max(ids) + 1))


def _collect(
    fields: Iterable[NestedField],
    parent: int,
    users: dict[tuple[int, str], set[int]],
    levels: dict[int, tuple[int, str]],
    *,
    is_wanted: bool,
) -> None:
    for field in fields:
        level = (parent, field.name.lower())
        users.setdefault(level, set()).add(field.field_id)
        if is_wanted:
            levels[field.field_id] = level
        for owner, children in _levels(field.field_id, field.field_type):
            _collect(children, owner, users, levels, is_wanted=is_wanted)


def _levels(owner: int, kind: IcebergType) -> Iterable[tuple[int, tuple[NestedField, ...]]]:
    """The struct levels right below a type, with the id that owns each."""
    match kind:
        case StructType():
            yield owner, kind.fields
        case ListType():
            yield from _levels(kind.element_id, kind.element_type)
        case MapType():
            yield from _levels(kind.key_id, kind.key_type)
            yield from _levels(kind.value_id, kind.value_type)


def _children(kind: IcebergType) -> Iterable[NestedField]:
    for _, children in _levels(0, kind):
        yield from children


def _prefix(names: Iterable[str]) -> str:
    """The shortest of `_f`, `__f`, … that no name of the table starts with."""
    known = tuple(names)
    prefix = "_f"
    while any(name.startswith(prefix) for name in known):
        prefix = f"_{prefix}"
    return prefix
