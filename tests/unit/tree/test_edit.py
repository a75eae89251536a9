"""A parent root plus edits gives the next root."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from frazil.errors import FormatError
from frazil.format.entries.batch import EntryBatch
from frazil.format.vectors import bitmap
from frazil.tree.edit import Edited, LeafEdit, RootEdit, Stamp, apply, numbered

STAMP = Stamp(snapshot_id=9, sequence_number=5, first_row_id=1000)


def _file(name: str, **more: Any) -> dict[str, Any]:
    return {
        "tracking.status": 0,
        "tracking.snapshot_id": 1,
        "tracking.sequence_number": 1,
        "tracking.file_sequence_number": 1,
        "tracking.first_row_id": 0,
        "content_type": 0,
        "location": name,
        "record_count": 10,
        **{key.replace("__", "."): value for key, value in more.items()},
    }


def _leaf(name: str, **more: Any) -> dict[str, Any]:
    return _file(name, **{"content_type": 3, "record_count": 4, **more})


def _root(*rows: dict[str, Any]) -> EntryBatch:
    return EntryBatch.from_rows(rows)


def _names(edited: Edited) -> list[tuple[str, int]]:
    root = edited.root
    return list(zip(root.pylist("location"), root.pylist("tracking.status"), strict=True))


def _array(*values: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.array(values, dtype=np.int64)


def test_without_edits_everything_live_is_carried() -> None:
    parent = _root(
        _leaf("M1", tracking__status=4, tracking__deleted_positions=bitmap.encode(_array(1))),
        _file("D1", tracking__status=1),
        _file("D2", tracking__status=2),
        _file("D3", tracking__status=3),
        _file("D3", tracking__status=4),
    )
    edited = apply(parent, RootEdit(), STAMP)
    assert _names(edited) == [("M1", 0), ("D1", 0), ("D3", 0)]
    assert not edited.root.has("tracking.deleted_positions")
    assert edited.next_row_id == 1000


def test_rows_come_in_the_order_of_leaves_moved_files_modified_and_added() -> None:
    parent = _root(_file("D1"), _leaf("M1"), _file("D2"), _file("D3"))
    edited = apply(
        parent,
        RootEdit(
            deleted_rows=_array(0),
            dropped_rows=_array(2),
            modified=_root(_file("D9")),
            added=_root(_file("D4", tracking__first_row_id=None)),
            added_leaves=_root(_leaf("M2", manifest_info__added_rows_count=40)),
            moved_to=_root(_leaf("M3")),
        ),
        STAMP,
    )
    assert _names(edited) == [
        ("M1", 0),
        ("M2", 1),
        ("M3", 0),
        ("D1", 2),
        ("D3", 0),
        ("D9", 4),
        ("D4", 1),
    ]


def test_dead_rows_name_the_snapshot_that_ended_them() -> None:
    parent = _root(_file("D1"), _file("D2"), _file("D3"))
    edited = apply(parent, RootEdit(deleted_rows=_array(0), replaced_rows=_array(2)), STAMP)
    assert edited.root.pylist("tracking.status") == [2, 0, 3]
    assert edited.root.pylist("tracking.snapshot_id") == [9, 1, 9]
    assert edited.root.pylist("tracking.sequence_number") == [1, 1, 1]


def test_a_leaf_edit_grows_the_vector_and_tells_what_died_now() -> None:
    key = "content_stats.1.tight_bounds"
    parent = _root(
        _leaf("M1", manifest_info__dv=bitmap.encode(_array(0)), tracking__modified_snapshot_id=3)
        | {key: True},
        _leaf("M2") | {key: True},
    )
    edited = apply(
        parent, RootEdit(leaf_edits={0: LeafEdit(deleted=_array(2), replaced=_array(1))}), STAMP
    )
    row, other = edited.root.row(0), edited.root.row(1)
    assert row["tracking.status"] == 4
    assert row["tracking.modified_snapshot_id"] == 9
    assert bitmap.decode(row["manifest_info.dv"]).tolist() == [0, 1, 2]
    assert bitmap.decode(row["tracking.deleted_positions"]).tolist() == [2]
    assert bitmap.decode(row["tracking.replaced_positions"]).tolist() == [1]
    assert row[key] is False
    assert other[key] is True
    assert other["tracking.status"] == 0
    assert "manifest_info.dv" not in other


def test_a_broken_vector_is_refused_by_the_leaf_it_belongs_to() -> None:
    for vector in (b"\x07junk!", bitmap.encode(_array(99))):
        parent = _root(_leaf("metadata/leaf-1.parquet", manifest_info__dv=vector))
        with pytest.raises(FormatError) as error:
            apply(parent, RootEdit(leaf_edits={0: LeafEdit(deleted=_array(2))}), STAMP)
        assert error.value.path == "metadata/leaf-1.parquet"
        assert error.value.field == "manifest_info.dv"


def test_row_ids_go_to_leaves_first_then_to_files_in_entry_order() -> None:
    blank = {"tracking__first_row_id": None}
    edited = apply(
        EntryBatch.empty(),
        RootEdit(
            added=_root(
                _file("D1", **blank), _file("E1", content_type=2, **blank), _file("D2", **blank)
            ),
            added_leaves=_root(
                _leaf("M1", manifest_info__added_rows_count=100),
                _leaf("N1", content_type=4, manifest_info__added_rows_count=7),
                _leaf("M2", manifest_info__added_rows_count=50),
            ),
        ),
        STAMP,
    )
    assert edited.root.pylist("tracking.first_row_id") == [1000, None, 1100, 1150, None, 1160]
    assert edited.next_row_id == 1170


def test_a_given_row_id_or_sequence_number_stays() -> None:
    added = _root(
        _file("D1", tracking__first_row_id=77, tracking__sequence_number=2),
        _file("D2", tracking__first_row_id=None, tracking__sequence_number=None),
    )
    edited = apply(EntryBatch.empty(), RootEdit(added=added), STAMP)
    assert edited.root.pylist("tracking.first_row_id") == [77, 1000]
    assert edited.root.pylist("tracking.sequence_number") == [2, 5]
    assert edited.root.pylist("tracking.file_sequence_number") == [5, 5]
    assert edited.next_row_id == 1010


def test_the_least_sequence_number_of_an_added_leaf_is_its_own_or_a_given_one() -> None:
    leaves = _root(_leaf("M1"), _leaf("M2", manifest_info__min_sequence_number=2))
    edited = apply(EntryBatch.empty(), RootEdit(added_leaves=leaves), STAMP)
    assert edited.root.pylist("manifest_info.min_sequence_number") == [5, 2]


def test_old_leaves_get_row_ids_where_their_list_gave_none() -> None:
    blank = {"tracking__first_row_id": None, "tracking__file_sequence_number": None}
    old = {"manifest_info__format_version": 0, **blank}
    parent = _root(
        _leaf("A1", manifest_info__added_rows_count=10, **old),
        _leaf("A2", manifest_info__existing_rows_count=5, manifest_info__added_rows_count=1, **old),
        _leaf("A3", content_type=4, **old),
        _leaf("A4", **{**old, "tracking__first_row_id": 300}),
    )
    root, next_row_id = numbered(parent, 1000)
    assert root.pylist("tracking.first_row_id") == [1000, 1010, None, 300]
    assert root.pylist("tracking.file_sequence_number") == [1, 1, 1, 1]
    assert next_row_id == 1016
    again, unchanged = numbered(root, next_row_id)
    assert again.table.equals(root.table)
    assert unchanged == 1016
