"""What a new process loads: a number of modules, because times are not asserted."""

from __future__ import annotations

import datetime
import json
import pickle
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import frazil
from frazil.cli.command_line import GROUPS
from frazil.spark.source.source import FrazilSource

_REPORT = """
import json, sys
def is_folder(name):  # an inner package of ours, which is a docstring
    return name.startswith("frazil.") and "." in name[7:] and hasattr(sys.modules[name], "__path__")
print(json.dumps(sorted(name for name in sys.modules if not is_folder(name))))
"""


def loaded(code: str, *arguments: str) -> set[str]:
    """Modules that a new process has loaded after running the code."""
    command = [sys.executable, "-c", f"{code}\n{_REPORT}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    return set(json.loads(done.stdout.splitlines()[-1]))


def tops(modules: set[str]) -> set[str]:
    return {name.split(".")[0] for name in modules}


def test_the_package_alone_loads_nothing_of_others() -> None:
    modules = loaded("import frazil")
    assert {name for name in modules if name.startswith("frazil")} == {
        "frazil",
        "frazil.errors",
        "frazil.value_classes",
    }
    assert not tops(modules) & {"pyarrow", "numpy", "pyiceberg", "sqlalchemy", "pydantic", "duckdb"}


def test_the_version_is_printed_without_loading_the_command_line() -> None:
    code = "import sys; sys.argv = ['frazil', '--version']; from frazil.cli import main; main()"
    modules = loaded(code)
    assert {name for name in modules if name.startswith("frazil")} == {
        "frazil",
        "frazil.cli",
        "frazil.errors",
        "frazil.value_classes",
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
        "frazil.cli.which_catalog",
        "frazil.errors",
        "frazil.value_classes",
    }
    assert not tops(modules) & {"typer", "rich", "pyarrow", "numpy", "pyiceberg", "sqlalchemy"}


HEAVY = {"pyarrow", "numpy", "pandas", "pyiceberg", "pydantic", "duckdb", "sqlglot", "polars"}
OTHERS = {"sqlalchemy", "pyspark", "typer", "rich", "zstandard", "mmh3"}
OPENING = {
    "credentials",
    "properties",
    "cancellation",
    "catalog",
    "commit",
    "argument_checks",
    "errors",
    "extras",
    "format",
    "legacy",
    "limits",
    "maintenance",
    "storage",
    "table",
    "threads",
    "tree",
    "text_format",
    "value_classes",
}
"""What of the package a table is opened with."""


def test_opening_a_table_loads_only_the_package_and_the_standard_library(tmp_path: Path) -> None:
    with frazil.connect(tmp_path / "warehouse") as catalog:
        table = catalog.create_table(
            "shop.orders",
            pa.schema([("id", pa.int64()), ("day", pa.date32())]),
            partition_by=["bucket(4, id)", "month(day)"],
            sort_by=["day"],
        )
        table.append([{"id": 1}])
    code = (
        "import sys, frazil; t = frazil.connect(sys.argv[1]).load_table('shop.orders'); "
        "assert t.current_snapshot() is not None and t.location and not t.properties"
    )
    modules = loaded(code, str(tmp_path / "warehouse"))
    assert not tops(modules) & (HEAVY | OTHERS)
    ours = {name for name in modules if name.startswith("frazil.")}
    assert {name.split(".")[1] for name in ours} == OPENING
    assert len(ours) <= 65
    assert {name for name in ours if name.startswith(("frazil.legacy", "frazil.maintenance"))} == {
        "frazil.legacy",
        "frazil.legacy.read.legacy_decoder",
        "frazil.maintenance",
        "frazil.maintenance.progress",
    }
    # A tenth of the time it takes.
    assert not modules & {"inspect", "dataclasses", "difflib", "logging", "html", "_hashlib"}
    assert len(modules) <= 156


def test_columns_and_rows_load_what_they_need_when_they_are_asked_for(tmp_path: Path) -> None:
    with frazil.connect(tmp_path / "warehouse") as catalog:
        catalog.create_table("shop.orders", [{"id": 7}])
    code = (
        "import sys, frazil; t = frazil.connect(sys.argv[1]).load_table('shop.orders'); "
        "assert [f.name for f in t.schema.fields] == ['id']; "
        "assert not {'pyarrow', 'pyiceberg.table'} & set(sys.modules); "
        "assert t.scan().to_arrow().to_pylist() == [{'id': 7}]"
    )
    modules = loaded(code, str(tmp_path / "warehouse"))
    assert not tops(modules) & (OTHERS - {"zstandard", "mmh3", "rich"})
    assert "pyiceberg.table" not in modules  # a fifth of a second


def test_appending_rows_loads_no_engine_and_no_older_format(tmp_path: Path) -> None:
    with frazil.connect(tmp_path / "warehouse") as catalog:
        catalog.create_table("shop.orders", [{"id": 7}])
    code = (
        "import sys, frazil; t = frazil.connect(sys.argv[1]).load_table('shop.orders'); "
        "assert t.append([{'id': 8}]).rows_added == 1"
    )
    modules = loaded(code, str(tmp_path / "warehouse"))
    assert not tops(modules) & {"duckdb", "sqlglot", "polars", "sqlalchemy", "pyspark"}
    assert {name for name in modules if name.startswith(("frazil.legacy.", "frazil.avro"))} == {
        "frazil.legacy.read.legacy_decoder",
    }
    assert not {name for name in modules if name.startswith("frazil.rows.duckdb")}


FIRST_WORK = {
    "plan": """t.scan(where="id < 9 and day > '2024-01-01'").plan()""",
    "plan of a day": """t.scan(where="id < 9 and day = '2024-01-07'").plan()""",
    "scan": "t.scan(where='id < 9').to_arrow()",
    "append": "t.append([{'id': 8, 'name': 'x', 'day': datetime.date(2024, 1, 2)}])",
    "delete": "t.delete('id = 7')",
    "update": "t.update({'name': 'upper(name)'}, 'id = 7')",
    "upsert": "t.upsert([{'id': 8, 'name': 'y', 'day': datetime.date(2024, 1, 2)}], on='id')",
    "query": "c.sql('SELECT max(name) FROM shop.orders WHERE id < 9').to_arrow()",
    "insert": "c.sql('INSERT INTO shop.orders (id) VALUES (10)')",
}
"""What a new process is likely to do first."""


MODULES = {
    "plan": 128,
    "plan of a day": 128,
    "scan": 144,
    "append": 184,
    "delete": 184,
    "update": 204,
    "upsert": 204,
    "query": 212,
    "insert": 254,
}
"""How many modules of the package each of them may load."""
ENGINE = {"update", "upsert", "query", "insert"}
"""What DuckDB does."""


@pytest.mark.parametrize("work", FIRST_WORK)
def test_first_work_loads_what_it_needs_of_others_and_of_the_package(
    tmp_path: Path, work: str
) -> None:
    """pandas, which pyarrow loads where it is installed, and PyIceberg take a seventh of a
    second, what numpy has for masked arrays and pyarrow.compute a thirtieth each."""
    pytest.importorskip("pandas")
    with frazil.connect(tmp_path / "warehouse") as catalog:
        rows = [{"id": n, "name": f"n{n}", "day": datetime.date(2024, 1, n)} for n in (7, 8)]
        catalog.create_table("shop.orders", rows, partition_by=["day"]).append(rows[:1])
    code = (
        "import datetime, sys, frazil; c = frazil.connect(sys.argv[1]); "
        f"t = c.load_table('shop.orders'); {FIRST_WORK[work]}"
    )
    modules = loaded(code, str(tmp_path / "warehouse"))
    assert not modules & {"pyarrow.compute", "pyarrow.dataset"}
    heavy = {"pandas", "pyiceberg", "pydantic", "sqlglot", "polars"}
    assert not tops(modules) & (heavy | OTHERS - {"zstandard", "mmh3"})
    assert ("_duckdb" in modules) == (work in ENGINE)
    # DuckDB's Python package takes as long to import as its compiled module, Arrow's file systems
    # a sixth of it.
    assert ("duckdb" in modules) == (work in ENGINE and work != "query")
    assert not modules & {"pyarrow.parquet", "pyarrow.fs", "ssl"}
    if work not in ("delete", "update", "upsert"):
        assert "numpy.ma" not in modules
    assert len([name for name in modules if name.startswith("frazil.")]) <= MODULES[work]


def test_an_append_that_moves_entries_into_a_leaf_loads_no_pandas(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    days = [{"day": datetime.date(2024, 1, 1) + datetime.timedelta(n)} for n in range(40)]
    with frazil.connect(tmp_path / "warehouse") as catalog:
        catalog.create_table("s.t", days, partition_by=["day"]).append(days)
    code = (
        "import datetime, sys, frazil; t = frazil.connect(sys.argv[1]).load_table('s.t'); "
        "days = [datetime.date(2024, 1, 1) + datetime.timedelta(n) for n in range(40)]; "
        "assert t.append([{'day': day} for day in days]).metadata_files == 2"
    )
    modules = loaded(code, str(tmp_path / "warehouse"))
    assert not modules & {"pandas", "pyarrow.compute", "pyarrow.dataset", "pyarrow.parquet"}


def test_many_rows_and_their_new_columns_load_no_pandas(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    code = (
        "import sys, frazil, pyarrow as pa; c = frazil.connect(sys.argv[1]); "
        "t = c.create_table('s.t', pa.schema([('id', pa.int64())])); "
        "rows = pa.RecordBatch.from_arrays([pa.Array.from_buffers(pa.int64(), 9000, "
        "[None, pa.py_buffer(bytes(72000))])], ['id']); "
        "t.append(rows); assert t.add_columns({'a': 'id + 1'}).rows_updated == 9000; "
        "t.update({'id': frazil.expr('a')}, mode='columns')"
    )
    modules = loaded(code, str(tmp_path / "warehouse"))
    assert not modules & {"pandas", "pyarrow.compute", "pyarrow.dataset"}


def test_a_plan_loads_nothing_that_reads_or_writes_rows(tmp_path: Path) -> None:
    with frazil.connect(tmp_path / "warehouse") as catalog:
        catalog.create_table("shop.orders", [{"id": 7}])
    code = (
        "import sys, frazil; t = frazil.connect(sys.argv[1]).load_table('shop.orders'); "
        "t.scan('id < 9').plan()"
    )
    modules = loaded(code, str(tmp_path / "warehouse"))
    assert {name for name in modules if name.startswith("frazil.data.")} == {
        "frazil.data.arrow_rows",
        "frazil.data.metadata_columns",
        "frazil.data.slices",
    }
    assert not {name for name in modules if name.startswith(("frazil.sql.", "frazil.tree.write"))}


def test_a_command_loads_its_own_group_and_nothing_to_paint_with(tmp_path: Path) -> None:
    with frazil.connect(tmp_path / "warehouse") as catalog:
        catalog.create_table("shop.orders", [{"id": 7}])
    code = (
        "import sys; sys.argv = ['frazil', 'scan', '-c', sys.argv[1], 'shop.orders']; "
        "from frazil.cli import main\n"
        "try: main()\nexcept SystemExit as end: assert end.code == 0\n1"
    )
    modules = loaded(code, str(tmp_path / "warehouse"))
    others = {"rich", "pandas", "pyiceberg", "polars", "duckdb", "sqlalchemy", "pyspark"}
    assert not tops(modules) & others
    assert "pyarrow.compute" not in modules
    groups = {f"frazil.cli.{group}" for group in GROUPS}
    assert modules & groups == {"frazil.cli.rows", "frazil.cli.tables"}
    assert len([name for name in modules if name.startswith("frazil.")]) <= 155


def own_packages(modules: set[str]) -> set[str]:
    return {name.split(".")[1] for name in modules if name.startswith("frazil.")}


def test_spark_finds_the_source_without_what_it_reads_with() -> None:
    modules = loaded("import pyspark_frazil")
    assert not tops(modules) & (HEAVY | (OTHERS - {"pyspark"}))
    assert {name for name in modules if name.startswith("frazil.")} == {
        "frazil.errors",
        "frazil.spark",
        "frazil.value_classes",
        "frazil.spark.source.source",
        "frazil.spark.options.source_options",
        "frazil.spark.options.stream_options",
    }


def test_workers_of_the_spark_source_load_what_their_step_needs(tmp_path: Path) -> None:
    with frazil.connect(tmp_path / "warehouse") as catalog:
        catalog.create_table("shop.orders", [{"id": 7}])
    options = {"catalog": str(tmp_path / "warehouse"), "path": "shop.orders"}
    code = (
        "import sys; from frazil.spark.source.source import FrazilSource; "
        "s = FrazilSource({'catalog': sys.argv[1], 'path': 'shop.orders'}); "
        "assert s.schema().names == ['id']"
    )
    makes = loaded(code, options["catalog"])
    assert not tops(makes) & HEAVY
    assert own_packages(makes) == OPENING | {"iceberg", "spark"}

    source = FrazilSource(options)
    reader = source.reader(source.schema())
    (tmp_path / "reader").write_bytes(pickle.dumps((reader, reader.partitions())))
    code = (
        "import pickle, sys; r, (p,) = pickle.load(open(sys.argv[1], 'rb')); "
        "assert [b.to_pylist() for b in r.read(p)] == [[{'id': 7}]]"
    )
    reads = loaded(code, str(tmp_path / "reader"))
    assert not tops(reads) & {"pandas", "duckdb", "sqlglot", "polars", "sqlite3", "sqlalchemy"}
    rooms = {
        "data",
        "argument_checks",
        "credentials",
        "errors",
        "filter",
        "format",
        "iceberg",
        "limits",
        "properties",
        "scan",
        "spark",
        "storage",
    }
    assert own_packages(reads) == rooms | {
        "arrow_compute",
        "arrow_parquet",
        "arrow_values",
        "cancellation",
        "text_format",
        "threads",
        "tree",
        "value_classes",
    }
    assert not tops(reads) & {"pyiceberg", "pydantic"}
    assert not {name for name in reads if name.endswith((".write_files", ".prune", ".plan"))}
    assert len([name for name in reads if name.startswith("frazil.")]) <= 72


def test_a_catalog_is_registered_with_spark_without_what_only_writes_need() -> None:
    modules = loaded("import frazil.spark.catalog.register")
    assert not tops(modules) & {"duckdb", "sqlglot", "polars", "sqlalchemy", "pandas"}
    writing = {
        "frazil.rows.editor",
        "frazil.rows.merge",
        "frazil.spark.merge",
        "frazil.spark.write.writer",
    }
    assert not modules & {*writing, "pyiceberg.table"}


def test_the_commands_are_known_without_loading_what_they_do() -> None:
    modules = loaded("from frazil.cli import command_line; command_line.load_commands()")
    assert not tops(modules) & (HEAVY | {"sqlalchemy", "pyspark", "rich"})
    rooms = {name.split(".")[1] for name in modules if name.startswith("frazil.")}
    assert not rooms & {"catalog", "commit", "format", "rows", "scan", "serve", "spark", "table"}


def test_everything_public_is_listed_before_it_is_loaded() -> None:
    code = "import frazil; assert {*frazil.__all__, '__version__'} == set(dir(frazil))"
    assert "frazil.table" not in loaded(code)
