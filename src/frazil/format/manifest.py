"""A manifest file: `EntryBatch` to Parquet bytes and back, columns found by field id.

Written lean: no Arrow schema blob, no column that is null in every row, numbers and text as
differences, and no Parquet statistics but, in a large manifest, those of the file format. A small
manifest has one checksum over all of it, a large one has one per page; both are verified.
Read by projection: only the columns whose keys are asked for are fetched and decoded. Columns that
are unknown are ignored. The revision of a manifest is told by its shape; ids and types that fit no
revision are refused.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from frazil.errors import FormatError, Unsupported
from frazil.format import fields, parquet_limits, revisions, stats, tracking
from frazil.format.batch import EntryBatch
from frazil.format.fields import Revision
from frazil.format.nest import FIELD_ID, ColumnNames, Nesting, checksum, nest
from frazil.format.seal import check_seal, sealed
from frazil.limits import DEFAULT, Limits

Content = Literal["root", "data", "delete"]
FORMAT_VERSION = revisions.FORMAT_VERSION
COLUMNS = "frazil.columns"
"""Key of what a manifest says of its own shape: entries, a checksum of keys and types, and whether
the file is sealed."""
SEALED_BYTES = 64 * 1024
"""Up to this size a manifest has one checksum, over all of it, and is meant to be read whole."""
_SEALED_VALUES = 20_000
_SEALED = "sealed"
_FORMATS = {"parquet", "avro", "orc"}
_MOST_SCHEMAS = 16
_FILE_FORMAT = "file_format"
_DICTIONARY_ROWS = 500
"""Below this a dictionary page costs more than it saves."""


_POOL = pa.system_memory_pool()
"""Manifests are decoded by threads that come and go. Arrow's own pool would hand the memory of each
back to the system in huge pages, to be zeroed again for the next: half the time of a first listing.
"""

_Found = dict[str, tuple[str, pa.DataType]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A manifest as read: its entries and what its key-value metadata says."""

    batch: EntryBatch
    content: Content
    metadata: Mapping[str, str]
    revision: Revision


def encode(
    batch: EntryBatch,
    *,
    content: Content,
    names: ColumnNames,
    codec: str,
    metadata: Mapping[str, str] | None = None,
    revision: Revision = fields.LATEST,
) -> pa.Buffer:
    """The bytes of a manifest file."""
    batch = revisions.on_disk(batch, revision)
    table, nesting = nest(batch, names, revision)
    shape = f"{batch.num_rows} {nesting.checksum}"
    stated = {"format-version": str(FORMAT_VERSION), "content": content, **(metadata or {})}
    if batch.num_rows * len(batch.keys) <= _SEALED_VALUES:
        whole = {**stated, COLUMNS: f"{shape} {_SEALED}"}
        data = sealed(_parquet(table, nesting, codec, whole, page_checksums=False))
        if data.size <= SEALED_BYTES:
            return data
    return _parquet(table, nesting, codec, {**stated, COLUMNS: shape}, page_checksums=True)


def _parquet(
    table: pa.Table,
    nesting: Nesting,
    codec: str,
    metadata: Mapping[str, str],
    *,
    page_checksums: bool,
) -> pa.Buffer:
    many = table.num_rows > _DICTIONARY_ROWS
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink,
        nesting.schema,
        compression=codec,
        store_schema=False,
        write_statistics=[_FILE_FORMAT] if many else False,
        write_page_checksum=page_checksums,
        use_dictionary=nesting.dictionaries if many else False,
        column_encoding=nesting.differences_beside if many else nesting.differences,
    ) as writer:
        writer.write_table(table, row_group_size=max(1, table.num_rows))
        writer.add_key_value_metadata(metadata)
    return sink.getvalue()


def decode(
    source: pa.NativeFile | pa.Buffer | bytes,
    *,
    path: str,
    keys: Collection[str] | None = None,
    limits: Limits = DEFAULT,
) -> Manifest:
    """Read a manifest: all columns, or those of `keys` (status and content type always)."""
    try:
        opened, is_sealed = _verified(source, path)
        file = pq.ParquetReader(memory_pool=_POOL)
        file.open(
            opened,
            pre_buffer=False,
            arrow_extensions_enabled=False,
            page_checksum_verification=True,
        )
        metadata = _metadata(file.metadata, path)
        known = _columns_of(file.schema_arrow)
        if known.problem is not None:
            raise FormatError(known.problem[1], path=path, field=known.problem[0])
        _check_columns(file, known, metadata, path, is_sealed=is_sealed)
        stored = opened.size()
        _refuse_column_files(file, known, stored=stored, limits=limits, path=path)
        columns = dict(known.columns)
        if keys is not None:
            wanted = revisions.keys_on_disk(keys, known.revision)
            columns = {key: column for key, column in columns.items() if key in wanted}
        file_format = _only_format(file.metadata, known.indices.get(columns.get(_FILE_FORMAT, "")))
        if file_format is not None:
            del columns[_FILE_FORMAT]
        indices = [index for column in columns.values() for index in known.indices[column]]
        table = parquet_limits.read_columns(file, indices, stored=stored, limits=limits, path=path)
        flat = _flatten(table, {column: key for key, column in columns.items()})
        if file_format is not None:
            flat[_FILE_FORMAT] = pa.repeat(pa.scalar(file_format), table.num_rows)
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise FormatError(
            f"not a readable Parquet manifest: {_first_line(error)}", path=path
        ) from error
    checked = _checked(flat, keys, path, known.revision)
    batch = revisions.in_memory(checked, known.revision, keys)
    content = metadata.get("content", "")
    if content not in ("root", "data", "delete"):
        raise FormatError(
            f"content is {content!r}; expected root, data or delete", path=path, field="content"
        )
    tracking.check(batch, root=content == "root", path=path)
    return Manifest(
        batch=batch,
        content=content,  # type: ignore[arg-type]
        metadata=metadata,
        revision=known.revision,
    )


