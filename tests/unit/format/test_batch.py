"""Entries as flat columns: absent is null, edits return new batches."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from frazil.format.entries import fields
from frazil.format.entries.batch import EntryBatch


def _batch(*names: str) -> EntryBatch:
    return EntryBatch.from_rows(
        [{"location": name, "record_count": index} for index, name in enumerate(names)]
    )


def test_rows_become_columns_of_the_declared_types() -> None:
    batch = EntryBatch.from_rows(
        [{"location": "a", "spec_id": 3, "split_offsets": [4, 8]}, {"location": "b"}]
    )
    assert batch.num_rows == 2
    assert batch.keys == ("location", "spec_id", "split_offsets")
    assert batch.column("spec_id").type == pa.int32()
    assert batch.pylist("spec_id") == [3, None]
    assert batch.column("split_offsets").type == pa.list_(pa.int64())
    assert batch.row(1) == {"location": "b"}


def test_types_of_the_table_come_from_the_caller() -> None:
    key = "content_stats.1.lower_bound"
    batch = EntryBatch.from_rows([{key: 5}], {key: pa.int32()})
    assert batch.column(key).type == pa.int32()


def test_columns_that_are_null_in_every_row_are_left_out() -> None:
    batch = EntryBatch.from_rows([{"location": "a", "spec_id": None}])
    assert not batch.has("spec_id")
    assert batch.pylist("spec_id") == [None]


def test_no_rows_have_every_declared_column() -> None:
    for batch in (EntryBatch.empty(), EntryBatch.from_rows([]), EntryBatch.concat([])):
        assert batch.num_rows == 0
        assert set(batch.keys) == set(fields.LEAVES)


def test_an_absent_column_is_null_of_its_type() -> None:
    batch = _batch("a", "b")
    assert batch.column("tracking.snapshot_id").type == pa.int64()
    assert batch.pylist("tracking.snapshot_id") == [None, None]
    assert batch.column("content_stats.9.lower_bound").type == pa.null()
    assert batch.numpy("spec_id").tolist() == [-1, -1]
    assert batch.numpy("spec_id", missing=7).tolist() == [7, 7]


def test_concat_takes_every_column_in_order() -> None:
    first = EntryBatch.from_rows([{"location": "a", "spec_id": 1}])
    second = EntryBatch.from_rows([{"record_count": 5, "location": "b"}])
    for combine in (True, False):
        both = EntryBatch.concat([first, EntryBatch.empty(), second], combine=combine)
        assert both.pylist("location") == ["a", "b"]
        assert both.pylist("spec_id") == [1, None]
        assert both.pylist("record_count") == [None, 5]


def test_concat_makes_one_chunk() -> None:
    both = EntryBatch.concat([_batch("a"), _batch("b"), _batch("c")])
    assert both.column("location").num_chunks == 1


def test_concat_takes_the_wider_type_of_a_promoted_column() -> None:
    key = "content_stats.1.lower_bound"
    old = EntryBatch.from_rows([{"location": "a", key: 5}], {key: pa.int32()})
    new = EntryBatch.from_rows([{"location": "b", key: 2**40}], {key: pa.int64()})
    for combine in (True, False):
        both = EntryBatch.concat([old, new], combine=combine)
        assert both.column(key).type == pa.int64()
        assert both.pylist(key) == [5, 2**40]


def test_edits_leave_the_batch_as_it_was() -> None:
    batch = _batch("a", "b", "c")
    assert batch.with_column("spec_id", [1, 2, None]).pylist("spec_id") == [1, 2, None]
    assert batch.with_constant("tracking.status", 4).numpy("tracking.status").tolist() == [4] * 3
    assert batch.without("location", "spec_id").keys == ("record_count",)
    assert batch.select(["record_count", "spec_id"]).keys == ("record_count",)
    assert batch.take([2, 0]).pylist("location") == ["c", "a"]
    assert batch.slice(1).pylist("location") == ["b", "c"]
    assert batch.filter(np.array([True, False, True])).pylist("location") == ["a", "c"]
    assert batch.filter(np.ones(3, dtype=np.bool_)) is batch
    assert batch.keys == ("location", "record_count")


def test_a_column_is_replaced_in_the_declared_type() -> None:
    batch = _batch("a").with_column("record_count", pa.array([7], pa.int32()))
    assert batch.column("record_count").type == pa.int64()
    assert batch.pylist("record_count") == [7]
