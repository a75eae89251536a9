"""A client's lists become one change: against a model of tables as sets of files and rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frazil.commit.change import Positions
from frazil.errors import InvalidInput
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import ContentType
from frazil.serve.rest.translate import Manifests, Net, change_of, net

Rows = Mapping[str, frozenset[int]]
"""A table: live files with the rows that are deleted in them."""


def data(*names: str, status: int = 0, **more: Any) -> EntryBatch:
    rows = [
        {
            "location": name,
            "tracking.status": status,
            "content_type": int(ContentType.DATA),
            "record_count": 10,
            "file_size_in_bytes": 100,
            "file_format": "parquet",
            **more,
        }
        for name in names
    ]
    return EntryBatch.from_rows(rows) if rows else EntryBatch.empty()


def vectors(rows: Rows, *, version: int = 0) -> EntryBatch:
    """One deletion vector per file that has deleted rows; its file tells what it holds."""
    found = [
        {
            "location": f"v{version}-{name}-{'.'.join(map(str, sorted(gone)))}",
            "referenced_file": name,
            "tracking.status": 0,
            "content_type": int(ContentType.POSITION_DELETES),
            "record_count": len(gone),
            "file_size_in_bytes": 50,
            "file_format": "puffin",
            "deletion_vector.offset": 4,
            "deletion_vector.size_in_bytes": 40,
        }
        for name, gone in rows.items()
        if gone
    ]
    return EntryBatch.from_rows(found) if found else EntryBatch.empty()


def positions_of(batch: EntryBatch, index: int) -> dict[str, Positions]:
    row = batch.row(index)
    held = row["location"].rsplit("-", 1)[1]
    return {row["referenced_file"]: np.array([int(p) for p in held.split(".")], dtype=np.int64)}


def apply(table: Rows, found: Net) -> dict[str, frozenset[int]]:
    """The model's table after a change."""
    after = {name: gone for name, gone in table.items() if name not in found.removed}
    for edit in found.vectors:
        after[edit.location] = after[edit.location] | frozenset(edit.positions.tolist())
    if found.added is not None:
        born = found.added.has("deletion_vector.cardinality")
        for index, name in enumerate(found.added.pylist("location")):
            assert name not in after
            row = found.added.row(index)
            held = row.get("deletion_vector.location") if born else None
            rows = () if held is None else map(int, held.rsplit("-", 1)[1].split("."))
            after[name] = frozenset(rows)
    return after


names = st.sampled_from([f"f{i}" for i in range(8)])
tables = st.dictionaries(names, st.frozensets(st.integers(0, 9), max_size=4), max_size=6)


@settings(deadline=None)
@given(before=tables, after=tables, split=st.randoms(use_true_random=False))
def test_any_two_lists_translate_to_their_difference(before: Rows, after: Rows, split: Any) -> None:
    # Rows never come back in a file that stays.
    target = {name: gone | before[name] if name in before else gone for name, gone in after.items()}
    kept = {name for name in target if name in before and split.random() < 0.5}
    same = {name for name in kept if target[name] == before[name]}

    # Manifests that both lists name hold `kept` and the vectors of `same`; the others are given.
    def outside(table: Rows, version: int) -> Manifests:
        changed = {name: gone for name, gone in table.items() if name not in same}
        return Manifests(
            data=data(*(name for name in table if name not in kept)),
            deletes=vectors(changed, version=version),
        )

    found = net(outside(target, 1), outside(before, 0), positions_of)
    assert apply(before, found) == target


def test_merged_manifests_change_nothing() -> None:
    found = net(Manifests(data=data("a", "b")), Manifests(data=data("b", "a")), positions_of)
    assert (found.added, found.removed, found.vectors) == (None, (), ())


def test_a_new_vector_of_a_file_that_stays_is_adopted_where_it_lies() -> None:
    found = net(Manifests(deletes=vectors({"a": frozenset({1, 2})})), Manifests(), positions_of)
    (edit,) = found.vectors
    assert (edit.location, edit.positions.tolist()) == ("a", [1, 2])
    assert edit.adopted is not None
    assert (edit.adopted.location, edit.adopted.offset) == ("v0-a-1.2", 4)
    assert (edit.adopted.size_in_bytes, edit.adopted.cardinality) == (40, 2)


