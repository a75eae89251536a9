"""Conditions made at random give the rows that DuckDB finds in the full data, never one less."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal
from uuid import UUID

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.expressions import AlwaysTrue

import frazil
from frazil.filter.prune.tree_filter import Constants, filter_of
from frazil.parser.tree import parse_expression
from frazil.sql.bind import bound_scans
from frazil.table.catalog import Catalog

NAN, INF = math.nan, math.inf
_FLOATS = [None, NAN, -INF, INF, -0.0, 0.0, 0.1, 1.5, -3.25, 5.0, 1e300, 16777217.0]
_TEXTS = [None, "", "a", "ab", "abc", "b%", "a_c", "Ä", "\U0001f600", "ﬁ", "zz", "A"]
_DAYS = [None, date(1, 1, 1), date(1969, 12, 31), date(1970, 1, 1), date(2024, 2, 29)]
_STAMPS = [
    None,
    datetime(1969, 12, 31, 23, 59, 59, 999_999),
    datetime(1970, 1, 1),
    datetime(2024, 2, 29, 12),
    datetime(2024, 3, 1),
]
ROWS = 48


def _cycled(values: list[object], step: int) -> list[object]:
    return [values[(at * step + at // len(values)) % len(values)] for at in range(ROWS)]


DATA = pa.table(
    {
        "id": pa.array(range(ROWS), pa.int64()),
        "i": pa.array(_cycled([None, -5, 0, 1, 2, 3, 7, 2**31 - 1], 3), pa.int32()),
        "f": pa.array(_cycled(list(_FLOATS), 5), pa.float64()),
        "r": pa.array(_cycled(list(_FLOATS[:10]), 3), pa.float32()),
        "s": pa.array(_cycled(list(_TEXTS), 5), pa.string()),
        "d": pa.array(_cycled(list(_DAYS), 2), pa.date32()),
        "ts": pa.array(_cycled(list(_STAMPS), 3), pa.timestamp("us")),
        "tz": pa.array(
            [
                None if value is None else value.replace(tzinfo=UTC)  # type: ignore[attr-defined]
                for value in _cycled(list(_STAMPS), 2)
            ],
            pa.timestamp("us", "UTC"),
        ),
        "m": pa.array(
            _cycled(
                [None, Decimal("-1.50"), Decimal("0.00"), Decimal("1.51"), Decimal("99.99")], 2
            ),
            pa.decimal128(10, 2),
        ),
        "b": pa.array(_cycled([True, False, None], 2), pa.bool_()),
        "p": pa.array(
            [None if at % 7 == 0 else {"a": at % 5, "n": f"x{at % 3}"} for at in range(ROWS)],
            pa.struct([("a", pa.int32()), ("n", pa.string())]),
        ),
        "big": pa.array(
            _cycled([None, Decimal("-98765432109876543210.5"), Decimal("0.0001"), Decimal("1")], 3),
            pa.decimal128(38, 4),
        ),
        "raw": pa.array(_cycled([None, b"", b"\x00", b"\x00\xff", b"zz"], 3), pa.binary()),
        "c": pa.array(_cycled([None, time(0), time(23, 59, 59, 999_999)], 2), pa.time64("us")),
        "u": pa.array(
            [None if at % 5 == 0 else UUID(int=(at % 3) << 120 | 7).bytes for at in range(ROWS)],
            pa.uuid(),
        ),
        "ns": pa.array(_cycled([None, -1, 0, 1_700_000_000_123_456_789], 3), pa.timestamp("ns")),
        "deep": pa.array(
            [
                None if at % 6 == 0 else {"in": None if at % 4 == 0 else {"f": _FLOATS[at % 12]}}
                for at in range(ROWS)
            ],
            pa.struct([("in", pa.struct([("f", pa.float64())]))]),
        ),
    }
)

_NUMBERS = ["0", "1", "-5", "2", "1.5", "1.505", "0.1", "5e0", "1e400", "2147483648", "-0.0"]
_CONSTANTS = {
    "id": [*_NUMBERS, "17", "47"],
    "i": [*_NUMBERS, "'3'"],
    "f": [*_NUMBERS, "'NaN'::DOUBLE", "'inf'::DOUBLE", "0.1e0"],
    "r": [*_NUMBERS, "'NaN'::FLOAT", "0.1::FLOAT", "16777217"],
    "m": [*_NUMBERS, "1.51", "99.99", "99.990", "1.51e0"],
    "p.a": _NUMBERS,
    "s": ["''", "'a'", "'ab'", "'A'", "'Ä'", "'b%'", "'zz'", "'\U0001f600'"],
    "p.n": ["'x0'", "'x1'", "'x'"],
    "big": [*_NUMBERS, "0.0001", "-98765432109876543210.5", "1e30"],
    "raw": ["''::BLOB", "'\\x00'::BLOB", "'\\x00\\xFF'::BLOB", "'zz'"],
    "c": ["TIME '00:00:00'", "'23:59:59.999999'", "TIME '12:00:00'"],
    "u": [f"'{UUID(int=at << 120 | 7)}'" for at in range(3)],
    "ns": [
        "TIMESTAMP '1970-01-01 00:00:00'",
        "TIMESTAMP_NS '2023-11-14 22:13:20.123456789'",
        "'2023-11-14 22:13:20.123456'",
        "TIMESTAMP '2023-11-14 22:13:20.123457'",
    ],
    "deep.in.f": [*_NUMBERS, "'NaN'::DOUBLE"],
    "d": [
        "'1970-01-01'",
        "DATE '1969-12-31'",
        "DATE '0001-01-01'",
        "DATE '2024-02-29' + INTERVAL 1 DAY",
        "TIMESTAMP '2024-02-29 12:00:00'",
        "make_date(2024, 2, 29)",
    ],
    "ts": [
        "'1970-01-01'",
        "TIMESTAMP '1969-12-31 23:59:59.999999'",
        "DATE '2024-02-29'",
        "TIMESTAMP '2024-02-29 12:00:00'",
        "'2024-02-29 12:00:00'",
    ],
    "tz": [
        "TIMESTAMPTZ '2024-02-29 12:00:00+00'",
        "TIMESTAMPTZ '2024-02-29 13:00:00+01'",
        "TIMESTAMP '1970-01-01 00:00:00'",
        "'2024-03-01'",
    ],
}
_SIGNS = ["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"]


@st.composite
def comparisons(draw: st.DrawFn) -> str:
    column = draw(st.sampled_from(sorted(_CONSTANTS)))
    constant = st.sampled_from(_CONSTANTS[column])
    sign = draw(st.sampled_from(_SIGNS))
    match draw(st.integers(0, 6)):
        case 0:
            return f"{column} {draw(st.sampled_from(['IS NULL', 'IS NOT NULL']))}"
        case 1:
            values = draw(st.lists(constant, min_size=1, max_size=4))
            return f"{column} {draw(st.sampled_from(['', 'NOT ']))}IN ({', '.join(values)})"
        case 2:
            return f"{column} BETWEEN {draw(constant)} AND {draw(constant)}"
        case 3:
            return f"{draw(constant)} {draw(st.sampled_from(_SIGNS[:6]))} {column}"
        case 4 if column in ("s", "p.n"):
            pattern = draw(st.sampled_from(["a%", "%b", "a_c", "b\\%", "x0", "", "%", "Ä%", "a%c"]))
            return f"{column} {draw(st.sampled_from(['', 'NOT ']))}LIKE '{pattern}'"
        case 5 if column in ("ts", "tz"):
            day = draw(st.sampled_from(["'1969-12-31'", "DATE '2024-02-29'"]))
            return f"CAST({column} AS DATE) {draw(st.sampled_from(_SIGNS[:6]))} {day}"
    return f"{column} {sign} {draw(constant)}"


plain = comparisons() | st.sampled_from(
    ["b", "NOT b", "b IS NOT TRUE", "id % 5 = 2", "length(s) = 1", "i + 1e16 = 1e16", "i < id"]
)
conditions = st.recursive(
    plain,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda pair: f"({pair[0]} AND {pair[1]})"),
        st.tuples(inner, inner).map(lambda pair: f"({pair[0]} OR {pair[1]})"),
        inner.map(lambda one: f"NOT ({one})"),
    ),
    max_leaves=5,
)


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    """The rows in twelve files, so that most conditions can prune."""
    with frazil.connect(tmp_path_factory.mktemp("pruning")) as made:
        ordered = DATA.sort_by([("f", "ascending"), ("s", "ascending")])
        made.sql("CREATE TABLE s.t AS SELECT * FROM x WHERE false", tables={"x": DATA})
        for start in range(0, ROWS, 4):
            made.sql("INSERT INTO s.t SELECT * FROM x", tables={"x": ordered.slice(start, 4)})
        yield made


@pytest.fixture(scope="module")
def full() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.register("given", DATA)
    connection.execute("CREATE SCHEMA s")
    connection.execute("CREATE TABLE s.t AS FROM given")
    return connection


def _expected(full: duckdb.DuckDBPyConnection, text: str) -> list[int] | None:
    """What DuckDB finds; None where it refuses the text."""
    try:
        return [row[0] for row in full.execute(text).fetchall()]
    except duckdb.Error:
        return None


def _forms() -> Iterator[str]:
    """Every kind of condition over every column, with a few constants."""
    for column, constants in _CONSTANTS.items():
        some = [constants[0], constants[len(constants) // 2], constants[-1]]
        yield from (f"{column} IS NULL", f"{column} IS NOT NULL")
        for no in ("", "NOT "):
            yield f"{column} {no}IN ({', '.join(some)})"
            yield f"{column} {no}IN ({some[1]})"
            yield f"{column} {no}IN ({some[1]}, NULL)"
            yield f"{column} {no}BETWEEN {some[0]} AND {some[2]}"
            yield f"{column} {no}BETWEEN SYMMETRIC {some[2]} AND {some[0]}"
        for constant in some:
            yield from (f"{column} {sign} {constant}" for sign in _SIGNS)
            yield from (f"{constant} {sign} {column}" for sign in _SIGNS)
    for column in ("s", "p.n"):
        for pattern in ("a%", "x%", "%b", "a_c", "b\\%", "x0", "", "%", "Ä%", "a%c"):
            for like in ("LIKE", "ILIKE", "GLOB", "SIMILAR TO", "~~", "!~~", "~~*", "!~~*", "^@"):
                yield f"{column} {like} '{pattern}'"
                yield f"{column} NOT {like} '{pattern}'"
                yield f"{column} {like} '{pattern}' ESCAPE '%'"
            yield from (f"{function}({column}, '{pattern}')" for function in _TEXT_FUNCTIONS)
    for column in ("ts", "tz", "d"):
        for cast in (f"CAST({column} AS DATE)", f"TRY_CAST({column} AS DATE)", f"{column}::DATE"):
            yield from (f"{cast} {sign} DATE '2024-02-29'" for sign in _SIGNS)
    yield from ("b", "b IS TRUE", "b IS NOT TRUE", "b IS FALSE", "b IS UNKNOWN", "b = false")


_TEXT_FUNCTIONS = ["starts_with", "prefix", "suffix", "contains", "regexp_matches"]


def test_no_form_of_condition_prunes_a_file_that_has_a_row_for_it(
    catalog: Catalog, full: duckdb.DuckDBPyConnection
) -> None:
    table = catalog.load_table("s.t")
    rows = table.scan(columns=["id", "_file"]).to_pylist()
    files = {row["id"]: row["_file"].rsplit("/", 1)[1] for row in rows}
    constants = Constants()
    known: dict[str, set[str]] = {}
    pruning = 0
    for form in _forms():
        for condition in (form, f"NOT ({form})"):
            text = f"SELECT id FROM s.t WHERE {condition}"
            found = _expected(full, text)
            if found is None:
                continue
            filter_ = filter_of([[parse_expression(condition)]], table.metadata.schema(), constants)
            if isinstance(filter_, AlwaysTrue):
                continue
            pruning += 1
            if (key := repr(filter_)) not in known:
                paths = table.scan(filter_).plan().table["location"].to_pylist()
                known[key] = {path.rsplit("/", 1)[1] for path in paths}
            assert {files[id] for id in found} <= known[key], condition
    assert pruning > 400


@settings(max_examples=300, deadline=None)
@given(condition=conditions)
def test_a_condition_finds_the_rows_that_duckdb_finds(
    catalog: Catalog, full: duckdb.DuckDBPyConnection, condition: str
) -> None:
    text = f"SELECT id FROM s.t WHERE {condition} ORDER BY id"
    expected = _expected(full, text)
    if expected is not None:
        assert [row["id"] for row in catalog.sql(text)] == expected


@settings(max_examples=100, deadline=None)
@given(
    on=conditions,
    where=conditions,
    join=st.sampled_from(
        ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN"]
    ),
)
def test_a_join_finds_the_rows_that_duckdb_finds(
    catalog: Catalog, full: duckdb.DuckDBPyConnection, on: str, where: str, join: str
) -> None:
    """Two derived tables of the same rows: conditions pass through them and the join."""
    right = ", ".join(f"{name} AS q{name}" for name in DATA.column_names)
    inner = f"(SELECT id AS k, {right} FROM s.t WHERE {on})"
    text = (
        f"SELECT id FROM s.t {join} {inner} q ON q.k = s.t.id + 1 AND ({on}) "
        f"WHERE ({where}) ORDER BY id NULLS FIRST"
    )
    expected = _expected(full, text)
    if expected is not None:
        assert [row["id"] for row in catalog.sql(text)] == expected


_KEYS = ["id", "i", "f", "r", "s", "d", "ts", "tz", "m"]


@settings(max_examples=100, deadline=None)
@given(left=st.sampled_from(_KEYS), right=st.sampled_from(_KEYS), where=conditions)
def test_pruning_by_the_keys_of_the_other_side_loses_no_row(
    catalog: Catalog, full: duckdb.DuckDBPyConnection, left: str, right: str, where: str
) -> None:
    text = (
        f"SELECT a.id FROM s.t a, (SELECT id AS k FROM s.t WHERE {where}) q, s.t b "
        f"WHERE a.{left} = b.{right} AND b.id = q.k AND b.id < 9 ORDER BY a.id"
    )
    expected = _expected(full, text)
    if expected is not None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(bound_scans, "_is_worth", lambda small, large: large.ready is not None)
            assert [row["id"] for row in catalog.sql(text)] == expected
