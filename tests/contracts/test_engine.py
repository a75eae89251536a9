"""What every engine for row-level changes does, told by the rows a table has afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import frazil
from frazil.errors import CommitConflict, InvalidInput
from frazil.rows.duckdb.duckdb_engine import DuckDbEngine
from frazil.rows.engine import Engine

NAN = float("nan")
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("name", pa.string()),
        pa.field("price", pa.float64()),
        pa.field("at", pa.struct([pa.field("city", pa.string()), pa.field("zip", pa.int32())])),
    ]
)


def embedded() -> Engine:
    return DuckDbEngine()


def distributed() -> Engine:
    from frazil.spark.rows.spark_engine import SparkEngine
    from tests.support.spark_session import own_session, shared_session

    return SparkEngine(own_session(shared_session()))


@pytest.fixture(params=[embedded, pytest.param(distributed, marks=pytest.mark.spark)])
def engine(request: pytest.FixtureRequest) -> Engine:
    made: Engine = request.param()
    return made


@pytest.fixture
def table(tmp_path: Path) -> Iterator[frazil.Table]:
    with frazil.connect(tmp_path / "warehouse") as catalog:
        made = catalog.create_table("s.t", SCHEMA)
        made.append([row(id) for id in range(6)])
        made.append([row(id) for id in range(6, 10)])
        made.delete("id = 4")
        yield made


def row(id: int, **changes: Any) -> dict[str, Any]:
    at = {"city": f"c{id}", "zip": id}
    return {"id": id, "name": f"n{id}", "price": float(id), "at": at, **changes}


def rows(table: frazil.Table) -> dict[int, tuple[Any, ...]]:
    found = table.scan(columns=["id", "name", "price", "_row_id"]).to_pylist()
    return {each["id"]: (each["name"], each["price"], each["_row_id"]) for each in found}


def done(table: frazil.Table, engine: Engine, act: Callable[[frazil.Transaction], Any]) -> Any:
    with table.transaction(engine=engine) as tx:
        act(tx)
    return tx.result


def test_any_condition_finds_the_rows_to_delete(table: frazil.Table, engine: Engine) -> None:
    result = done(table, engine, lambda tx: tx.delete("id % 3 = 1 and length(name) = 2"))
    assert (result.rows_removed, sorted(rows(table))) == (2, [0, 2, 3, 5, 6, 8, 9])
    result = done(
        table, engine, lambda tx: tx.delete("id in (select 5) or name = ?", params=["n9"])
    )
    assert (result.rows_removed, sorted(rows(table))) == (2, [0, 2, 3, 6, 8])
    result = done(table, engine, lambda tx: tx.delete("id not in (select null)"))
    assert not result.committed


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ({"sort_by": ["price desc", "id"]}, [3, 9, 8, 7, 6, 5, 2, 1, 0, 10]),
        ({"sort_by": ["price asc nulls last"]}, [0, 1, 2, 5, 6, 7, 8, 9, 3, 10]),
        ({"sort_by": ["bucket[1](id)", "truncate[5](id) desc", "name"]}, None),
        ({"sort_by": ["at.city desc"]}, [9, 8, 7, 6, 5, 3, 2, 10, 1, 0]),
        ({"zorder_by": ["id", "name"]}, None),
    ],
)
def test_all_rows_are_sorted_with_their_lineage(
    table: frazil.Table, engine: Engine, order: dict[str, Any], expected: list[int] | None
) -> None:
    table.update({"price": NAN}, "id = 3")
    table.append([row(10, price=None)])
    lineage = ["id", "_row_id", "_last_updated_sequence_number"]
    before = table.scan(columns=lineage).to_pylist()
    done = table.compact(**order, engine=engine)
    assert (done.operation, done.files_added, done.rows_added, done.rows_removed) == (
        "replace",
        1,
        0,
        0,
    )
    after = table.scan(columns=lineage).to_pylist()
    assert sorted(after, key=lambda each: each["id"]) == sorted(before, key=lambda e: e["id"])
    # By fives from above, and by name in each five; the Z-values of both columns rise together.
    found = [each["id"] for each in after]
    descending = [10, 5, 6, 7, 8, 9, 0, 1, 2, 3]
    if "zorder_by" in order:
        assert sorted(found) == [0, 1, 2, 3, 5, 6, 7, 8, 9, 10]
        assert found.index(0) < found.index(9)
    else:
        assert found == (expected or descending)


def test_a_delete_of_all_rows_of_a_file_drops_it(table: frazil.Table, engine: Engine) -> None:
    result = done(table, engine, lambda tx: tx.delete("id + 0 >= 6"))
    assert (result.files_removed, result.files_updated) == (1, 0)


def test_updates_evaluate_the_old_row_and_keep_row_ids(table: frazil.Table, engine: Engine) -> None:
    before = rows(table)
    new = {"price": frazil.expr("price * ? + id", 10), "name": "it's"}
    result = done(table, engine, lambda tx: tx.update(new, "sqrt(price) > 2"))
    assert result.rows_updated == 5
    after = rows(table)
    assert {id: found[:2] for id, found in after.items() if found[0] == "it's"} == {
        id: ("it's", id * 11.0) for id in (5, 6, 7, 8, 9)
    }
    assert {id: found[2] for id, found in after.items()} == {
        id: found[2] for id, found in before.items()
    }


def test_values_are_not_parsed(table: frazil.Table, engine: Engine) -> None:
    done(table, engine, lambda tx: tx.update({"name": "price * 2"}, "id = 1"))
    assert rows(table)[1][0] == "price * 2"


def test_parts_of_structs_are_set_alone(table: frazil.Table, engine: Engine) -> None:
    done(table, engine, lambda tx: tx.update({"at.city": frazil.expr("upper(name)")}, "id < 2"))
    done(table, engine, lambda tx: tx.update({"at": {"city": "Rome", "zip": 1}}, "id = 9"))
    done(table, engine, lambda tx: tx.update({"at": None}, "id = 8"))
    found = {each["id"]: each["at"] for each in table.scan("id in (0, 1, 8, 9)").to_pylist()}
    rome = {"city": "Rome", "zip": 1}
    assert found == {
        0: {"city": "N0", "zip": 0},
        1: {"city": "N1", "zip": 1},
        8: None,
        9: rome,
    }


def test_an_upsert_updates_inserts_and_leaves_equal_rows_alone(
    table: frazil.Table, engine: Engine
) -> None:
    before = rows(table)
    source = [row(1), row(2, price=20.0), row(4), row(50)]
    result = done(table, engine, lambda tx: tx.upsert(source, "id"))
    assert (result.rows_updated, result.rows_added) == (1, 2)
    after = rows(table)
    assert (after[2][:2], after[2][2]) == (("n2", 20.0), before[2][2])
    assert len({found[2] for found in after.values()}) == len(after) == 11


def test_columns_that_an_upsert_lacks_are_kept(table: frazil.Table, engine: Engine) -> None:
    source = [{"id": 1, "price": 9.0}, {"id": 77, "price": 7.0}]
    done(table, engine, lambda tx: tx.upsert(source, ["id"]))
    assert (rows(table)[1][:2], rows(table)[77][:2]) == (("n1", 9.0), (None, 7.0))
    mixed = [{"id": 1, "price": 9.0}, {"id": 2, "name": "x"}]
    with pytest.raises(InvalidInput, match="row 1 has the columns id, name"):
        done(table, engine, lambda tx: tx.upsert(mixed, ["id"]))


def test_a_merge_takes_the_first_clause_that_applies(table: frazil.Table, engine: Engine) -> None:
    source = pa.table({"id": [1, 2, 3, 4, 60], "op": ["del", "set", "keep", "set", "new"]})
    before = rows(table)

    def build(tx: frazil.Transaction) -> None:
        merge = tx.merge(source, on="t.id = s.id").when_matched_delete(condition="s.op = 'del'")
        new = {"name": frazil.expr("s.op || t.name")}
        merge = merge.when_matched_update(new, condition="op = 'set'")
        fresh = {"id": frazil.expr("s.id"), "name": frazil.expr("op")}
        merge = merge.when_not_matched_insert(fresh, condition="s.id > 50")
        merge = merge.when_not_matched_by_source_update({"price": -1.0}, condition="t.id = 9")
        merge.when_not_matched_by_source_delete(condition="id = 0").execute()

    result = done(table, engine, build)
    assert (result.rows_updated, result.rows_added, result.rows_removed) == (2, 1, 2)
    after = rows(table)
    assert sorted(after) == [2, 3, 5, 6, 7, 8, 9, 60]
    assert (after[2][0], after[9][1], after[60][0], after[3]) == ("setn2", -1.0, "new", before[3])
    assert after[2][2] == before[2][2]


def test_a_row_met_twice_is_refused_and_leaves_no_file(table: frazil.Table, engine: Engine) -> None:
    source = pa.table({"id": [1, 1], "name": ["a", "b"]})
    files = set(Path(table.location.removeprefix("file://")).rglob("*.parquet"))
    merge = lambda tx: tx.merge(source, on=["id"]).when_matched_update().execute()  # noqa: E731
    with pytest.raises(InvalidInput, match="make the source distinct"):
        done(table, engine, merge)
    assert set(Path(table.location.removeprefix("file://")).rglob("*.parquet")) == files


def test_rows_that_come_through_arrow_have_addresses(table: frazil.Table, engine: Engine) -> None:
    with table.evolve_schema() as change:
        change.rename_column("at.city", "town")
    before = rows(table)
    done(table, engine, lambda tx: tx.update({"at.town": "Oslo"}, "id + 0 in (3, 7)"))
    done(table, engine, lambda tx: tx.delete("id + 0 = 2"))
    found = {each["id"]: each["at"]["town"] for each in table.scan().to_pylist()}
    assert (found[3], found[7], found[5], 2 in found) == ("Oslo", "Oslo", "c5", False)
    assert rows(table)[3] == before[3]


def test_equality_deletes_are_not_undone(table: frazil.Table, engine: Engine) -> None:
    table.row_delta().add_equality_deletes(pa.table({"id": [6]}), on=["id"]).commit()
    done(table, engine, lambda tx: tx.update({"name": "x"}, "id + 0 >= 5"))
    assert sorted(id for id, found in rows(table).items() if found[0] == "x") == [5, 7, 8, 9]


def test_rows_added_meanwhile_conflict(table: frazil.Table, engine: Engine) -> None:
    tx = table.transaction(engine=engine)
    tx.update({"name": "x"}, "length(name) > 1 and id = 3")
    table.append([row(3)])
    with pytest.raises(CommitConflict):
        tx.commit()


@pytest.mark.parametrize(
    ("act", "problem"),
    [
        (lambda tx: tx.delete(None), "where is None; expected text"),
        (lambda tx: tx.delete("lenght(name) = 1"), "(?i)lenght"),
        (lambda tx: tx.delete("nam % 2 = 1"), "Did you mean 'name'"),
        (lambda tx: tx.delete("id = ?"), "1 placeholder .*and 0 values"),
        (lambda tx: tx.update({"nam": 1}), "Did you mean 'name'"),
        (lambda tx: tx.update({"price": "x"}), "column price: 'x' is not a value of type double"),
        (lambda tx: tx.update({"price": frazil.expr("prise")}), "Did you mean 'price'"),
        (lambda tx: tx.update({"at": None, "at.zip": 1}), "are assigned at once"),
        (lambda tx: tx.upsert([row(1), row(1)], "id"), "duplicate keys in id"),
        (lambda tx: tx.upsert([row(1)], ["id", "id"]), "id is given twice"),
        (lambda tx: tx.upsert([{"id": None, "name": "x"}], "name, id"), "unknown key column"),
        (lambda tx: tx.upsert([{"id": 1, "nope": 1}], "id"), "nope"),
        (lambda tx: tx.merge([row(1)], on="id").execute(), "merge has no clause"),
        (lambda tx: tx.merge([row(1)], on="t.id = s.di").upsert().execute(), "s.id"),
    ],
)
def test_what_cannot_be_done_is_refused(
    table: frazil.Table, engine: Engine, act: Callable[[frazil.Transaction], Any], problem: str
) -> None:
    with pytest.raises(InvalidInput, match=problem):
        done(table, engine, act)


def test_keys_may_be_nan_nested_and_named_oddly(tmp_path: Path, engine: Engine) -> None:
    key = pa.struct([pa.field("x", pa.int64())])
    schema = pa.schema(
        [
            pa.field("@at", pa.float64()),
            pa.field("a.b", pa.int64()),
            pa.field("k", key),
            pa.field("l", pa.list_(pa.int64())),
        ]
    )
    with frazil.connect(tmp_path / "warehouse") as catalog:
        table = catalog.create_table("s.t", schema)
        made = [{"@at": NAN, "a.b": 1, "k": {"x": 1}, "l": [1]}]
        table.append([*made, {"@at": 0.0, "a.b": 2, "k": {"x": 2}, "l": [2]}])
        assert not done(table, engine, lambda tx: tx.upsert(made, ["@at"])).committed
        assert not done(table, engine, lambda tx: tx.upsert([], ["@at"])).committed
        new = [{"@at": -0.0, "a.b": 7, "k": {"x": 2}, "l": [2]}]
        done(table, engine, lambda tx: tx.upsert(new, ["@at", "k", "l"]))
        done(table, engine, lambda tx: tx.update({"a.b": 9}, '"a.b" = 1'))
        assert sorted(table.scan().to_arrow()["a.b"].to_pylist()) == [7, 9]
        many = [{"@at": i / 7, "a.b": i, "k": None, "l": None} for i in range(1, 500)]
        result = done(table, engine, lambda tx: tx.upsert(many, "@at"))
        assert (result.rows_added, table.scan().count()) == (499, 501)


def test_booleans_live_through_every_change(tmp_path: Path, engine: Engine) -> None:
    parts = pa.struct([("ok", pa.bool_()), ("all", pa.list_(pa.bool_()))])
    schema = pa.schema(
        [
            pa.field("id", pa.int64()),
            pa.field("ok", pa.bool_()),
            pa.field("parts", parts),
            pa.field("by", pa.map_(pa.string(), pa.bool_())),
        ]
    )
    inside = {"ok": False, "all": [True, None]}
    with frazil.connect(tmp_path / "warehouse") as catalog:
        table = catalog.create_table("s.t", schema)
        old: list[dict[str, Any]] = [
            {"id": 1, "ok": True, "parts": inside, "by": [("a", False)]},
            {"id": 2, "ok": None, "parts": None, "by": None},
        ]
        table.append(old)
        assert table.scan("id % 2 = 1").to_pylist() == old[:1]
        done(table, engine, lambda tx: tx.update({"ok": False}, "id = 2"))
        table.compact(sort_by=["id desc"], rewrite_all=True, engine=engine)
        assert table.scan().to_pylist() == [{**old[1], "ok": False}, old[0]]


@pytest.mark.parametrize("names", [("s", "t", "d"), ("id", "s", "t"), ("v", "rowid", "S")])
def test_columns_may_be_called_as_rows_are_in_a_merge(
    tmp_path: Path, engine: Engine, names: tuple[str, str, str]
) -> None:
    key, text, number = names

    def rows(*values: tuple[int, str, int]) -> pa.Table:
        columns = zip(*values, strict=True)
        return pa.table(dict(zip(names, map(pa.array, columns), strict=True)))

    with frazil.connect(tmp_path / "warehouse") as catalog:
        table = catalog.create_table("s.t", rows((0, "a", 0), (1, "b", 1), (2, "c", 2)))
        table.delete(f'"{key}" = 0')
        source = rows((0, "A", 90), (1, "B", 10), (2, "C", 20), (3, "D", 30))

        def merge(tx: frazil.Transaction) -> None:
            both = frazil.expr(f's."{text}" || t."{text}"')
            merging = tx.merge(source, on=[key])
            merging = merging.when_matched_delete(condition=f's."{number}" = 20')
            merging = merging.when_matched_update({text: both}, condition=f't."{number}" < 9')
            merging.when_not_matched_insert(condition=f's."{number}" > 80').execute()

        done(table, engine, merge)
        found = sorted(tuple(row.values()) for row in table.scan().to_pylist())
        assert found == [(0, "A", 90), (1, "Bb", 1)]
        done(table, engine, lambda tx: tx.upsert(source, key))
        assert sorted(tuple(row.values()) for row in table.scan().to_pylist()) == [
            tuple(row.values()) for row in source.to_pylist()
        ]
