"""What every command shares: help, JSON, exit codes, interruption."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import typer.main

import frazil
from frazil.cli import command_line
from frazil.cli.command_line import app
from tests.cli.conftest import Run


def every_command() -> Iterator[tuple[str, Any]]:
    command_line.load_commands()

    def walk(prefix: str, group: Any) -> Iterator[tuple[str, Any]]:
        for name, command in group.commands.items():
            full = f"{prefix} {name}".strip()
            if hasattr(command, "commands"):
                yield from walk(full, command)
            else:
                yield full, command

    yield from walk("", typer.main.get_command(app))


COMMANDS = dict(every_command())
ASKED_FOR = (
    "init tables create describe schema append scan sql log tree plan explain changes compare "
    "branch tag rollback upgrade publish import analyze check export recover demo "
)


def test_every_command_asked_for_is_there() -> None:
    care = "compact-metadata rewrite-manifests compact expire-snapshots"
    wanted = {*ASKED_FOR.split(), *(f"maintain {part}" for part in care.split())}
    wanted |= {"maintain remove-orphan-files"}
    assert wanted - set(COMMANDS) == set()


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_help_has_an_example_of_this_command(name: str, run: Run) -> None:
    shown = run(*name.split(), "--help")
    assert shown.code == 0
    assert f"frazil {name}" in COMMANDS[name].help
    assert "Example" in shown.out


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - {"serve", "explore"}))
def test_every_command_can_print_json(name: str) -> None:
    options = {option for parameter in COMMANDS[name].params for option in parameter.opts}
    assert "--json" in options


def test_the_version_is_printed(run: Run) -> None:
    assert run("--version").out.strip() == frazil.__version__


def test_no_arguments_show_help(run: Run) -> None:
    assert "Usage" in run().out + run().err


@pytest.mark.parametrize(
    "arguments",
    [("scan",), ("nonsense",), ("scan", "a.b", "--nonsense"), ("log", "a.b", "-n", "x")],
)
def test_misuse_has_exit_code_2(run: Run, arguments: tuple[str, ...]) -> None:
    done = run(*arguments)
    assert done.code == 2
    assert done.err


@pytest.mark.parametrize(
    ("command", "meant"),
    [
        ("compact", "'maintain compact' or 'maintain compact-metadata'"),
        ("expire", "'maintain expire-snapshots'"),
        ("tabels", "'tables'"),
    ],
)
def test_a_command_is_found_where_it_is(run: Run, command: str, meant: str) -> None:
    told = " ".join(run(command, "shop.orders").err.split())
    assert told == f"No such command {command!r}. Did you mean {meant}?"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("scan", "shop.nothing"), 3),
        (("create", "shop.orders", "--column", "x:int"), 4),
        (("scan", "shop.orders", "--as-of", "99"), 3),
        (("scan", "shop.orders", "-w", "price >"), 2),
        (("scan", "no-namespace"), 2),
        (("tables", "-c", "hdfs://bucket"), 2),
    ],
)
def test_the_exit_code_tells_the_kind_of_error(
    shop: Run, arguments: tuple[str, ...], code: int
) -> None:
    assert shop(*arguments).code == code


def test_a_file_that_breaks_the_format_has_exit_code_7(shop: Run) -> None:
    with frazil.connect("warehouse") as catalog:
        snapshot = catalog.load_table("shop.orders").current_snapshot()
        assert snapshot is not None
        assert snapshot.root_manifest is not None
        root = f"warehouse/shop/orders/{snapshot.root_manifest}"
    with open(root, "wb") as stream:
        stream.write(b"PAR1 no root at all PAR1")
    done = shop("scan", "shop.orders")
    assert done.code == 7
    assert "root-" in done.err


def test_an_interrupted_command_says_what_is_left(
    shop: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("frazil.table.Table.append", interrupted)
    done = shop("append", "shop.orders", "monday.csv")
    assert done.code == 130
    assert "nothing partial" in done.err


def test_the_installed_command_runs() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from frazil.cli import main; main()", "--help"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert "frazil demo" in done.stdout
