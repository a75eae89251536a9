"""Equality deletes that land while another change is under way: rows they took never come back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import frazil
from frazil.errors import CommitConflict
from frazil.format.metadata.metadata import MAIN
from frazil.rows.editor import RowEditor
from frazil.table.transaction import Transaction
from tests.support.meanwhile import interrupt
from tests.support.rewrites import rewrite_files

Step = Callable[[Transaction], object]
ROWS = pa.table({"id": range(6), "part": [0, 0, 0, 1, 1, 1], "value": [0] * 6})


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[frazil.Catalog]:
    with frazil.connect(tmp_path / "warehouse") as opened:
        yield opened


@pytest.fixture
def table(catalog: frazil.Catalog) -> frazil.Table:
    made = catalog.create_table(
        "shop.things",
        ROWS.schema,
        partition_by=["part"],
        properties={"write.equality-deletes.enabled": "true"},
    )
    made.append(ROWS.slice(0, 3))
    made.append(ROWS.slice(3))
    return made


def _delete_equal(catalog: frazil.Catalog, *ids: int) -> None:
    """Another writer's equality delete."""
    delta = catalog.load_table("shop.things").row_delta()
    delta.add_equality_deletes(pa.table({"id": pa.array(ids, pa.int64())}), on=["id"]).commit()


def _ids(table: frazil.Table) -> list[int]:
    return sorted(table.refresh().scan().to_arrow()["id"].to_pylist())


def _named(*ids: int) -> pa.Table:
    return pa.table({"id": ids, "part": [id // 3 for id in ids], "value": [9] * len(ids)})


def _append_and_update(tx: Transaction) -> None:
    tx.append(_named(8))
    tx.update({"value": 7}, "id <= 5")


MOVING: dict[str, Step] = {
    "update": lambda tx: tx.update({"value": 7}, "id in (1, 2)"),
    "update of all": lambda tx: tx.update({"value": 7}, "true"),
    "upsert": lambda tx: tx.upsert(_named(1, 2), on=["id"]),
    "merge": lambda tx: tx.merge(_named(1, 4), on=["id"]).when_matched_update().execute(),
    "append and update": _append_and_update,
}
OVERWRITING: dict[str, Step] = {
    "overwrite": lambda tx: tx.overwrite(tx.scan("part = 0").to_arrow(), "part = 0"),
    "overwrite of all": lambda tx: tx.overwrite(tx.scan().to_arrow()),
    "overwrite of partitions": lambda tx: tx.overwrite_partitions(tx.scan("part = 0").to_arrow()),
}


@pytest.mark.parametrize("isolation", ["serializable", "snapshot"])
@pytest.mark.parametrize("work", MOVING.values(), ids=MOVING.keys())
def test_a_row_that_an_equality_delete_took_is_not_written_again(
    catalog: frazil.Catalog, table: frazil.Table, work: Step, isolation: str
) -> None:
    kinds = ("update", "merge")
    table.set_properties({f"write.{kind}.isolation-level": isolation for kind in kinds})
    tx = table.transaction()
    work(tx)
    _delete_equal(catalog, 1, 2)
    with pytest.raises(CommitConflict) as error:
        tx.commit()
    assert {conflict.what for conflict in error.value.conflicts} == {
        "equality delete that could match"
    }
    assert _ids(table) == [0, 3, 4, 5]
    assert not table.check(deep=True).problems


@pytest.mark.parametrize("work", OVERWRITING.values(), ids=OVERWRITING.keys())
def test_rows_that_were_read_and_written_back_conflict_with_an_equality_delete(
    catalog: frazil.Catalog, table: frazil.Table, work: Step
) -> None:
    tx = table.transaction()
    work(tx)
    _delete_equal(catalog, 1, 2)
    with pytest.raises(CommitConflict):
        tx.commit()
    assert _ids(table) == [0, 3, 4, 5]


@pytest.mark.parametrize("work", ["update", "upsert"])
def test_an_equality_delete_of_other_rows_is_no_conflict(
    catalog: frazil.Catalog, table: frazil.Table, work: str
) -> None:
    tx = table.transaction()
    MOVING[work](tx)
    _delete_equal(catalog, 4)
    tx.commit()
    assert _ids(table) == [0, 1, 2, 3, 5]


def test_a_delete_by_filter_lands_beside_an_equality_delete(
    catalog: frazil.Catalog, table: frazil.Table
) -> None:
    tx = table.transaction()
    tx.delete("id in (1, 2)")
    _delete_equal(catalog, 1)
    tx.commit()
    assert _ids(table) == [0, 3, 4, 5]


def test_compacted_rows_keep_their_age_so_that_a_later_equality_delete_applies(
    catalog: frazil.Catalog, table: frazil.Table
) -> None:
    interrupt(table, lambda: _delete_equal(catalog, 1))
    table.compact(min_input_files=1, sort_by=["id"])
    assert _ids(table) == [0, 2, 3, 4, 5]
    tip = table.current_snapshot()
    assert tip is not None
    assert tip.operation == "replace"


def _copied(table: frazil.Table) -> tuple[str, frazil.format.entries.batch.EntryBatch]:
    """The file of partition 0, and another one with the same rows."""
    (path,) = table.scan("part = 0").plan().files.pylist("location")
    rows = table.scan("part = 0").to_batches()
    editor = RowEditor(
        handle=table._handle,
        metadata=table.metadata,
        snapshot=table.current_snapshot(),
        branch=MAIN,
    )
    return path, editor.write(rows)


def test_files_swapped_by_name_conflict_with_an_equality_delete(
    catalog: frazil.Catalog, table: frazil.Table
) -> None:
    path, copied = _copied(table)
    delta = table.row_delta().remove_file(path)._add_entries(copied)
    _delete_equal(catalog, 1)
    with pytest.raises(CommitConflict):
        delta.commit()
    assert _ids(table) == [0, 2, 3, 4, 5]


def test_a_rewrite_whose_files_are_younger_than_an_equality_delete_conflicts(
    catalog: frazil.Catalog, table: frazil.Table
) -> None:
    base = table.current_snapshot()
    assert base is not None
    path, copied = _copied(table)
    _delete_equal(catalog, 1)
    table.refresh()
    with pytest.raises(CommitConflict):  # rewrite_files gives new files the age of the tip
        rewrite_files(table, [path], copied, base=int(base.snapshot_id))
    assert _ids(table) == [0, 2, 3, 4, 5]


def test_an_equality_delete_that_was_there_when_a_change_was_planned_is_no_conflict(
    catalog: frazil.Catalog, table: frazil.Table
) -> None:
    _delete_equal(catalog, 1)
    table.refresh()
    tx = table.transaction()
    tx.update({"value": 7}, "true")
    catalog.load_table("shop.things").set_properties({"owner": "x"})
    catalog.load_table("shop.things").row_delta().add_equality_deletes(
        pa.table({"id": [77]}), on=["id"]
    )
    tx.commit()
    assert _ids(table) == [0, 2, 3, 4, 5]
