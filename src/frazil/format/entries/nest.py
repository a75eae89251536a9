"""Flat columns of an `EntryBatch` nested as they are on disk, with field ids.

How a set of columns nests is worked out once and kept with the table's `ColumnNames`: from one
commit to the next the columns are the same, and building Arrow fields costs more than the arrays.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterator, Mapping
from enum import Enum, auto
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil import arrow_values
from frazil.format.entries import fields, stats, tracking
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import Revision
from frazil.value_classes import field, frozen

if TYPE_CHECKING:
    from frazil.format.entries.lean_file import LeanFooter

FIELD_ID = b"PARQUET:field_id"
_MAX_NESTINGS = 64
_FEW_VALUES = frozenset(
    {
        "content_type",
        "deletion_vector.location",
        "file_format",
        "format_version",
        "sort_order_id",
        "spec_id",
        "tracking.file_sequence_number",
        "tracking.modified_snapshot_id",
        "tracking.sequence_number",
        "tracking.snapshot_id",
        "tracking.status",
    }
)
"""Columns with few distinct values; a dictionary only costs on the others."""


class _Null(Enum):
    """Where a struct is null."""

    NEVER = auto()
    WITHOUT_MARKER = auto()  # where its first required child is null
    WITHOUT_PARTITION = auto()  # on manifest entries and unpartitioned files
    WITHOUT_VALUES = auto()  # where every child is null


@frozen
class _Leaf:
    field: pa.Field
    key: str
    is_uuid: bool = False
    fill: str | int | bool | None = None
    marker: str = ""  # of the struct that it is a required part of


@frozen
class _Struct:
    field: pa.Field
    children: tuple[_Node, ...]
    parts: tuple[pa.Field, ...]
    null: _Null
    marker: str = ""


_Node = _Leaf | _Struct


@frozen(eq=False)
class Nesting:
    """How columns of these types nest, and how they are encoded, by path in the file.

    Neighbouring entries have like numbers and locations: stored as differences they take half the
    room that a codec alone would leave them. In a manifest of many entries, columns with few
    distinct values have a dictionary instead. `has_text` says of every column whether it holds text
    or bytes.
    """

    types: tuple[pa.DataType, ...]
    nodes: tuple[_Node, ...]
    schema: pa.Schema
    differences: Mapping[str, str]
    dictionaries: Collection[str]
    differences_beside: Mapping[str, str]
    has_text: Mapping[str, bool]
    checksum: str
    variants: frozenset[int]
    """Ids of bounds that are variants."""
    footers: dict[str | None, LeanFooter | None] = field(default_factory=dict, repr=False)
    """By codec, what the footers of small manifests of these columns have in common."""


@frozen
class ColumnNames:
    """Names of the partition's columns; informational, readers resolve by id.

    `uuids` has the keys of columns that hold a uuid: on disk they differ from fixed(16).
    """

    partition: Mapping[int, str]
    uuids: Collection[str] = frozenset()
    _nestings: dict[tuple[str, ...], Nesting] = field(
        default_factory=dict, repr=False, compare=False
    )

    def nesting(self, columns: Mapping[str, pa.Array], revision: Revision) -> Nesting:
        """How these columns nest in a manifest of this revision."""
        keys = tuple(columns)
        types = tuple(array.type for array in columns.values())
        cached = self._nestings.get((revision.name, *keys))
        if cached is None or cached.types != types:
            if len(self._nestings) >= _MAX_NESTINGS:
                self._nestings.clear()
            cached = _nesting(dict(zip(keys, types, strict=True)), self, revision)
            self._nestings[revision.name, *keys] = cached
        return cached


def nest(batch: EntryBatch, names: ColumnNames, revision: Revision) -> tuple[pa.Table, Nesting]:
    """The batch as a nested table. Columns that are null in every row are left out."""
    columns = _present(batch, revision)
    nesting = names.nesting(columns, revision)
    built = _Build(columns, batch)
    arrays = [built.array(node) for node in nesting.nodes]
    return pa.Table.from_arrays(arrays, schema=nesting.schema), nesting


def _present(batch: EntryBatch, revision: Revision) -> dict[str, pa.Array]:
    """Columns with a value. A partition of nothing but nulls stays where an entry has a spec:
    readers of revision 2026-10 require it."""
    rows = batch.num_rows
    keeps_partition = (
        revision is not fields.REVISION_1_12 and batch.column("spec_id").null_count < rows
    )
    return {
        key: array
        for key, array in batch.arrays()
        if array.null_count < rows
        or key in revision.required
        or (keeps_partition and key.startswith(fields.PARTITION_PREFIX))
    }


class _Build:
    """Builds the nested arrays of one batch."""

    def __init__(self, columns: Mapping[str, pa.Array], batch: EntryBatch) -> None:
        self._columns = columns
        self._batch = batch

    def array(self, node: _Node) -> pa.Array:
        if isinstance(node, _Leaf):
            return self._leaf(node)
        arrays = [self.array(child) for child in node.children]
        missing = self._missing(node, arrays)
        return arrow_values.struct_array(arrays, node.parts, missing)

    def _leaf(self, node: _Leaf) -> pa.Array:
        array = self._columns.get(node.key)
        if array is None:  # only a column that must not be null is made up
            return arrow_values.repeat(arrow_values.scalar(node.fill), self._batch.num_rows)
        if node.fill is not None and array.null_count:
            array = _filled(array, node.fill, self._columns.get(node.marker))
        if pa.types.is_struct(array.type) and array.null_count:
            array = _with_empty_parts(array)
        if node.is_uuid:
            return pa.ExtensionArray.from_storage(pa.uuid(), array)
        return array if array.type == node.field.type else pc.cast(array, node.field.type)

    def _missing(self, node: _Struct, arrays: list[pa.Array]) -> npt.NDArray[np.bool_] | None:
        """Where the struct is null; None if nowhere."""
        match node.null:
            case _Null.NEVER:
                return None
            case _Null.WITHOUT_MARKER:
                marker = self._columns.get(node.marker)
                rows = self._batch.num_rows
                missing = (
                    np.ones(rows, np.bool_)
                    if marker is None
                    else arrow_values.to_numpy(pc.is_null(marker))
                )
            case _Null.WITHOUT_PARTITION:
                missing = tracking.leaf_mask(self._batch)
                spec = self._columns.get("spec_id")
                if spec is None or spec.null_count:
                    missing = missing | arrow_values.to_numpy(
                        pc.is_null(self._batch.column("spec_id"))
                    )
            case _Null.WITHOUT_VALUES:
                values = []
                for child, array in zip(node.children, arrays, strict=True):
                    # Of a leaf that is filled where it is missing, what was there before.
                    column = self._columns.get(child.key) if isinstance(child, _Leaf) else array
                    if column is None:
                        continue
                    if not column.null_count:
                        return None
                    values.append(column)
                missing = np.logical_and.reduce(
                    [arrow_values.to_numpy(pc.is_null(value)) for value in values]
                )
        return missing if missing.any() else None


def _with_empty_parts(variants: pa.StructArray) -> pa.StructArray:
    """The parts of a variant are required: those of one that is null are not read."""
    parts = [pc.fill_null(variants.field(at), b"") for at in range(variants.type.num_fields)]
    return pa.StructArray.from_arrays(parts, fields=list(variants.type), mask=variants.is_null())


def _filled(array: pa.Array, fill: str | int | bool, marker: pa.Array | None) -> pa.Array:
    """The array without nulls. Where its struct is null as well, any value does."""
    # Null exactly where its struct is null: dropping the validity copies nothing, and no reader
    # sees what is stored there.
    validity, *values = array.buffers()
    if marker is not None and array.offset == marker.offset and len(values) == 1:
        hidden = marker.buffers()[0]
        if hidden is not None and validity.equals(hidden):
            return pa.Array.from_buffers(
                array.type, len(array), [None, *values], null_count=0, offset=array.offset
            )
    return pc.fill_null(array, arrow_values.scalar(fill, array.type))


# --- working out how columns nest ----------------------------------------------------------------


def _nesting(types: Mapping[str, pa.DataType], names: ColumnNames, revision: Revision) -> Nesting:
    nodes = tuple(_nodes(types, names, revision))
    paths = {key: path for node in nodes for key, path in _paths(node, "")}
    differences = {
        paths[key]: encoding
        for key, kind in types.items()
        if key in paths and (encoding := _encoding(kind)) is not None
    }
    dictionaries = [path for key, path in paths.items() if key in _FEW_VALUES]
    return Nesting(
        types=tuple(types.values()),
        nodes=nodes,
        schema=pa.schema([node.field for node in nodes]),
        differences=differences,
        dictionaries=dictionaries,
        differences_beside={
            path: encoding for path, encoding in differences.items() if path not in dictionaries
        },
        has_text={
            path: _is_text(kind)
            for node in nodes
            for path, kind in _stored_columns(node.field.name, node.field.type)
        },
        checksum=checksum(
            {leaf.key: leaf.field.type for node in nodes for leaf in _leaves(node)}, revision
        ),
        variants=frozenset(
            int(leaf.field.metadata[FIELD_ID])
            for node in nodes
            for leaf in _leaves(node)
            if pa.types.is_struct(leaf.field.type)
        ),
    )


def _encoding(kind: pa.DataType) -> str | None:
    if pa.types.is_list(kind):
        return _encoding(kind.value_type)
    if pa.types.is_integer(kind) or pa.types.is_temporal(kind):
        return "DELTA_BINARY_PACKED"
    return "DELTA_BYTE_ARRAY" if _is_text(kind) else None


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))


def checksum(types: Mapping[str, pa.DataType], revision: Revision) -> str:
    """What tells one set of columns from another."""
    types_by_name = {revision.renamed.get(key, key): kind for key, kind in types.items()}
    text = ",".join(f"{name} {_plain(types_by_name[name])}" for name in sorted(types_by_name))
    return f"{zlib.crc32(text.encode()):08x}"


def _plain(kind: pa.DataType) -> str:
    if pa.types.is_list(kind):
        return f"list {kind.value_type}"
    return "fixed_size_binary[16]" if isinstance(kind, pa.UuidType) else str(kind)


def _leaves(node: _Node) -> Iterator[_Leaf]:
    if isinstance(node, _Leaf):
        yield node
    else:
        for child in node.children:
            yield from _leaves(child)


def _paths(node: _Node, prefix: str) -> Iterator[tuple[str, str]]:
    path = f"{prefix}{node.field.name}"
    if isinstance(node, _Struct):
        for child in node.children:
            yield from _paths(child, f"{path}.")
    else:
        is_list = pa.types.is_list(node.field.type)
        yield node.key, f"{path}.list.element" if is_list else path


def _stored_columns(path: str, kind: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    """The columns that Parquet stores for a field."""
    if pa.types.is_struct(kind):
        for child in kind:
            yield from _stored_columns(f"{path}.{child.name}", child.type)
    elif pa.types.is_list(kind):
        yield from _stored_columns(f"{path}.list.element", kind.value_type)
    else:
        yield path, kind


def _nodes(
    types: Mapping[str, pa.DataType], names: ColumnNames, revision: Revision
) -> Iterator[_Node]:
    for declared in revision.entry:
        if declared is fields.PARTITION:
            parts = _partition(types, names)
            null = _Null.WITHOUT_PARTITION
        elif declared is fields.CONTENT_STATS:
            parts = _stats(types, names)
            null = _Null.WITHOUT_VALUES
        elif declared.children:
            parts = _group(declared, types)
            null = _Null.NEVER if declared.required else _Null.WITHOUT_MARKER
        else:
            if declared.name in types:
                yield _declared(declared, declared.name, types[declared.name])
            continue
        if parts:
            marker = _marker(declared)
            name = stats.DISK_NAME if declared is fields.CONTENT_STATS else declared.name
            yield _struct(name, declared.id, parts, null, declared.required, marker)


def _marker(group: fields.Field) -> str:
    """The column that is null where the struct is."""
    required = next((child.name for child in group.children if child.required), "")
    return f"{group.name}.{required}"


def _struct(
    name: str,
    id: int,
    children: tuple[_Node, ...],
    null: _Null,
    required: bool = False,
    marker: str = "",
) -> _Struct:
    parts = tuple(child.field for child in children)
    return _Struct(
        field=_with_id(pa.field(name, pa.struct(parts), nullable=not required), id),
        children=children,
        parts=parts,
        null=null,
        marker=marker,
    )


def _group(group: fields.Field, types: Mapping[str, pa.DataType]) -> tuple[_Node, ...]:
    """A declared struct; where it is null, its required children hold placeholders."""
    return tuple(
        _declared(child, key, types[key], marker="" if group.required else _marker(group))
        for child in group.children
        if (key := f"{group.name}.{child.key}") in types
    )


def _declared(declared: fields.Field, key: str, kind: pa.DataType, *, marker: str = "") -> _Leaf:
    fill: str | int | None = None
    if marker and declared.required:
        fill = "" if pa.types.is_string(kind) else 0
    if declared.element_id is not None and not pa.types.is_struct(kind.value_type):
        element = pa.field("element", kind.value_type, nullable=False)
        kind = pa.list_(_with_id(element, declared.element_id))
    arrow_field = _with_id(
        pa.field(declared.name, kind, nullable=not declared.required), declared.id
    )
    return _Leaf(field=arrow_field, key=key, fill=fill, marker=marker)


def _partition(types: Mapping[str, pa.DataType], names: ColumnNames) -> tuple[_Node, ...]:
    ids = {
        int(key.removeprefix(fields.PARTITION_PREFIX)): key
        for key in types
        if key.startswith(fields.PARTITION_PREFIX)
    }
    labels = _distinct({id: names.partition.get(id, f"partition_{id}") for id in ids})
    return tuple(
        _typed(labels[id], id, key, types[key], key in names.uuids) for id, key in ids.items()
    )


def _stats(types: Mapping[str, pa.DataType], names: ColumnNames) -> tuple[_Node, ...]:
    by_field: dict[int, dict[str, pa.DataType]] = {}
    for key, kind in types.items():
        if key.startswith(fields.STATS_PREFIX):
            field_id, name = fields.split_stats_key(key)
            by_field.setdefault(field_id, {})[name] = kind
    return tuple(
        _struct(
            str(id),
            stats.stats_base(id),
            _column_stats(id, members, names.uuids),
            _Null.WITHOUT_VALUES,
        )
        for id, members in sorted(by_field.items())
    )


def _column_stats(
    field_id: int, members: dict[str, pa.DataType], uuids: Collection[str]
) -> tuple[_Node, ...]:
    """One column's statistics; the bounds of a geo column are structs of their coordinates.

    `tight_bounds` is never null where there are statistics: Iceberg Java's reader requires a value.
    """
    base = stats.stats_base(field_id)
    nodes: list[tuple[int, _Node]] = []
    for bound, axes in (("lower_bound", stats.GEO_LOWER), ("upper_bound", stats.GEO_UPPER)):
        points = tuple(
            _typed(
                axis[-1],
                base + stats.OFFSETS[axis],
                fields.stats_key(field_id, axis),
                members.pop(axis),
            )
            for axis in axes
            if axis in members
        )
        if points:
            offset = stats.OFFSETS[bound]
            name = stats.DISK_NAMES[bound]
            nodes.append((offset, _struct(name, base + offset, points, _Null.WITHOUT_VALUES)))
    if not nodes and not any(pa.types.is_struct(kind) for kind in members.values()):
        members["tight_bounds"] = pa.bool_()
    for name, kind in members.items():
        offset, key = stats.OFFSETS[name], fields.stats_key(field_id, name)
        fill = False if name == "tight_bounds" else None
        label = stats.DISK_NAMES[name]
        nodes.append((offset, _typed(label, base + offset, key, kind, key in uuids, fill)))
    return tuple(node for _, node in sorted(nodes, key=lambda pair: pair[0]))


def _typed(
    name: str,
    id: int,
    key: str,
    kind: pa.DataType,
    is_uuid: bool = False,
    fill: bool | None = None,
) -> _Leaf:
    arrow_field = _with_id(pa.field(name, pa.uuid() if is_uuid else kind), id)
    return _Leaf(field=arrow_field, key=key, is_uuid=is_uuid, fill=fill)


def _with_id(arrow_field: pa.Field, id: int) -> pa.Field:
    return arrow_field.with_metadata({FIELD_ID: str(id)})


def _distinct(labels: dict[int, str]) -> dict[int, str]:
    """Two partition fields may share a name; the id tells them apart."""
    result: dict[int, str] = {}
    for id, label in labels.items():
        while label in result.values():
            label = f"{label}_{id}"
        result[id] = label
    return result


__all__ = ["FIELD_ID", "ColumnNames", "Nesting", "checksum", "nest"]
