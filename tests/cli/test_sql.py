"""`frazil sql`: statements from the command line, files, standard input and the shell."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow as pa
import pytest

import frazil
from frazil.cli.command_line import main
from frazil.cli.sql_shell import Shell
from frazil.sql.query_result import Result
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


def test_the_shell_runs_statements_and_goes_on_after_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = iter(
        [
            "CREATE TABLE s.t (id",
            "BIGINT);",
            "INSERT INTO s.t VALUES (1), (2);",
            "SELECT nope FROM s.t;",
            ".tables",
            "SELECT sum(id) AS total FROM s.t;",
            ".quit",
        ]
    )
    monkeypatch.setattr("builtins.input", lambda prompt: next(lines))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    shown: list[Result] = []
    with frazil.connect(tmp_path / "w") as catalog:
        Shell(catalog.session(), shown.append).loop()
        found = [result.to_pylist() for result in shown]
    assert found[-2:] == [[{"namespace": "s", "tableName": "t"}], [{"total": 3}]]
    assert '"nope" not found' in capsys.readouterr().err


def test_the_shell_completes_tables_columns_and_words(tmp_path: Path) -> None:
    with frazil.connect(tmp_path / "w") as catalog:
        catalog.sql("CREATE TABLE shop.orders (id BIGINT, price DOUBLE)")
        shell = Shell(catalog.session(), lambda result: None)

        def completions(text: str) -> list[str]:
            found: list[str] = []
            while (word := shell.complete(text, len(found))) is not None:
                found.append(word)
            return found

        assert completions("sh") == ["shop", "shop.orders"]
        assert completions("shop.orders.p") == ["shop.orders.price"]
        assert completions("sel") == ["SELECT"]
        assert completions("system.exp") == ["system.expire_snapshots"]
