"""Commands that look after a table."""

from __future__ import annotations

from pathlib import Path

import pytest

from frazil.cli.maintain import moment
from frazil.errors import InvalidInput
from tests.cli.conftest import Run


def test_flush_moves_entries_to_a_leaf_and_then_has_nothing_to_do(shop: Run) -> None:
    assert shop("maintain", "compact-metadata", "shop.orders", "--json").json["metadata-files"] == 2
    entries = shop("tree", "shop.orders", "--json").json["entries"]
    assert [entry["kind"] for entry in entries] == ["M"]
    assert "nothing committed" in shop("maintain", "compact-metadata", "shop.orders").out


def test_rewrite_writes_leaves_anew(shop: Run) -> None:
    assert shop("maintain", "rewrite-manifests", "shop.orders", "--json").json["snapshot-id"]
    assert "nothing committed" in shop("maintain", "rewrite-manifests", "shop.orders").out


def test_expire_forgets_old_snapshots(shop: Run) -> None:
    expire = ("maintain", "expire-snapshots", "shop.orders", "--older-than", "0s")
    dry = shop(*expire, "--dry-run", "--json").json
    assert dry["dry-run"] is True
    assert len(dry["snapshots"]) == 1
    assert len(shop("log", "shop.orders", "--json").json) == 2
    done = shop(*expire, "--keep-last", "1", "--yes")
    assert done.code == 0, done.err
    assert len(shop("log", "shop.orders", "--json").json) == 1
    assert shop("scan", "shop.orders", "--count", "--json").json == {"count": 5}


def test_orphans_are_found_and_removed(shop: Run, tmp_path: Path) -> None:
    stray = tmp_path / "warehouse" / "shop" / "orders" / "data" / "stray.parquet"
    stray.parent.mkdir(parents=True, exist_ok=True)
    stray.write_bytes(b"x")
    dry = shop(
        "maintain",
        "remove-orphan-files",
        "shop.orders",
        "--older-than",
        "0s",
        "--dry-run",
        "--json",
    )
    assert "stray.parquet" in dry.out
    assert stray.exists()
    assert (
        shop("maintain", "remove-orphan-files", "shop.orders", "--older-than", "0s", "--yes").code
        == 0
    )
    assert not stray.exists()
    assert shop("scan", "shop.orders", "--count", "--json").json == {"count": 5}


def test_analyze_reports_health(shop: Run) -> None:
    assert shop("analyze", "shop.orders", "--json").json
    assert shop("analyze", "shop.orders").out.strip()


def test_check_is_quiet_on_a_sound_table_and_fails_on_a_broken_one(
    shop: Run, tmp_path: Path
) -> None:
    assert shop("check", "shop.orders", "--deep").code == 0
    data = next((tmp_path / "warehouse" / "shop" / "orders" / "data").rglob("*.parquet"))
    data.unlink()
    broken = shop("check", "shop.orders", "--json")
    assert broken.code == 7
    assert data.name in broken.out


def test_ages_and_times_are_understood() -> None:
    assert moment(None) is None
    earlier, later = moment("2h"), moment("30m")
    assert earlier is not None
    assert later is not None
    assert earlier < later
    stated = moment("2024-01-15T10:00")
    assert stated is not None
    assert stated.isoformat() == "2024-01-15T10:00:00+00:00"
    with pytest.raises(InvalidInput, match="7d"):
        moment("soon")
