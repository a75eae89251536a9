"""A shop's warehouse, and the command line run in this process."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from frazil.cli import command_line
from frazil.cli.command_line import main

MONDAY = """order_id,day,country,price
1,2024-01-15,US,10.5
2,2024-01-15,DE,20.5
3,2024-01-15,US,30.5
"""
TUESDAY = """order_id,day,country,price
4,2024-01-16,FR,5.0
5,2024-01-16,US,7.5
"""


@dataclass(frozen=True)
class Ran:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Ran]


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs `frazil` in an empty folder with a home of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FRAZIL_CATALOG", raising=False)
    monkeypatch.delenv("FRAZIL_WAREHOUSE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    command_line.load_commands()
    (tmp_path / "monday.csv").write_text(MONDAY)
    (tmp_path / "tuesday.csv").write_text(TUESDAY)

    def call(*arguments: str) -> Ran:
        capsys.readouterr()
        code = main(arguments)
        said = capsys.readouterr()
        return Ran(code, said.out, said.err)

    return call


@pytest.fixture
def shop(run: Run) -> Run:
    """The table shop.orders, partitioned by day, with Monday's and Tuesday's orders."""
    assert run("create", "shop.orders", "--from", "monday.csv", "-p", "day").code == 0
    assert run("append", "shop.orders", "monday.csv").code == 0
    assert run("append", "shop.orders", "tuesday.csv").code == 0
    return run
