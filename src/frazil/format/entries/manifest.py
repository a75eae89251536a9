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

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

import pyarrow as pa

from frazil import arrow_compute as pc
from frazil import arrow_parquet as pq
from frazil import arrow_values
from frazil.errors import FormatError, Unsupported
from frazil.format.entries import fields, revisions, tracking
from frazil.format.entries.batch import EntryBatch, single_chunk
from frazil.format.entries.column_files import checked as checked_column_files
from frazil.format.entries.fields import COLUMN_FILES, Revision
from frazil.format.entries.nest import ColumnNames, Nesting, nest
from frazil.format.entries.seal import (
    Verified,
    sealed,
    sealed_for_ranges,
    verify,
    with_variants_marked,
)
from frazil.format.entries.shape import ManifestColumns, columns_of
from frazil.limits import DEFAULT, Limits
from frazil.text_format import first_line
from frazil.value_classes import frozen

_MIN_BYTES = 4
"""What a value takes in memory, but for booleans."""


def check_footer(
    footer: pq.FileMetaData, *, columns: int, stored: int, limits: Limits, path: str
) -> None:
    """Refuse a file of which `columns` leaf columns would take more than is allowed."""
    groups = [footer.row_group(group) for group in range(footer.num_row_groups)]
    rows = max(footer.num_rows, sum(group.num_rows for group in groups))
    uncompressed = sum(group.total_byte_size for group in groups)
    limits.check(max(uncompressed, rows * columns * _MIN_BYTES), stored=stored, path=path)


def read_columns(
    file: pq.ParquetReader, indices: Sequence[int], *, stored: int, limits: Limits, path: str
) -> pa.Table:
    """The leaf columns at `indices`, in full; FormatError when they are more than is allowed."""
    check_footer(file.metadata, columns=len(indices), stored=stored, limits=limits, path=path)
    return file.read_all(column_indices=indices, use_threads=False)


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


def _decoding_pool() -> pa.MemoryPool:
    """Manifests are decoded by threads that come and go. Arrow's own pool would hand the memory of
    each back to the system in huge pages, to be zeroed again for the next: half the time of a first
    listing. The system's allocator keeps as much again as is in use; jemalloc does neither, but not
    every build of Arrow has it."""
    try:
        return pa.jemalloc_memory_pool()
    except NotImplementedError:
        return pa.system_memory_pool()


_POOL = _decoding_pool()
_MOSTLY_EQUAL = ("tracking.status", "content_type", "spec_id")
"""Columns that have one value in nearly every leaf: leaves of one length share the memory of it."""


@frozen
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
    codec: str | None,
    metadata: Mapping[str, str] | None = None,
    revision: Revision = fields.LATEST,
) -> pa.Buffer:
    """The bytes of a manifest file. Without a codec it is written quickly: zstd costs as much for
    each column as all else, and saves a tenth of a root in the few columns of text."""
    batch = revisions.on_disk(batch, revision)
    table, nesting = nest(batch, names, revision)
    shape = f"{batch.num_rows} {nesting.checksum}"
    file_metadata = {
        "format-version": str(FORMAT_VERSION),
        "content": content,
        **(metadata or {}),
        COLUMNS: f"{shape} {_SEALED}",
    }
    if batch.num_rows * len(batch.keys) <= _SEALED_VALUES:
        data = sealed(_small(table, nesting, codec, file_metadata))
        if data.size <= SEALED_BYTES:
            return data
    return sealed_for_ranges(_parquet(table, nesting, codec, file_metadata, page_checksums=True))


def _small(
    table: pa.Table, nesting: Nesting, codec: str | None, metadata: Mapping[str, str]
) -> pa.Buffer:
    """A file without checksums, in as few bytes as pyarrow's pages allow."""
    data = _parquet(table, nesting, codec, metadata, page_checksums=False)
    if not 0 < table.num_rows <= _DICTIONARY_ROWS:
        return data
    from frazil.format.entries.lean_file import footer_of, lean  # readers do without

    file = data.to_pybytes()
    if codec not in nesting.footers:
        nesting.footers[codec] = footer_of(file)
    footer = nesting.footers[codec]
    if footer is None:
        return data
    return pa.py_buffer(lean(file, footer, rows=table.num_rows, metadata=metadata))


