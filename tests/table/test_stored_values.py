"""What is stored with a table is checked first, and a bad value stored before hides nothing."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StructType

import frazil
from frazil.errors import InvalidInput
from frazil.format.metadata.metadata import RefKind, SnapshotRef
from frazil.table import Catalog, Table
from tests.support.history import SCHEMA, files_of, rows, state_of

LONE = "a\ud800b"


@pytest.fixture
def table(catalog: Catalog) -> Table:
    made = catalog.create_table("shop.orders", SCHEMA)
    made.append(rows(1, 2))
    return made


BAD_SUMMARIES: list[Any] = [
    {"batch": 7},
    {"batch": None},
    {"batch": 1.5},
    {"batch": math.nan},
    {"batch": True},
    {"batch": b"x"},
    {"batch": LONE},
    {LONE: "x"},
    {7: "x"},
    {"": "x"},
    {"batch": ["x"]},
    "text",
    5,
    [("a", "b")],
]


@pytest.mark.parametrize("summary", BAD_SUMMARIES, ids=repr)
def test_a_summary_that_is_not_text_is_refused_before_anything_is_written(
    table: Table, summary: Any
) -> None:
    before, state = files_of(table), state_of(table)
    calls: list[Callable[[], Any]] = [
        lambda: table.append(rows(3), summary=summary),
        lambda: table.delete("id = 1", summary=summary),
        lambda: table.update({"v": "'y'"}, summary=summary),
        lambda: table.upsert(rows(1), on=["id"], summary=summary),
        lambda: table.overwrite(rows(3), summary=summary),
    ]
    for call in calls:
        with pytest.raises(InvalidInput, match="summary"):
            call()
    assert files_of(table) == before
    assert state_of(table.refresh()) == state


@pytest.mark.parametrize(
    "age", [1.5, "x", True, math.nan, 2**70, 2**63, 0, -1, b"1", [1]], ids=repr
)
def test_an_age_that_is_not_a_whole_number_is_refused(table: Table, age: Any) -> None:
    with pytest.raises(InvalidInput, match=r"max_(ref_)?age_ms"):
        table.tag("t", max_age_ms=age)
    snapshot = table.current_snapshot()
    assert snapshot is not None
    for key in ("min_snapshots_to_keep", "max_snapshot_age_ms", "max_ref_age_ms"):
        ref = SnapshotRef(snapshot_id=snapshot.snapshot_id, kind=RefKind.BRANCH, **{key: age})
        with pytest.raises(InvalidInput, match=key):
            table.metadata.with_ref("b", ref, now_ms=0)
    assert list(table.refresh().metadata.refs) == ["main"]


@pytest.mark.parametrize("name", [LONE, "", " x", None, 5, b"x", "a\nb", "a\0b"], ids=repr)
def test_a_bad_name_for_a_branch_or_tag_is_refused(table: Table, name: Any) -> None:
    with pytest.raises(InvalidInput):
        table.tag(name)
    with pytest.raises(InvalidInput):
        table.branch(name, create=True)
    assert list(table.refresh().metadata.refs) == ["main"]


def test_column_names_and_docs_that_are_not_unicode_are_refused(
    catalog: Catalog, table: Table
) -> None:
    def schema(name: str = "a", doc: str | None = None) -> Schema:
        inner = NestedField.model_construct(
            field_id=2, name=name, field_type=LongType(), required=False, doc=doc
        )
        return Schema(NestedField(1, "s", StructType(inner), required=False))

    for bad in (schema(name=LONE), schema(doc=LONE)):
        with pytest.raises(InvalidInput, match="Unicode"):
            catalog.create_table("shop.bad", bad)
    with pytest.raises(InvalidInput):
        table.evolve_schema().add_column(LONE, "long").commit()
    with pytest.raises(InvalidInput):
        table.evolve_schema().add_column("n", "long", doc=LONE).commit()
    assert catalog.list_tables() == ["shop.orders"]
    assert frazil.connect(catalog.warehouse or "").load_table("shop.orders").scan().count() == 2


@pytest.mark.parametrize(
    "properties",
    [{"a": 5}, {"a": None}, {5: "a"}, {"": "a"}, {"a": LONE}, {LONE: "a"}, {"a": True}, "ab", 5],
    ids=repr,
)
def test_properties_that_are_not_text_are_refused(
    catalog: Catalog, table: Table, properties: Any
) -> None:
    for call in (
        lambda: catalog.create_table("shop.t", SCHEMA, properties=properties),
        lambda: table.set_properties(properties),
        lambda: catalog.create_namespace("other", properties),
        lambda: catalog.set_namespace_properties("shop", properties),
        lambda: table.clone(catalog, "shop.t", properties=properties),
    ):
        with pytest.raises(InvalidInput):
            call()
    assert catalog.list_tables() == ["shop.orders"]
    assert table.refresh().properties == {}


# What was stored before


def _rewrite(catalog: Catalog, column: str, table: str, change: Callable[[Any], None]) -> None:
    """Write a bad value into the database by hand."""
    database = catalog._pointers.create().database  # type: ignore[attr-defined]
    with database.transaction() as transaction:
        for (text,) in transaction.rows(f"SELECT {column} FROM {table}"):
            value = json.loads(text)
            change(value)
            key = {"old": text, "new": json.dumps(value)}
            transaction.run(f"UPDATE {table} SET {column} = :new WHERE {column} = :old", key)


def _summary(value: Any) -> tuple[str, str, Callable[[Any], None]]:
    def change(record: Any) -> None:
        record["summary"]["batch"] = value

    return "record", "frazil_snapshots", change


def _age(value: Any) -> tuple[str, str, Callable[[Any], None]]:
    def change(refs: Any) -> None:
        refs["kept"]["max-ref-age-ms"] = value

    return "refs", "frazil_tables", change


def _property(value: Any) -> tuple[str, str, Callable[[Any], None]]:
    def change(definition: Any) -> None:
        definition["properties"]["mine"] = value

    return "definition", "frazil_definitions", change


def _column(name: str) -> tuple[str, str, Callable[[Any], None]]:
    def change(definition: Any) -> None:
        definition["schemas"][0]["fields"][1]["name"] = name

    return "definition", "frazil_definitions", change


BAD_ROWS = {
    "summary 7": _summary(7),
    "summary null": _summary(None),
    "summary 1.5": _summary(1.5),
    "summary NaN": _summary(math.nan),
    "summary half a character": _summary(LONE),
    "age 1.5": _age(1.5),
    "age x": _age("x"),
    "age true": _age(True),
    "age NaN": _age(math.nan),
    "age 2**70": _age(2**70),
    "property 5": _property(5),
    "property null": _property(None),
    "column with half a character": _column(LONE),
}


@pytest.mark.parametrize("bad", list(BAD_ROWS))
def test_a_bad_value_in_the_catalog_hides_nothing_and_is_repaired(
    catalog: Catalog, table: Table, tmp_path: Path, bad: str
) -> None:
    table.tag("kept")
    table.append(rows(3))
    _rewrite(catalog, *BAD_ROWS[bad])

    again = frazil.connect(tmp_path / "warehouse")["shop.orders"]
    assert again.scan().count() == 3
    assert sorted(again.metadata.refs) == ["kept", "main"]
    assert len(again.snapshots()) == 2

    problems = again.check().problems
    assert problems
    assert all("catalog row of shop.orders" in problem.path for problem in problems)
    assert again.check().problems == problems

    report = again.check(repair=True)
    assert report.repaired == problems
    assert report.problems == ()
    assert "repaired" in str(report)

    fresh = frazil.connect(tmp_path / "warehouse")["shop.orders"]
    assert fresh.check(deep=True).problems == ()
    assert fresh.check(repair=True).repaired == ()
    fresh.append(rows(4) if "column" not in bad else [{"id": 4}])
    assert fresh.scan().count() == 4
    assert fresh.metadata.refs["kept"].max_ref_age_ms is None


def test_a_json_file_with_a_bad_value_can_be_registered_and_recovered(
    catalog: Catalog, table: Table, tmp_path: Path
) -> None:
    path = Path(table.export().removeprefix("file://"))
    value = json.loads(path.read_text())
    value["snapshots"][0]["summary"]["batch"] = 7
    value["properties"]["mine"] = None
    path.write_text(json.dumps(value))
    found = frazil.connect(tmp_path / "a").register_table("shop.orders", str(path))
    assert found.scan().count() == 2
    found, _ = frazil.connect(tmp_path / "b").recover_table("shop.orders", table.location)
    assert found.scan().count() == 2
    assert found.check().problems == ()
