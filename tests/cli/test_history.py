"""Commands on history: log, tree, branches, tags, rollback, changes, diff."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from tests.cli.conftest import Run


def test_log_shows_snapshots_newest_first(shop: Run) -> None:
    newest, oldest = shop("log", "shop.orders", "--json").json
    assert (oldest["rows-added"], newest["rows-added"]) == (3, 2)
    assert (newest["rows"], newest["operation"], newest["refs"]) == (5, "append", "main")
    assert newest["bytes"] > oldest["bytes"] > 0
    assert len(shop("log", "shop.orders", "-n", "1", "--json").json) == 1
    assert "append" in shop("log", "shop.orders").out


def test_tree_as_text_shows_statuses_and_bounds(shop: Run) -> None:
    lines = shop("tree", "shop.orders").out.splitlines()
    assert "shop.orders" in lines[0]
    assert "append" in lines[0]
    assert [line[3:13] for line in lines if line.startswith(("├─", "└─"))] == [
        "D EXISTING",
        "D ADDED   ",
    ]
    assert "order_id 4…5 · day 2024-01-16" in "\n".join(lines)


def test_tree_shows_a_leaf_with_its_dead_positions(shop: Run) -> None:
    assert shop("maintain", "compact-metadata", "shop.orders").code == 0
    assert shop("delete", "shop.orders", "-w", "day = '2024-01-15'").code == 0
    (leaf,) = [
        entry
        for entry in shop("tree", "shop.orders", "--leaves", "--json").json["entries"]
        if entry["kind"] == "M"
    ]
    assert leaf["status"] == "MODIFIED"
    assert {"dv={0}", "deleted={0}"} <= set(leaf["facts"])
    assert [child["status"] for child in leaf["children"]] == ["EXISTING (dead)", "EXISTING"]


def test_tree_shows_a_deletion_vector(shop: Run) -> None:
    assert shop("delete", "shop.orders", "-w", "order_id = 1").code == 0
    entries = shop("tree", "shop.orders", "--json").json["entries"]
    statuses = [entry["status"] for entry in entries]
    assert sorted(statuses) == ["EXISTING", "MODIFIED", "REPLACED"]
    (modified,) = [entry for entry in entries if entry["status"] == "MODIFIED"]
    assert "DV 1 row" in modified["facts"]


def test_tree_as_svg_is_a_picture(shop: Run, tmp_path: Path) -> None:
    done = shop("tree", "shop.orders", "--format", "svg", "--to", "pictures/tree.svg")
    assert done.code == 0
    root = ElementTree.parse(tmp_path / "pictures" / "tree.svg").getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "shop.orders" in "".join(root.itertext())


def test_two_trees_stand_side_by_side_in_every_format(shop: Run) -> None:
    first = shop("log", "shop.orders", "--json").json[-1]["snapshot"]
    against = ("tree", "shop.orders", "--as-of", first, "--against", "main")
    assert " │ " in shop(*against).out.splitlines()[0]
    ElementTree.fromstring(shop(*against, "--format", "svg").out)
    assert shop(*against, "--format", "mermaid").out.count("flowchart LR") == 2
    left, right = shop(*against, "--format", "json").json
    assert (len(left["entries"]), len(right["entries"])) == (1, 2)


def test_a_tree_without_snapshots_says_so(run: Run) -> None:
    run("create", "a.b", "--column", "x:int")
    assert "no snapshot yet" in run("tree", "a.b").out
    assert run("tree", "a.b", "--format", "svg").code == 0


def test_long_lists_are_cut(shop: Run) -> None:
    assert "… 1 more" in shop("tree", "shop.orders", "--limit", "1").out


def test_branches_are_made_written_and_published(shop: Run) -> None:
    assert shop("branch", "shop.orders", "audit").code == 0
    assert shop("append", "shop.orders@audit", "tuesday.csv").code == 0
    assert shop("scan", "shop.orders", "--count", "--json").json == {"count": 5}
    assert shop("scan", "shop.orders@audit", "--count", "--json").json == {"count": 7}
    assert shop("compare", "shop.orders", "audit", "--json").code == 0
    assert shop("branch", "shop.orders", "main", "--fast-forward", "audit").code == 0
    assert shop("scan", "shop.orders", "--count", "--json").json == {"count": 7}
    assert shop("branch", "shop.orders", "audit").code == 4
    drop = ("branch", "shop.orders", "audit", "--drop")
    assert shop(*drop).code == 2
    names = [ref["name"] for ref in shop(*drop, "--yes", "--json").json]
    assert names == ["main"]
    assert shop("scan", "shop.orders@audit").code == 3


def test_tags_name_snapshots(shop: Run) -> None:
    first = shop("log", "shop.orders", "--json").json[-1]["snapshot"]
    refs = shop("tag", "shop.orders", "monday", "--as-of", first, "--json").json
    assert {"name": "monday", "kind": "tag", "snapshot": first} in refs
    assert shop("scan", "shop.orders", "--as-of", "monday", "--count", "--json").json["count"] == 3
    assert shop("tag", "shop.orders", "monday").code == 4


def test_rollback_points_back(shop: Run) -> None:
    first = shop("log", "shop.orders", "--json").json[-1]["snapshot"]
    done = shop("rollback", "shop.orders", first, "--yes", "--json").json
    assert done == {"snapshot-id": int(first), "rows": 3, "rows-before": 5}
    assert shop("scan", "shop.orders", "--count", "--json").json == {"count": 3}
    assert shop("rollback", "shop.orders", "nowhere").code == 3


def test_changes_tell_inserts_updates_and_deletes(shop: Run) -> None:
    shop("tag", "shop.orders", "before")
    shop("delete", "shop.orders", "-w", "order_id = 1")
    shop("update", "shop.orders", "--set", "price=1.0", "-w", "order_id = 2")
    rows = shop("changes", "shop.orders", "--since", "before", "--json").json
    assert [(row["_change_type"], row["order_id"]) for row in rows] == [
        ("delete", 1),
        ("update_preimage", 2),
        ("update_postimage", 2),
    ]
    files = shop("changes", "shop.orders", "--since", "before", "--files", "--json").json
    assert files
    shop("delete", "shop.orders", "-w", "order_id = 2")
    net = shop("changes", "shop.orders", "--since", "before", "--collapse", "--json").json
    assert [(row["_change_type"], row["order_id"]) for row in net] == [("delete", 1), ("delete", 2)]


def test_changes_are_cut_with_a_note(shop: Run) -> None:
    text = shop("changes", "shop.orders", "-n", "2").out
    assert "… 3 more" in text
    assert len(shop("changes", "shop.orders", "-n", "2", "--json").json) == 2


def test_diff_compares_tables(shop: Run) -> None:
    shop("create", "shop.copy", "--from", "monday.csv")
    done = shop("compare", "shop.orders", "shop.copy", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)
    assert shop("compare", "shop.orders", "nothing").code == 3


@pytest.mark.parametrize("form", ["text", "mermaid", "svg", "json"])
def test_every_format_draws_opened_leaves(shop: Run, form: str) -> None:
    shop("maintain", "compact-metadata", "shop.orders")
    done = shop("tree", "shop.orders", "--leaves", "--format", form)
    assert done.code == 0
    assert done.out.count(".parquet") >= 4


def test_branches_and_tags_are_listed_and_dropped_by_their_kind(shop: Run) -> None:
    assert shop("tag", "shop.orders").out == "shop.orders has no tag\n"
    shop("tag", "shop.orders", "monday")
    assert [row["name"] for row in shop("tag", "shop.orders", "--json").json] == ["monday"]
    assert [row["name"] for row in shop("branch", "shop.orders", "--json").json] == ["main"]
    done = shop("branch", "shop.orders", "monday", "--drop", "--yes")
    assert done.code == 3
    assert "shop.orders: 'monday' is not a branch; branches: main" in done.err