def _parquet(
    table: pa.Table,
    nesting: Nesting,
    codec: str | None,
    metadata: Mapping[str, str],
    *,
    page_checksums: bool,
) -> pa.Buffer:
    many = table.num_rows > _DICTIONARY_ROWS
    codecs: Any = codec
    if codec is None:
        codecs = {path: "zstd" if text else "lz4" for path, text in nesting.has_text.items()}
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink,
        nesting.schema,
        compression=codecs,
        store_schema=False,
        write_statistics=[_FILE_FORMAT] if many else False,
        write_page_checksum=page_checksums,
        use_dictionary=nesting.dictionaries if many else False,
        column_encoding=nesting.differences_beside if many else nesting.differences,
    ) as writer:
        writer.write_table(table, row_group_size=max(1, table.num_rows))
        writer.add_key_value_metadata(metadata)
    return with_variants_marked(sink.getvalue(), nesting.variants)


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
        file_columns = columns_of(file.schema_arrow)
        if file_columns.problem is not None:
            raise FormatError(file_columns.problem[1], path=path, field=file_columns.problem[0])
        is_sealed = verified is not Verified.NOTHING
        _check_columns(file, file_columns, metadata, path, is_sealed=is_sealed)
        stored = opened.size()
        _refuse_column_files(file, file_columns, stored=stored, limits=limits, path=path)
        columns = dict(file_columns.columns)
        if keys is not None:
            disk_keys = revisions.keys_on_disk(keys, file_columns.revision)
            if COLUMN_FILES in columns:
                # Always read: whoever takes an entry for its file alone would read wrong rows.
                disk_keys |= {COLUMN_FILES, "location"}
            columns = {key: column for key, column in columns.items() if key in disk_keys}
        file_format = None
        if is_sealed and _FILE_FORMAT in columns:
            file_format = _only_format(
                file.metadata, file_columns.indices[columns[_FILE_FORMAT]][0]
            )
        if file_format is not None:
            del columns[_FILE_FORMAT]
        indices = [index for column in columns.values() for index in file_columns.indices[column]]
        table = read_columns(file, indices, stored=stored, limits=limits, path=path)
        flat = _flatten(table, {column: key for key, column in columns.items()})
        if file_format is not None:
            flat[_FILE_FORMAT] = arrow_values.repeat(
                arrow_values.scalar(file_format), table.num_rows
            )
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise FormatError(
            f"not a readable Parquet manifest: {first_line(error)}", path=path
        ) from error
    column_files = flat.pop(COLUMN_FILES, None)
    for key in _MOSTLY_EQUAL:
        if key in flat:
            flat[key] = arrow_values.shared(flat[key])
    checked = _checked(flat, keys, path, file_columns.revision)
    batch = revisions.in_memory(checked, file_columns.revision, keys)
    if column_files is not None and column_files.null_count < len(column_files):
        stored_elsewhere = checked_column_files(column_files, batch, path=path)
        batch = batch.with_column(COLUMN_FILES, stored_elsewhere)
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
        revision=file_columns.revision,
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
    columns: ManifestColumns,
    metadata: Mapping[str, str],
    path: str,
    *,
    is_sealed: bool,
) -> None:
    """Refuse a file that is not what its footer says of it. Files of Frazil 0.1 need this: their
    large manifests are not sealed, and a damaged id would make a column disappear."""
    recorded = metadata.get(COLUMNS)
    if recorded is None:
        return
    actual = f"{file.metadata.num_rows} {columns.checksum}"
    if is_sealed:
        actual = f"{actual} {_SEALED}"
    if actual != recorded:
        raise FormatError(
            f"rows and columns are {actual}; written were {recorded}. The file is damaged.",
            path=path,
            field=COLUMNS,
        )


def _refuse_column_files(
    file: pq.ParquetReader, columns: ManifestColumns, *, stored: int, limits: Limits, path: str
) -> None:
    """Refuse values of a shape that is not known: columns would be read from wrong places."""
    if columns.column_files is None or columns.unread_column_files is None:
        return
    indices = [
        *columns.indices[columns.column_files],
        *columns.indices[columns.columns["location"]],
    ]
    table = read_columns(file, indices, stored=stored, limits=limits, path=path)
    has_some = pc.is_valid(table.column(columns.column_files)).to_pylist()
    if any(has_some):
        first = table.column(columns.columns["location"])[has_some.index(True)].as_py()
        raise Unsupported(
            f"{path}: {first} has column_files (field {fields.COLUMN_FILES_ID}), which cannot be "
            f"read: {columns.unread_column_files}. Written and read is the shape of October 2026",
            feature="column_files",
        )


def _only_format(footer: pq.FileMetaData, leaf: int) -> str | None:
    """The file format of all entries, where the statistics of the column say that there is one:
    thousands of equal texts take a fifth of the time of a listing. The footer must be verified."""
    formats = set()
    for group in range(footer.num_row_groups):
        statistics = footer.row_group(group).column(leaf).statistics
        if (
            statistics is None
            or not statistics.has_min_max
            or statistics.null_count
            or statistics.min != statistics.max
        ):
            return None
        formats.add(statistics.max)
    return formats.pop() if len(formats) == 1 and formats <= _FORMATS else None


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
        visit(name, single_chunk(column))
    return flat


def _checked(
    columns: dict[str, pa.Array], keys: Collection[str] | None, path: str, revision: Revision
) -> dict[str, pa.Array]:
    """Declared columns have the declared type, and required ones have no null."""
    for key, column in columns.items():
        leaf = revision.leaves.get(key)
        if leaf is not None and column.type != leaf.type:
            try:
                columns[key] = pc.cast(column, leaf.type)
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
        file = pq.ParquetReader()
        file.open(opened)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise FormatError(
            f"not a readable Parquet manifest: {first_line(error)}", path=path
        ) from error
    columns = columns_of(file.schema_arrow)
    return {
        "metadata": _metadata(file.metadata, path),
        "entries": file.metadata.num_rows,
        "columns": dict(columns.columns),
        "revision": columns.revision.name,
    }
