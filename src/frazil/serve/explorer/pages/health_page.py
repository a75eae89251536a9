"""How a table fares: its health with what to do about it, and the space it takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from frazil.commit import summary as keys
from frazil.format.entries.fields import ContentType
from frazil.format.metadata.summary_totals import number
from frazil.serve.exchange import Request, Response
from frazil.serve.explorer import display_values
from frazil.serve.explorer.subject import Subject
from frazil.serve.explorer.tree import RootView
from frazil.serve.service import Service
from frazil.value_classes import dataclass, field

LABELS = {
    "compact": "Compact data files",
    "compact_metadata": "Compact metadata",
    "rewrite_manifests": "Rewrite leaves",
    "expire_snapshots": "Expire snapshots",
    "remove_orphan_files": "Remove orphan files",
}
_KEYS = (
    "content_type",
    "record_count",
    "file_size_in_bytes",
    "deletion_vector.size_in_bytes",
)
_EDGES = np.array([0, *(1 << at for at in range(10, 34))], dtype=np.int64)
_PARTITIONS = 50


def health(service: Service, call: Request) -> Response:
    """GET health: what `analyze` finds, with an action for each advice."""
    table = service.table(call.identifier())
    branch = call.query.get("branch") or table.branch_name
    # A table that was never written to has no branch yet, not even its own.
    analysis = (table if branch == table.branch_name else table.branch(branch)).analyze()
    numbers = analysis.to_dict()
    numbers.pop("advice")
    numbers["snapshot_id"] = display_values.text(numbers["snapshot_id"])
    return Response(
        body={
            "healthy": analysis.is_healthy,
            "numbers": numbers,
            "advice": [
                {
                    "problem": hint.problem,
                    "action": hint.run,
                    "label": LABELS.get(hint.run, hint.run),
                    "params": {} if branch == table.branch_name else {"branch": branch},
                }
                for hint in analysis.advice
            ],
        }
    )


@dataclass(slots=True)
class _Sizes:
    """Counts over all live entries, batch by batch."""

    files: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(len(_EDGES), np.int64))
    bytes: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(len(_EDGES), np.int64))
    data: int = 0
    count: int = 0
    vectors: int = 0


def space(service: Service, call: Request) -> Response:
    """GET space. What only the history holds is told by summaries; orphans need a listing."""
    subject = Subject.of(service, call)
    sizes = _sizes(subject)
    view = RootView(subject, ())
    leaves = sum(leaf.file_size_in_bytes for leaf in view.leaves)
    used = int(np.flatnonzero(sizes.files).max()) + 1 if sizes.count else 0
    first = int(np.flatnonzero(sizes.files).min()) if sizes.count else 0
    orphans = None
    if call.query.get("orphans") == "1":
        unused = subject.table.remove_orphan_files(dry_run=True)
        orphans = {"bytes": unused.total_bytes, "files": len(unused.files), "young": unused.young}
    partitions = _partitions(subject)
    return Response(
        body={
            "live": {
                "data": sizes.data,
                "vectors": sizes.vectors,
                "metadata": view.root_bytes + leaves,
                "files": sizes.count,
            },
            "history": _history(subject, view.root_bytes + leaves),
            "orphans": orphans,
            "sizes": {
                "edges": [int(edge) for edge in _EDGES[first : used + 1]],
                "files": sizes.files[first:used].tolist(),
                "bytes": sizes.bytes[first:used].tolist(),
            },
            **partitions,
        }
    )


def _sizes(subject: Subject) -> _Sizes:
    total = _Sizes()
    reader = subject.reader
    for batch in reader.all_live(reader.tree(subject.snapshot, keys=_KEYS), keys=_KEYS):
        data = batch.numpy("content_type") == ContentType.DATA
        sizes = batch.numpy("file_size_in_bytes", missing=0)[data].astype(np.int64)
        at = np.searchsorted(_EDGES, sizes, side="right") - 1
        total.files += np.bincount(at, minlength=len(_EDGES))
        np.add.at(total.bytes, at, sizes)
        total.data += int(sizes.sum())
        total.count += len(sizes)
        total.vectors += int(batch.numpy("deletion_vector.size_in_bytes", missing=0)[data].sum())
    return total


def _history(subject: Subject, live_metadata: int) -> dict[str, Any]:
    """What kept snapshots hold beyond the current one, as their summaries tell."""
    snapshots = subject.table.snapshots()
    removed = [number(snapshot.summary, "removed-files-size") or 0 for snapshot in snapshots]
    files = [number(snapshot.summary, "deleted-data-files") or 0 for snapshot in snapshots]
    written = [number(snapshot.summary, keys.METADATA_BYTES_WRITTEN) or 0 for snapshot in snapshots]
    return {
        "data": sum(removed),
        "files": sum(files),
        "metadata": max(0, sum(written) - live_metadata),
        "snapshots": len(snapshots),
    }


def _partitions(subject: Subject) -> dict[str, Any]:
    """The largest partitions, and how far the largest is from the one in the middle."""
    nothing: dict[str, Any] = {"names": [], "bytes": [], "rows": [], "files": [], "others": None}
    if subject.snapshot is None or not any(
        spec.fields for spec in subject.table.metadata.partition_specs
    ):
        return {"partitions": nothing, "skew": None}
    table = subject.table.inspect.at(subject.snapshot).partitions
    sizes = table.column("total_data_file_size_in_bytes").to_numpy()
    order = np.argsort(-sizes, kind="stable")
    top, rest = order[:_PARTITIONS], order[_PARTITIONS:]
    files = table.column("file_count").to_numpy()
    rows = table.column("record_count").to_numpy()
    partitions = table.column("partition").take(top).to_pylist()
    middle = float(np.median(sizes)) if len(sizes) else 0.0
    return {
        "partitions": {
            "names": [
                ", ".join(
                    f"{name}={display_values.text(value) or 'null'}"
                    for name, value in partition.items()
                )
                for partition in partitions
            ],
            "bytes": sizes[top].tolist(),
            "rows": rows[top].tolist(),
            "files": files[top].tolist(),
            "others": None
            if not len(rest)
            else {
                "n": len(rest),
                "bytes": int(sizes[rest].sum()),
                "files": int(files[rest].sum()),
                "rows": int(rows[rest].sum()),
            },
            "total": len(sizes),
        },
        "skew": round(float(sizes.max()) / middle, 2) if middle else None,
    }
