"""What the pages show is what the table is; numbers are by hand or as the library tells them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from starlette.testclient import TestClient

from frazil.storage import LocalStorage
from frazil.table import Catalog, Table
from tests.serve.explorer.conftest import API, ORDERS, Get, browse


def test_the_tree_is_what_inspection_tells(get: Get, orders: Table) -> None:
    found = get("tree", columns="1")
    manifests = orders.inspect.manifests
    leaves = found["leaves"]
    assert leaves["entries"] == manifests.column("entry_count").to_pylist()
    assert leaves["dead"] == manifests.column("dead_entry_count").to_pylist()
    assert leaves["bytes"] == manifests.column("length").to_pylist()
    live = sum(leaves["entries"]) - sum(leaves["dead"]) + found["inline"]["n"]
    assert live == orders.inspect.files.num_rows == found["totals"]["files"]
    metrics = manifests.column("readable_metrics").to_pylist()
    (column,) = found["columns"]
    lows = [each["order_id"]["lower_bound"] for each in metrics]
    assert column["leaves"]["lo_text"] == [str(low) for low in lows]
    assert (column["name"], column["scale"], column["lo"]) == ("order_id", "linear", "0")
    assert min(column["leaves"]["lo"]) == 0.0


def test_a_commit_says_what_it_wrote_and_retired(get: Get, orders: Table) -> None:
    commits = get("commits")
    assert commits["total"] == len(orders.snapshots()) == len(commits["id"])
    assert [commits["lanes"][lane] for lane in commits["lane"]].count("audit") == 1
    assert commits["operation"][:26] == ["append"] * 26
    assert commits["rows_added"][:26] == [40] * 26
    at = commits["operation"].index("delete")
    assert commits["rows_removed"][at] == 4
    one = get("commit", snapshot=commits["id"][at])
    tree = get("tree", snapshot=commits["id"][at])
    assert sum(one["died"].values()) == sum(tree["leaves"]["died"].values())
    assert one["wrote"]["root"]["bytes"] == tree["root"]["bytes"]
    assert one["branches"] == ["main", "audit"]
    assert get("commits", after=commits["id"][-2])["id"] == commits["id"][-1:]


def test_a_leaf_has_every_entry_in_a_cell(get: Get, orders: Table) -> None:
    tree = get("tree")
    at = next(at for at, dead in enumerate(tree["leaves"]["dead"]) if dead)
    leaf = get("leaf", id=tree["leaves"]["id"][at], where="order_id < 41", column="1")
    cells, entries = leaf["cells"], tree["leaves"]["entries"][at]
    assert sum(cells["live"]) + sum(cells["dead"]) == entries == leaf["entries"]
    assert sum(cells["dead"]) == tree["leaves"]["dead"][at]
    assert leaf["total"] == entries == len(leaf["page"]["id"])
    states = dict(zip(leaf["page"]["position"], leaf["page"]["state"], strict=True))
    assert sorted(states) == list(range(entries))
    dead = get("leaf", id=tree["leaves"]["id"][at], only="dead")
    assert set(dead["page"]["state"]) == {"dead"}
    ids = leaf["page"]["bounds"]["1"]
    said = [int(low) < 41 for low in ids["lo"]]
    expected = [
        low and state == "live" for low, state in zip(said, leaf["page"]["state"], strict=True)
    ]
    assert leaf["page"]["match"] == expected


def test_a_file_shows_its_footer_vector_and_history(get: Get, orders: Table) -> None:
    root = get("leaf", id="root", limit="500")["page"]
    at = next(at for at, rows in enumerate(root["vector_rows"]) if rows)
    found = get("file", id=root["id"][at])
    path = found["path"].removeprefix("file://")
    about = pq.read_metadata(path)
    assert found["row_groups"]["rows"] == [about.row_group(0).num_rows]
    assert (found["rows"], found["created_by"]) == (about.num_rows, about.created_by)
    assert found["vector"]["rows"] == root["vector_rows"][at]
    assert [step["what"] for step in found["history"]] == ["added", "vector changed"]
    assert found["history_complete"]


def test_a_file_shows_its_column_files_as_slices(own: Catalog) -> None:
    table = own.load_table("shop.orders")
    table.add_columns({"margin": "amount * 0.5"})
    table.update({"margin": 0.0, "amount": 1.0}, mode="columns")
    page = browse(own)
    root = page.get(f"{ORDERS}/leaf", params={"id": "root", "limit": "1"}).json()["page"]
    shown = page.get(f"{ORDERS}/file", params={"id": root["id"][0]}).json()
    base, columns = shown["slices"]
    assert base["path"] == shown["path"]
    assert base["columns"] == [c.name for c in table.schema.fields[:-1] if c.name != "amount"]
    assert columns["columns"] == ["margin", "amount"]
    assert columns["bytes"] == Path(columns["path"].removeprefix("file://")).stat().st_size
    assert [step["what"] for step in shown["history"]][-2:] == ["columns updated"] * 2


def test_rows_and_changes_are_those_of_the_table(get: Get, orders: Table) -> None:
    rows = get("rows", where="order_id between 10 and 12", limit="10")
    assert sorted(row[0] for row in rows["rows"]) == ["10", "11", "12"]
    assert not rows["truncated"]
    assert get("rows", limit="3")["truncated"]
    commits = get("commits")
    update = commits["operation"].index("overwrite")
    diff = get("diff", to=commits["id"][update])
    assert diff["kind"] == ["update"] * 5
    amount = [column["name"] for column in diff["columns"]].index("amount")
    assert {row[amount] for row in diff["after"]} == {"0.0"}
    assert all(amount in changed for changed in diff["changed"])


def test_two_snapshots_are_compared(get: Get, orders: Table) -> None:
    found = get("compare", **{"from": "half", "to": "main"})
    assert found["rows"] == {"from": 480, "to": 1048}
    assert (found["behind"], found["ahead"]) == (0, 17)
    assert found["files"]["only_from"] == 0
    apart = get("compare", **{"from": "audit", "to": "main"})
    assert (apart["behind"], apart["ahead"]) == (1, 1)


def test_a_schema_tells_how_it_came_about(own: Catalog) -> None:
    with own.load_table("shop.orders").evolve_schema() as change:
        change.rename_column("note", "remark")
    shown = browse(own).get(f"{ORDERS}/overview").json()
    last = shown["schemas"][-1]["changes"]
    assert [(each["kind"], each["was"], each["now"]) for each in last] == [
        ("renamed", "note", "remark")
    ]
    assert shown["specs"][0]["fields"][0]["source"] == "order_day"


def test_properties_are_those_of_the_reference(get: Get) -> None:
    shown = {each["name"]: each for each in get("overview")["properties"]}
    assert shown["write.leaf.target-entries"]["value"] == "6"
    assert shown["write.leaf.target-entries"]["default"] == "20000"
    assert shown["write.target-file-size-bytes"]["value"] is None
    assert shown["write.parquet.page-row-limit"]["default"] == "20000"
    assert shown["write.metadata.metrics.column.<name>"]["doc"] == "the same for one column"


def test_space_and_health_add_up(get: Get, orders: Table) -> None:
    space = get("space", orphans="1")
    sizes = orders.inspect.files.column("file_size_in_bytes").to_pylist()
    assert space["live"]["data"] == sum(sizes) == sum(space["sizes"]["bytes"])
    assert sum(space["sizes"]["files"]) == len(sizes)
    assert space["orphans"] == {"bytes": 0, "files": 0, "young": 0}
    assert sum(space["partitions"]["bytes"]) == sum(sizes)
    health = get("health")
    assert health["numbers"]["rows"] == 1048
    assert [each["action"] for each in health["advice"]] == [
        each.run for each in orders.analyze().advice
    ]


def test_the_catalog_never_contradicts_the_page_of_health(own: Catalog) -> None:
    small = own.create_table("shop.small", pa.table({"id": [0]}))
    for number in range(1, 22):
        small.append(pa.table({"id": [number]}))
    own.create_table("shop.few", pa.table({"id": [1, 2]}))
    own.create_table("shop.gone", pa.table({"id": [1, 2, 3]})).delete("id > 1")
    own.create_table("shop.empty", pa.schema([("id", pa.int64())]))
    client = browse(own)
    shown = client.get(f"{API}/catalog").json()["tables"]
    health = dict(zip(shown["name"], zip(shown["health"], shown["hint"], strict=True), strict=True))
    del health["orders"]
    assert health == {
        "small": ("look", "At least 22 of 22 data files are small."),
        "few": ("unknown", ""),
        "gone": ("look", "67% of the rows are deleted."),
        "empty": ("ok", ""),
    }
    for name, (state, _) in health.items():
        looked = client.get(f"{API}/tables/shop/{name}/health").json()["healthy"]
        assert looked or state != "ok"
        assert not (looked and state == "look")


def test_a_catalog_is_searched_and_watched(own: Catalog) -> None:
    client = browse(own)
    shown = client.get(f"{API}/catalog").json()
    assert (shown["tables"]["name"], shown["tables"]["rows"]) == (["orders"], [1048])
    assert client.get(f"{API}/catalog?search=nix").json()["tables"]["name"] == []
    quiet = client.get(f"{API}/changes", params={"since": shown["mark"]}).json()
    assert (quiet["mark"], quiet["changed"]) == (shown["mark"], [])
    own.load_table("shop.orders").delete("order_id = 1")
    loud = client.get(f"{API}/changes", params={"since": shown["mark"]}).json()
    assert loud["changed"] == [{"levels": ["shop"], "name": "orders"}]
    own.drop_table("shop.orders")
    gone = client.get(f"{API}/changes", params={"since": loud["mark"]}).json()
    assert gone["gone"] == loud["changed"]
    assert client.get(f"{API}/changes?since=unknown").json()["reset"]


def test_a_table_without_a_snapshot_has_empty_pages(own: Catalog) -> None:
    own.create_table("shop.empty", own.load_table("shop.orders").schema)
    client = browse(own)
    place = f"{API}/tables/shop/empty"
    for view in ("overview", "tree", "plan?where=order_id=1", "commits", "rows", "diff", "health"):
        assert client.get(f"{place}/{view}").status_code == 200, view
    assert client.get(f"{place}/space").json()["live"]["files"] == 0
    assert client.get(f"{place}/plan?where=order_id=1").json()["files"] == 0


def test_answers_stay_small(page: TestClient, get: Get) -> None:
    sizes: dict[str, Any] = {}
    for view in ("tree", "plan?where=order_id=5", "commits", "overview"):
        answer = page.get(f"{ORDERS}/{view}", headers={"accept-encoding": "gzip"})
        sizes[view] = int(answer.headers["content-length"])
    assert max(sizes.values()) < 12_000, sizes


def test_a_view_asks_the_storage_little(shop: Catalog, page: TestClient) -> None:
    storage = shop._pointers.storage(shop.load_table("shop.orders").location)
    assert isinstance(storage, LocalStorage)
    page.get(f"{ORDERS}/tree")
    with storage.recording() as calls:
        page.get(f"{ORDERS}/tree")
        page.get(f"{ORDERS}/commits")
        page.get(f"{ORDERS}/overview")
    assert calls == []


def test_leaves_of_a_flush_were_written_by_its_commit(get: Get, orders: Table) -> None:
    # Four files fit the root, so the ninth append moves those of the fifth to the eighth.
    ninth = str(orders.snapshots()[8].snapshot_id)
    tree = get("tree", snapshot=ninth)
    assert tree["leaves"]["fresh"] == [1]
    wrote = get("commit", snapshot=ninth)["wrote"]["leaves"]
    assert [leaf["entries"] for leaf in wrote] == [4]
    assert get("tree", snapshot=str(orders.snapshots()[9].snapshot_id))["leaves"]["fresh"] == []
