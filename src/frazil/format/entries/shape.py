"""Which columns a manifest has, by field id; and whether they fit one revision of the format."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

import pyarrow as pa

from frazil.format.entries import fields, stats
from frazil.format.entries.column_files import unread_shape
from frazil.format.entries.fields import Revision
from frazil.format.entries.nest import FIELD_ID, checksum
from frazil.value_classes import frozen

_MAX_SCHEMAS = 16

_Found = dict[str, tuple[str, pa.DataType]]


@frozen
class ManifestColumns:
    """Columns of a manifest: key to Parquet column path, path to the indices of its leaves, and
    what tells the set from others.

    `problem` is a field that cannot be read, and why. `column_files` is the path of that column,
    `unread_column_files` why its values cannot be read.
    """

    revision: Revision
    column_files: str | None
    unread_column_files: str | None
    columns: Mapping[str, str]
    indices: Mapping[str, range]
    checksum: str
    problem: tuple[str, str] | None


_seen: deque[tuple[pa.Schema, ManifestColumns]] = deque(maxlen=_MAX_SCHEMAS)


def columns_of(schema: pa.Schema) -> ManifestColumns:
    """The columns of a schema, worked out once: manifests of a table have the same few."""
    schema = schema.remove_metadata()  # that of the file; fields keep their ids
    for schema_seen, columns in tuple(_seen):
        if schema_seen.equals(schema, check_metadata=True):
            return columns
    revision = fields.revision_of({_field_id(column) for column in schema})
    leaf_columns, problem = _leaf_columns(schema, revision)
    stored = next(
        (column for column in schema if _field_id(column) == fields.COLUMN_FILES_ID), None
    )
    unread = None if stored is None else unread_shape(stored.type, revision)
    if unread is not None:
        leaf_columns.pop(fields.COLUMN_FILES, None)
    columns = ManifestColumns(
        revision=revision,
        column_files=None if stored is None else stored.name,
        unread_column_files=unread,
        columns={key: where for key, (where, _) in leaf_columns.items()},
        indices=_indices(schema),
        checksum=checksum({key: kind for key, (_, kind) in leaf_columns.items()}, revision),
        problem=problem,
    )
    _seen.appendleft((schema, columns))
    return columns


def _indices(schema: pa.Schema) -> dict[str, range]:
    """Where the leaves of each column are among all leaves of the file, by path."""
    indices: dict[str, range] = {}
    count = 0

    def visit(path: str, kind: pa.DataType) -> None:
        nonlocal count
        start = count
        if not pa.types.is_nested(kind):
            count += 1
        for index in range(kind.num_fields):
            child = kind.field(index)
            visit(f"{path}.{child.name}", child.type)
        indices[path] = range(start, count)

    for column in schema:
        visit(column.name, column.type)
    return indices


def _leaf_columns(schema: pa.Schema, revision: Revision) -> tuple[_Found, tuple[str, str] | None]:
    """Key to Parquet column path and type, by field id; and a field that is not what it should."""
    columns: _Found = {}
    declared_by_id = {declared.id: declared for declared in revision.entry}
    for column in schema:
        declared = declared_by_id.get(_field_id(column))
        if declared is None:
            continue
        if declared.type is not None:
            columns[declared.key] = (column.name, column.type)
            continue
        if not pa.types.is_struct(column.type):
            return columns, (declared.name, f"is {column.type}; expected a struct")
        for child in column.type:
            id = _field_id(child)
            where = f"{column.name}.{child.name}"
            if declared is fields.PARTITION:
                columns[fields.partition_key(id)] = (where, child.type)
            elif declared is fields.CONTENT_STATS:
                _stats_columns(columns, child, where)
            else:
                match = next((leaf for leaf in declared.children if leaf.id == id), None)
                if match is not None:
                    columns[f"{declared.name}.{match.key}"] = (where, child.type)
        problem = _shape_problem(declared, column, revision)
        if problem is not None:
            return columns, problem
    return columns, _integer_problem(columns, revision)


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


def _integer_problem(columns: _Found, revision: Revision) -> tuple[str, str] | None:
    """An integer of another width: an id means something else in another revision, and its type
    is what tells."""
    for key, (_, kind) in columns.items():
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


def _stats_columns(columns: _Found, column: pa.Field, where: str) -> None:
    if not pa.types.is_struct(column.type):
        return
    for leaf in column.type:
        resolved = stats.field_of_stats_id(_field_id(leaf))
        if pa.types.is_struct(leaf.type) and not _is_variant(leaf.type):
            _stats_columns(columns, leaf, f"{where}.{leaf.name}")
        elif resolved is not None:
            columns[fields.stats_key(*resolved)] = (f"{where}.{leaf.name}", leaf.type)


def _is_variant(kind: pa.StructType) -> bool:
    return {child.name for child in kind} == {"metadata", "value"}


def _field_id(field: pa.Field) -> int:
    value = (field.metadata or {}).get(FIELD_ID)
    return int(value) if value is not None else -1


__all__ = ["ManifestColumns", "columns_of"]
