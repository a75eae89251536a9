"""The tree of a snapshot as the page draws it: its root, leaves, and bounds by column.

Everything is told from the one root; no leaf is opened. A tree may be told as a step from another
one that the page has: a leaf never changes, so its name, entries, size and bounds are known once it
was seen. A step names the leaves that stay as runs of places in the other tree and sends those that
are new, the dead positions that differ, and how places on a column's scale moved.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from frazil.format.entries import tracking
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import ContentType, stats_key
from frazil.format.entries.stats import TrackedField
from frazil.format.entries.tracking import Status
from frazil.format.metadata.summary_totals import number
from frazil.format.vectors import bitmap
from frazil.maintenance.removal.reachable import root_address
from frazil.serve.exchange import Request, Response
from frazil.serve.explorer import display_values
from frazil.serve.explorer.scales import Bounds, Scale
from frazil.serve.explorer.subject import Subject
from frazil.serve.service import Service
from frazil.tree.read import LeafRef, leaf_refs
from frazil.value_classes import dataclass, replace

MAX_CELLS = 2_000
_BINS = 64
_STATS = ("lower_bound", "upper_bound", "null_value_count")
_KEYS = (
    "record_count",
    "manifest_info.added_rows_count",
    "manifest_info.existing_rows_count",
    "deletion_vector.cardinality",
    "tracking.modified_snapshot_id",
)
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class RootView:
    """One root, with the columns that were asked for."""

    subject: Subject
    columns: tuple[TrackedField, ...]
    extra: frozenset[str] = frozenset()

    @cached_property
    def root(self) -> EntryBatch:
        """Its entries."""
        keys = {stats_key(column.id, name) for column in self.columns for name in _STATS}
        root_keys = keys | set(_KEYS) | self.extra
        return self.subject.reader.tree(self.subject.snapshot, keys=root_keys).root

    @cached_property
    def root_path(self) -> str | None:
        """Where its file is."""
        snapshot = self.subject.snapshot
        return None if snapshot is None else root_address(self.subject.table.location, snapshot)

    @property
    def root_name(self) -> str:
        """The name of its file."""
        return (self.root_path or "").rpartition("/")[2]

    @cached_property
    def root_bytes(self) -> int:
        """How large its file is."""
        address = self.root_path
        return 0 if address is None else self.subject.size_of(address)

    @cached_property
    def leaves(self) -> tuple[LeafRef, ...]:
        """Its leaves, those of data files first, as plans number them."""
        refs = leaf_refs(self.root)
        return tuple(
            sorted(refs, key=lambda leaf: leaf.content_type is not ContentType.DATA_MANIFEST)
        )

    @property
    def fresh(self) -> list[int]:
        """Which of its leaves this very snapshot wrote. Those of a flush are not marked as added,
        because their files are not new."""
        snapshot = self.subject.snapshot
        snapshot_id = None if snapshot is None else snapshot.snapshot_id
        return [at for at, leaf in enumerate(self.leaves) if leaf.snapshot_id == snapshot_id]

    @property
    def delete_leaves(self) -> int:
        """How many of its leaves list delete files."""
        kind = self.root.numpy("content_type")
        return int((tracking.live_mask(self.root) & (kind == ContentType.DELETE_MANIFEST)).sum())

    @cached_property
    def inline(self) -> Rows:
        """Rows of the root that are live data files."""
        kind = self.root.numpy("content_type")
        return np.flatnonzero(tracking.live_mask(self.root) & (kind == ContentType.DATA))

    @property
    def stride(self) -> int:
        """How many data files of the root share a cell."""
        return max(1, -(-len(self.inline) // MAX_CELLS))

    def scale(self, column: TrackedField) -> tuple[Scale, Bounds] | None:
        """The scale of a column and the bounds of every entry; None when there are none."""
        bounds = Bounds.of(self.root, column.id, column.type)
        return None if bounds is None else (Scale.over(bounds), bounds)


def show(service: Service, call: Request) -> Response:
    """GET tree; with `base`, a snapshot whose tree the page has, as a step from that one."""
    subject = Subject.of(service, call)
    column_ids = call.query.get("columns")
    body = _body(RootView(subject, subject.columns(column_ids)))
    base = _base_subject(subject, call.query.get("base"))
    if base is None:
        return Response(body=body)
    return Response(body=step(_body(RootView(base, base.columns(column_ids))), body))


def _base_subject(subject: Subject, base: str | None) -> Subject | None:
    """The table at another snapshot, when it still has it."""
    snapshot_ids = {str(snapshot.snapshot_id) for snapshot in subject.table.snapshots()}
    if base is None or base not in snapshot_ids or subject.snapshot is None:
        return None
    return replace(Subject.at(subject.table, base), sizes=subject.sizes)


def _body(view: RootView) -> dict[str, Any]:
    snapshot, root = view.subject.snapshot, view.root
    return {
        "snapshot": None if snapshot is None else str(snapshot.snapshot_id),
        "parent": None
        if snapshot is None or snapshot.parent_snapshot_id is None
        else str(snapshot.parent_snapshot_id),
        "time": None if snapshot is None else snapshot.timestamp_ms,
        "operation": None if snapshot is None else snapshot.operation,
        "schema_id": None if snapshot is None else snapshot.schema_id,
        "root": _root(view),
        "leaves": _leaves(view),
        "inline": _inline(view),
        "gone": gone(root),
        "columns": [column for column in (_column(view, c) for c in view.columns) if column],
        "totals": totals(view.subject),
    }


def totals(subject: Subject) -> dict[str, int | None]:
    """Files, rows and bytes, as the snapshot's summary says."""
    summary = {} if subject.snapshot is None else subject.snapshot.summary
    names = {"files": "data-files", "rows": "records", "bytes": "files-size"}
    return {name: number(summary, f"total-{key}") for name, key in names.items()}


