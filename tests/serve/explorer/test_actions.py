"""What a preview says is what happens, and only after that preview was confirmed."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from frazil.serve.settings import Settings
from frazil.table import Catalog
from tests.serve.explorer.conftest import API, ORDERS, browse


def ask(client: TestClient, action: str, confirm: str | None = None, **params: Any) -> Any:
    body = {"params": params, "confirm": confirm}
    return client.post(f"{ORDERS}/actions/{action}", json=body)


def facts(preview: dict[str, Any]) -> dict[str, tuple[str | None, str | None]]:
    return {each["label"]: (each["before"], each["after"]) for each in preview["facts"]}


def test_a_rollback_is_what_was_shown(own: Catalog) -> None:
    client = browse(own)
    table = own.load_table("shop.orders")
    half = table.snapshot("half")
    assert (table.scan().count(), table.scan(as_of="half").count()) == (1048, 480)
    shown = ask(client, "rollback", to=str(half.snapshot_id)).json()
    assert shown["preview"]
    assert facts(shown)["Rows"] == ("1,048", "480")
    # 14 appends after the tag, a delete, an update and one more append.
    assert "The last 17 commits" in shown["sentence"]
    assert table.refresh().scan().count() == 1048
    done = ask(client, "rollback", shown["confirm"], to=str(half.snapshot_id)).json()
    assert done["done"]
    assert table.refresh().scan().count() == 480


def test_a_preview_of_an_older_state_cannot_be_confirmed(own: Catalog) -> None:
    client = browse(own)
    shown = ask(client, "rollback", to="half").json()
    own.load_table("shop.orders").delete("order_id = 1")
    refused = ask(client, "rollback", shown["confirm"], to="half")
    assert refused.status_code == 409
    assert ask(client, "rollback", "0" * 64, to="half").status_code == 409
    assert own.load_table("shop.orders").scan().count() == 1047


def test_a_confirmation_is_for_its_own_parameters(own: Catalog) -> None:
    client = browse(own)
    shown = ask(client, "tag", name="one").json()
    assert ask(client, "tag", shown["confirm"], name="two").status_code == 409
    assert ask(client, "branch", shown["confirm"], name="one").status_code == 409
    assert ask(client, "tag", shown["confirm"], name="one").json()["done"]
    assert set(own.load_table("shop.orders").metadata.refs) == {"main", "audit", "half", "one"}


def test_a_branch_is_made_moved_forward_and_removed(own: Catalog) -> None:
    client = browse(own)
    table = own.load_table("shop.orders")

    def do(action: str, **params: str) -> dict[str, Any]:
        shown = ask(client, action, **params).json()
        found: dict[str, Any] = ask(client, action, shown["confirm"], **params).json()
        assert found["done"]
        table.refresh()
        return found

    do("branch", name="next", at="half")
    assert table.snapshot("next") == table.snapshot("half")
    do("fast_forward", branch="next", to="main")
    assert table.snapshot("next") == table.current_snapshot()
    do("drop_ref", name="next")
    assert "next" not in table.metadata.refs


@pytest.mark.parametrize(
    ("action", "params", "status"),
    [
        ("fast_forward", {"branch": "main", "to": "audit"}, 400),
        ("rollback", {"to": "audit"}, 400),
        ("rollback", {"to": "12"}, 404),
        ("rollback", {}, 400),
        ("tag", {"name": "half"}, 409),
        ("drop_ref", {"name": "main"}, 400),
        ("drop_ref", {"name": "none"}, 404),
        ("drop_table", {}, 400),
        ("tag", {"name": "x", "force": "yes"}, 400),
    ],
)
def test_what_cannot_be_done_is_said_before(
    action: str, params: dict[str, str], status: int, shop: Catalog
) -> None:
    refused = ask(browse(shop), action, **params)
    assert refused.status_code == status
    assert refused.json()["error"]["message"]


def test_leaves_rewritten_are_those_that_were_shown(own: Catalog) -> None:
    client = browse(own)
    table = own.load_table("shop.orders")
    before = set(table.inspect.manifests.column("path").to_pylist())
    shown = ask(client, "rewrite_manifests").json()
    assert facts(shown)["Leaves rewritten"] == (None, str(len(before)))
    assert ask(client, "rewrite_manifests", shown["confirm"]).json()["committed"]
    after = set(table.refresh().inspect.manifests.column("path").to_pylist())
    assert not before & after
    assert table.scan().count() == 1048


def test_files_compacted_are_those_that_were_shown(own: Catalog) -> None:
    client = browse(own)
    table = own.load_table("shop.orders")
    for _ in range(6):
        table.append(table.scan("order_day = '2024-03-15'", limit=1).to_arrow())
    files = table.inspect.files.num_rows
    shown = ask(client, "compact").json()
    # The seven files of 15 March; other days have two small files each, too few to bother.
    assert facts(shown)["Files rewritten"] == (None, "7")
    assert ask(client, "compact", shown["confirm"]).json()["committed"]
    assert table.refresh().inspect.files.num_rows == files - 6


def test_snapshots_expired_are_those_that_were_shown(own: Catalog) -> None:
    client = browse(own)
    table = own.load_table("shop.orders")
    snapshots = len(table.snapshots())
    shown = ask(client, "expire_snapshots").json()
    gone = int(facts(shown)["Snapshots"][1] or 0)
    assert gone > 10
    assert ask(client, "expire_snapshots", shown["confirm"]).json()["done"]
    assert len(table.refresh().snapshots()) == snapshots - gone
    assert table.scan().count() == 1048


def test_sql_changes_tables_where_that_is_allowed(own: Catalog) -> None:
    client = browse(own, Settings(sql_writes=True))
    answer = client.post(f"{API}/sql", json={"sql": "DELETE FROM shop.orders WHERE order_id = 7"})
    assert answer.json()["ok"]
    assert own.load_table("shop.orders").scan().count() == 1047


def test_orphans_removed_are_those_that_were_shown(own: Catalog) -> None:
    client = browse(own)
    table = own.load_table("shop.orders")
    place = Path(table.location.removeprefix("file://")) / "data"
    orphan, young = place / "left-behind.parquet", place / "being-written.parquet"
    for path in (orphan, young):
        path.write_bytes(b"x" * 1500)
    old = time.time() - 7 * 24 * 3600
    os.utime(orphan, (old, old))
    shown = ask(client, "remove_orphan_files").json()
    assert facts(shown)["Files"] == (None, "1")
    assert facts(shown)["Bytes"] == (None, "1.5 kB")
    assert facts(shown)["Younger ones, kept"] == (None, "1")
    assert orphan.exists()
    assert ask(client, "remove_orphan_files", shown["confirm"]).json()["done"]
    assert (orphan.exists(), young.exists()) == (False, True)
    assert ask(client, "remove_orphan_files").json()["nothing"]


def test_metadata_compacted_is_what_was_shown(own: Catalog) -> None:
    client = browse(own)
    table = own.load_table("shop.orders")
    before = set(table.inspect.manifests.column("path").to_pylist())
    shown = ask(client, "compact_metadata").json()
    assert not shown["nothing"]
    due = int(facts(shown)["Leaves rewritten"][1] or 0)
    assert 0 < due <= len(before)
    assert set(table.refresh().inspect.manifests.column("path").to_pylist()) == before
    assert ask(client, "compact_metadata", shown["confirm"]).json()["committed"]
    after = set(table.refresh().inspect.manifests.column("path").to_pylist())
    assert len(before - after) == due
    assert table.scan().count() == 1048


def test_a_branch_is_pointed_at_a_snapshot_outside_its_history(own: Catalog) -> None:
    client = browse(own)
    table = own.load_table("shop.orders")
    shown = ask(client, "set_current", to="audit", branch="main").json()
    # The branch has ten rows more than main had when it was made; main got twelve later.
    assert facts(shown)["Rows"] == ("1,048", "1,046")
    assert "Branch main will point at snapshot" in shown["sentence"]
    assert table.refresh().scan().count() == 1048
    assert ask(client, "set_current", shown["confirm"], to="audit", branch="main").json()["done"]
    assert table.refresh().scan().count() == 1046
    assert ask(client, "set_current", to="audit", branch="main").json()["nothing"]
