"""A manifest file: `EntryBatch` to Parquet bytes and back, columns found by field id.

Written lean: no Arrow schema blob, no Parquet statistics, and no column that is null in every row.
Read by projection: only the columns whose keys are asked for are fetched and decoded. Columns that
are unknown are ignored.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from frazil.errors import FormatError
from frazil.format import fields, stats, tracking
from frazil.format.batch import EntryBatch

Content = Literal["root", "data", "delete"]
FORMAT_VERSION = 4
_ID = b"PARQUET:field_id"

_DICTIONARY_KEYS = frozenset(
    {
        "content_type",
        "deletion_vector.location",
        "file_format",
        "format_version",
        "sort_order_id",
        "spec_id",
        "tracking.dv_snapshot_id",
        "tracking.file_sequence_number",
        "tracking.sequence_number",
        "tracking.snapshot_id",
        "tracking.status",
    }
)
"""Columns with few distinct values; a dictionary only costs on the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A manifest as read: its entries and what its key-value metadata says."""

    batch: EntryBatch
    content: Content
    metadata: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnNames:
    """Names of the table-dependent columns; informational, readers resolve by id.

    `uuids` has the keys of columns that hold a uuid: on disk they differ from fixed(16).
    """

    stats: Mapping[int, str]
    partition: Mapping[int, str]
    uuids: Collection[str] = frozenset()


def encode(
    batch: EntryBatch,
    *,
    content: Content,
    names: ColumnNames,
    codec: str,
    metadata: Mapping[str, str] | None = None,
) -> pa.Buffer:
    """The bytes of a manifest file."""
    columns = list(_nest(batch, names))
    schema = pa.schema([field for field, _ in columns])
    table = pa.Table.from_arrays([array for _, array in columns], schema=schema)
    sink = pa.BufferOutputStream()
    dictionary: bool | list[str] = False
    if batch.num_rows > 500:
        dictionary = sorted(key for key in _DICTIONARY_KEYS if batch.has(key))
    with pq.ParquetWriter(
        sink,
        schema,
        compression=codec,
        store_schema=False,
        write_statistics=False,
        use_dictionary=dictionary,
    ) as writer:
        writer.write_table(table, row_group_size=max(1, table.num_rows))
        writer.add_key_value_metadata(
            {"format-version": str(FORMAT_VERSION), "content": content, **(metadata or {})}
        )
    return sink.getvalue()


def _nest(batch: EntryBatch, names: ColumnNames) -> Iterator[tuple[pa.Field, pa.Array]]:
    present = {
        key: column
        for key in batch.keys
        if (column := batch.column(key)).null_count < batch.num_rows
        or key in fields.REQUIRED_KEYS
    }
    for field in fields.ENTRY:
        if field is fields.PARTITION:
            built = _nest_partition(batch, present, names)
        elif field is fields.CONTENT_STATS:
            built = _nest_stats(batch, present, names)
        elif field.children:
            built = _nest_group(batch, field, present)
        elif field.name in present:
            array = _one(present[field.name])
            built = (_arrow_field(field, field.name, array.type), array)
        else:
            built = None
        if built is not None:
            yield built


def _nest_group(
    batch: EntryBatch, group: fields.Field, present: Mapping[str, pa.ChunkedArray]
) -> tuple[pa.Field, pa.Array] | None:
    """A declared struct; where it is null, its required children hold placeholders."""
    children = [child for child in group.children if f"{group.name}.{child.name}" in present]
    if not children:
        return None
    arrays = [_one(present[f"{group.name}.{child.name}"]) for child in children]
    mask = None
    if not group.required:
        marker = next(child for child in group.children if child.required)
        mask = _one(pc.is_null(batch.column(f"{group.name}.{marker.name}")))
        arrays = [
            _filled(array) if child.required else array
            for child, array in zip(children, arrays, strict=True)
        ]
    parts = [
        _arrow_field(child, child.name, array.type)
        for child, array in zip(children, arrays, strict=True)
    ]
    return _struct(group, parts, arrays, mask)


def _nest_partition(
    batch: EntryBatch, present: Mapping[str, pa.ChunkedArray], names: ColumnNames
) -> tuple[pa.Field, pa.Array] | None:
    keys = [key for key in present if key.startswith(fields.PARTITION_PREFIX)]
    if not keys:
        return None
    ids = [int(key.removeprefix(fields.PARTITION_PREFIX)) for key in keys]
    labels = _distinct({id: names.partition.get(id, f"partition_{id}") for id in ids})
    arrays = [_as_uuid(_one(present[key]), is_uuid=key in names.uuids) for key in keys]
    parts = [
        _with_id(pa.field(labels[id], array.type), id)
        for id, array in zip(ids, arrays, strict=True)
    ]
    content = batch.numpy("content_type")
    unpartitioned = np.asarray(pc.is_null(batch.column("spec_id")))
    mask = pa.array((content >= fields.ContentType.DATA_MANIFEST) | unpartitioned)
    return _struct(fields.PARTITION, parts, arrays, mask)


def _nest_stats(
    batch: EntryBatch, present: Mapping[str, pa.ChunkedArray], names: ColumnNames
) -> tuple[pa.Field, pa.Array] | None:
    by_field: dict[int, list[tuple[str, pa.Array]]] = {}
    for key, column in present.items():
        if key.startswith(fields.STATS_PREFIX):
            field_id, name = fields.split_stats_key(key)
            by_field.setdefault(field_id, []).append((name, _one(column)))
    if not by_field:
        return None
    labels = _distinct(
        {id: names.stats.get(id, f"field_{id}").replace(".", "_") for id in by_field}
    )
    structs: list[pa.Array] = []
    parts: list[pa.Field] = []
    for field_id, members in sorted(by_field.items()):
        part, struct = _nest_column_stats(field_id, labels[field_id], dict(members), names.uuids)
        parts.append(part)
        structs.append(struct)
    return _struct(fields.CONTENT_STATS, parts, structs, _all_null(structs))


def _nest_column_stats(
    field_id: int, label: str, members: dict[str, pa.Array], uuids: Collection[str]
) -> tuple[pa.Field, pa.Array]:
    """One column's statistics; the bounds of a geo column are structs of their coordinates.

    `tight_bounds` is never null where there are statistics: Iceberg Java's reader requires a value.
    """
    base = stats.stats_base(field_id)
    nothing = _all_null(list(members.values()))
    if not any(axis in members for axis in (*stats.GEO_LOWER, *stats.GEO_UPPER)):
        members["tight_bounds"] = _tight_bounds(members)
    parts: list[pa.Field] = []
    arrays: list[pa.Array] = []
    for bound, axes in (("lower_bound", stats.GEO_LOWER), ("upper_bound", stats.GEO_UPPER)):
        points = [axis for axis in axes if axis in members]
        if points:
            kinds = [
                _with_id(
                    pa.field(axis[-1], members[axis].type), base + stats.OFFSETS[axis]
                )
                for axis in points
            ]
            values = [members.pop(axis) for axis in points]
            point = pa.StructArray.from_arrays(values, fields=kinds, mask=_all_null(values))
            parts.append(_with_id(pa.field(bound, point.type), base + stats.OFFSETS[bound]))
            arrays.append(point)
    for name in sorted(members, key=lambda member: stats.OFFSETS[member]):
        array = _as_uuid(members[name], is_uuid=fields.stats_key(field_id, name) in uuids)
        parts.append(_with_id(pa.field(name, array.type), base + stats.OFFSETS[name]))
        arrays.append(array)
    struct = pa.StructArray.from_arrays(arrays, fields=parts, mask=nothing)
    return _with_id(pa.field(label, struct.type), base), struct


def _tight_bounds(members: Mapping[str, pa.Array]) -> pa.Array:
    known = members.get("tight_bounds")
    if known is None:
        return pa.repeat(pa.scalar(False), len(next(iter(members.values()))))
    return pc.fill_null(known, False)


def _as_uuid(array: pa.Array, *, is_uuid: bool) -> pa.Array:
    return pa.ExtensionArray.from_storage(pa.uuid(), array) if is_uuid else array


def _struct(
    group: fields.Field, parts: list[pa.Field], arrays: list[pa.Array], mask: pa.Array | None
) -> tuple[pa.Field, pa.Array]:
    if mask is not None and not pc.any(mask).as_py():
        mask = None
    struct = pa.StructArray.from_arrays(arrays, fields=parts, mask=mask)
    return _with_id(pa.field(group.name, struct.type, nullable=not group.required), group.id), struct


def _all_null(arrays: list[pa.Array]) -> pa.Array | None:
    if any(array.null_count == 0 for array in arrays):
        return None
    mask = np.logical_and.reduce([np.asarray(pc.is_null(array)) for array in arrays])
    return pa.array(mask)


def _filled(array: pa.Array) -> pa.Array:
    if not array.null_count:
        return array
    placeholder = "" if pa.types.is_string(array.type) else 0
    return pc.fill_null(array, pa.scalar(placeholder, array.type))


def _arrow_field(field: fields.Field, name: str, kind: pa.DataType) -> pa.Field:
    if field.element_id is not None:
        element = _with_id(pa.field("element", kind.value_type, nullable=False), field.element_id)
        kind = pa.list_(element)
    return _with_id(pa.field(name, kind, nullable=not field.required), field.id)


def _with_id(field: pa.Field, id: int) -> pa.Field:
    return field.with_metadata({_ID: str(id)})


def _distinct(labels: dict[int, str]) -> dict[int, str]:
    """Two columns may share a flattened name (`a.b` and `a_b`); the id tells them apart."""
    taken: dict[str, int] = {}
    result: dict[int, str] = {}
    for id, label in labels.items():
        result[id] = f"{label}_{id}" if label in taken else label
        taken[label] = id
    return result


def _one(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    if isinstance(column, pa.Array):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    return column.combine_chunks()


def decode(
    source: pa.NativeFile | pa.Buffer | bytes,
    *,
    path: str,
    keys: Collection[str] | None = None,
) -> Manifest:
    """Read a manifest: all columns, or those of `keys` (status and content type always)."""
    try:
        file = pq.ParquetFile(
            pa.BufferReader(source) if isinstance(source, pa.Buffer | bytes) else source,
            pre_buffer=False,
            arrow_extensions_enabled=False,
        )
        metadata = _metadata(file, path)
        columns = _leaf_columns(file, path)
        if keys is not None:
            wanted = {*keys, "tracking.status", "content_type"}
            columns = {key: column for key, column in columns.items() if key in wanted}
        table = file.read(columns=list(columns.values()), use_threads=False)
        flat = _flatten(table, {column: key for key, column in columns.items()})
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise FormatError(
            f"not a readable Parquet manifest: {_first_line(error)}", path=path
        ) from error
    batch = EntryBatch(_checked(flat, keys, path))
    content = metadata.get("content", "")
    if content not in ("root", "data", "delete"):
        raise FormatError(
            f"content is {content!r}; expected root, data or delete", path=path, field="content"
        )
    tracking.check(batch, root=content == "root", path=path)
    return Manifest(batch=batch, content=content, metadata=metadata)  # type: ignore[arg-type]


def _metadata(file: pq.ParquetFile, path: str) -> dict[str, str]:
    raw = file.metadata.metadata or {}
    metadata = {
        key.decode("utf-8", "replace"): value.decode("utf-8", "replace")
        for key, value in raw.items()
    }
    version = metadata.get("format-version")
    if version is None or not version.isdigit():
        raise FormatError(
            f"format-version is {version!r}; not a v4 manifest", path=path, field="format-version"
        )
    if int(version) != FORMAT_VERSION:
        raise FormatError(
            f"format-version is {version}; this version reads {FORMAT_VERSION}. "
            "Upgrade Frazil to read it.",
            path=path,
            field="format-version",
        )
    return metadata


def _leaf_columns(file: pq.ParquetFile, path: str) -> dict[str, str]:
    """Key to Parquet column path, by field id."""
    found: dict[str, str] = {}
    known = {field.id: field for field in fields.ENTRY}
    for column in file.schema_arrow:
        field = known.get(_field_id(column))
        if field is None:
            continue
        if field.type is not None:
            found[field.name] = column.name
            continue
        if not pa.types.is_struct(column.type):
            raise FormatError(f"is {column.type}; expected a struct", path=path, field=field.name)
        for child in column.type:
            id = _field_id(child)
            where = f"{column.name}.{child.name}"
            if field is fields.PARTITION:
                found[fields.partition_key(id)] = where
            elif field is fields.CONTENT_STATS:
                _stats_columns(found, child, where)
            else:
                match = next((leaf for leaf in field.children if leaf.id == id), None)
                if match is not None:
                    found[f"{field.name}.{match.name}"] = where
    return found


def _stats_columns(found: dict[str, str], column: pa.Field, where: str) -> None:
    if not pa.types.is_struct(column.type):
        return
    for leaf in column.type:
        if pa.types.is_struct(leaf.type):
            _stats_columns(found, leaf, f"{where}.{leaf.name}")
            continue
        resolved = stats.field_of_stats_id(_field_id(leaf))
        if resolved is not None:
            found[fields.stats_key(*resolved)] = f"{where}.{leaf.name}"


def _field_id(field: pa.Field) -> int:
    value = (field.metadata or {}).get(_ID)
    return int(value) if value is not None else -1


def _flatten(table: pa.Table, keys: Mapping[str, str]) -> pa.Table:
    flat: dict[str, pa.Array] = {}

    def visit(path: str, array: pa.Array) -> None:
        key = keys.get(path)
        if key is not None:
            flat[key] = array
        elif pa.types.is_struct(array.type):
            for child, values in zip(array.type, array.flatten(), strict=True):
                visit(f"{path}.{child.name}", values)

    for name, column in zip(table.column_names, table.columns, strict=True):
        visit(name, _one(column))
    return pa.table(flat)


def _checked(table: pa.Table, keys: Collection[str] | None, path: str) -> pa.Table:
    """Declared columns have the declared type, and required ones have no null."""
    for index, name in enumerate(table.column_names):
        leaf = fields.LEAVES.get(name)
        if leaf is None:
            continue
        column = table.column(index)
        if column.type != leaf.type:
            try:
                table = table.set_column(index, name, column.cast(leaf.type))
            except pa.ArrowException as error:
                raise FormatError(
                    f"is {column.type}; expected {leaf.type}", path=path, field=name
                ) from error
    asked = fields.REQUIRED_KEYS if keys is None else {"tracking.status", "content_type"}
    for key in asked:
        if key not in table.column_names:
            raise FormatError("the required column is missing", path=path, field=key)
    for key in fields.REQUIRED_KEYS:
        if key in table.column_names and table.column(key).null_count:
            raise FormatError("a required value is null", path=path, field=key)
    return table


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def describe(source: pa.NativeFile | pa.Buffer | bytes, *, path: str) -> Mapping[str, Any]:
    """Key-value metadata, row count and columns of a manifest, from its footer alone."""
    try:
        file = pq.ParquetFile(
            pa.BufferReader(source) if isinstance(source, pa.Buffer | bytes) else source
        )
    except (pa.ArrowException, OSError, ValueError) as error:
        raise FormatError(
            f"not a readable Parquet manifest: {_first_line(error)}", path=path
        ) from error
    return {
        "metadata": _metadata(file, path),
        "entries": file.metadata.num_rows,
        "columns": _leaf_columns(file, path),
    }
