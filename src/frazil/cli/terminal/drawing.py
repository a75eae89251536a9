"""A snapshot's tree as nodes, ready to be drawn; says what to show, not how."""

from __future__ import annotations

from typing import Any

import numpy as np

from frazil.commit.handle import TableHandle
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import ContentType, stats_key
from frazil.format.entries.tracking import Status
from frazil.format.metadata.metadata import Snapshot
from frazil.format.vectors import bitmap
from frazil.text_format import counted, size
from frazil.tree.read import LeafRef, Tree, TreeReader
from frazil.value_classes import field, frozen

_SHOWN_POSITIONS = 6
_LETTERS = {
    ContentType.DATA: "D",
    ContentType.POSITION_DELETES: "P",
    ContentType.EQUALITY_DELETES: "E",
    ContentType.DATA_MANIFEST: "M",
    ContentType.DELETE_MANIFEST: "N",
}


@frozen
class Node:
    """One entry: a file, or a leaf with the files in it."""

    letter: str
    name: str
    status: str
    facts: tuple[str, ...] = ()
    bounds: tuple[str, ...] = ()
    children: tuple[Node, ...] = ()
    hidden: int = 0

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "kind": self.letter,
            "name": self.name,
            "status": self.status,
            "facts": list(self.facts),
            "bounds": list(self.bounds),
            "children": [child.to_dict() for child in self.children],
            "hidden": self.hidden,
        }


@frozen
class Drawing:
    """A tree: its snapshot, its root file, and the root's entries."""

    title: str
    root: str
    nodes: tuple[Node, ...]
    hidden: int = 0
    legend: tuple[str, ...] = field(
        default=(
            "M leaf of data files",
            "N leaf of delete files",
            "D data file",
            "E equality deletes",
        )
    )

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "title": self.title,
            "root": self.root,
            "entries": [node.to_dict() for node in self.nodes],
            "hidden": self.hidden,
        }


def draw(
    handle: TableHandle,
    snapshot: Snapshot | None,
    *,
    leaves: bool = False,
    limit: int = 20,
    columns: int = 2,
) -> Drawing:
    """The tree of a snapshot. `leaves` opens leaves, `limit` cuts long lists, `columns` says how
    many columns' bounds to show."""
    reader = handle.reader()
    tree = reader.tree(snapshot)
    if snapshot is None:
        return Drawing(title=f"{handle.name}: no snapshot yet", root="", nodes=())
    columns_drawn = [
        field for field in handle.metadata.schema().fields if field.field_type.is_primitive
    ]
    names = {field.field_id: field.name for field in columns_drawn[:columns]}
    refs = {ref.row: ref for ref in tree.leaves()}
    nodes = [
        _node(reader, tree, row, refs.get(row), names, open_leaf=leaves, limit=limit)
        for row in _chosen(tree.root, limit)
    ]
    where = snapshot.root_manifest or snapshot.manifest_list or "manifests"
    return Drawing(
        title=(
            f"{handle.name} · snapshot {snapshot.snapshot_id} · {snapshot.operation} · "
            f"sequence {snapshot.sequence_number}"
        ),
        root=f"{_short(where)} · {_entries(tree.root.num_rows)}",
        nodes=tuple(nodes),
        hidden=max(0, tree.root.num_rows - limit),
    )


def _chosen(root: EntryBatch, limit: int) -> list[int]:
    """Rows of a root to show, in their order; leaves and changed files before carried ones."""
    kinds = root.column("content_type").to_pylist()
    statuses = root.column("tracking.status").to_pylist()
    is_unchanged = [
        kind < ContentType.DATA_MANIFEST and status == Status.EXISTING
        for kind, status in zip(kinds, statuses, strict=True)
    ]
    return sorted(sorted(range(root.num_rows), key=lambda row: is_unchanged[row])[:limit])


def _node(
    reader: TreeReader,
    tree: Tree,
    row: int,
    ref: LeafRef | None,
    names: dict[int, str],
    *,
    open_leaf: bool,
    limit: int,
) -> Node:
    entry = tree.root.row(row)
    children: tuple[Node, ...] = ()
    hidden = 0
    if ref is not None and open_leaf:
        batch = reader.entries(ref)
        dead = set(ref.dead_positions().tolist())
        children = tuple(
            _leaf_node(batch, at, at in dead, names) for at in range(min(batch.num_rows, limit))
        )
        hidden = max(0, batch.num_rows - limit)
    return Node(
        letter=_LETTERS[ContentType(entry["content_type"])],
        name=_short(entry["location"]),
        status=Status(entry["tracking.status"]).name,
        facts=tuple(_facts(entry)),
        bounds=tuple(_bounds(entry, names)),
        children=children,
        hidden=hidden,
    )


def _leaf_node(batch: EntryBatch, at: int, is_dead: bool, names: dict[int, str]) -> Node:
    entry = batch.row(at)
    status = Status(entry["tracking.status"]).name
    return Node(
        letter=_LETTERS[ContentType(entry["content_type"])],
        name=_short(entry["location"]),
        status=f"{status} (dead)" if is_dead else status,
        facts=tuple(_facts(entry)),
        bounds=tuple(_bounds(entry, names)),
    )


def _facts(entry: dict[str, Any]) -> list[str]:
    is_leaf = entry["content_type"] >= ContentType.DATA_MANIFEST
    count = _entries if is_leaf else _rows
    facts = [count(entry["record_count"]), size(entry["file_size_in_bytes"])]
    if is_leaf and entry["manifest_info.format_version"] == 0:
        facts.append(f"carried {entry['file_format']}")
    if entry.get("deletion_vector.cardinality"):
        facts.append(f"DV {_rows(entry['deletion_vector.cardinality'])}")
    for key, label in (
        ("manifest_info.dv", "dv"),
        ("tracking.deleted_positions", "deleted"),
        ("tracking.replaced_positions", "replaced"),
    ):
        if entry.get(key):
            facts.append(f"{label}={_positions(entry[key])}")
    return facts


def _entries(count: int) -> str:
    return counted(count, "entry", "entries")


def _rows(count: int) -> str:
    return counted(count, "row")


def _positions(data: bytes) -> str:
    positions = bitmap.decode(data)
    text = ",".join(str(position) for position in np.asarray(positions)[:_SHOWN_POSITIONS])
    more = len(positions) - _SHOWN_POSITIONS
    return "{" + text + (f",… {more:,} more" if more > 0 else "") + "}"


def _bounds(entry: dict[str, Any], names: dict[int, str]) -> list[str]:
    texts = []
    for field_id, name in names.items():
        lower = entry.get(stats_key(field_id, "lower_bound"))
        upper = entry.get(stats_key(field_id, "upper_bound"))
        if lower is not None or upper is not None:
            same = lower == upper
            texts.append(f"{name} {_text(lower)}" + ("" if same else f"…{_text(upper)}"))
    return texts


def _text(value: Any) -> str:
    text = value.hex() if isinstance(value, bytes) else str(value)
    return text if len(text) <= 20 else f"{text[:19]}…"


def _short(path: str) -> str:
    """The last two parts of a path, with the middle of a UUID left out."""
    name = path.rsplit("/", 1)[-1]
    if len(name) > 40:
        name = f"{name[:20]}…{name[-16:]}"
    return name
