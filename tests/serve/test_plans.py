"""Plans that the server makes: the right files, in parts, for every way a client may ask."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.rest.scan_planning import PlanTableScanRequest
from starlette.testclient import TestClient

from frazil import serve
from frazil.serve.plan import planning
from frazil.serve.rest import plans
from frazil.serve.running import Running
from frazil.serve.settings import Settings
from frazil.table import Catalog, Table

ORDERS = "/v1/namespaces/shop/tables/orders"
SCHEMA = pa.schema([("id", pa.int64()), ("country", pa.string())])


@pytest.fixture
def table(catalog: Catalog) -> Table:
    """Ids 0 to 9 of one country, 10 to 19 of another, and so on up to 59; some in leaves."""
    made = catalog.create_table(
        "shop.orders",
        SCHEMA,
        partition_by=["country"],
        properties={"write.root.max-data-entries": "2", "write.leaf.target-entries": "2"},
    )
    for number, country in enumerate(("de", "fr", "it", "es", "pt", None)):
        ids = list(range(10 * number, 10 * number + 10))
        made.append(pa.table({"id": ids, "country": [country] * 10}, schema=SCHEMA))
    return made


def planned(client: TestClient, prefix: Any = "", **asked: Any) -> dict[str, Any]:
    """All tasks of a plan, its parts fetched."""
    body = {key.replace("_", "-"): value for key, value in asked.items()}
    place = f"/v1{prefix}{ORDERS[3:]}"
    answer = client.post(f"{place}/plan", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    assert found["status"] == "completed"
    found["parts"] = 1
    found.setdefault("delete-files", [])
    left = list(found["plan-tasks"])
    while left:
        part = client.post(f"{place}/tasks", json={"plan-task": left.pop(0)}).json()
        shift = len(found["delete-files"])
        for task in part.get("file-scan-tasks", []):
            references = task.get("delete-file-references", [])
            task["delete-file-references"] = [shift + each for each in references]
        found["file-scan-tasks"] += part.get("file-scan-tasks", [])
        found["delete-files"] += part.get("delete-files", [])
        found["parts"] += 1
        left += part.get("plan-tasks", [])
    return found


def countries(found: dict[str, Any]) -> list[str | None]:
    values = [task["data-file"]["partition"][0] for task in found["file-scan-tasks"]]
    return sorted(values, key=str)


def eq(column: str, value: Any) -> dict[str, Any]:
    return {"type": "eq", "term": column, "value": value}


EVERYWHERE = [None, "de", "es", "fr", "it", "pt"]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (None, EVERYWHERE),
        (True, EVERYWHERE),
        (False, []),
        (eq("country", "fr"), ["fr"]),
        (eq("id", 25), ["it"]),
        ({"type": "not", "child": eq("country", "fr")}, [None, "de", "es", "it", "pt"]),
        ({"type": "not-eq", "term": "country", "value": "de"}, [None, "es", "fr", "it", "pt"]),
        ({"type": "in", "term": "id", "values": [1, 31]}, ["de", "es"]),
        ({"type": "not-in", "term": "country", "values": ["de", "fr", "it"]}, [None, "es", "pt"]),
        ({"type": "is-null", "term": "country"}, [None]),
        ({"type": "not-null", "term": "country"}, ["de", "es", "fr", "it", "pt"]),
        ({"type": "starts-with", "term": "country", "value": "p"}, ["pt"]),
        ({"type": "lt", "term": "id", "value": 10}, ["de"]),
        ({"type": "lt-eq", "term": "id", "value": 10}, ["de", "fr"]),
        ({"type": "gt", "term": "id", "value": 49}, [None]),
        ({"type": "gt-eq", "term": "id", "value": 49.5}, [None]),
        ({"type": "and", "left": eq("country", "fr"), "right": eq("id", 3)}, []),
        ({"type": "or", "left": eq("country", "fr"), "right": eq("id", 3)}, ["de", "fr"]),
        ({"type": "eq", "term": {"type": "reference", "term": "id"}, "value": 3}, ["de"]),
        (
            {
                "type": "not",
                "child": {
                    "type": "eq",
                    "term": {"type": "transform", "transform": "bucket[4]", "term": "id"},
                    "value": 1,
                },
            },
            EVERYWHERE,
        ),
        ({"type": "eq", "term": "_file", "value": "x"}, EVERYWHERE),
    ],
)
def test_a_filter_keeps_the_files_that_may_match(
    table: Table, client: TestClient, where: Any, expected: list[str | None]
) -> None:
    asked = {} if where is None else {"filter": where}
    assert countries(planned(client, **asked)) == sorted(expected, key=str)


def test_values_take_the_type_of_their_column(catalog: Catalog, client: TestClient) -> None:
    moment = datetime(2024, 1, 5, 10, 30, tzinfo=UTC)
    rows = pa.table(
        {
            "day": [date(2024, 3, 1)],
            "at": pa.array([moment], pa.timestamp("us", tz="UTC")),
            "price": pa.array([Decimal("12.50")], pa.decimal128(9, 2)),
            "raw": pa.array([b"\xff\xfe"], pa.binary()),
            "ok": [True],
            "rate": [1.5],
        }
    )
    catalog.create_table("shop.orders", rows.schema, partition_by=["day"]).append(rows)
    matching = {
        "day": "2024-03-01",
        "at": "2024-01-05T10:30:00",
        "price": "12.50",
        "raw": "fffe",
        "ok": True,
        "rate": 1.5,
    }
    other = {
        "day": "2024-03-02",
        "at": "2024-01-05T10:30:00+02:00",
        "price": 12.25,
        "raw": "00",
        "rate": 2,
    }
    for column, value in matching.items():
        (task,) = planned(client, filter=eq(column, value))["file-scan-tasks"]
        assert task["data-file"]["partition"] == ["2024-03-01"]
    for column, value in other.items():
        assert not planned(client, filter=eq(column, value))["file-scan-tasks"], column


def test_what_cannot_be_planned_is_refused(table: Table, client: TestClient) -> None:
    for body in (
        {"filter": eq("nothing", 1)},
        {"filter": {"type": "dance", "term": "id"}},
        {"filter": {"type": "eq", "term": "id"}},
        {"filter": eq("id", [1])},
        {"filter": "id = 5"},
        {"snapshot-id": 5},
        {"start-snapshot-id": 5},
        {"snapshot-id": 1, "start-snapshot-id": 1, "end-snapshot-id": 1},
        {"case-sensitive": True, "filter": eq("ID", 1)},
    ):
        answer = client.post(f"{ORDERS}/plan", json=body)
        assert (answer.status_code, answer.json()["error"]["type"]) == (400, "BadRequestException")
    deep: Any = True
    for _ in range(500):
        deep = {"type": "not", "child": deep}
    assert client.post(f"{ORDERS}/plan", json={"filter": deep}).status_code == 400
    missing = client.post(f"{ORDERS}s/plan", json={})
    assert missing.json()["error"]["type"] == "NoSuchTableException"


def test_names_may_differ_in_case_when_the_client_says_so(table: Table, client: TestClient) -> None:
    assert countries(planned(client, filter=eq("ID", 3), case_sensitive=False)) == ["de"]


def test_a_residual_is_stated_for_every_file(table: Table, client: TestClient) -> None:
    where = {"type": "gt-eq", "term": "id", "value": 45}
    found = planned(client, filter=where)
    by_id = {
        task["data-file"]["partition"][0]: task["residual-filter"]
        for task in found["file-scan-tasks"]
    }
    assert by_id == {"pt": where, None: True}  # every row of the last file matches
    assert {t["residual-filter"] for t in planned(client)["file-scan-tasks"]} == {True}
    negative = {"type": "not-eq", "term": "country", "value": "de"}
    tasks = planned(client, filter=negative)["file-scan-tasks"]
    assert all(task["residual-filter"] == negative for task in tasks)  # of nulls engines disagree


def test_a_large_plan_comes_in_parts(
    table: Table, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plans, "MAX_PLAN_FILES", 1)
    monkeypatch.setattr(plans, "MIN_PLAN_FILES", 1)
    found = planned(client)
    assert countries(found) == sorted(EVERYWHERE, key=str)
    assert found["parts"] >= 6
    long = {"type": "in", "term": "id", "values": list(range(1_000_000_000, 1_000_003_000))}
    either = {"type": "or", "left": long, "right": {"type": "gt-eq", "term": "id", "value": 0}}
    assert countries(planned(client, filter=either)) == sorted(EVERYWHERE, key=str)


def test_parts_show_the_snapshot_that_was_planned(
    table: Table, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plans, "MAX_PLAN_FILES", 1)
    monkeypatch.setattr(plans, "MIN_PLAN_FILES", 1)
    first = client.post(f"{ORDERS}/plan", json={}).json()
    table.delete("true")
    seen, left = len(first["file-scan-tasks"]), first["plan-tasks"]
    while left:
        part = client.post(f"{ORDERS}/tasks", json={"plan-task": left.pop()}).json()
        seen += len(part["file-scan-tasks"])
        left += part.get("plan-tasks", [])
    assert seen == 6
    again = client.get(f"{ORDERS}/plan/{first['plan-id']}").json()
    assert again["file-scan-tasks"] == first["file-scan-tasks"]


def test_another_server_answers_what_one_has_planned(
    table: Table, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    from frazil.serve.app import build
    from frazil.serve.service import Service

    monkeypatch.setattr(plans, "MAX_PLAN_FILES", 2)
    monkeypatch.setattr(plans, "MIN_PLAN_FILES", 1)
    one, other = (
        TestClient(build(Service(catalog)), base_url="http://127.0.0.1:8181") for _ in range(2)
    )
    first = one.post(f"{ORDERS}/plan", json={}).json()
    token = first["plan-tasks"][0]
    part = other.post(f"{ORDERS}/tasks", json={"plan-task": token})
    assert part.json()["file-scan-tasks"]
    assert other.get(f"{ORDERS}/plan/{first['plan-id']}").status_code == 200


def test_a_cancelled_plan_is_gone(
    table: Table, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plans, "MAX_PLAN_FILES", 1)
    monkeypatch.setattr(plans, "MIN_PLAN_FILES", 1)
    found = client.post(f"{ORDERS}/plan", json={}).json()
    assert client.delete(f"{ORDERS}/plan/{found['plan-id']}").status_code == 204
    result = client.get(f"{ORDERS}/plan/{found['plan-id']}")
    assert (result.status_code, result.json()["error"]["type"]) == (404, "NoSuchPlanIdException")
    for token in (*found["plan-tasks"], "nonsense", "!!"):
        gone = client.post(f"{ORDERS}/tasks", json={"plan-task": token})
        assert gone.json()["error"]["type"] == "NoSuchPlanTaskException"


def test_deletes_are_named_with_the_files_they_apply_to(table: Table, client: TestClient) -> None:
    table.delete("id = 13")
    three = planned(client, "/v3", filter=eq("country", "fr"))
    (task,), (vector,) = three["file-scan-tasks"], three["delete-files"]
    assert task["delete-file-references"] == [0]
    assert vector["referenced-data-file"] == task["data-file"]["file-path"]
    assert (vector["file-format"], vector["record-count"]) == ("puffin", 1)
    assert vector["content-size-in-bytes"] > 0
    two = planned(client, "/v2", filter=eq("country", "fr"))
    (file,) = two["delete-files"]
    assert (file["content"], file["file-format"]) == ("position-deletes", "parquet")
    storage = table._handle.storage
    read = pa.parquet.read_table(pa.BufferReader(storage.read(file["file-path"])))
    assert read.to_pylist() == [{"file_path": task["data-file"]["file-path"], "pos": 3}]


def test_files_of_appends_between_two_snapshots(table: Table, client: TestClient) -> None:
    ids = [int(each.snapshot_id) for each in table._handle.head.snapshots()]
    between = {"start_snapshot_id": ids[1], "end_snapshot_id": ids[3]}
    assert countries(planned(client, **between)) == ["es", "it"]
    table.delete("id = 55")
    table.append(pa.table({"id": [70], "country": ["nl"]}, schema=SCHEMA))
    tip = int(table.current_snapshot().snapshot_id)  # type: ignore[union-attr]
    found = planned(client, start_snapshot_id=ids[4], end_snapshot_id=tip)
    assert countries(found) == [None, "nl"]
    assert not found["delete-files"]
    filtered = planned(
        client, start_snapshot_id=ids[0], end_snapshot_id=tip, filter=eq("country", "nl")
    )
    assert countries(filtered) == ["nl"]
    backwards = {"start-snapshot-id": ids[3], "end-snapshot-id": ids[1]}
    assert client.post(f"{ORDERS}/plan", json=backwards).status_code == 400


def test_statistics_of_the_columns_that_are_asked_for(table: Table, client: TestClient) -> None:
    (task,) = planned(client, filter=eq("country", "fr"), stats_fields=["id", "x"])[
        "file-scan-tasks"
    ]
    file = task["data-file"]
    assert file["lower-bounds"] == {"keys": [1], "values": [(10).to_bytes(8, "little").hex()]}
    assert file["upper-bounds"] == {"keys": [1], "values": [(19).to_bytes(8, "little").hex()]}
    assert file["value-counts"] == {"keys": [1], "values": [10]}
    assert file["null-value-counts"] == {"keys": [1], "values": [0]}
    (plain,) = planned(client, filter=eq("country", "fr"))["file-scan-tasks"]
    assert "lower-bounds" not in plain["data-file"]


def test_time_travel_takes_names_of_now_or_then(table: Table, client: TestClient) -> None:
    before = int(table.current_snapshot().snapshot_id)  # type: ignore[union-attr]
    with table.evolve_schema() as schema:
        schema.rename_column("id", "number")
    table.append(pa.table({"number": [80], "country": ["nl"]}))
    for name in ("id", "number"):
        for of_snapshot in (True, False):
            asked = {"snapshot_id": before, "use_snapshot_schema": of_snapshot}
            assert countries(planned(client, filter=eq(name, 3), **asked)) == ["de"]
    assert countries(planned(client, filter={"type": "gt", "term": "number", "value": 70})) == [
        "nl"
    ]


def test_an_empty_table_has_an_empty_plan(catalog: Catalog, client: TestClient) -> None:
    catalog.create_table("shop.orders", SCHEMA)
    assert planned(client)["file-scan-tasks"] == []


# --- PyIceberg ---------------------------------------------------------------------------------


@pytest.fixture
def reading(catalog: Catalog) -> Iterator[Running]:
    with serve.start(catalog, settings=Settings(is_read_only=True)) as running:
        yield running


def test_pyiceberg_lets_a_server_plan_that_takes_no_writes(
    table: Table, reading: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    original = planning.part_of

    def counted(*arguments: Any, **named: Any) -> Any:
        asked.append(arguments)
        return original(*arguments, **named)

    monkeypatch.setattr(plans, "part_of", counted)
    table.delete("id in (3, 4, 59)")
    remote = RestCatalog("x", uri=reading.uri).load_table("shop.orders")
    expected = [i for i in range(60) if i not in (3, 4, 59)]
    assert sorted(remote.scan().to_arrow()["id"].to_pylist()) == expected
    assert remote.scan().count() == 57
    assert remote.scan("id >= 50").count() == 9
    assert remote.scan("country = 'de'").to_arrow()["id"].to_pylist() == [0, 1, 2, 5, 6, 7, 8, 9]
    assert remote.scan("country != 'de'").to_arrow().num_rows == 40  # nulls match nothing here
    assert len(asked) == 5


def test_pyiceberg_fetches_parts_and_increments(
    table: Table, server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plans, "MAX_PLAN_FILES", 1)
    monkeypatch.setattr(plans, "MIN_PLAN_FILES", 1)
    asks = {"scan-planning-mode": "server"}
    remote = RestCatalog("x", uri=server.uri, **asks)
    loaded = remote.load_table("shop.orders")
    assert sorted(loaded.scan().to_arrow()["id"].to_pylist()) == list(range(60))
    ids = [int(each.snapshot_id) for each in table._handle.head.snapshots()]
    request = PlanTableScanRequest.model_validate(
        {"start-snapshot-id": ids[0], "end-snapshot-id": ids[2]}
    )
    tasks = remote.plan_scan(("shop", "orders"), request)
    assert [task.file.record_count for task in tasks] == [10, 10]


def test_only_clients_that_do_not_write_are_sent_here(catalog: Catalog) -> None:
    from frazil.serve.app import build
    from frazil.serve.service import Service

    def mode(settings: Settings) -> str | None:
        answer = (
            TestClient(build(Service(catalog, settings)), base_url="http://127.0.0.1:8181")
            .get("/v1/config")
            .json()
        )
        found: str | None = answer["defaults"].get("scan-planning-mode")
        return found

    assert mode(Settings()) is None
    assert mode(Settings(is_read_only=True)) == "server"
    assert mode(Settings(is_read_only=True, plans_scans=False)) is None
    assert mode(Settings(plans_scans=True)) == "server"
