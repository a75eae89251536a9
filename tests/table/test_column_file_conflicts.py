"""Column files that are written while others change the table."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import frazil
from frazil.errors import CommitConflict

SCHEMA = pa.schema([("id", pa.int64()), ("price", pa.float64())])


def rows(first: int, count: int = 10) -> list[dict[str, float]]:
    return [{"id": id, "price": id * 1.5} for id in range(first, first + count)]


def test_an_equality_delete_that_came_first_stays(tmp_path: Path) -> None:
    """An update makes whole files younger, also rows that it does not look at."""
    properties = {"write.equality-deletes.enabled": "true"}
    made = frazil.connect(tmp_path).create_table("s.t", SCHEMA, properties=properties)
    made.append(rows(0))
    stale = made.pinned()
    made.row_delta().add_equality_deletes([{"id": 2}], on=["id"]).commit()
    with pytest.raises(CommitConflict, match="equality delete that could match"):
        stale.update({"price": 1.0}, "id = 5", mode="columns")
    assert made.scan("id = 2").count() == 0


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_an_append_keeps_columns_updated_while_it_moves_entries(tmp_path: Path, limit: int) -> None:
    """An append that lost a race has moved entries of the root to a leaf as they were."""
    properties = {
        "write.root.max-data-entries": str(limit),
        "write.leaf.target-entries": "4",
    }
    made = frazil.connect(tmp_path).create_table("s.t", SCHEMA, properties=properties)
    for first in range(0, limit * 10, 10):
        made.append(rows(first))
    stale = made.pinned()
    made.update({"price": -1.0}, mode="columns")
    stale.append(rows(100))
    found = {row["id"]: row["price"] for row in made.scan().to_pylist()}
    updated = dict.fromkeys(range(limit * 10), -1.0)
    assert found == updated | {id: id * 1.5 for id in range(100, 110)}
    assert not made.check(deep=True).problems
