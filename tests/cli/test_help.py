"""How commands are found: panels of help, near names, the catalog on either side."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import frazil
from frazil.cli import command_line
from frazil.cli.command_line import GROUPS, PANELS, app
from tests.cli.conftest import Run
from tests.cli.test_command_line import COMMANDS


def test_every_command_is_in_one_panel(run: Run) -> None:
    listed = [name for names in PANELS.values() for name in names]
    assert sorted(listed) == sorted({name.split()[0] for name in COMMANDS})
    shown = run("--help").out
    assert [panel for panel in PANELS if panel not in shown] == []


@pytest.mark.parametrize(
    "command",
    [("tables",), ("scan", "shop.orders"), ("maintain", "compact-metadata", "shop.orders")],
)
def test_the_catalog_goes_before_or_after_the_command(
    shop: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert shop("--catalog", "../warehouse", *command).code == 0
    assert shop(*command, "--catalog", "../warehouse").code == 0
    assert shop("-c", "nowhere", *command, "-c", "../warehouse").code == 0
    assert shop(*command).code == 3


def test_every_command_is_in_the_group_that_it_is_loaded_from() -> None:
    command_line.load_commands()
    modules: dict[str, str] = {}
    for command in app.registered_commands:
        assert command.callback is not None
        modules[command.name or command.callback.__name__] = command.callback.__module__
    for group in app.registered_groups:
        assert group.typer_instance is not None
        callback = group.typer_instance.registered_commands[0].callback
        assert group.name is not None
        assert callback is not None
        modules[group.name] = callback.__module__
    assert modules == {
        name: f"frazil.cli.{group}" for group, names in GROUPS.items() for name in names
    }


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--version",), frazil.__version__),
        (("--help",), "Maintenance"),
        (("tables", "-c", "sql"), "shop.orders"),
        (("-c", "sql", "tables"), "shop.orders"),  # a catalog that is called as a command is
        (("scna", "sql"), "Did you mean 'scan'"),
    ],
)
def test_a_process_of_its_own_knows_the_commands_that_are_meant(
    tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    with frazil.connect(tmp_path / "sql") as catalog:
        catalog.create_table("shop.orders", [{"id": 7}])
    command = [sys.executable, "-m", "frazil", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert said in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (("scna", "shop.orders"), "scan"),
        (("maintain", "expire-snapshot", "shop.orders"), "expire-snapshots"),
        (("scan", "shop.oders"), "shop.orders"),
        (("scan", "shop.orders", "--colums", "day"), "--columns"),
        (("scan", "shop.orders", "--columns", "contry"), "country"),
        (("scan", "shop.orders", "--as-of", "mian"), "main"),
        (("scan", "shop.orders@mian"), "main"),
    ],
)
def test_a_typo_is_answered_with_what_was_meant(
    shop: Run, typed: tuple[str, ...], meant: str
) -> None:
    done = shop(*typed)
    assert done.code in (2, 3)
    said = done.err.replace("'", "")
    assert re.search(rf"(Did you mean|Possible options:) {re.escape(meant)}\b", said)


def test_a_wrong_choice_is_named_without_jargon(run: Run) -> None:
    done = run("scan", "shop.orders", "--format", "xml")
    assert done.code == 2
    assert "Value error" not in done.err
    assert "'xml' is not one of 'table'" in " ".join(done.err.split())
