"""Commands that destroy something ask first."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Run

DESTRUCTIVE = [
    ("drop", "shop.orders"),
    ("drop", "shop.orders", "--purge"),
    ("update", "shop.orders", "--set", "price=1.0"),
    ("maintain", "expire-snapshots", "shop.orders", "--older-than", "0s"),
    ("maintain", "remove-orphan-files", "shop.orders", "--older-than", "0s"),
    ("tag", "shop.orders", "old", "--drop"),
    ("branch", "shop.orders", "side", "--drop"),
    ("rollback", "shop.orders", "old"),
]


@pytest.fixture
def held(shop: Run) -> Run:
    """The shop with a tag and a branch at Monday's snapshot."""
    first = shop("log", "shop.orders", "--json").json[-1]["snapshot"]
    assert shop("tag", "shop.orders", "old", "--as-of", first).code == 0
    assert shop("branch", "shop.orders", "side", "--as-of", first).code == 0
    return shop


@pytest.mark.parametrize("command", DESTRUCTIVE, ids=" ".join)
def test_without_a_terminal_nothing_is_destroyed(held: Run, command: tuple[str, ...]) -> None:
    before = held("describe", "shop.orders", "--json").json
    done = held(*command)
    assert done.code == 2
    assert "--yes" in done.err
    assert held("describe", "shop.orders", "--json").json == before


@pytest.mark.parametrize("command", DESTRUCTIVE, ids=" ".join)
def test_yes_is_enough(held: Run, command: tuple[str, ...]) -> None:
    done = held(*command, "--yes")
    assert done.code == 0, done.err


def test_a_terminal_is_asked_and_no_is_no(held: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def refuse(question: str) -> bool:
        asked.append(question)
        return False

    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.confirm", refuse)
    done = held("drop", "shop.orders", "--purge")
    assert (done.code, asked) == (
        2,
        ["Drop shop.orders (5 rows, 2 data files) and delete its files?"],
    )
    assert "Not dropped: shop.orders" in done.err
    assert len(held("tables", "--json").json) == 1


def test_changes_say_how_many_rows_and_files(held: Run) -> None:
    assert "1 row removed, 1 file updated" in held("delete", "shop.orders", "-w", "order_id=1").out
    update = held("update", "shop.orders", "--set", "price=1.0", "-w", "order_id=2").out
    assert "1 row updated" in update
    assert "file" in update
    assert "3 rows, before 4" in held("rollback", "shop.orders", "old", "--yes").out
    dropped = held("drop", "shop.orders", "--yes").out
    assert "(3 rows, 1 data file); its files are kept" in dropped
