"""Snapshots that Iceberg Java wrote, translated one by one as a server translates what clients
commit: the rows are Java's after each, and no tree holds an equality delete."""

from __future__ import annotations

from pathlib import Path

import pytest

from frazil import Table
from frazil.format.entries.fields import ContentType
from frazil.serve.access.allowed_paths import Fence
from frazil.serve.rest.posted import PostedFiles, as_vectors
from frazil.serve.rest.translate import change_of
from tests.interop.peers.tables import PeerTable
from tests.support.upgrading import entered
from tests.support.values import canonical_rows

pytestmark = [pytest.mark.java, pytest.mark.peers]

NAMES = [f"java_equality_{kind}v{version}" for kind in ("", "partitioned_") for version in (2, 3)]


@pytest.mark.parametrize("name", NAMES)
def test_each_snapshot_leaves_the_rows_that_java_reads(
    peer_tables: dict[str, PeerTable], tmp_path: Path, name: str
) -> None:
    peer = peer_tables[name]
    table = entered(peer, tmp_path)
    table.upgrade()
    first, *others = peer.snapshots
    replayed = table.branch("replayed", create=True, as_of=first.id)
    equality = 0
    for number, snapshot in enumerate(others):
        equality += _replay(replayed, peer.location, snapshot.parent_id, snapshot.id, number + 1)
        replayed.refresh()
        assert canonical_rows(replayed.scan().to_arrow()) == canonical_rows(peer.rows(snapshot.id))
    assert equality
    tree = table._handle.reader().tree(replayed.current_snapshot())
    kinds = set(tree.root.pylist("content_type"))
    assert kinds <= {int(ContentType.DATA), int(ContentType.DATA_MANIFEST)}


def _replay(table: Table, written_in: str, parent: int | None, snapshot: int, number: int) -> int:
    """Commit what one list of Java's changes of the one before; how many equality deletes it
    had."""
    handle = table._handle
    assert parent is not None
    before, after = (handle.snapshot(id).manifest_list for id in (parent, snapshot))
    assert after is not None
    posted = PostedFiles(
        storage=handle.storage,
        location=handle.location,
        metadata=handle.metadata,
        fence=Fence([handle.location, written_in]),
    )
    difference = posted.difference(before, after, snapshot_id=snapshot)
    count = 0 if difference.equality is None else difference.equality.num_rows
    tip = table.current_snapshot()
    assert tip is not None
    difference = as_vectors(difference, handle, tip, handle.storage)
    change = change_of(
        difference,
        snapshot_id=number,
        operation="overwrite",
        summary={},
        branch="replayed",
        base_snapshot_id=tip.snapshot_id,
    )
    handle.commit(change)
    return count
