"""Column files of every kind of column, also after the column changed."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import frazil
from frazil.data.read import sources, verified
from frazil.data.read.sources import Block, ParquetSource
from frazil.errors import FormatError, FrazilError, InvalidInput
from frazil.rows.duckdb import duckdb_parts
from frazil.storage import RandomAccess
from tests.support.column_files import handmade, local


def table_of(
    folder: Path, schema: pa.Schema, rows: list[dict[str, Any]], **properties: str
) -> frazil.Table:
    """A table with one file."""
    named = {name.replace("__", ".").replace("_", "-"): text for name, text in properties.items()}
    made = frazil.connect(folder).create_table("s.t", schema, properties=named)
    made.append(rows)
    return made


def by_id(table: frazil.Table, where: str | None = None) -> dict[int, Any]:
    return {row["id"]: row["a"] for row in table.scan(where, columns=["id", "a"]).to_pylist()}


@pytest.mark.parametrize(
    ("narrow", "wide", "old", "new"),
    [
        (pa.int32(), "long", 3, 2**40),
        (pa.float32(), "double", 0.5, 0.1),
        (pa.decimal128(9, 2), "decimal(20,2)", Decimal("1.00"), Decimal("12345678901234.25")),
    ],
)
def test_bounds_of_a_promoted_column_are_of_its_new_type(
    tmp_path: Path, narrow: pa.DataType, wide: str, old: Any, new: Any
) -> None:
    schema = pa.schema([("id", pa.int64()), ("a", narrow)])
    made = table_of(tmp_path, schema, [{"id": id, "a": old} for id in range(4)])
    made.append([{"id": id, "a": old} for id in range(4, 8)])
    made.evolve_schema().update_column("a", wide).commit()
    made.update({"a": new}, "id in (1, 2)", mode="columns")
    expected = {id: new if id in (1, 2) else old for id in range(8)}
    assert by_id(made) == expected
    assert {id for id, value in by_id(made).items() if value == new} == {1, 2}
    assert made.scan("a = ?", params=[new]).count() == 2
    assert not made.check(deep=True).problems


def test_row_groups_are_not_skipped_by_old_parts_of_a_struct(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("a", pa.struct([("x", pa.int64())]))])
    rows = [{"id": id, "a": {"x": id}} for id in range(9)]
    made = table_of(tmp_path, schema, rows, write__parquet__row_group_limit="3")
    made.update({"a.x": frazil.expr("id + 100")}, "id >= 5", mode="columns")
    expected = {id: {"x": id + 100 if id >= 5 else id} for id in range(9)}
    assert by_id(made) == expected
    assert by_id(made, "a.x >= 107") == {7: {"x": 107}, 8: {"x": 108}}
    assert by_id(made, "a.x between 4 and 8") == {4: {"x": 4}}


def test_booleans(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("a", pa.bool_())])
    made = table_of(tmp_path, schema, [{"id": id, "a": True} for id in range(4)])
    made.update({"a": frazil.expr("id = 1")}, "id < 2", mode="columns")
    assert by_id(made) == {0: False, 1: True, 2: True, 3: True}
    made.merge_columns({"id": [2, 3], "a": [False, None]}, on="id")
    assert by_id(made) == {0: False, 1: True, 2: False, 3: None}
    made.add_columns({"b": "id > 1", "c": "{'is_even': id % 2 = 0}"})
    assert str(made.schema.find_field("b").field_type) == "boolean"
    assert str(made.schema.find_field("c.is_even").field_type) == "boolean"
    assert sorted(made.scan("b", columns=["id"]).to_arrow()["id"].to_pylist()) == [2, 3]


def test_values_by_key_that_do_not_fit_are_told_of(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), pa.field("a", pa.int32(), nullable=False)])
    made = table_of(tmp_path, schema, [{"id": id, "a": id} for id in range(4)])
    with pytest.raises(InvalidInput, match="'a': found 1 null"):
        made.merge_columns({"id": [1], "a": [None]}, on="id")
    assert by_id(made) == {id: id for id in range(4)}


def test_a_transaction_goes_on_without_columns_whose_values_failed(tmp_path: Path) -> None:
    def failing(batch: pa.RecordBatch) -> pa.Array:
        if batch.num_rows > 1:
            raise ValueError("not these")
        return batch["a"]

    schema = pa.schema([("id", pa.int64()), ("a", pa.int64())])
    made = table_of(tmp_path, schema, [{"id": id, "a": id} for id in range(4)])
    with made.transaction() as tx:
        tx.update({"a": 9}, "id = 0", mode="columns")
        with pytest.raises(ValueError, match="not these"):
            tx.add_columns({"b": failing})
        with pytest.raises(InvalidInput, match="more than one new value"):
            tx.merge_columns({"id": [1, 1], "c": [1, 2]}, on="id")
        tx.append([{"id": 4, "a": 4}])
    assert made.schema.column_names == ["id", "a"]
    assert by_id(made) == {0: 9, 1: 1, 2: 2, 3: 3, 4: 4}


def test_sql_reads_the_row_groups_and_columns_that_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = pa.schema([("id", pa.int64()), *((f"c{at}", pa.int64()) for at in range(9))])
    properties = {"write.parquet.row-group-limit": "10"}
    catalog = frazil.connect(tmp_path)
    made = catalog.create_table("s.t", schema, properties=properties)
    made.append(pa.table([list(range(100))] * 10, schema=schema))
    made.update({"c0": frazil.expr("id * 2"), "c1": frazil.expr("-id")}, mode="columns")
    read: list[tuple[bool, int, int]] = []
    plain = ParquetSource.batches

    def noted(self: ParquetSource, block: Block, leaves: list[int], rows: int) -> Any:
        read.append((self.footer.num_columns == 3, block.index, len(leaves)))
        return plain(self, block, leaves, rows)

    monkeypatch.setattr(ParquetSource, "batches", noted)

    def asked(query: str) -> list[Any]:
        read.clear()
        return list(catalog.sql(query).to_arrow().to_pylist()[0].values())

    def summed(where: str, *columns: str) -> list[int]:
        read.clear()
        rows = made.scan(where, columns=list(columns)).to_arrow()
        return [pc.sum(column).as_py() for column in rows.columns]

    # DuckDB reads one file by itself, and joins two where a condition leaves few rows.
    assert asked("SELECT sum(c0) FROM s.t") == [9900]
    assert asked("SELECT sum(c0 + c1), sum(c5) FROM s.t WHERE id BETWEEN 35 AND 41") == [266, 266]
    assert read == []
    assert asked("SELECT sum(c0), sum(c5) FROM s.t") == [9900, 4950]
    assert sorted(read) == sorted([(kind, at, 1) for kind in (True, False) for at in range(10)])
    assert summed("id BETWEEN 35 AND 41", "c0", "c1", "c5") == [532, -266, 266]
    assert sorted(read) == [(False, 3, 2), (False, 4, 2), (True, 3, 2), (True, 4, 2)]
    # Each part of a condition is judged by the file that has its columns.
    assert summed("id > 44 AND c0 < 112", "id") == [sum(range(45, 56))]
    assert sorted(read) == [(False, 4, 1), (False, 5, 1), (True, 4, 1), (True, 5, 1)]
    assert summed("c0 = 100 OR id = 7", "id") == [57]
    assert len(read) == 20
    monkeypatch.setattr(duckdb_parts, "MAX_JOINED_BYTES", 0)
    assert asked("SELECT sum(c0 + c1), sum(c5) FROM s.t WHERE id BETWEEN 35 AND 40") == [225, 225]
    assert sorted(read) == [(False, 3, 2), (False, 4, 2), (True, 3, 2), (True, 4, 2)]
    assert made.scan("id = 7 and c1 = -7", columns=["c2"]).to_arrow().to_pylist() == [{"c2": 7}]


def test_new_values_verify_the_pages_of_the_columns_that_they_need(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"c{at}" for at in range(20)]
    made = table_of(tmp_path, pa.schema([(n, pa.int64()) for n in ("id", *names)]), [{"id": 1}])
    made.append([{"id": id, **dict.fromkeys(names, id)} for id in range(2, 9)])
    whole: list[str] = []
    monkeypatch.setattr(verified, "check_whole", lambda _, path: whole.append(path))
    leaves: list[int] = []
    plain = ParquetSource.batches

    def noted(self: ParquetSource, block: Block, asked: list[int], rows: int) -> Any:
        leaves.append(len(asked))
        return plain(self, block, asked, rows)

    monkeypatch.setattr(ParquetSource, "batches", noted)
    made.add_columns({"sum": "c1 + c2"})
    made.update({"c3": frazil.expr("c4 * 2")}, mode="columns")
    made.merge_columns({"id": [1, 5], "c5": [50, 51]}, on="id")
    assert whole == []
    # Two files each time. In the second, rows without a match keep their value and its age, which
    # are in the data file and in the column file of c3.
    assert leaves == [2, 2, 1, 1, 1, 1, 1, 1]
    assert made.scan("id = 5", columns=["sum", "c3", "c5"]).to_pylist() == [
        {"sum": 10, "c3": 10, "c5": 51}
    ]


def test_damage_in_a_column_is_not_written_again(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("a", pa.int64()), ("b", pa.int64())])
    # Small files are read and verified whole.
    numbers = np.random.default_rng(7).permutation(1 << 16)
    made = frazil.connect(tmp_path).create_table("s.t", schema)
    made.append(pa.table([numbers, numbers, -numbers], schema=schema))
    (file,) = (local(made, "data")).iterdir()
    footer = pq.read_metadata(file)
    place = footer.row_group(0).column(1).data_page_offset
    data = bytearray(file.read_bytes())
    data[place + footer.row_group(0).column(1).total_compressed_size - 3] ^= 1
    file.write_bytes(bytes(data))
    with pytest.raises(FrazilError, match=file.name):
        made.add_columns({"more": "a + 1"})
    made.add_columns({"more": "b + 1"})
    assert made.scan("id = 5", columns=["more"]).to_pylist() == [{"more": -4}]


def test_a_scan_opens_the_files_that_have_its_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("id", "a", "b", "c")
    schema = pa.schema([(name, pa.int64()) for name in names])
    made = table_of(tmp_path, schema, [dict.fromkeys(names, at) for at in range(9)])
    made.delete("id = 4")
    made.update({"a": frazil.expr("a + 100")}, mode="columns")
    made.update({"b": frazil.expr("b + 200")}, mode="columns")
    read: list[int] = []
    plain = sources._opened

    def noted(access: RandomAccess, *args: Any, **options: Any) -> Any:
        opened = plain(access, *args, **options)
        read.append(len(opened.schema))
        return opened

    monkeypatch.setattr(sources, "_opened", noted)

    def opened(*columns: str, where: str | None = None) -> tuple[list[Any], int, bool]:
        read.clear()
        rows = made.scan(where, columns=list(columns)).to_arrow()
        return rows[columns[-1]].to_pylist(), len(read), 4 in read

    left = [0, 1, 2, 3, 5, 6, 7, 8]
    assert opened("a") == ([at + 100 for at in left], 1, False)
    assert opened("_pos", "b") == ([at + 200 for at in left], 1, False)
    assert opened("a", "b") == ([at + 200 for at in left], 2, False)
    assert opened("b", where="a > 105") == ([206, 207, 208], 2, False)
    assert opened("c") == (left, 1, True)
    assert opened("c", where="b = 203") == ([3], 2, True)
    assert opened("a", "_row_id") == (left, 2, True)


def test_a_column_file_with_other_rows_is_refused_without_its_data_file(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("a", pa.int64())])
    made = table_of(tmp_path, schema, [{"id": id, "a": id} for id in range(4)])
    handmade(made, {"a": (2, [1, 2, 3])})
    with pytest.raises(FormatError, match="has 3 rows; the metadata records 4"):
        made.scan(columns=["a"]).to_arrow()


QUERIES = (
    "SELECT count(*) FROM {t}",
    "SELECT sum(a), sum(b) FROM {t}",
    "SELECT min(a) FROM {t}",
    "SELECT * FROM {t} WHERE id BETWEEN 11 AND 13 ORDER BY id",
    "SELECT a, c3 FROM {t} WHERE id = 11 OR b > 105 ORDER BY id",
    "SELECT min(COLUMNS(*)) FROM {t}",
    "SELECT x FROM {t} x ORDER BY x.id",
    "SELECT id, _row_id, _last_updated_sequence_number, a FROM {t} ORDER BY id",
    "SELECT a FROM {t} WHERE a > 1 AND _pos >= 0 ORDER BY a",
    "SELECT a, n FROM {t} NATURAL JOIN (SELECT id, c1 AS n FROM {t}) ORDER BY a",
    "SELECT l.a, r.b FROM {t} l JOIN {t} r USING (id) ORDER BY ALL",
    "SELECT p, q FROM {t} AS x(p, q) ORDER BY ALL",
    "SELECT #1, #2 FROM {t} ORDER BY ALL",
    "SELECT isnan(f), count(*) FROM {t} GROUP BY ALL ORDER BY ALL",
    "SELECT f FROM {t} WHERE f > 3 ORDER BY ALL",
    "SELECT a FROM {t} WHERE b IN (SELECT max(b) FROM {t})",
    "SELECT (SELECT max(i.b) FROM {t} i WHERE i.id = o.id) m FROM {t} o ORDER BY m",
    "WITH q AS (FROM {t}) SELECT sum(a), sum(c5) FROM q WHERE b < 999",
    "DESCRIBE SELECT a, b FROM {t}",
    "SELECT CAST(count(t) AS INT), sum(c19) FROM {t} t WHERE a <> 7 AND c2 <> 3",
    "PIVOT (SELECT a, c1 % 2 AS k FROM {t}) ON k USING sum(a)",
)


def test_queries_see_the_same_with_and_without_column_files(tmp_path: Path) -> None:
    names = [f"c{at}" for at in range(20)]
    schema = pa.schema(
        [("id", pa.int64()), ("a", pa.int64()), ("b", pa.int64()), ("f", pa.float64())]
        + [(name, pa.int64()) for name in names]
    )
    properties = {"write.parquet.row-group-limit": "7"}
    catalog = frazil.connect(tmp_path)
    made = catalog.create_table("s.t", schema, properties=properties)
    for first in (0, 10, 20):
        rows = [
            {"id": id, "a": id, "b": id, "f": float(id), **dict.fromkeys(names, id)}
            for id in range(first, first + 10)
        ]
        made.append(rows)
    made.update({"a": frazil.expr("a + 100"), "f": frazil.expr("'nan'")}, "id < 13", mode="columns")
    made.update({"b": frazil.expr("b + 100")}, "id % 2 = 0", mode="columns")
    made.add_columns({"new": "id * 3"})
    made.delete("id = 4 or id = 12")
    made.append([{"id": 90, "a": 90, "b": 90, "f": 0.5, "new": 1, **dict.fromkeys(names, 90)}])
    made.evolve_schema().rename_column("b", "was").add_column("b", "long").commit()
    plain = made.clone(catalog, "s.plain")
    plain.compact(merge_columns=True)
    for query in QUERIES:
        found, expected = (
            catalog.sql(query.format(t=name)).to_arrow().to_pylist() for name in ("s.t", "s.plain")
        )
        assert repr(found) == repr(expected), query


def test_a_query_opens_the_files_that_have_its_columns(tmp_path: Path) -> None:
    names = [f"c{at}" for at in range(20)]
    schema = pa.schema([(name, pa.int64()) for name in ("id", *names)])
    catalog = frazil.connect(tmp_path)
    made = catalog.create_table("s.t", schema)
    made.append([{"id": id, **dict.fromkeys(names, id)} for id in range(9)])
    (wide,) = local(made, "data").iterdir()
    made.delete("id = 4")
    made.add_columns({"a": "id + 100"})
    made.update({"c7": frazil.expr("-c7")}, mode="columns")
    hidden = wide.with_suffix(".hidden")
    wide.rename(hidden)
    assert catalog.sql("SELECT sum(a) FROM s.t").to_arrow().to_pylist() == [{"sum(a)": 832}]
    assert catalog.sql("SELECT a FROM s.t WHERE a > 107").to_arrow().to_pylist() == [{"a": 108}]
    hidden.rename(wide)
    for file in local(made, "data").glob("*-columns.parquet"):
        file.rename(file.with_suffix(".hidden"))
    query = "SELECT sum(c1), sum(id) FROM s.t WHERE id > 5"
    assert list(catalog.sql(query).to_arrow().to_pylist()[0].values()) == [21, 21]
    with pytest.raises(FrazilError):
        catalog.sql("SELECT sum(c7) FROM s.t").to_arrow()
