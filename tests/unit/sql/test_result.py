"""Results: read when asked for, once, and shown exactly."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from frazil.errors import InvalidInput
from frazil.parser.edits import rewrite
from frazil.parser.tokens import Part, Source, statements, tokens
from frazil.sql.bind.rewriting import Parameters
from frazil.sql.output.display import cell, csv_lines, text_table
from frazil.sql.output.query_result import Result

SCHEMA = pa.schema([("n", pa.int64())])


class Query:
    """Counts how often it runs and how many batches were taken."""

    def __init__(self) -> None:
        self.runs = self.batches = 0

    def run(self) -> pa.RecordBatchReader:
        self.runs += 1
        return pa.RecordBatchReader.from_batches(SCHEMA, self._batches())

    def _batches(self) -> object:
        for at in range(4):
            self.batches += 1
            yield pa.record_batch({"n": pa.array(range(at * 10, at * 10 + 10))}, schema=SCHEMA)


def test_nothing_runs_before_rows_are_asked_for() -> None:
    query = Query()
    result = Result(SCHEMA, query.run)
    assert result.columns == ["n"]
    assert query.runs == 0


def test_showing_and_then_reading_runs_once() -> None:
    query = Query()
    result = Result(SCHEMA, query.run)
    assert "… the first 20 rows" in repr(result)
    assert query.batches == 3
    assert result.to_arrow().num_rows == 40
    assert result.to_arrow()["n"].to_pylist() == list(range(40))
    assert (query.runs, query.batches) == (1, 4)


def test_a_stream_takes_over_what_was_read_before() -> None:
    query = Query()
    result = Result(SCHEMA, query.run)
    assert result.head(5)["n"].to_pylist() == [0, 1, 2, 3, 4]
    assert [row["n"] for row in result] == list(range(40))
    assert query.runs == 1
    assert pa.table(result).num_rows == 40
    assert query.runs == 2


def test_a_result_is_shown_as_html() -> None:
    shown = Result.of(pa.table({"a<b": ["<x>", None]}))._repr_html_()
    assert "<th>a&lt;b</th>" in shown
    assert "<td>&lt;x&gt;</td>" in shown
    assert "<td>NULL</td>" in shown


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "NULL"),
        (True, "true"),
        (0.1, "0.1"),
        (2**60, "1152921504606846976"),
        (Decimal("1E+2"), "100"),
        (date(2024, 1, 5), "2024-01-05"),
        (datetime(2024, 1, 5, 10, 0, 0, 1, tzinfo=UTC), "2024-01-05 10:00:00.000001+00:00"),
        (b"\x00\xff", "00ff"),
        ([1, None, {"a": Decimal("1.50")}], '[1, null, {"a": "1.50"}]'),
    ],
)
def test_a_cell_is_exact(value: object, expected: str) -> None:
    assert cell(value) == expected


def test_a_table_without_rows_says_so() -> None:
    assert text_table(pa.table({"a": pa.array([], pa.int64())})) == "a\n-\n(no rows)"


def test_csv_tells_null_from_empty() -> None:
    rows = pa.table({"a": [None, "", 'say "x"']})
    assert list(csv_lines(rows.schema, rows.to_batches())) == ["a", "", '""', '"say ""x"""']


def test_statements_end_at_semicolons_outside_of_quotes_and_comments() -> None:
    text = "SELECT ';' -- ;\n; /* ; */ SELECT \"a;b\", $$ ; $$;;"
    found = [[t.value for t in each] for each in statements(tokens(Source(text)))]
    assert found == [["SELECT", ";"], ["SELECT", "a;b", ",", " ; "]]


def test_places_count_from_one() -> None:
    source = Source("SELECT\n  x")
    assert source.position(0) == (1, 1)
    assert source.position(9) == (2, 3)


def test_a_rewritten_text_knows_where_its_parts_came_from() -> None:
    source = Source("SELECT a FROM shop.orders WHERE b")
    made = rewrite(source, [Part(0, 33)], [(14, 25, "v AS orders")])
    assert made.text == "SELECT a FROM v AS orders WHERE b\n"
    assert made.origin(made.text.index("b\n")) == 32
    assert made.origin(made.text.index("v AS")) == 14


def test_parameters_become_literals_and_must_fit() -> None:
    source = Source("SELECT ?, $name")
    with pytest.raises(InvalidInput, match=r"line 1, column 8: no value for parameter 1"):
        Parameters({"name": 1}).edits(source, tokens(source))
    source = Source("SELECT ?, ?")
    values = Parameters(["it's", Decimal("-1.5")])
    assert [new for _, _, new in values.edits(source, tokens(source))] == ["'it''s'", "(-1.5)"]
    values.check_used()
    spare = Parameters([1, 2, 3])
    spare.edits(source, tokens(source))
    with pytest.raises(InvalidInput, match="3 parameters were given, but the text has 2 places"):
        spare.check_used()


def test_times_that_python_does_not_have_are_shown_and_refused_as_python_values() -> None:
    microseconds = pa.array([(1 << 63) - 1, 1 - (1 << 63), None], pa.timestamp("us"))
    days = pa.array([2**31 - 1, 2_932_897, 0], pa.date32())  # the last but one is 10000-01-01
    result = Result.of(pa.table({"t": microseconds, "d": days}))
    lines = [line.split() for line in repr(result).splitlines()[2:]]
    assert lines[0] == ["infinity", "|", "infinity"]
    assert lines[1] == ["-infinity", "|", "10000-01-01"]
    for read in (result.to_pylist, lambda: list(result)):
        with pytest.raises(InvalidInput, match="Python has no such value"):
            read()