def test_rows_that_would_come_back_are_refused() -> None:
    dropped = Manifests(deletes=vectors({"a": frozenset({1, 2})}))
    with pytest.raises(InvalidInput, match="a: rows that are deleted would come back"):
        net(Manifests(), dropped, positions_of)
    fewer = Manifests(deletes=vectors({"a": frozenset({2, 3})}, version=1))
    with pytest.raises(InvalidInput):
        net(fewer, dropped, positions_of)


def test_deletes_of_a_file_that_goes_are_no_matter() -> None:
    dropped = Manifests(data=data("a"), deletes=vectors({"a": frozenset({1})}))
    found = net(Manifests(), dropped, positions_of)
    assert (found.removed, found.vectors) == (("a",), ())


def test_two_vectors_of_one_file_are_refused() -> None:
    both = EntryBatch.concat(
        [vectors({"a": frozenset({1})}), vectors({"a": frozenset({2})}, version=1)]
    )
    with pytest.raises(InvalidInput, match="two deletion vectors"):
        net(Manifests(deletes=both), Manifests(), positions_of)


def test_a_file_that_is_listed_twice_is_refused() -> None:
    with pytest.raises(InvalidInput, match="a: is listed 2 times"):
        net(Manifests(data=data("a", "a")), Manifests(), positions_of)


def test_a_new_file_loses_ids_and_a_rewritten_one_keeps_its_age() -> None:
    new = data("a", status=1, **{"tracking.first_row_id": 5, "tracking.sequence_number": 3})
    found = net(Manifests(data=new), Manifests(), positions_of)
    assert found.added is not None
    assert found.added.pylist("tracking.sequence_number") == [3]
    assert found.added.pylist("tracking.first_row_id") == [None]


def test_equality_deletes_come_and_go() -> None:
    one = data("e", status=1).with_constants(
        {"content_type": int(ContentType.EQUALITY_DELETES), "tracking.sequence_number": 2}
    )
    found = net(Manifests(deletes=one), Manifests(), positions_of)
    assert found.added is None
    assert found.equality is not None
    assert found.equality.pylist("location") == ["e"]
    assert net(Manifests(), Manifests(deletes=one), positions_of).removed == ("e",)


def test_a_change_keeps_the_clients_words_and_counts_again() -> None:
    found = Net(added=data("a", status=1))
    change = change_of(
        found,
        snapshot_id=7,
        operation="append",
        summary={"operation": "append", "added-records": "9", "spark.app.id": "x", "epoch": "1"},
        branch="main",
        base_snapshot_id=6,
    )
    assert (change.snapshot_id, change.operation, change.base_snapshot_id) == (7, "append", 6)
    assert dict(change.summary) == {"spark.app.id": "x", "epoch": "1"}


@pytest.mark.parametrize(
    ("operation", "removed", "expected"),
    [
        ("append", (), "append"),
        ("append", ("a",), "overwrite"),
        ("replace", ("a",), "replace"),
        ("delete", ("a",), "delete"),
        ("overwrite", (), "overwrite"),
    ],
)
def test_an_operation_is_recorded_as_the_client_says_unless_it_cannot_be(
    operation: str, removed: tuple[str, ...], expected: str
) -> None:
    change = change_of(
        Net(removed=removed),
        snapshot_id=7,
        operation=operation,
        summary={},
        branch="main",
        base_snapshot_id=None,
    )
    assert change.has_content
    assert change.operation == expected
    assert change.is_rewrite == (operation == "replace")


def test_an_unknown_operation_is_refused() -> None:
    with pytest.raises(InvalidInput, match="'merge'"):
        change_of(
            Net(), snapshot_id=1, operation="merge", summary={}, branch="b", base_snapshot_id=None
        )