def _verified(
    source: pa.NativeFile | pa.Buffer | bytes, path: str
) -> tuple[pa.NativeFile, bool | None]:
    """The source, and whether it has a good seal; None when it is not in memory as a whole."""
    if isinstance(source, pa.BufferReader):
        source = source.read_buffer()
    if isinstance(source, bytes):
        source = pa.py_buffer(source)
    if not isinstance(source, pa.Buffer):
        return source, None
    return pa.BufferReader(source), check_seal(source, path=path)


def _metadata(footer: pq.FileMetaData, path: str) -> dict[str, str]:
    raw = footer.metadata or {}
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


def _check_columns(
    file: pq.ParquetReader,
    known: _Columns,
    metadata: Mapping[str, str],
    path: str,
    *,
    is_sealed: bool | None,
) -> None:
    """Pages have checksums, the footer has none: a damaged id would make a column disappear."""
    stated = metadata.get(COLUMNS)
    if stated is None:
        return
    seen = f"{file.metadata.num_rows} {known.checksum}"
    if is_sealed or (is_sealed is None and stated.endswith(_SEALED)):
        seen = f"{seen} {_SEALED}"
    if seen != stated:
        raise FormatError(
            f"rows and columns are {seen}; written were {stated}. The file is damaged.",
            path=path,
            field=COLUMNS,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Columns:
    """Columns of a manifest: key to Parquet column path, path to the indices of its leaves, and
    what tells the set from others.

    `problem` is a field that cannot be read, and why. `column_files` is the path of that column.
    """

    revision: Revision
    column_files: str | None
    columns: Mapping[str, str]
    indices: Mapping[str, range]
    checksum: str
    problem: tuple[str, str] | None


_seen: deque[tuple[pa.Schema, _Columns]] = deque(maxlen=_MOST_SCHEMAS)


def _columns_of(schema: pa.Schema) -> _Columns:
    """The columns of a schema, worked out once: manifests of a table have the same few."""
    schema = schema.remove_metadata()  # that of the file; fields keep their ids
    for known, columns in tuple(_seen):
        if known.equals(schema, check_metadata=True):
            return columns
    revision = fields.revision_of({_field_id(column) for column in schema})
    found, problem = _leaf_columns(schema, revision)
    columns = _Columns(
        revision=revision,
        column_files=next(
            (column.name for column in schema if _field_id(column) == fields.COLUMN_FILES_ID), None
        ),
        columns={key: where for key, (where, _) in found.items()},
        indices=_indices(schema),
        checksum=checksum({key: kind for key, (_, kind) in found.items()}, revision),
        problem=problem,
    )
    _seen.appendleft((schema, columns))
    return columns


def _indices(schema: pa.Schema) -> dict[str, range]:
    """Where the leaves of each column are among all leaves of the file, by path."""
    found: dict[str, range] = {}
    count = 0

    def visit(path: str, kind: pa.DataType) -> None:
        nonlocal count
        start = count
        if not pa.types.is_nested(kind):
            count += 1
        for index in range(kind.num_fields):
            child = kind.field(index)
            visit(f"{path}.{child.name}", child.type)
        found[path] = range(start, count)

    for column in schema:
        visit(column.name, column.type)
    return found


def _leaf_columns(schema: pa.Schema, revision: Revision) -> tuple[_Found, tuple[str, str] | None]:
    """Key to Parquet column path and type, by field id; and a field that is not what it should."""
    found: _Found = {}
    known = {declared.id: declared for declared in revision.entry}
    for column in schema:
        declared = known.get(_field_id(column))
        if declared is None:
            continue
        if declared.type is not None:
            found[declared.key] = (column.name, column.type)
            continue
        if not pa.types.is_struct(column.type):
            return found, (declared.name, f"is {column.type}; expected a struct")
        for child in column.type:
            id = _field_id(child)
            where = f"{column.name}.{child.name}"
            if declared is fields.PARTITION:
                found[fields.partition_key(id)] = (where, child.type)
            elif declared is fields.CONTENT_STATS:
                _stats_columns(found, child, where)
            else:
                match = next((leaf for leaf in declared.children if leaf.id == id), None)
                if match is not None:
                    found[f"{declared.name}.{match.key}"] = (where, child.type)
        problem = _shape_problem(declared, column, revision)
        if problem is not None:
            return found, problem
    return found, _integer_problem(found, revision)


def _shape_problem(
    declared: fields.Field, column: pa.Field, revision: Revision
) -> tuple[str, str] | None:
    """A struct with members of another revision, or without one that its revision requires."""
    ids = {_field_id(child): child.type for child in column.type}
    if declared.name == "manifest_info":
        for id, kind in revision.foreign.items():
            if id in ids and kind in (None, ids[id]):
                return declared.name, (
                    f"has field {id} ({ids[id]}), which revision {revision.name} does not have. "
                    "The file mixes two revisions of the format."
                )
    for leaf in declared.children:
        if leaf.required and leaf.id not in ids:
            return f"{declared.name}.{leaf.key}", (
                f"field {leaf.id} is missing; revision {revision.name} requires it"
                if declared.name == "manifest_info"
                else "the required column is missing"
            )
    return None


def _integer_problem(found: _Found, revision: Revision) -> tuple[str, str] | None:
    """An integer of another width: an id means something else in another revision, and its type
    is what tells."""
    for key, (_, kind) in found.items():
        leaf = revision.leaves.get(key)
        if leaf is None or leaf.type is None or kind == leaf.type:
            continue
        if not (pa.types.is_integer(kind) or pa.types.is_integer(leaf.type)):
            continue
        return key, (
            f"field {leaf.id} is {kind}; expected {leaf.type} in revision {revision.name}. "
            "The file is of no revision that this version reads."
        )
    return None


def _refuse_column_files(
    file: pq.ParquetReader, known: _Columns, *, stored: int, limits: Limits, path: str
) -> None:
    """Columns of a data file that lie in other files are not read, so rows would be wrong."""
    if known.column_files is None:
        return
    indices = [*known.indices[known.column_files], *known.indices[known.columns["location"]]]
    table = parquet_limits.read_columns(file, indices, stored=stored, limits=limits, path=path)
    has_some = table.column(known.column_files).is_valid().to_pylist()
    if any(has_some):
        first = table.column(known.columns["location"])[has_some.index(True)].as_py()
        raise Unsupported(
            f"{path}: {first} has column_files (field {fields.COLUMN_FILES_ID}): columns stored "
            "apart from their data file, which this version does not read",
            feature="column_files",
        )


def _stats_columns(found: _Found, column: pa.Field, where: str) -> None:
    if not pa.types.is_struct(column.type):
        return
    for leaf in column.type:
        if pa.types.is_struct(leaf.type):
            _stats_columns(found, leaf, f"{where}.{leaf.name}")
            continue
        resolved = stats.field_of_stats_id(_field_id(leaf))
        if resolved is not None:
            found[fields.stats_key(*resolved)] = (f"{where}.{leaf.name}", leaf.type)


def _field_id(field: pa.Field) -> int:
    value = (field.metadata or {}).get(FIELD_ID)
    return int(value) if value is not None else -1


def _only_format(footer: pq.FileMetaData, indices: range | None) -> str | None:
    """The file format of all entries, where the statistics of the column say that there is one:
    thousands of equal texts take a fifth of the time of a listing."""
    if indices is None:
        return None
    found = set()
    for group in range(footer.num_row_groups):
        told = footer.row_group(group).column(indices[0]).statistics
        if told is None or not told.has_min_max or told.null_count or told.min != told.max:
            return None
        found.add(told.max)
    return found.pop() if len(found) == 1 and found <= _FORMATS else None


def _flatten(table: pa.Table, keys: Mapping[str, str]) -> dict[str, pa.Array]:
    flat: dict[str, pa.Array] = {}

    def visit(path: str, array: pa.Array) -> None:
        key = keys.get(path)
        if key is not None:
            flat[key] = array
        elif pa.types.is_struct(array.type):
            for child, values in zip(array.type, array.flatten(), strict=True):
                visit(f"{path}.{child.name}", values)

    for name, column in zip(table.column_names, table.columns, strict=True):
        visit(name, column.chunk(0) if column.num_chunks == 1 else column.combine_chunks())
    return flat


def _checked(
    columns: dict[str, pa.Array], keys: Collection[str] | None, path: str, revision: Revision
) -> dict[str, pa.Array]:
    """Declared columns have the declared type, and required ones have no null."""
    for key, column in columns.items():
        leaf = revision.leaves.get(key)
        if leaf is not None and column.type != leaf.type:
            try:
                columns[key] = column.cast(leaf.type)
            except pa.ArrowException as error:
                raise FormatError(
                    f"is {column.type}; expected {leaf.type}", path=path, field=key
                ) from error
    for key in revision.required if keys is None else ("tracking.status", "content_type"):
        if key not in columns:
            raise FormatError("the required column is missing", path=path, field=key)
    for key in revision.required:
        if key in columns and columns[key].null_count:
            raise FormatError("a required value is null", path=path, field=key)
    return columns


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
    known = _columns_of(file.schema_arrow)
    return {
        "metadata": _metadata(file.metadata, path),
        "entries": file.metadata.num_rows,
        "columns": dict(known.columns),
        "revision": known.revision.name,
    }