def _root(view: RootView) -> dict[str, Any]:
    snapshot, root = view.subject.snapshot, view.root
    return {
        "name": view.root_name,
        "path": view.root_path,
        "bytes": view.root_bytes,
        "entries": int(tracking.live_mask(root).sum()) if root.num_rows else 0,
        "version": 4 if snapshot is None or snapshot.root_manifest is not None else 3,
    }


def _leaves(view: RootView) -> dict[str, Any]:
    leaves, root = view.leaves, view.root
    rows = np.array([leaf.row for leaf in leaves], dtype=np.int64)
    counts = [
        root.numpy(f"manifest_info.{verb}_rows_count", missing=0)[rows]
        for verb in ("added", "existing")
        if root.has(f"manifest_info.{verb}_rows_count")
    ]
    stored = np.sum(counts, axis=0) if counts and len(rows) else None
    dead = [leaf.dead for leaf in leaves]
    return {
        "id": [leaf.location for leaf in leaves],
        "name": [leaf_name(leaf.location) for leaf in leaves],
        "entries": [leaf.record_count for leaf in leaves],
        "dead": dead,
        "bytes": [leaf.file_size_in_bytes for leaf in leaves],
        "rows": [None] * len(leaves) if stored is None else [int(size) for size in stored],
        "kind": [
            "data" if leaf.content_type is ContentType.DATA_MANIFEST else "deletes"
            for leaf in leaves
        ],
        "format_version": [leaf.format_version for leaf in leaves],
        "written_by": display_values.ids([leaf.snapshot_id for leaf in leaves]),
        "fresh": view.fresh,
        "died": died(root, leaves),
        "dead_bins": {
            str(at): bins(leaf.dead_positions(), leaf.record_count)
            for at, leaf in enumerate(leaves)
            if dead[at]
        },
    }


def leaf_name(location: str) -> str:
    """The short name of a manifest."""
    name = location.rpartition("/")[2]
    return name.rpartition(".")[0] or name


def died(root: EntryBatch, leaves: tuple[LeafRef, ...]) -> dict[str, int]:
    """How many positions of each leaf this very snapshot retired, by index of the leaf."""
    counts: dict[str, int] = {}
    for key in ("tracking.deleted_positions", "tracking.replaced_positions"):
        if not root.has(key):
            continue
        column = root.column(key)
        for at, leaf in enumerate(leaves):
            data = column[leaf.row].as_py()
            if data:
                counts[str(at)] = counts.get(str(at), 0) + bitmap.cardinality(data)
    return counts


