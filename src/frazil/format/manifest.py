"""A manifest file: `EntryBatch` to Parquet bytes and back, columns found by field id.

Written lean: no Arrow schema blob, no column that is null in every row, numbers and text as
differences, and no Parquet statistics but, in a large manifest, those of the file format. A small
manifest has one checksum over all of it, a large one has one per page and one of its footer; all
are verified.
Read by projection: only the columns whose keys are asked for are fetched and decoded. Columns that
are unknown are ignored. The revision of a manifest follows from its shape; ids and types that fit
no revision are refused.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from frazil.errors import FormatError, Unsupported
from frazil.format import fields, parquet_limits, revisions, tracking
from frazil.format.batch import EntryBatch, one_piece
from frazil.format.fields import Revision
from frazil.format.nest import ColumnNames, Nesting, nest
from frazil.format.seal import Verified, sealed, sealed_for_ranges, verify
from frazil.format.shape import ManifestColumns, columns_of
from frazil.limits import DEFAULT, Limits
from frazil.words import first_line

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
_FILE_FORMAT = "file_format"
_DICTIONARY_ROWS = 500
"""Below this a dictionary page costs more than it saves."""


_POOL = pa.system_memory_pool()
"""Manifests are decoded by threads that come and go. Arrow's own pool would hand the memory of each
back to the system in huge pages, to be zeroed again for the next: half the time of a first listing.
"""


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
    stated = {
        "format-version": str(FORMAT_VERSION),
        "content": content,
        **(metadata or {}),
        COLUMNS: f"{shape} {_SEALED}",
    }
    if batch.num_rows * len(batch.keys) <= _SEALED_VALUES:
        data = sealed(_parquet(table, nesting, codec, stated, page_checksums=False))
        if data.size <= SEALED_BYTES:
            return data
    return sealed_for_ranges(_parquet(table, nesting, codec, stated, page_checksums=True))


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
        opened = _opened(source)
        verified = verify(opened, path=path)
        file = pq.ParquetReader(memory_pool=_POOL)
        file.open(
            opened,
            pre_buffer=False,
            arrow_extensions_enabled=False,
            page_checksum_verification=verified is not Verified.WHOLE,
        )
        metadata = _metadata(file.metadata, path)
        known = columns_of(file.schema_arrow)
        if known.problem is not None:
            raise FormatError(known.problem[1], path=path, field=known.problem[0])
        is_sealed = verified is not Verified.NOTHING
        _check_columns(file, known, metadata, path, is_sealed=is_sealed)
        stored = opened.size()
        _refuse_column_files(file, known, stored=stored, limits=limits, path=path)
        columns = dict(known.columns)
        if keys is not None:
            wanted = revisions.keys_on_disk(keys, known.revision)
            columns = {key: column for key, column in columns.items() if key in wanted}
        file_format = None
        if is_sealed and _FILE_FORMAT in columns:
            file_format = _only_format(file.metadata, known.indices[columns[_FILE_FORMAT]][0])
        if file_format is not None:
            del columns[_FILE_FORMAT]
        indices = [index for column in columns.values() for index in known.indices[column]]
        table = parquet_limits.read_columns(file, indices, stored=stored, limits=limits, path=path)
        flat = _flatten(table, {column: key for key, column in columns.items()})
        if file_format is not None:
            flat[_FILE_FORMAT] = pa.repeat(pa.scalar(file_format), table.num_rows)
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise FormatError(
            f"not a readable Parquet manifest: {first_line(error)}", path=path
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


def _opened(source: pa.NativeFile | pa.Buffer | bytes) -> pa.NativeFile:
    return pa.BufferReader(source) if isinstance(source, pa.Buffer | bytes) else source


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
    known: ManifestColumns,
    metadata: Mapping[str, str],
    path: str,
    *,
    is_sealed: bool,
) -> None:
    """Refuse a file that is not what its footer says of it. Files of Frazil 0.1 need this: their
    large manifests are not sealed, and a damaged id would make a column disappear."""
    stated = metadata.get(COLUMNS)
    if stated is None:
        return
    seen = f"{file.metadata.num_rows} {known.checksum}"
    if is_sealed:
        seen = f"{seen} {_SEALED}"
    if seen != stated:
        raise FormatError(
            f"rows and columns are {seen}; written were {stated}. The file is damaged.",
            path=path,
            field=COLUMNS,
        )


def _refuse_column_files(
    file: pq.ParquetReader, known: ManifestColumns, *, stored: int, limits: Limits, path: str
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


def _only_format(footer: pq.FileMetaData, leaf: int) -> str | None:
    """The file format of all entries, where the statistics of the column say that there is one:
    thousands of equal texts take a fifth of the time of a listing. The footer must be verified."""
    found = set()
    for group in range(footer.num_row_groups):
        told = footer.row_group(group).column(leaf).statistics
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
        visit(name, one_piece(column))
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


def describe(source: pa.NativeFile | pa.Buffer | bytes, *, path: str) -> Mapping[str, Any]:
    """Key-value metadata, row count and columns of a manifest, from its footer alone."""
    try:
        opened = _opened(source)
        verify(opened, path=path)
        file = pq.ParquetFile(opened)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise FormatError(
            f"not a readable Parquet manifest: {first_line(error)}", path=path
        ) from error
    known = columns_of(file.schema_arrow)
    return {
        "metadata": _metadata(file.metadata, path),
        "entries": file.metadata.num_rows,
        "columns": dict(known.columns),
        "revision": known.revision.name,
    }
