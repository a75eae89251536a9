"""Arguments as users write them."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.expressions import BooleanExpression, LessThan

import frazil
from frazil.errors import InvalidInput, NotFound

ROWS = pa.table({"id": [1, 2, 3, 4], "name": ["a", "b", "c", "d"]})


@pytest.fixture
def table(tmp_path: Path) -> frazil.Table:
    made = frazil.connect(tmp_path / "lake").create_table("shop.orders", ROWS.schema)
    made.append(ROWS)
    return made


def test_a_scan_is_narrowed_step_by_step(table: frazil.Table) -> None:
    below: BooleanExpression = LessThan("id", 3)  # type: ignore[call-arg, arg-type]
    scan = table.scan().where("id > 1").where("id < 4").select("id").limit(5)
    assert scan.to_pylist() == [{"id": 2}, {"id": 3}]
    assert scan.limit(1).count() == 1
    assert scan.limit(1).limit(7).count() == 1
    assert table.scan("id > ?", params=[1]).where("name <> ?", params=["c"]).count() == 2
    assert table.scan("id > 1").where(below).select("name").to_pylist() == [{"name": "b"}]
    assert table.scan("id = 1 or id = 2").where("id = 2 or id = 3").count() == 1


def test_a_narrowed_scan_leaves_the_first_as_it_was(table: frazil.Table) -> None:
    scan = table.scan()
    scan.limit(1)
    scan.where("id = 1")
    assert scan.count() == 4


def test_one_key_needs_no_list(table: frazil.Table) -> None:
    table.upsert([{"id": 1, "name": "z"}], on="id")
    assert table.scan("id = 1").to_pylist() == [{"id": 1, "name": "z"}]


def test_a_date_is_a_time(table: frazil.Table) -> None:
    assert table.scan(as_of=date(2999, 1, 1)).count() == 4
    with pytest.raises(NotFound, match=r"the oldest is \d+ of"):
        table.scan(as_of=date(2001, 1, 1))


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda t: t.scan(limit="5"), "limit is '5'"),
        (lambda t: t.scan(columns="id"), "columns is 'id'"),
        (lambda t: t.scan().limit("5"), "rows is '5'"),
        (lambda t: t.scan().select(5), "columns is 5"),
        (lambda t: t.scan(as_of=1.5), "as_of is 1.5"),
        (lambda t: t.upsert([{"id": 1}], on=7), "on is 7"),
    ],
)
def test_a_wrong_type_names_the_argument(table: frazil.Table, call: object, name: str) -> None:
    with pytest.raises(InvalidInput, match=name):
        call(table)  # type: ignore[operator]


def test_rows_that_lack_columns_keep_what_was_there(table: frazil.Table) -> None:
    table.evolve_schema().add_column("price", "double").commit()
    table.refresh().update({"price": 9.5})
    table.upsert([{"id": 1, "name": "new"}], on="id")
    assert table.scan("id = 1").to_pylist() == [{"id": 1, "name": "new", "price": 9.5}]


@pytest.mark.parametrize("number", [7, 0, 30 * 24 * 3600])
def test_an_age_without_a_unit_is_refused(table: frazil.Table, number: int) -> None:
    for call in (table.expire_snapshots, table.remove_orphan_files):
        with pytest.raises(InvalidInput, match=f"'{number} days'"):
            call(older_than=number)


def test_an_age_has_a_unit(table: frazil.Table) -> None:
    table.append(ROWS)
    for age in ("0 days", "0.0 seconds", timedelta(0)):
        assert len(table.expire_snapshots(older_than=age, dry_run=True).snapshot_ids) == 1
    for age in ("7 days", "1 hour", "2 weeks"):
        assert table.expire_snapshots(older_than=age, dry_run=True).snapshot_ids == ()


def test_a_missing_table_is_answered_with_its_neighbours(table: frazil.Table) -> None:
    catalog = frazil.connect(table.location.split("/shop")[0])
    for call in (catalog.load_table, catalog.drop_table, lambda n: catalog.rename_table(n, "a.b")):
        with pytest.raises(NotFound, match=r"table shop.oders does not exist. Did you mean shop.o"):
            call("shop.oders")
    with pytest.raises(NotFound, match=r"table x.y does not exist; tables: shop.orders"):
        catalog.load_table("x.y")
    assert catalog.find_table("x.y") is None