def bins(positions: npt.NDArray[Any], count: int) -> str:
    """The share of these positions in each of 64 parts, a byte each, as base64."""
    if not count:
        return ""
    place = positions * _BINS // count
    width = np.maximum(np.bincount(np.arange(count) * _BINS // count, minlength=_BINS), 1)
    share = np.bincount(place, minlength=_BINS)[:_BINS] / width[:_BINS]
    return b64encode(np.ceil(share * 255).clip(0, 255).astype(np.uint8).tobytes()).decode()


def _inline(view: RootView) -> dict[str, Any]:
    root, rows, stride = view.root, view.inline, view.stride
    kind = root.numpy("content_type")
    live = tracking.live_mask(root)
    deletes = (kind == ContentType.EQUALITY_DELETES) | (kind == ContentType.POSITION_DELETES)
    status = root.numpy("tracking.status")[rows]
    vectors = np.zeros(len(rows), dtype=np.bool_)
    if root.has("deletion_vector.cardinality"):
        vectors = root.numpy("deletion_vector.cardinality", missing=0)[rows] > 0
    return {
        "n": len(rows),
        "deletes": int((live & deletes).sum()),
        "stride": stride,
        "count": cell_counts(np.ones(len(rows), dtype=np.bool_), stride),
        "added": _cells(status == Status.ADDED, stride),
        "modified": _cells(status == Status.MODIFIED, stride),
        "vectors": _cells(vectors, stride),
    }


def cell_counts(mask: npt.NDArray[np.bool_], stride: int) -> list[int]:
    """How many are true in each run of `stride`."""
    if not len(mask):
        return []
    return [
        int(count) for count in np.add.reduceat(mask, np.arange(0, len(mask), stride), dtype=int)
    ]


def _cells(mask: npt.NDArray[np.bool_], stride: int) -> list[int]:
    return [int(cell) for cell in np.unique(np.flatnonzero(mask) // stride)]


def gone(root: EntryBatch) -> dict[str, Any]:
    """What this snapshot took out of the root."""
    if not root.num_rows:
        return {"leaves": [], "files": 0}
    dead = ~tracking.live_mask(root)
    leaves = dead & tracking.leaf_mask(root)
    files = dead & ~tracking.leaf_mask(root) & (root.numpy("content_type") == ContentType.DATA)
    return {
        "leaves": root.pylist("location", np.flatnonzero(leaves)),
        "files": int((files & (root.numpy("tracking.status") == Status.DELETED)).sum()),
    }


def _column(view: RootView, column: TrackedField) -> dict[str, Any] | None:
    column_scale = view.scale(column)
    if column_scale is None:
        return None
    scale, bounds = column_scale
    rows = np.array([leaf.row for leaf in view.leaves], dtype=np.int64)
    nulls = stats_key(column.id, "null_value_count")
    lower, upper = bounds.lower.take(rows), bounds.upper.take(rows)
    cells = cell_bounds(scale, bounds, view.inline, view.stride)
    return {
        "id": column.id,
        "name": column.full_name,
        "type": str(column.type),
        **scale.about(),
        "leaves": {
            "lo": scale.places(lower),
            "hi": scale.places(upper),
            "lo_text": display_values.texts(lower, max_length=60),
            "hi_text": display_values.texts(upper, max_length=60),
            "nulls": view.root.pylist(nulls, rows) if view.root.has(nulls) else [None] * len(rows),
        },
        "inline": {"lo": cells[0], "hi": cells[1]},
    }


def cell_bounds(
    scale: Scale, bounds: Bounds, rows: npt.NDArray[Any], stride: int
) -> tuple[list[float | None], list[float | None]]:
    """Per run of `stride` entries the least lower and the greatest upper place."""
    lower, upper = (scale.places(side.take(rows)) for side in (bounds.lower, bounds.upper))
    if stride == 1 or not len(rows):
        return lower, upper
    starts = np.arange(0, len(rows), stride)
    lowest = np.fmin.reduceat(np.array(lower, dtype=np.float64), starts)
    highest = np.fmax.reduceat(np.array(upper, dtype=np.float64), starts)
    return (
        [None if np.isnan(bound) else float(bound) for bound in lowest],
        [None if np.isnan(bound) else float(bound) for bound in highest],
    )


FIXED = ("id", "name", "entries", "bytes", "rows", "kind", "format_version", "written_by")
"""What never changes about a leaf."""
_TEXTS = ("lo_text", "hi_text", "nulls")
_NEAR = 3e-5
_NEW = -1


def step(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The tree `after`, for a page that has `before`."""
    old, new = before["leaves"], after["leaves"]
    position_of = {id: at for at, id in enumerate(old["id"])}
    origin = [position_of.get(id, _NEW) for id in new["id"]]
    fresh = [at for at, was in enumerate(origin) if was == _NEW]
    dead = {
        str(at): new["dead"][at]
        for at, was in enumerate(origin)
        if was == _NEW or new["dead"][at] != old["dead"][was]
    }
    earlier = {column["id"]: column for column in before["columns"]}
    return {
        **after,
        "base": before["snapshot"],
        "leaves": {
            "runs": _runs(origin),
            **{name: [new[name][at] for at in fresh] for name in FIXED},
            "dead": dead,
            "dead_bins": {at: bins for at, bins in new["dead_bins"].items() if at in dead},
            "fresh": new["fresh"],
            "died": new["died"],
        },
        "columns": [
            _column_step(earlier.get(column["id"]), column, origin, fresh)
            for column in after["columns"]
        ],
    }


def _runs(origin: Sequence[int]) -> list[list[int]]:
    """Runs of leaves: where each starts in the other tree, -1 for new ones, and how many."""
    runs: list[list[int]] = []
    for was in origin:
        if runs and (
            (was == _NEW and runs[-1][0] == _NEW)
            or (was != _NEW and runs[-1][0] != _NEW and was == sum(runs[-1]))
        ):
            runs[-1][1] += 1
        else:
            runs.append([was, 1])
    return runs


def _column_step(
    old: Mapping[str, Any] | None,
    new: Mapping[str, Any],
    origin: Sequence[int],
    fresh: Sequence[int],
) -> dict[str, Any]:
    if old is None:
        return dict(new)
    leaves = new["leaves"]
    sent: dict[str, Any] = {name: [leaves[name][at] for at in fresh] for name in _TEXTS}
    shared = [at for at, was in enumerate(origin) if was != _NEW]
    moved = _moved(old["leaves"], leaves, [(origin[at], at) for at in shared])
    chosen = range(len(origin)) if moved is None else fresh
    for name in ("lo", "hi"):
        sent[name] = [leaves[name][at] for at in chosen]
    return {**new, "leaves": {**sent, "moved": moved}}


def _moved(
    old: Mapping[str, Any], new: Mapping[str, Any], pairs: Sequence[tuple[int, int]]
) -> list[float] | None:
    """Factor and offset that lead from the old places to the new ones; None when none do."""
    was = _places(old, [old_place for old_place, _ in pairs])
    now = _places(new, [other for _, other in pairs])
    if not (np.isnan(was) == np.isnan(now)).all():
        return None
    has_place = ~np.isnan(was)
    if not has_place.any():
        return [1.0, 0.0]
    first, last = int(np.nanargmin(was)), int(np.nanargmax(was))
    wide = was[last] - was[first]
    factor = float((now[last] - now[first]) / wide) if wide > 0 else 1.0
    offset = float(now[first] - factor * was[first])
    if np.abs(was[has_place] * factor + offset - now[has_place]).max() > _NEAR:
        return None
    return [round(factor, 8), round(offset, 8)]


def _places(column: Mapping[str, Any], rows: Sequence[int]) -> np.ndarray[Any, np.dtype[Any]]:
    values = [column[name][at] for name in ("lo", "hi") for at in rows]
    return np.array(values, dtype=np.float64)
