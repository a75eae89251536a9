"""The shell of `frazil sql`: statements, commands, completion, history."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import frazil
from frazil.cli.sql import print_result
from frazil.cli.terminal.formats import Format, RowDisplay
from frazil.cli.terminal.sql_shell import Shell
from frazil.sql.output.query_result import Result

Typed = Callable[..., str]


@pytest.fixture
def typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Typed]:
    """Types lines into a shell; what it printed, errors included."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with frazil.connect(tmp_path / "w") as catalog:
        catalog.sql("CREATE TABLE shop.orders (id BIGINT, price DOUBLE)")

        def run(*lines: str) -> str:
            left = iter(lines)

            def line(prompt: str) -> str:
                try:
                    return next(left)
                except StopIteration:
                    raise EOFError from None

            monkeypatch.setattr("builtins.input", line)
            shown = RowDisplay()
            capsys.readouterr()
            Shell(catalog.session(), lambda found: print_result(found, shown), shown).loop()
            said = capsys.readouterr()
            assert next(left, None) is None, "the shell left before the last line"
            return said.out + said.err

        yield run


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
        assert completions("SHOP.or") == ["shop.orders"]


def test_columns_of_tables_in_the_line_are_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with frazil.connect(tmp_path / "w") as catalog:
        catalog.sql("CREATE TABLE shop.orders (id BIGINT, price DOUBLE)")
        shell = Shell(catalog.session(), lambda result: None)
        monkeypatch.setattr(
            "frazil.cli.terminal.sql_shell._line_so_far",
            lambda: "SELECT * FROM shop.orders WHERE p",
        )
        assert shell.complete("p", 0) == "price"
        assert shell.complete("p", 1) is None


@pytest.mark.parametrize("word", ["exit", "quit", "EXIT;", ".quit", ".exit", "\\q"])
def test_every_word_for_leaving_leaves(typed: Typed, word: str) -> None:
    assert "error" not in typed(word).lower()


def test_commands_change_how_rows_are_shown(typed: Typed) -> None:
    said = typed(
        ".mode csv",
        "SELECT 1 AS a, 'x,y' AS b;",
        ".mode table",
        ".maxrows 1",
        "SELECT i FROM range(3) t(i);",
        ".mode",
        ".mode nonsense",
    )
    assert 'a,b\n1,"x,y"\n' in said
    assert "… the first 1 row" in said
    assert "table\n" in said
    assert "'nonsense' is not a format; formats: table, csv, jsonl, markdown, arrow" in said


def test_rows_that_are_not_shown_are_asked_for_in_words_of_the_shell(typed: Typed) -> None:
    shown = typed(".maxrows 3", "FROM range(9);")
    assert "the first 3 rows; more with .maxrows" in shown
    assert "--limit" not in shown
    assert ".maxrows takes a number" in typed(".maxrows many")


def test_leaving_an_open_transaction_says_that_it_is_rolled_back(
    typed: Typed, tmp_path: Path
) -> None:
    shown = typed("BEGIN;", "INSERT INTO shop.orders VALUES (1, 2.0);", ".quit")
    assert "not committed" in shown
    assert frazil.connect(tmp_path / "w").load_table("shop.orders").scan().count() == 0
    assert "not committed" not in typed("BEGIN;", "COMMIT;", ".quit")


def test_tables_are_described_as_in_other_shells(typed: Typed) -> None:
    said = typed("\\d", "\\d shop.orders", ".schema shop.orders", ".tables")
    assert said.count("price") == 2
    assert said.count("tableName") == 2


def test_views_are_listed_beside_tables_and_completed(typed: Typed, tmp_path: Path) -> None:
    create = "CREATE VIEW shop.dear AS SELECT id FROM shop.orders WHERE price > 5;"
    assert "viewName" not in typed("\\d")
    said = typed(create, "\\d", "\\d shop.dear")
    assert "shop      | dear" in said
    assert "viewName" in said
    assert "BIGINT" in said
    with frazil.connect(tmp_path / "w") as catalog:
        assert Shell(catalog.session(), lambda result: None).complete("shop.d", 0) == "shop.dear"


def test_times_are_told_when_asked_for(typed: Typed) -> None:
    assert " ms" not in typed("SELECT 1 AS a;")
    assert typed(".timer on", "SELECT 1 AS a;").rstrip().endswith(" ms")
    said = typed("\\timing", "SELECT 1 AS a;", "\\timing")
    assert "timing is on" in said
    assert "timing is off" in said


def test_help_names_every_command_and_format(typed: Typed) -> None:
    said = typed(".help")
    for word in (".tables", ".mode", ".timer", ".maxrows", ".quit", "\\d", "Ctrl-C"):
        assert word in said
    assert all(format.value in said for format in Format)
    assert max(map(len, said.splitlines())) <= 80


def test_ctrl_c_cancels_a_query_and_the_shell_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(result: Result) -> None:
        raise KeyboardInterrupt

    with frazil.connect(tmp_path / "w") as catalog:
        session = catalog.session()
        Shell(session, interrupted).run("SELECT 1;")
        shown: list[Result] = []
        Shell(session, shown.append).run("SELECT 2 AS a;")
        assert shown[0].to_pylist() == [{"a": 2}]
    assert "cancelled" in capsys.readouterr().out


def test_a_statement_of_several_lines_is_recalled_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    readline = pytest.importorskip("readline")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    lines = iter(["SELECT 1", "  AS a;", ".quit"])

    def typed_line(prompt: str) -> str:
        line = next(lines)
        readline.add_history(line)
        return line

    monkeypatch.setattr("builtins.input", typed_line)
    with frazil.connect(tmp_path / "w") as catalog:
        Shell(catalog.session(), lambda result: None).loop()
    history = (tmp_path / "frazil" / "sql_history").read_text()
    assert "SELECT 1 AS a;\n" in history
    assert "  AS a;\n" not in history
