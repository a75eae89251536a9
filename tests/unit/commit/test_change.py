"""A change as a value: what it is called and when it can conflict."""

from __future__ import annotations

import numpy as np
import pytest

from frazil.commit.change import Change, Isolation, VectorEdit
from frazil.errors import InvalidInput
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.tracking import Status
from tests.support.trees import located

DATA = EntryBatch.from_rows([{"content_type": 0, "location": "D"}])
DELETES = EntryBatch.from_rows([{"content_type": 2, "location": "E"}])
FILE = located("D1")
VECTOR = VectorEdit(location="D1", positions=np.array([1]))


@pytest.mark.parametrize(
    ("change", "operation"),
    [
        (Change(added=DATA), "append"),
        (Change(added=DELETES), "delete"),
        (Change(added=EntryBatch.concat([DATA, DELETES])), "delete"),
        (Change(removed=FILE), "delete"),
        (Change(vectors=(VECTOR,)), "delete"),
        (Change(removed=FILE, added=DATA), "overwrite"),
        (Change(vectors=(VECTOR,), added=DATA), "overwrite"),
        (Change(replaced=FILE, added=DATA, is_rewrite=True), "replace"),
        (Change(rewrite_leaves=()), "replace"),
    ],
)
def test_a_change_is_called_what_iceberg_calls_it(change: Change, operation: str) -> None:
    assert change.operation == operation
    assert change.has_content


def test_only_what_takes_nothing_away_only_adds() -> None:
    assert Change(added=DATA).only_adds
    assert Change(added=DELETES).only_adds
    assert not Change(removed=FILE).only_adds
    assert not Change(replaced=FILE).only_adds
    assert not Change(vectors=(VECTOR,)).only_adds


def test_nothing_is_no_content() -> None:
    none = DATA.slice(0, 0)
    assert not Change().has_content
    assert not Change(added=none, removed=none, replaced=none).has_content


def test_isolation_is_read_from_text() -> None:
    assert Isolation.parse("Snapshot") is Isolation.SNAPSHOT
    assert Isolation.parse("serializable") is Isolation.SERIALIZABLE
    with pytest.raises(InvalidInput, match="isolation level 'none'"):
        Isolation.parse("none")


def test_status_names_are_those_of_the_format() -> None:
    assert [status.name for status in Status] == [
        "EXISTING",
        "ADDED",
        "DELETED",
        "REPLACED",
        "MODIFIED",
    ]
