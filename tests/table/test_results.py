"""Every write returns a `CommitResult` that counts what it did to rows and files."""

from __future__ import annotations

import pickle

import pytest

import frazil
from frazil import CommitResult
from tests.table.conftest import orders


def rows(done: CommitResult) -> tuple[int, int, int]:
    return done.rows_added, done.rows_removed, done.rows_updated


def files(done: CommitResult) -> tuple[int, int, int]:
    return done.files_added, done.files_removed, done.files_updated


@pytest.fixture
def nine(table: frazil.Table) -> frazil.Table:
    """Orders 0 to 8: three days, three rows and one file each."""
    table.append(orders(0, 9))
    return table


def test_an_append_counts_rows_files_and_metadata(table: frazil.Table) -> None:
    done = table.append(orders(0, 9))
    assert (done.operation, done.committed, done.attempts) == ("append", True, 1)
    assert (rows(done), files(done)) == ((9, 0, 0), (3, 0, 0))
    tip = table.current_snapshot()
    assert tip is not None
    assert done.snapshot_id == tip.snapshot_id
    assert done.metadata_files == 1
    assert done.metadata_bytes == int(tip.summary["frazil.metadata-bytes-written"])


def test_an_append_of_no_rows_says_so(table: frazil.Table) -> None:
    done = table.append(orders(0, 0))
    assert (done.operation, done.committed, done.snapshot) == ("none", False, None)
    assert done.notes == ("no rows to add",)


def test_a_delete_counts_rows_of_whole_files_and_of_vectors(nine: frazil.Table) -> None:
    # Orders 0, 3 and 6 are the file of the first day; order 1 is one of three of the second.
    done = nine.delete("order_id in (0, 3, 6, 1)")
    assert (done.operation, rows(done), files(done)) == ("delete", (0, 4, 0), (0, 1, 1))


def test_rows_that_were_deleted_before_are_not_counted_again(nine: frazil.Table) -> None:
    nine.delete("order_id = 0")
    done = nine.delete("order_id in (0, 3, 6)")
    assert (rows(done), files(done)) == ((0, 2, 0), (0, 1, 0))


def test_an_update_neither_adds_nor_removes_rows(nine: frazil.Table) -> None:
    done = nine.update({"price": 1.5}, "order_id < 2")
    assert (done.operation, rows(done), files(done)) == ("overwrite", (0, 0, 2), (2, 0, 2))


def test_an_upsert_counts_both_kinds(nine: frazil.Table) -> None:
    done = nine.upsert(orders(7, 12, country="FR"), ["order_id"])
    assert rows(done) == (3, 0, 2)


def test_an_upsert_of_equal_rows_commits_nothing(nine: frazil.Table) -> None:
    done = nine.upsert(orders(2, 4), ["order_id"])
    assert (done.committed, rows(done)) == (False, (0, 0, 0))


def test_an_overwrite_counts_what_came_and_what_went(nine: frazil.Table) -> None:
    done = nine.overwrite(orders(20, 22), "order_id < 4")
    assert rows(done) == (2, 4, 0)


def test_rows_added_and_updated_in_one_transaction_count_as_added(nine: frazil.Table) -> None:
    with nine.transaction() as tx:
        tx.append(orders(20, 24))
        tx.update({"price": 7.0}, "order_id >= 22")
    assert rows(tx.result) == (4, 0, 0)


def test_rewriting_metadata_moves_no_row(nine: frazil.Table) -> None:
    done = nine.compact_metadata()
    assert (done.operation, rows(done), files(done)) == ("replace", (0, 0, 0), (0, 0, 0))


def test_a_change_of_the_definition_has_no_snapshot(nine: frazil.Table) -> None:
    for done in (
        nine.set_properties({"owner": "shop"}),
        nine.tag("v1"),
        nine.drop_ref("v1"),
        nine.sort_by("price desc"),
        nine.evolve_schema().add_column("note", "string").commit(),
    ):
        assert (done.operation, done.committed, done.snapshot) == ("metadata", True, None)


def test_an_aborted_transaction_says_so(nine: frazil.Table) -> None:
    tx = nine.transaction()
    tx.append(orders(30, 31))
    tx.abort()
    assert tx.result.notes == ("the transaction was aborted",)


def test_an_edit_in_a_transaction_is_staged(nine: frazil.Table) -> None:
    with nine.transaction() as tx:
        done = tx.evolve_schema().add_column("note", "string").commit()
    assert (done.committed, done.notes) == (False, ("staged; the transaction commits it",))
    assert tx.result.operation == "metadata"


def test_a_result_reads_as_one_line_and_travels(nine: frazil.Table) -> None:
    done = nine.append(orders(20, 21))
    text = repr(done)
    assert text.startswith("CommitResult(append: 1 row added, 1 file added; snapshot ")
    assert "\n" not in text
    assert f"<td style='text-align:left'>{done.snapshot_id}</td>" in done._repr_html_()
    assert pickle.loads(pickle.dumps(done)) == done
