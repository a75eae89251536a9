"""Every public method, called with values it cannot use, answers with a `FrazilError` or works.

A bare error of Python or of a library means that an entrance does not check what it is given. New
public methods are found by themselves; one with required parameters needs values in `GIVEN`.
"""

from __future__ import annotations

import inspect
import itertools
import shutil
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import frazil
from frazil.argument_checks import alternatives, is_known
from frazil.errors import FrazilError, InvalidInput, NotFound
from frazil.rows.merge import Merge
from frazil.scan.change_feed import Changes
from frazil.table.columns.evolve import EvolvePartitions, EvolveSchema
from frazil.table.file_operations import RowDelta
from frazil.table.inspect import Inspect

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.date32()), ("name", pa.string())])
ROWS = [{"id": 1, "day": date(2024, 1, 1), "name": "a"}]


class Unshowable:
    """A value whose own code fails when it is shown."""

    def __repr__(self) -> str:
        raise ValueError("no text")


BAD: list[Any] = [
    None,
    True,
    7,
    -1,
    2**70,
    1.5,
    float("nan"),
    "",
    "²",
    "\ud800",
    "no such thing",
    "id = " + " + ".join(["1"] * 3000),
    "(" * 3000,
    "\0",
    b"\xff",
    date(2024, 1, 1),
    timedelta(days=1),
    [5],
    [None],
    ["\ud800"],
    {5: 6},
    {"id": None},
    {},
    np.array([1, 2]),
    np.array([], dtype=object),
    np.float64("nan"),
    Unshowable(),
    object(),
]

GIVEN: dict[str, dict[str, Any]] = {
    "connect": {"uri": "elsewhere"},
    "Catalog.adopt_paimon": {"name": "a.b", "source": "/nowhere"},
    "Catalog.create_namespace": {"namespace": "other"},
    "Catalog.create_table": {"name": "shop.new", "schema": SCHEMA},
    "Catalog.create_view": {"name": "shop.newest", "query": "select 1 as one"},
    "Catalog.drop_namespace": {"namespace": "other"},
    "Catalog.drop_table": {"name": "shop.other"},
    "Catalog.drop_view": {"name": "shop.newest"},
    "Catalog.find_table": {"name": "shop.orders"},
    "Catalog.load_table": {"name": "shop.orders"},
    "Catalog.namespace_properties": {"namespace": "shop"},
    "Catalog.open_iceberg": {"source": "/nowhere/metadata/v1.metadata.json"},
    "Catalog.recover_table": {"name": "shop.new", "location": "/nowhere"},
    "Catalog.register_table": {"name": "shop.new", "metadata_location": "/nowhere/m.json"},
    "Catalog.rename_table": {"name": "shop.other", "to": "shop.another"},
    "Catalog.set_namespace_properties": {"namespace": "shop", "updates": {"a": "b"}},
    "Catalog.sql": {"text": "select 1"},
    "Catalog.table_exists": {"name": "shop.orders"},
    "Catalog.view_exists": {"name": "shop.newest"},
    "Catalog.view_query": {"name": "shop.newest"},
    "EvolvePartitions.add": {"term": "day(day)"},
    "EvolvePartitions.remove": {"what": "id"},
    "EvolvePartitions.rename": {"what": "id", "to": "key"},
    "EvolveSchema.add_column": {"path": "note", "type": "string"},
    "EvolveSchema.drop_column": {"path": "name"},
    "EvolveSchema.move": {"path": "name", "first": True},
    "EvolveSchema.rename_column": {"path": "name", "to": "title"},
    "EvolveSchema.union_by_name": {"other": SCHEMA},
    "EvolveSchema.update_column": {"path": "name", "doc": "text"},
    "Inspect.at": {"snapshot": 1},
    "Merge.summary": {"properties": {"a": "b"}},
    "Merge.when_not_matched_by_source_update": {"values": {"name": "b"}},
    "RowDelta.add_equality_deletes": {"rows": [{"id": 1}], "on": ["id"]},
    "RowDelta.delete_rows": {"path": "data/x.parquet", "positions": [0]},
    "RowDelta.remove_file": {"path": "data/x.parquet"},
    "Scan.limit": {"rows": 1},
    "Scan.where": {"where": "id = ?"},
    "Table.add_columns": {"columns": {"note": "'n'"}},
    "Table.add_files": {"files": ["/nowhere/x.parquet"]},
    "Table.append": {"rows": ROWS},
    "Table.applied_from": {"source": None},
    "Table.apply": {"changes": None},
    "Table.branch": {"name": "audit"},
    "Table.cherry_pick": {"snapshot": "main"},
    "Table.clone": {"catalog": None, "name": "shop.clone"},
    "Table.compare": {"other": "main"},
    "Table.copy_to": {"location": "/nowhere", "catalog": None, "name": "shop.copy"},
    "Table.delete": {"where": "id = 99"},
    "Table.drop_branch": {"name": "audit"},
    "Table.drop_ref": {"name": "audit"},
    "Table.drop_tag": {"name": "v1"},
    "Table.fast_forward": {"to": "main"},
    "Table.merge": {"source": ROWS, "on": ["id"]},
    "Table.merge_columns": {"rows": [{"id": 1, "note": "n"}], "on": ["id"]},
    "Table.move_to": {"location": "/nowhere", "catalog": None},
    "Table.overwrite": {"rows": ROWS},
    "Table.overwrite_partitions": {"rows": ROWS},
    "Table.rollback": {"to": "main"},
    "Table.set_current": {"to": "main"},
    "Table.set_expressions": {"expressions": ["lower(name)"]},
    "Table.snapshot": {"as_of": "main"},
    "Table.tag": {"name": "v1"},
    "Table.update": {"assignments": {"name": "b"}},
    "Table.upsert": {"rows": ROWS, "on": ["id"]},
    "Transaction.add_columns": {"columns": {"note": "'n'"}},
    "Transaction.append": {"rows": ROWS},
    "Transaction.delete": {"where": "id = 99"},
    "Transaction.merge": {"source": ROWS, "on": ["id"]},
    "Transaction.merge_columns": {"rows": [{"id": 1, "note": "n"}], "on": ["id"]},
    "Transaction.overwrite": {"rows": ROWS},
    "Transaction.overwrite_partitions": {"rows": ROWS},
    "Transaction.set_expressions": {"expressions": ["lower(name)"]},
    "Transaction.set_properties": {"updates": {"a": "b"}},
    "Transaction.update": {"assignments": {"name": "b"}},
    "Transaction.upsert": {"rows": ROWS, "on": ["id"]},
}
SKIPPED = {
    "progress": "a function of the caller's",
    "options": "handed on to pandas",
    "connection": "DuckDB's own object",
}


