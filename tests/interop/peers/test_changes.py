"""Changes told from manifests that Spark, Iceberg Java and PyIceberg wrote.

What a snapshot changed, applied to its parent's rows as the writer reads them, must give its own.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from frazil.errors import NotFound
from tests.interop.peers.tables import NAMES, PeerTable
from tests.support.upgrading import entered

pytestmark = [pytest.mark.java, pytest.mark.peers]

UNREADABLE = {"java_orc_v2"}
"""Data files with values that Arrow does not read."""


@pytest.mark.parametrize("name", [name for name in NAMES if name not in UNREADABLE])
def test_changes_lead_from_one_snapshot_to_the_next(
    name: str, peer_tables: dict[str, PeerTable], tmp_path: Path
) -> None:
    table = entered(peer_tables[name], tmp_path)
    for snapshot in table.snapshots():
        schema = table.metadata.schema_of(snapshot)
        names = [field.name for field in schema.fields]

        def counted(rows: list[dict[str, Any]], names: list[str] = names) -> Counter[Any]:
            return Counter(tuple(repr(row[column]) for column in names) for row in rows)

        parent = snapshot.parent_snapshot_id
        before: Counter[Any] = Counter()
        if parent is not None:
            try:
                scan = table.scan(as_of=int(parent))
            except NotFound:
                continue  # the writer expired it
            before = counted(replace(scan, schema_override=schema).to_pylist())
        after = counted(table.scan(as_of=int(snapshot.snapshot_id)).to_pylist())
        since = None if parent is None else int(parent)
        for collapse in (False, True):
            feed = table.changes(
                since=since, until=int(snapshot.snapshot_id), collapse=collapse
            ).to_pylist()
            came = [r for r in feed if r["_change_type"] in ("insert", "update_postimage")]
            gone = [r for r in feed if r["_change_type"] in ("delete", "update_preimage")]
            assert counted(gone) <= before + counted(came)
            assert before + counted(came) - counted(gone) == after
