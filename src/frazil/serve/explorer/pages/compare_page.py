"""Two snapshots side by side: schema, files, rows, leaves, and how one descends from the other."""

from __future__ import annotations

from typing import Any

from frazil.format import paths
from frazil.format.metadata.summary_totals import number
from frazil.serve.exchange import Request, Response
from frazil.serve.explorer.evolution import schema_changes
from frazil.serve.explorer.subject import Subject
from frazil.serve.rest_errors import bad_request
from frazil.serve.service import Service
from frazil.table import Table
from frazil.tree.read import leaf_refs

_EXAMPLES = 20


def show(service: Service, call: Request) -> Response:
    """GET compare. Leaves that both have with the same dead positions are not opened."""
    table = service.table(call.identifier())
    sides = [Subject.at(table, call.query.get(name)) for name in ("from", "to")]
    first, second = (side.snapshot for side in sides)
    if first is None or second is None:
        raise bad_request(f"{table.name} has no snapshot to compare yet")
    comparison = table.compare(second, as_of=first)
    files = comparison.files
    before = number(first.summary, "total-data-files")
    after = number(second.summary, "total-data-files")
    changes = schema_changes(table.metadata.schema_of(first), table.metadata.schema_of(second))
    behind, ahead, base = _apart(table, int(first.snapshot_id), int(second.snapshot_id))
    return Response(
        body={
            "from": str(first.snapshot_id),
            "to": str(second.snapshot_id),
            "times": [first.timestamp_ms, second.timestamp_ms],
            "schema": [change.to_dict() for change in changes],
            "files": {
                "from": before,
                "to": after,
                "only_from": len(files.only_left),
                "only_to": len(files.only_right),
                "other_vector": len(files.changed),
                "both": None if before is None else before - len(files.only_left),
                "bytes_from": number(first.summary, "total-files-size"),
                "bytes_to": number(second.summary, "total-files-size"),
            },
            "rows": {"from": comparison.rows_left, "to": comparison.rows_right},
            "common": None if base is None else str(base),
            "behind": behind,
            "ahead": ahead,
            "leaves": _leaves(sides),
            "examples": {
                "only_from": list(files.only_left[:_EXAMPLES]),
                "only_to": list(files.only_right[:_EXAMPLES]),
                "other_vector": list(files.changed[:_EXAMPLES]),
            },
        }
    )


def _apart(table: Table, first: int, second: int) -> tuple[int, int, int | None]:
    """Commits that only the first has, that only the second has, and the last that both have."""
    parents = {
        int(snapshot.snapshot_id): snapshot.parent_snapshot_id for snapshot in table.snapshots()
    }

    def line(start: int) -> list[int]:
        walk: int | None = start
        chain: list[int] = []
        while walk is not None and walk in parents:
            chain.append(int(walk))
            walk = parents[walk]
        return chain

    left, right = line(first), line(second)
    shared = set(left) & set(right)
    base = next((snapshot_id for snapshot_id in right if snapshot_id in shared), None)
    return len(left) - len(shared), len(right) - len(shared), base


def _leaves(sides: list[Subject]) -> dict[str, Any]:
    names = [
        {
            paths.resolve(side.table.location, leaf.location): leaf.location
            for leaf in leaf_refs(side.reader.tree(side.snapshot, keys=()).root)
        }
        for side in sides
    ]
    first, other = names
    return {
        "only_from": [first[name] for name in first if name not in other],
        "only_to": [other[name] for name in other if name not in first],
        "both": sum(name in other for name in first),
    }