class Place:
    """A warehouse with two tables, made again when a call took one away."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.number = itertools.count()
        self.renew()

    def renew(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self.catalog = frazil.connect(self.folder)
        self.table = self.catalog.create_table("shop.orders", SCHEMA, partition_by=["id"])
        self.table.append(ROWS)
        self.catalog.create_table("shop.other", SCHEMA)

    def receiver(self, kind: str) -> Any:
        if not (self.folder / "catalog.db").exists() or not self.catalog.table_exists("shop.other"):
            self.renew()
        table = self.catalog.load_table("shop.orders")
        made: Mapping[str, Callable[[], Any]] = {
            "Catalog": lambda: self.catalog,
            "Table": lambda: table,
            "Transaction": table.transaction,
            "Scan": table.scan,
            "EvolveSchema": table.evolve_schema,
            "EvolvePartitions": table.evolve_partitions,
            "RowDelta": table.row_delta,
            "Inspect": lambda: table.inspect,
            "Changes": table.changes,
            "Merge": lambda: table.merge(ROWS, on=["id"]),
        }
        return made[kind]()


def _public() -> Iterator[tuple[str, Callable[..., Any]]]:
    yield "connect", frazil.connect
    for kind in (
        frazil.Catalog,
        frazil.Table,
        frazil.Transaction,
        frazil.Scan,
        EvolveSchema,
        EvolvePartitions,
        RowDelta,
        Inspect,
        Changes,
        Merge,
    ):
        for name, member in inspect.getmembers(kind, inspect.isfunction):
            if not name.startswith("_"):
                yield f"{kind.__name__}.{name}", member


PUBLIC = dict(_public())


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    return [
        parameter
        for name, parameter in inspect.signature(function).parameters.items()
        if name != "self" and name not in SKIPPED
    ]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(tmp_path_factory.mktemp("entrances") / "warehouse")


def _finish(result: Any) -> None:
    """Carry out what is lazy, and end what is open."""
    if isinstance(result, frazil.Scan):
        result.to_arrow()
    elif isinstance(result, EvolveSchema | EvolvePartitions | RowDelta):
        result.commit()
    elif isinstance(result, Merge):
        result.execute()
    elif isinstance(result, frazil.Transaction):
        result.abort()
    elif isinstance(result, frazil.Catalog):
        result.close()
    elif hasattr(result, "to_arrow"):
        result.to_arrow()


def _call(place: Place, name: str, parameter: inspect.Parameter, value: Any) -> None:
    given = dict(GIVEN.get(name, {}))
    arguments: list[Any] = []
    if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
        arguments = [value]
    elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
        given["s3.region"] = value
    else:
        given[parameter.name] = value
    if name == "connect":
        _finish(frazil.connect(*arguments, **given))
        return
    kind, method = name.split(".")
    receiver = place.receiver(kind)
    if "catalog" in given and parameter.name != "catalog":
        given["catalog"] = place.catalog
    try:
        _finish(getattr(receiver, method)(*arguments, **given))
    finally:
        if isinstance(receiver, frazil.Transaction):
            receiver.abort()


CASES = [
    (name, parameter)
    for name, function in sorted(PUBLIC.items())
    for parameter in _parameters(function)
]


@pytest.mark.parametrize(
    ("name", "parameter"), CASES, ids=[f"{name}({each.name})" for name, each in CASES]
)
def test_a_value_that_cannot_be_used_is_refused_by_us(
    place: Place,
    name: str,
    parameter: inspect.Parameter,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    bare = []
    for value in BAD:
        try:
            _call(place, name, parameter, value)
        except FrazilError:
            continue
        except Exception as error:
            bare.append(f"{value!r:.60}: {type(error).__name__}: {error!s:.120}")
    assert bare == []


LONG_SUM = " + ".join(["1"] * 3000)
DEEP = f"{'(' * 3000}id = 1{')' * 3000}"


@pytest.mark.parametrize(
    "call",
    [
        lambda table: table.scan(f"id = {LONG_SUM}").to_arrow(),
        lambda table: table.scan(DEEP).to_arrow(),
        lambda table: table.scan(" and ".join(["id = 1"] * 3000)).to_arrow(),
        lambda table: table.scan("not " * 3000 + "id = 1").to_arrow(),
        lambda table: table.scan("name = '\ud800'").to_arrow(),
        lambda table: table.scan("id = ²").to_arrow(),
        lambda table: table.scan(columns=["id", ""]).to_arrow(),
        lambda table: table.update({"id": LONG_SUM}),
        lambda table: table.update({"name": "\ud800"}),
        lambda table: table.update({"name": frazil.expr("?", "\ud800")}),
        lambda table: table.update({"name": frazil.expr("'\ud800'")}),
        lambda table: table.scan("id = ?", params=[["\ud800"]]).to_arrow(),
        lambda table: table.scan("name = ?", params=["\ud800"]).to_arrow(),
        lambda table: table.append([{"id": 1, "name": "\ud800"}]),
        lambda table: table.append([{"id": 1, "name": b"\xff"}]),
        lambda table: table.append([{"id": 2**70}]),
        lambda table: table.append({"id": [1, 2], "name": ["a"]}),
        lambda table: table.append([{"\ud800": 1}]),
        lambda table: table.append([{1: 1}]),
        lambda table: table.upsert([{"id": 1}], ["id", "id"]),
        lambda table: table.upsert([{"id": None}], ["id"]),
        lambda table: table.append(ROWS, summary={"batch": 7}),
        lambda table: table.evolve_schema().add_column("\ud800", "string"),
    ],
)
def test_a_bad_text_or_row_is_refused_by_us(place: Place, call: Callable[[Any], Any]) -> None:
    table = place.receiver("Table")
    said = ""
    try:
        call(table)
    except FrazilError as error:
        said = str(error)
    said.encode()  # a message can be printed, whatever it quotes


def test_no_filter_is_not_a_filter_for_delete(place: Place) -> None:
    table = place.receiver("Table")
    with pytest.raises(InvalidInput, match="where is None; expected text, a PyIceberg expression,"):
        table.delete(None)


def test_a_date_is_its_first_moment(place: Place) -> None:
    table = place.receiver("Table")
    tip = table.current_snapshot()
    assert tip is not None
    tomorrow = datetime.fromtimestamp(tip.timestamp_ms / 1000, UTC).date() + timedelta(days=1)
    assert table.scan(as_of=tomorrow).to_arrow().equals(table.scan().to_arrow())
    with pytest.raises(NotFound):
        table.scan(as_of=tomorrow - timedelta(days=1))


def test_every_annotation_of_an_entrance_is_understood() -> None:
    unknown = {
        f"{name}({parameter.name}: {parameter.annotation})"
        for name, parameter in CASES
        for part in alternatives(parameter.annotation)
        if not is_known(part)
    }
    assert unknown == set()


def test_every_method_with_required_parameters_is_called() -> None:
    missing = [
        f"{name}({parameter.name})"
        for name, parameter in CASES
        if parameter.default is inspect.Parameter.empty
        and parameter.kind not in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        and parameter.name not in GIVEN.get(name, {})
    ]
    assert missing == []


def test_a_table_still_loads_after_all_of_it(place: Place) -> None:
    table = place.catalog.load_table("shop.orders")
    assert table.scan().count() >= 0
    assert table.check().ok
