"""What a new process loads: a number of modules, because times are not asserted."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa

import frazil

_REPORT = "; import json, sys; print(json.dumps(sorted(sys.modules)))"


def loaded(code: str, *arguments: str) -> set[str]:
    """Modules that a new process has loaded after running the code."""
    command = [sys.executable, "-c", code + _REPORT, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    return set(json.loads(done.stdout.splitlines()[-1]))


def tops(modules: set[str]) -> set[str]:
    return {name.split(".")[0] for name in modules}


def test_the_package_alone_loads_nothing_of_others() -> None:
    modules = loaded("import frazil")
    assert {name for name in modules if name.startswith("frazil")} == {"frazil", "frazil.errors"}
    assert not tops(modules) & {"pyarrow", "numpy", "pyiceberg", "sqlalchemy", "pydantic", "duckdb"}


def test_the_version_is_printed_without_loading_the_command_line() -> None:
    code = "import sys; sys.argv = ['frazil', '--version']; from frazil.cli import main; main()"
    modules = loaded(code)
    assert {name for name in modules if name.startswith("frazil")} == {
        "frazil",
        "frazil.cli",
        "frazil.errors",
    }
    assert not tops(modules) & {"typer", "rich", "pyarrow", "numpy", "pyiceberg", "sqlalchemy"}


def test_completion_loads_neither_commands_nor_tables(tmp_path: Path) -> None:
    with frazil.connect(tmp_path / "warehouse") as catalog:
        catalog.create_table("shop.orders", pa.schema([("id", pa.int64())]))
    code = (
        "import os, sys; os.environ.update(_FRAZIL_COMPLETE='complete_bash', COMP_CWORD='4', "
        "COMP_WORDS=f'frazil -c {sys.argv[1]} scan sh'); from frazil.cli import main\n"
        "try: main()\nexcept SystemExit as end: assert end.code == 0\n1"
    )
    modules = loaded(code, str(tmp_path / "warehouse"))
    assert {name for name in modules if name.startswith("frazil")} == {
        "frazil",
        "frazil.cli",
        "frazil.cli.completion",
        "frazil.cli.settings",
        "frazil.errors",
    }
    assert not tops(modules) & {"typer", "rich", "pyarrow", "numpy", "pyiceberg", "sqlalchemy"}


def test_opening_a_table_loads_no_engine_and_no_other_database(tmp_path: Path) -> None:
    with frazil.connect(tmp_path / "warehouse") as catalog:
        catalog.create_table("shop.orders", pa.schema([("id", pa.int64())]))
    code = "import sys, frazil; frazil.connect(sys.argv[1]).load_table('shop.orders')"
    modules = loaded(code, str(tmp_path / "warehouse"))
    unwanted = {"sqlalchemy", "duckdb", "sqlglot", "pyspark", "pandas", "polars", "typer"}
    assert not tops(modules) & unwanted
    assert not any(
        name.startswith(("frazil.spark", "frazil.sql", "frazil.cli")) for name in modules
    )


def test_everything_public_is_listed_before_it_is_loaded() -> None:
    code = "import frazil; assert {*frazil.__all__, '__version__'} == set(dir(frazil))"
    assert "frazil.table" not in loaded(code)
