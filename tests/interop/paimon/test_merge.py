"""Files that need a merge, merged by Spark: the outcome is what Paimon itself reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from frazil.paimon import adopt
from frazil.spark import merge_paimon
from tests.interop.paimon.peers import PeerTables
from tests.interop.paimon.reading import fingerprint, handle_of, rows_of
from tests.interop.paimon.test_adopt import commit, copied, rewind
from tests.support.memory_catalog import MemoryCatalog

pytestmark = [pytest.mark.java, pytest.mark.peers, pytest.mark.spark]


@pytest.mark.parametrize(
    ("name", "snapshot_id"),
    [("pk_level0", 3), ("pk_compacted", 3), ("pk_sequence", 2), ("pk_level0_types", 3)],
)
def test_merged_rows_are_what_paimon_reads(
    name: str, snapshot_id: int, java_paimon: PeerTables, catalog: MemoryCatalog, spark: Any
) -> None:
    before = fingerprint(Path(java_paimon.table(name)))
    adopted = adopt(
        catalog,
        f"db.{name}",
        java_paimon.table(name),
        snapshot_id=snapshot_id,
        merge=merge_paimon(spark),
    )
    assert adopted.snapshots[-1].paimon_snapshot_id == snapshot_id
    handle = handle_of(catalog, f"db.{name}")
    assert rows_of(handle, handle.tip()) == java_paimon.rows(name, snapshot_id)
    assert fingerprint(Path(java_paimon.table(name))) == before


def test_rows_that_a_file_deletes_without_counting_are_gone(
    pypaimon: PeerTables, catalog: MemoryCatalog, spark: Any
) -> None:
    adopt(catalog, "db.t", pypaimon.table("py_pk_kinds"), merge=merge_paimon(spark))
    handle = handle_of(catalog, "db.t")
    assert rows_of(handle, handle.tip()) == [
        '{"k": 1, "v": "a", "rk": "+I"}',
        '{"k": 3, "v": "c", "rk": "+I"}',
    ]


def test_first_row_keeps_the_oldest_row_of_a_key(
    java_paimon: PeerTables, catalog: MemoryCatalog, spark: Any
) -> None:
    adopt(catalog, "db.t", java_paimon.table("pk_first_row_level0"), merge=merge_paimon(spark))
    handle = handle_of(catalog, "db.t")
    assert rows_of(handle, handle.tip()) == [
        '{"k": 1, "v": "a", "n": 1}',
        '{"k": 2, "v": "b", "n": 2}',
        '{"k": 3, "v": "c", "n": 3}',
    ]


def test_a_sync_replaces_what_was_merged_before(
    java_paimon: PeerTables, catalog: MemoryCatalog, spark: Any, tmp_path: Path
) -> None:
    source = copied(java_paimon, "pk_level0", tmp_path)
    later = rewind(source, 2)
    adopt(catalog, "db.t", str(source), merge=merge_paimon(spark))
    handle = handle_of(catalog, "db.t")
    assert rows_of(handle, handle.tip()) == java_paimon.rows("pk_level0", 2)
    commit(source, later, 3)
    adopt(catalog, "db.t", str(source), merge=merge_paimon(spark))
    handle = handle_of(catalog, "db.t")
    assert rows_of(handle, handle.tip()) == java_paimon.rows("pk_level0", 3)
