"""Rows that DuckDB 1.5 returned wrongly: queries, updates and deletes over several files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import frazil
from frazil.table.catalog import Catalog


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with frazil.connect(tmp_path) as opened:
        yield opened


def rows(catalog: Catalog, text: str) -> list[tuple[object, ...]]:
    table = catalog.sql(text).to_arrow()
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


@pytest.fixture
def nulls(catalog: Catalog) -> Catalog:
    """Three files, two of which have a row with NULL."""
    catalog.sql("CREATE TABLE s.t (k INT, x INT)")
    for values in ("(1, 1), (2, NULL)", "(3, 5)", "(4, NULL)"):
        catalog.sql(f"INSERT INTO s.t VALUES {values}")
    return catalog


DISTINCT = "x IS DISTINCT FROM 1 OR x = 5"


def test_distinct_from_a_value_keeps_nulls(nulls: Catalog) -> None:
    assert rows(nulls, f"SELECT k FROM s.t WHERE {DISTINCT} ORDER BY k") == [(2,), (3,), (4,)]


def test_distinct_from_a_value_updates_nulls(nulls: Catalog) -> None:
    nulls.sql(f"UPDATE s.t SET x = 0 WHERE {DISTINCT}")
    assert rows(nulls, "SELECT k, x FROM s.t ORDER BY k") == [(1, 1), (2, 0), (3, 0), (4, 0)]


def test_distinct_from_a_value_deletes_nulls(nulls: Catalog) -> None:
    nulls.sql(f"DELETE FROM s.t WHERE {DISTINCT}")
    assert rows(nulls, "SELECT k, x FROM s.t") == [(1, 1)]


@pytest.fixture
def numbers(catalog: Catalog) -> Catalog:
    catalog.sql("CREATE TABLE s.o (o INT)")
    catalog.sql("INSERT INTO s.o VALUES (NULL), (1), (4), (5), (0), (7), (3)")
    return catalog


SMALLEST = "(SELECT o FROM s.o ORDER BY o LIMIT 3)"
SEVENS = "(SELECT o AS b FROM s.o WHERE o = 7)"


@pytest.mark.parametrize("_", range(4))  # wrong mostly, not always
def test_a_join_does_not_reach_into_the_first_rows(numbers: Catalog, _: int) -> None:
    assert rows(numbers, f"SELECT * FROM {SMALLEST} z JOIN {SEVENS} ON o = b") == []


def test_changes_do_not_reach_into_the_first_rows(numbers: Catalog) -> None:
    met = f"o IN (SELECT o FROM {SMALLEST} z JOIN {SEVENS} ON o = b)"
    numbers.sql(f"UPDATE s.o SET o = 100 WHERE {met}")
    numbers.sql(f"DELETE FROM s.o WHERE {met}")
    expected = [(None,), (0,), (1,), (3,), (4,), (5,), (7,)]
    assert rows(numbers, "SELECT o FROM s.o ORDER BY o NULLS FIRST") == expected


@pytest.fixture
def widened(catalog: Catalog) -> Catalog:
    """A column that was an INT when the first file was written."""
    catalog.sql("CREATE TABLE s.t AS SELECT range::INT AS k, 0 AS hit FROM range(2000)")
    catalog.sql("ALTER TABLE s.t ALTER COLUMN k TYPE BIGINT")
    catalog.sql("INSERT INTO s.t SELECT range, 0 FROM range(2000, 4000)")
    catalog.sql("CREATE TABLE s.u AS SELECT range * 10 AS k, range AS w FROM range(100)")
    return catalog


TENS = "k IN (SELECT k FROM s.u WHERE w > 3)"


def test_keys_of_another_width_are_met(widened: Catalog) -> None:
    assert rows(widened, f"SELECT count(*) AS n FROM s.t WHERE {TENS}") == [(96,)]
    widened.sql(f"UPDATE s.t SET hit = 1 WHERE {TENS}")
    assert rows(widened, "SELECT count(*) AS n, min(k) AS k FROM s.t WHERE hit = 1") == [(96, 40)]
    widened.sql(f"DELETE FROM s.t WHERE {TENS}")
    assert rows(widened, "SELECT count(*) AS n FROM s.t") == [(4000 - 96,)]
