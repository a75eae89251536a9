"""The difference between two states: snapshots, branches or tables.

Leaves that both sides list with the same dead positions hold the same files and are not opened.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from frazil.commit.handle import TableHandle
from frazil.format import paths
from frazil.format.entries.column_files import column_files_of
from frazil.format.entries.fields import COLUMN_FILES, ContentType
from frazil.format.metadata.metadata import Snapshot
from frazil.format.metadata.summary_totals import live_rows
from frazil.iceberg.schema import Schema
from frazil.scan.plan import plan
from frazil.text_format import card, html_grid
from frazil.tree.read import Tree, leaf_refs
from frazil.value_classes import field, frozen

_KEYS = (
    "location",
    "content_type",
    "record_count",
    "deletion_vector.location",
    "deletion_vector.offset",
    "deletion_vector.cardinality",
    COLUMN_FILES,
)


@frozen
class ComparedState:
    """One of two states: a table at a snapshot, in a schema."""

    handle: TableHandle
    snapshot: Snapshot | None
    schema: Schema
    label: str


@frozen
class Difference:
    """Things only left, only right, and in both but not the same (as left → right)."""

    only_left: tuple[str, ...] = ()
    only_right: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there is none."""
        return not (self.only_left or self.only_right or self.changed)


@frozen
class Comparison:
    """What is different between two states. Row counts are None where only reading can tell."""

    left: str
    right: str
    columns: Difference
    partitioning: Difference
    properties: Difference
    files: Difference
    rows_left: int | None
    rows_right: int | None
    snapshots: Mapping[str, int | None] = field(default_factory=dict)

    @property
    def is_same(self) -> bool:
        """Whether both have the same columns, partitioning, properties and files."""
        parts = (self.columns, self.partitioning, self.properties, self.files)
        return all(part.is_empty for part in parts)

    def to_dict(self) -> dict[str, Any]:
        """The comparison as plain values."""
        return {**asdict(self), "is_same": self.is_same}

    def __str__(self) -> str:
        lines = [f"{self.left} → {self.right}"]
        for title, part in (
            ("columns", self.columns),
            ("partitioning", self.partitioning),
            ("properties", self.properties),
        ):
            lines += [f"  {title} − {item}" for item in part.only_left]
            lines += [f"  {title} + {item}" for item in part.only_right]
            lines += [f"  {title} ~ {item}" for item in part.changed]
        files = self.files
        lines.append(
            f"  files: {len(files.only_left):,} only left, {len(files.only_right):,} only right, "
            f"{len(files.changed):,} with different deletion vectors or column files"
        )
        lines.append(f"  rows: {_count(self.rows_left)} → {_count(self.rows_right)}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        outcome = "nothing is different" if self.is_same else "different"
        return f"Comparison({self.left} → {self.right}: {outcome})"

    def _repr_html_(self) -> str:
        rows: list[tuple[str, str, str]] = []
        for title, part in (
            ("column", self.columns),
            ("partitioning", self.partitioning),
            ("property", self.properties),
        ):
            rows += [(title, item, "") for item in part.only_left]
            rows += [(title, "", item) for item in part.only_right]
            rows += [(title, "changed", item) for item in part.changed]
        files = self.files
        rows += [
            ("rows", _count(self.rows_left), _count(self.rows_right)),
            ("files of one alone", f"{len(files.only_left):,}", f"{len(files.only_right):,}"),
        ]
        if files.changed:
            rows.append(
                ("files with other deletion vectors or column files", "", f"{len(files.changed):,}")
            )
        grid = html_grid(("", self.left, self.right), rows)
        return card("nothing is different" if self.is_same else "differences", {}, grid)


def _count(rows: int | None) -> str:
    return "unknown without reading the data" if rows is None else f"{rows:,}"


def compare(left: ComparedState, right: ComparedState) -> Comparison:
    """Compare two states; metadata is read, rows are not."""
    one, other = left.handle.metadata, right.handle.metadata
    return Comparison(
        left=left.label,
        right=right.label,
        columns=_difference(_columns(left.schema), _columns(right.schema)),
        partitioning=_difference(_partitions(left), _partitions(right)),
        properties=_difference(dict(one.properties), dict(other.properties)),
        files=_files(left, right),
        rows_left=_rows(left),
        rows_right=_rows(right),
        snapshots={
            "left": None if left.snapshot is None else int(left.snapshot.snapshot_id),
            "right": None if right.snapshot is None else int(right.snapshot.snapshot_id),
        },
    )


def _columns(schema: Schema) -> dict[str, str]:
    """Every field by full name, with its type and whether it is required."""
    columns: dict[str, str] = {}
    for field_id in sorted(schema.field_ids):
        name = schema.find_column_name(field_id)
        column = schema.find_field(field_id)
        if name is not None:
            need = "required" if column.required else "optional"
            columns[name] = f"{need} {column.field_type}"
    return columns


def _partitions(side: ComparedState) -> dict[str, str]:
    spec = side.handle.metadata.spec()
    names = {field.field_id: field.name for field in side.schema.fields}
    described: dict[str, str] = {}
    for part in spec.fields:
        sources = (str(names.get(source, source)) for source in part.source_ids)
        described[part.name] = f"{part.transform}({', '.join(sources)})"
    return described


def _difference(left: Mapping[str, str], right: Mapping[str, str]) -> Difference:
    return Difference(
        only_left=tuple(f"{key}: {left[key]}" for key in left if key not in right),
        only_right=tuple(f"{key}: {right[key]}" for key in right if key not in left),
        changed=tuple(
            f"{key}: {left[key]} → {right[key]}"
            for key in left
            if key in right and left[key] != right[key]
        ),
    )


def _files(left: ComparedState, right: ComparedState) -> Difference:
    one, other = _tree(left), _tree(right)
    shared = _leaves(left, one).items() & _leaves(right, other).items()
    skipped = {address for address, _ in shared}
    first, second = _names(left, one, skipped), _names(right, other, skipped)
    return Difference(
        only_left=tuple(sorted(first.keys() - second.keys())),
        only_right=tuple(sorted(second.keys() - first.keys())),
        changed=tuple(
            sorted(name for name in first.keys() & second.keys() if first[name] != second[name])
        ),
    )


def _tree(side: ComparedState) -> Tree:
    return side.handle.reader().tree(side.snapshot, keys=_KEYS)


def _leaves(side: ComparedState, tree: Tree) -> dict[str, bytes | None]:
    location = side.handle.location
    return {paths.resolve(location, ref.location): ref.dv for ref in leaf_refs(tree.root)}


def _names(side: ComparedState, tree: Tree, skipped: set[str]) -> dict[str, tuple[Any, ...]]:
    """Live files by address, with what identifies their deletion vector and column files."""
    reader, location = side.handle.reader(), side.handle.location
    leaves = [
        ref for ref in leaf_refs(tree.root) if paths.resolve(location, ref.location) not in skipped
    ]
    names: dict[str, tuple[Any, ...]] = {}
    for batch in (
        tree.content(),
        *reader.map(leaves, lambda ref: reader.live(ref, keys=_KEYS)),
    ):
        listed = batch.filter(batch.numpy("content_type") != ContentType.POSITION_DELETES)
        addresses = paths.resolve_all(location, listed.column("location")).to_pylist()
        vectors = listed.pylist("deletion_vector.location")
        offsets = listed.pylist("deletion_vector.offset")
        columns = column_files_of(listed)
        for index, address in enumerate(addresses):
            vector = vectors[index]
            where = None if vector is None else paths.resolve(location, vector)
            parts = {(paths.resolve(location, f.location), f.field_ids) for f in columns[index]}
            names[address] = (where, offsets[index], parts)
    return names


def _rows(side: ComparedState) -> int | None:
    """Live rows, by the summary where it can tell, by entries otherwise."""
    stated = live_rows(side.snapshot)
    if stated is not None or side.snapshot is None:
        return stated
    planned = plan(side.handle.reader(), side.snapshot)
    if planned.matches:
        return None
    files = planned.files
    dead = files.numpy("deletion_vector.cardinality", missing=0)
    return int(np.sum(files.numpy("record_count", missing=0) - dead))
