"""`frazil sql`: statements from the command line, files, standard input and the shell."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from frazil.cli.command_line import main
from tests.cli.conftest import Run


def test_a_statement_prints_its_rows_exactly(shop: Run) -> None:
    done = shop(
        "sql", "SELECT order_id, price / 3 AS third, day FROM shop.orders WHERE order_id = 1"
    )
    assert done.code == 0
    assert done.out.splitlines() == [
        "order_id | third | day",
        "---------+-------+-----------",
        "       1 |   3.5 | 2024-01-15",
    ]


def test_several_statements_print_one_after_the_other(shop: Run) -> None:
    done = shop(
        "sql", "DELETE FROM shop.orders WHERE order_id = 1; SELECT count(*) AS n FROM orders"
    )
    assert done.out.split() == ["deleted", "-------", "1", "n", "-", "4"]


@pytest.mark.parametrize(
    ("format", "expected"),
    [
        ("csv", 'a,b,c\n1.10,,"x,y"\n2.00,"",z\n'),
        (
            "jsonl",
            '{"a": "1.10", "b": null, "c": "x,y"}\n{"a": "2.00", "b": "", "c": "z"}\n',
        ),
        ("markdown", "| a | b | c |\n|---:|---|---|\n| 1.10 | NULL | x,y |\n| 2.00 |  | z |\n"),
    ],
)
def test_formats_keep_values(run: Run, format: str, expected: str) -> None:
    text = "SELECT * FROM (VALUES (1.10, NULL, 'x,y'), (2.00, '', 'z')) t(a, b, c)"
    assert run("sql", text, "--format", format).out == expected


def test_rows_can_be_json(shop: Run) -> None:
    done = shop("sql", "SELECT country, count(*) AS n FROM orders GROUP BY 1 ORDER BY 1", "--json")
    assert done.json == [
        {"country": "DE", "n": 1},
        {"country": "FR", "n": 1},
        {"country": "US", "n": 3},
    ]


def test_arrow_is_a_stream(shop: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr("sys.stdout", written)
    assert main(["sql", "SELECT order_id FROM shop.orders ORDER BY 1", "--format", "arrow"]) == 0
    rows = pa.ipc.open_stream(written.buffer.getvalue()).read_all()
    assert rows.to_pydict() == {"order_id": [1, 2, 3, 4, 5]}


def test_sql_comes_from_a_file(shop: Run, tmp_path: Path) -> None:
    (tmp_path / "q.sql").write_text(
        "-- two statements\nUSE shop;\nSELECT max(order_id) AS m FROM orders;"
    )
    done = shop("sql", "--file", "q.sql", "--format", "csv")
    assert done.out == "namespace\nshop\nm\n5\n"
    assert shop("sql", "--file", "missing.sql").code == 2
    assert shop("sql", "SELECT 1", "--file", "q.sql").code == 2


def test_sql_comes_from_standard_input(shop: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("SELECT count(*) AS n FROM shop.orders"))
    assert shop("sql", "--format", "csv").out == "n\n5\n"


def test_errors_say_where_and_set_the_exit_code(shop: Run) -> None:
    wrong = shop("sql", "SELECT *\nFROM shop.ordrs")
    assert wrong.code == 3
    assert (
        "line 2, column 6: table shop.ordrs does not exist. Did you mean shop.orders?" in wrong.err
    )
    assert shop("sql", "SELEC 1").code == 8
    assert shop("sql", "SELECT 1 +").code == 2


def test_a_long_result_is_cut_and_says_so(run: Run) -> None:
    """As many rows as range can count to: whoever reads all of them never ends."""
    done = run("sql", "SELECT i FROM range(100000000000) t(i)")
    lines = done.out.splitlines()
    assert lines[2:4] == [" 0", " 1"]
    assert lines[101] == "99"
    assert lines[102:] == ["… the first 100 rows; more with --limit, all with --format csv"]
    few = run("sql", "SELECT i FROM range(100000000000) t(i)", "--limit", "1").out
    assert few.splitlines()[2:] == [
        "0",
        "… the first 1 row; more with --limit, all with --format csv",
    ]
    assert run("sql", "SELECT 1 AS a", "--limit", "1").out == "a\n-\n1\n"
    csv = run("sql", "SELECT i FROM range(100000000000) t(i)", "--limit", "2", "--format", "csv")
    assert csv.out == "i\n0\n1\n"


def test_every_row_is_written_as_it_comes_in_other_formats(run: Run) -> None:
    for format, head in (("csv", 1), ("markdown", 2), ("jsonl", 0)):
        done = run("sql", "SELECT i FROM range(1000) t(i)", "--format", format)
        assert len(done.out.splitlines()) == 1000 + head


@pytest.mark.parametrize("ending", ["parquet", "csv", "json", "jsonl", "arrow"])
def test_rows_of_a_query_go_to_a_file(shop: Run, tmp_path: Path, ending: str) -> None:
    file = tmp_path / f"out.{ending}"
    done = shop("sql", "SELECT order_id FROM shop.orders ORDER BY 1", "--to", str(file))
    assert done.out == f"5 rows written to {file}\n"
    read = duckdb.connect()
    if ending == "arrow":
        found = pa.ipc.open_file(str(file)).read_all()["order_id"].to_pylist()
    else:
        rows = read.execute(f"SELECT order_id FROM '{file}' ORDER BY 1").fetchall()
        found = [order for (order,) in rows]
    assert found == [1, 2, 3, 4, 5]
    wrong = shop("sql", "SELECT 1/0 AS a, error('stop')", "--to", str(file))
    assert wrong.code != 0
    assert [path.name for path in tmp_path.glob("*out*")] == [file.name]


def test_threads_and_memory_of_the_engine_are_bounded(shop: Run) -> None:
    query = "SELECT count(*) AS n FROM shop.orders"
    options = ("--threads", "1", "--memory-limit", "200MB", "--format", "csv")
    assert shop("sql", query, *options).out == "n\n5\n"
    wrong = shop("sql", query, "--memory-limit", "much")
    assert wrong.code == 2
    assert "memory_limit is 'much'" in wrong.err


def test_a_reader_that_leaves_early_is_no_failure(shop: Run, tmp_path: Path) -> None:
    command = (
        f"{sys.executable} -c 'from frazil.cli import main; main()' "
        "sql 'SELECT i FROM range(3000000) t(i)' --format csv"
    )
    ended = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command} | head -n 2"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert (ended.stdout, ended.stderr, ended.returncode) == ("i\n0\n", "", 0)
