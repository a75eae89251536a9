"""The history of a table: every snapshot of every branch as columns, and one commit in detail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from frazil.commit import summary as keys
from frazil.format.metadata.metadata import MAIN, RefKind, Snapshot, TableMetadata
from frazil.format.metadata.summary_totals import live_rows, number, rows_changed
from frazil.serve.exchange import Request, Response
from frazil.serve.explorer import display_values
from frazil.serve.explorer.subject import Subject, whole
from frazil.serve.explorer.tree import RootView, died, gone, leaf_name
from frazil.serve.limits import MAX_PAGE_COMMITS
from frazil.serve.rest_errors import bad_request
from frazil.serve.service import Service
from frazil.table import Table
from frazil.text_format import counted, listed, size

_NUMBERS = {
    "files_added": "added-data-files",
    "files_removed": "deleted-data-files",
    "vectors": "added-dvs",
    "data_bytes_written": "added-files-size",
    "metadata_bytes": keys.METADATA_BYTES_WRITTEN,
    "leaves_written": keys.LEAVES_WRITTEN,
    "flushed": keys.ENTRIES_FLUSHED,
    "merged": keys.LEAVES_MERGED,
    "split": keys.LEAVES_SPLIT,
}
_TOTALS = {"files": "total-data-files", "bytes": "total-files-size"}


def show(service: Service, call: Request) -> Response:
    """GET commits, oldest first; `after` a snapshot id gives those that came later."""
    table = service.table(call.identifier())
    history = table.snapshots()
    lanes, lane = lanes_of(table.metadata, history)
    after = call.query.get("after")
    start = 0
    if after:
        start = next(
            (at + 1 for at, snapshot in enumerate(history) if str(snapshot.snapshot_id) == after), 0
        )
    limit = whole(call, "limit", default=MAX_PAGE_COMMITS, maximum=MAX_PAGE_COMMITS)
    # Without a place to start from, the newest are what people look at first.
    start = start if after else max(0, len(history) - limit)
    page = history[start : start + limit]
    body: dict[str, Any] = {
        "id": [str(snapshot.snapshot_id) for snapshot in page],
        "parent": display_values.ids([snapshot.parent_snapshot_id for snapshot in page]),
        "lane": [lane.get(int(snapshot.snapshot_id), len(lanes)) for snapshot in page],
        "time": [snapshot.timestamp_ms for snapshot in page],
        "operation": [snapshot.operation or "" for snapshot in page],
        "schema_id": [snapshot.schema_id for snapshot in page],
        "text": [sentence(snapshot) for snapshot in page],
    }
    for name, key in _NUMBERS.items():
        body[name] = [number(snapshot.summary, key) or 0 for snapshot in page]
    for name, key in _TOTALS.items():
        body[name] = [number(snapshot.summary, key) for snapshot in page]
    body["rows_added"] = [rows_changed(snapshot)[0] for snapshot in page]
    body["rows_removed"] = [_rows(snapshot)["deleted"] for snapshot in page]
    body["rows"] = [live_rows(snapshot) for snapshot in page]
    stray = any(lane.get(int(snapshot.snapshot_id)) is None for snapshot in page)
    return Response(
        body={
            **body,
            "lanes": [*lanes, None] if stray else lanes,
            "refs": refs(table.metadata),
            "first": start,
            "total": len(history),
            "more": start + len(page) < len(history),
        }
    )


def lanes_of(
    metadata: TableMetadata, history: Sequence[Snapshot]
) -> tuple[list[str], dict[int, int]]:
    """Branches, main first, and which of them each snapshot is drawn on.

    A snapshot that several branches share is on the first of them.
    """
    branches = [name for name, ref in metadata.refs.items() if ref.kind is RefKind.BRANCH]
    lanes = sorted(branches, key=lambda name: (name != MAIN, name))
    parents = {int(snapshot.snapshot_id): snapshot.parent_snapshot_id for snapshot in history}
    lane: dict[int, int] = {}
    for at, name in enumerate(lanes):
        walk: int | None = metadata.refs[name].snapshot_id
        while walk is not None and walk in parents and walk not in lane:
            lane[int(walk)] = at
            walk = parents[walk]
    return lanes, lane


def refs(metadata: TableMetadata) -> list[dict[str, Any]]:
    """Branches and tags, main first."""
    order = sorted(metadata.refs, key=lambda name: (name != MAIN, name))
    return [
        {
            "name": name,
            "kind": metadata.refs[name].kind.value,
            "snapshot": str(metadata.refs[name].snapshot_id),
            "max_ref_age_ms": metadata.refs[name].max_ref_age_ms,
            "min_snapshots_to_keep": metadata.refs[name].min_snapshots_to_keep,
            "max_snapshot_age_ms": metadata.refs[name].max_snapshot_age_ms,
        }
        for name in order
    ]


def sentence(snapshot: Snapshot) -> str:
    """What a commit did, in a sentence."""
    numbers = {name: number(snapshot.summary, key) or 0 for name, key in _NUMBERS.items()}
    parts = [
        listed({"added": numbers["files_added"], "removed": numbers["files_removed"]}, of="file"),
        listed(_rows(snapshot), of="row"),
    ]
    if numbers["flushed"]:
        parts.append(f"{counted(numbers['flushed'], 'entry', 'entries')} moved to leaves")
    if numbers["merged"]:
        parts.append(f"{counted(numbers['merged'], 'leaf', 'leaves')} merged")
    if numbers["split"]:
        parts.append(f"{counted(numbers['split'], 'leaf', 'leaves')} split")
    text = "; ".join(part for part in parts if part)
    return f"{text[:1].upper()}{text[1:]}." if text else "No files changed."


def _rows(snapshot: Snapshot) -> dict[str, int]:
    """What happened to rows, by verb."""
    added, removed = rows_changed(snapshot)
    moved = min(added, removed) if snapshot.operation == "replace" else 0
    return {"added": added - moved, "deleted": removed - moved, "rewritten": moved}


def commit(service: Service, call: Request) -> Response:
    """GET commit: one in detail, told from its own root."""
    subject = Subject.of(service, call)
    snapshot = subject.snapshot
    if snapshot is None:
        raise bad_request(f"{subject.table.name} has no snapshot yet")
    view = RootView(subject, ())
    root, leaves = view.root, view.leaves
    fresh = [leaves[at] for at in view.fresh]
    summary = snapshot.summary
    refs_by_name = {ref["name"]: ref for ref in refs(subject.table.metadata)}
    snapshot_id = str(snapshot.snapshot_id)
    retired = died(root, leaves)
    return Response(
        body={
            "id": snapshot_id,
            "parent": display_values.ids([snapshot.parent_snapshot_id])[0],
            "time": snapshot.timestamp_ms,
            "operation": snapshot.operation or "",
            "sequence": snapshot.sequence_number,
            "schema_id": snapshot.schema_id,
            "text": sentence(snapshot),
            "summary": dict(summary),
            "branches": _holding(subject.table, snapshot),
            "heads": [
                n
                for n, r in refs_by_name.items()
                if r["snapshot"] == snapshot_id and _is(r, "branch")
            ],
            "tags": [
                n for n, r in refs_by_name.items() if r["snapshot"] == snapshot_id and _is(r, "tag")
            ],
            "wrote": {
                "root": {"name": view.root_name, "bytes": view.root_bytes},
                "leaves": [
                    {
                        "id": leaf.location,
                        "name": leaf_name(leaf.location),
                        "entries": leaf.record_count,
                        "bytes": leaf.file_size_in_bytes,
                    }
                    for leaf in fresh
                ],
                "data_files": number(summary, "added-data-files") or 0,
                "data_bytes": number(summary, "added-files-size") or 0,
                "vectors": number(summary, "added-dvs") or 0,
                "puffin_files": int(bool(number(summary, "added-dvs"))),
                "metadata_bytes": number(summary, keys.METADATA_BYTES_WRITTEN),
                "text": _wrote(view, fresh),
            },
            "died": {leaves[int(at)].location: count for at, count in retired.items()},
            "leaves_gone": gone(root)["leaves"],
            "flushed": number(summary, keys.ENTRIES_FLUSHED) or 0,
            "merged": number(summary, keys.LEAVES_MERGED) or 0,
            "split": number(summary, keys.LEAVES_SPLIT) or 0,
        }
    )


def _is(ref: Mapping[str, Any], kind: str) -> bool:
    return bool(ref["kind"] == kind)


def _wrote(view: RootView, fresh: Sequence[Any]) -> str:
    leaves = sum(leaf.file_size_in_bytes for leaf in fresh)
    text = f"1 root of {size(view.root_bytes)}"
    if fresh:
        text += f", {counted(len(fresh), 'leaf', 'leaves')} of {size(leaves)}"
    return text


def _holding(table: Table, snapshot: Snapshot) -> list[str]:
    """The branches whose history has a snapshot."""
    parents = {
        int(snapshot.snapshot_id): snapshot.parent_snapshot_id for snapshot in table.snapshots()
    }
    names: list[str] = []
    for name, ref in table.metadata.refs.items():
        if ref.kind is not RefKind.BRANCH:
            continue
        walk: int | None = ref.snapshot_id
        while walk is not None and walk != snapshot.snapshot_id:
            walk = parents.get(walk)
        if walk is not None:
            names.append(name)
    return sorted(names, key=lambda name: (name != MAIN, name))
