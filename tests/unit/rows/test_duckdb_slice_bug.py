"""Slices of structs in structs reach DuckDB with their own values."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import frazil
from frazil.rows.duckdb.duckdb_source import UnslicedRows, is_misread, unsliced

KIND = pa.struct([("in", pa.struct([("f", pa.int64()), ("t", pa.string())]))])
ROWS = pa.table(
    {
        "id": pa.array(range(12), pa.int64()),
        "deep": pa.array(
            [
                None if n % 5 == 0 else {"in": None if n % 4 == 0 else {"f": n, "t": f"t{n}"}}
                for n in range(12)
            ],
            KIND,
        ),
    }
)
SLICE = ROWS.slice(3, 6)


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[frazil.Catalog]:
    with frazil.connect(tmp_path / "warehouse") as made:
        made.create_table("s.t", ROWS.schema)
        yield made


def stored(catalog: frazil.Catalog) -> list[dict[str, Any]]:
    return sorted(catalog.load_table("s.t").scan().to_pylist(), key=lambda row: row["id"])


def test_types_that_are_misread_are_known() -> None:
    flat = pa.struct([("f", pa.list_(pa.int64()))])
    assert not is_misread(pa.schema([("a", flat), ("b", pa.list_(flat)), ("c", pa.string())]))
    for kind in (KIND, pa.list_(KIND), pa.struct([("l", pa.list_(flat))])):
        assert is_misread(pa.schema([("a", kind)]))


def test_duckdb_reads_the_values_of_a_slice() -> None:
    connection = duckdb.connect()
    connection.register("given", UnslicedRows(SLICE))
    assert connection.sql("SELECT * FROM given").to_arrow_table().to_pylist() == SLICE.to_pylist()
    (batch,) = SLICE.to_batches()
    assert unsliced(batch).to_pylist() == SLICE.to_pylist()
    assert unsliced(batch).column("deep").offset == 0


@pytest.mark.parametrize(
    "wrap", [lambda t: t, lambda t: t.to_batches()[0], lambda t: t.to_reader()]
)
def test_sql_reads_data_that_comes_with_a_call(catalog: frazil.Catalog, wrap: Any) -> None:
    catalog.sql("INSERT INTO s.t SELECT * FROM given", tables={"given": wrap(SLICE)})
    assert stored(catalog) == SLICE.to_pylist()


def test_merges_and_upserts_store_the_values_of_a_slice(catalog: frazil.Catalog) -> None:
    table = catalog.load_table("s.t")
    table.append(ROWS.slice(0, 1))
    table.merge(SLICE, on="id").upsert().execute()
    table.upsert(ROWS.slice(8, 2), on="id")
    assert stored(catalog) == [*ROWS.slice(0, 1).to_pylist(), *ROWS.slice(3, 7).to_pylist()]


def test_rows_that_come_through_arrow_keep_their_values(catalog: frazil.Catalog) -> None:
    """A renamed part of a struct makes Frazil read the file."""
    table = catalog.load_table("s.t")
    table.append(ROWS)
    table.evolve_schema().rename_column("deep.in.t", "text").commit()
    table.update({"id": frazil.expr("id + 100")}, where="id between 3 and 8")
    found = catalog.sql('SELECT id, deep."in".f AS f FROM s.t WHERE id > 100 ORDER BY id')
    assert [row["f"] for row in found] == [3, None, None, 6, 7, None]
