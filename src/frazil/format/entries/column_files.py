"""Columns of a data file that are stored in files of their own: field 158 of an entry.

One shape of the field is read, that of October 2026. Earlier drafts used the same ids for other
members, and one string in place of another would be a wrong file: they are told apart and refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from frazil import arrow_values
from frazil.errors import FormatError, Unsupported
from frazil.format.entries import fields
from frazil.format.entries.batch import Column, EntryBatch, single_chunk
from frazil.format.entries.fields import COLUMN_FILES, VECTOR_KEYS, ContentType, Revision
from frazil.value_classes import frozen

_FIELD_ID = b"PARQUET:field_id"
_LOCATION, _IDS, _FORMAT, _SIZE, _KEY = 160, 161, 163, 164, 165


@frozen
class ColumnFile:
    """A file with some columns of a data file: one row for each of its rows, in the same order.

    `field_ids` are the columns that are read from it; it may hold more.
    """

    location: str
    field_ids: tuple[int, ...]
    file_format: str
    file_size_in_bytes: int
    key_metadata: bytes | None = None


def unread_shape(kind: pa.DataType, revision: Revision) -> str | None:
    """Why values of this type cannot be read; None for the shape of October 2026."""
    if revision is fields.REVISION_1_12:
        return "revision 1.12 of the format does not have it"
    if not pa.types.is_list(kind) or not pa.types.is_struct(kind.value_type):
        return f"it is {kind}; expected a list of structs"
    members = {_field_id(member): member.type for member in kind.value_type}
    ids = members.get(_IDS)
    if ids is not None and pa.types.is_integer(ids):
        return "it has the shape of August 2026, where field 161 is a version"
    if _LOCATION not in members:
        return "it has the shape of June 2026, where field 163 is the location"
    for id, expected in ((_LOCATION, "a string"), (_FORMAT, "a string"), (_SIZE, "a long")):
        if id not in members:
            return f"its field {id} is missing; expected {expected}"
    if ids is None or not pa.types.is_list(ids):
        return f"its field {_IDS} is {ids}; expected a list of field ids"
    return None


def checked(column: Column, batch: EntryBatch, *, path: str) -> pa.Array:
    """Values as they are on disk in one type, by field id; refused where rows would be wrong."""
    values = single_chunk(column).to_pylist()
    names = {member.name: _field_id(member) for member in column.type.value_type}
    kinds, locations = batch.pylist("content_type"), batch.pylist("location")
    rows: list[list[dict[str, Any]] | None] = []
    for kind, location, stored in zip(kinds, locations, values, strict=True):
        if not stored:
            rows.append(None)
            continue
        where = f"{path}: {location}"
        if kind == ContentType.DATA_MANIFEST:
            raise Unsupported(
                f"{where} is a manifest with column_files (field 158); rules for these are not "
                "defined",
                feature="column files of a manifest",
            )
        if kind != ContentType.DATA:
            raise FormatError("belongs to data files", path=where, field=COLUMN_FILES)
        members = [{names[name]: value for name, value in member.items()} for member in stored]
        files = [_one(member, where) for member in members]
        _check_disjoint(files, where)
        rows.append([_row(file) for file in files])
    return arrow_values.array(rows, fields.COLUMN_FILES_TYPE)


def _one(member: dict[int, Any], where: str) -> ColumnFile:
    ids = member[_IDS]
    required = (member[_LOCATION], member[_FORMAT], member[_SIZE])
    if any(value is None for value in required) or not ids or None in ids:
        raise FormatError(
            "a column file lacks its location, format, size or field ids",
            path=where,
            field=COLUMN_FILES,
        )
    file = ColumnFile(
        location=member[_LOCATION],
        field_ids=tuple(ids),
        file_format=member[_FORMAT],
        file_size_in_bytes=member[_SIZE],
        key_metadata=member.get(_KEY),
    )
    if file.file_format.lower() != "parquet":
        raise Unsupported(
            f"{where}: column file {file.location} has format '{file.file_format}'; only parquet "
            "is read",
            feature=f"column files of format {file.file_format}",
        )
    if file.key_metadata is not None:
        raise Unsupported(
            f"{where}: column file {file.location} is encrypted", feature="encrypted column files"
        )
    return file


def _check_disjoint(files: Sequence[ColumnFile], where: str) -> None:
    owners: dict[int, str] = {}
    for file in files:
        for id in file.field_ids:
            if id in owners:
                raise FormatError(
                    f"field {id} is in {owners[id]} and in {file.location}; a field may be in one "
                    "column file only",
                    path=where,
                    field=COLUMN_FILES,
                )
            owners[id] = file.location


def column_files_of(entries: EntryBatch) -> list[tuple[ColumnFile, ...]]:
    """The column files of each entry, as its metadata spells their places."""
    if not entries.has(COLUMN_FILES):
        return [()] * entries.num_rows
    return [
        tuple(ColumnFile(**{**file, "field_ids": tuple(file["field_ids"])}) for file in files or ())
        for files in entries.pylist(COLUMN_FILES)
    ]


def with_column_files(entries: EntryBatch, files: Sequence[Sequence[ColumnFile]]) -> EntryBatch:
    """Entries that name these column files, one sequence for each."""
    if not any(files):
        return entries.without(COLUMN_FILES)
    rows = [[_row(file) for file in of_entry] or None for of_entry in files]
    return entries.with_column(COLUMN_FILES, arrow_values.array(rows, fields.COLUMN_FILES_TYPE))


def have_column_files(entries: EntryBatch) -> Any:
    """A mask of the entries with columns in other files."""
    return ~entries.nulls(COLUMN_FILES)


def refuse_column_files(entries: EntryBatch, reader: str) -> None:
    """Refuse entries for a reader that knows data files alone: it would see old values."""
    if not entries.has(COLUMN_FILES):
        return
    rows = have_column_files(entries).nonzero()[0]
    if len(rows):
        first = entries.column("location")[int(rows[0])].as_py()
        raise Unsupported(
            f"{first} has columns in column files, which {reader} cannot read; merge them first "
            "with table.compact(merge_columns=True)",
            feature="column files",
        )


def all_locations(entries: EntryBatch) -> pa.Array:
    """The places of all column files that entries name; of a file in several entries, each."""
    if not entries.has(COLUMN_FILES):
        return arrow_values.array([], pa.string())
    flat = entries.column(COLUMN_FILES).combine_chunks().flatten()
    return flat.field("location") if len(flat) else arrow_values.array([], pa.string())


def named_files(entries: EntryBatch) -> list[str]:
    """The places of everything that entries name: their files, vectors and column files."""
    vectors = entries.pylist(VECTOR_KEYS[0]) if entries.has(VECTOR_KEYS[0]) else []
    locations = (*entries.pylist("location"), *vectors, *all_locations(entries).to_pylist())
    return [name for name in locations if name is not None]


def _row(file: ColumnFile) -> dict[str, Any]:
    return {
        "location": file.location,
        "field_ids": list(file.field_ids),
        "file_format": file.file_format,
        "file_size_in_bytes": file.file_size_in_bytes,
        "key_metadata": file.key_metadata,
    }


def _field_id(member: pa.Field) -> int:
    value = (member.metadata or {}).get(_FIELD_ID)
    return int(value) if value is not None else -1


__all__ = [
    "ColumnFile",
    "all_locations",
    "checked",
    "column_files_of",
    "have_column_files",
    "refuse_column_files",
    "unread_shape",
    "with_column_files",
]
