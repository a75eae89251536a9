"""Metadata that counts the rows of a file wrongly: whoever reads the file says so, before rows are
given back or changed. Counting reads no file; it refuses counts that cannot be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import frazil
from frazil.errors import FormatError
from frazil.format.entries.tracking import Status
from frazil.table import Catalog, Table
from tests.support.damaged import damage, root_of, root_row, set_value
from tests.support.history import SCHEMA, rows

ROWS = 10
HUGE = 10**15
COUNTS = [ROWS - 3, ROWS + 3, HUGE]


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with frazil.connect(tmp_path) as made:
        yield made


@pytest.fixture
def plain(catalog: Catalog) -> Table:
    """A file of ten rows."""
    made = catalog.create_table("shop.orders", SCHEMA)
    made.append(rows(*range(ROWS)))
    return made


@pytest.fixture
def with_vector(plain: Table) -> Table:
    """The same with two deleted rows."""
    plain.delete("id in (3, 4)")
    return plain


def _say(table: Table, key: str, value: int, status: Status = Status.MODIFIED) -> None:
    """Another number in the entry of the only live file."""
    damage(table, root_of(table), set_value(key, root_row(table, status=status), value))


READS: dict[str, Callable[[Catalog, Table], object]] = {
    "scan": lambda _, table: table.scan().to_arrow(),
    "scan of some rows": lambda _, table: table.scan("id = 7").to_arrow(),
    "count of some rows": lambda _, table: table.scan("id >= 2 and v = 'x'").count(),
    "sql": lambda catalog, _: catalog.sql("SELECT sum(id) FROM shop.orders").to_arrow(),
    "count in sql": lambda catalog, _: catalog.sql("SELECT count(*) FROM shop.orders").to_arrow(),
    "duckdb": lambda _, table: table.scan().to_duckdb().fetchall(),
    "dataset": lambda _, table: table.scan().to_dataset().to_table(),
    "delete": lambda _, table: table.delete("id = 7"),
    "update": lambda _, table: table.update({"v": "y"}, "id = 7"),
    "upsert": lambda _, table: table.upsert(rows(7, 100, v="y"), on=["id"]),
    "compact": lambda _, table: table.compact(min_input_files=1),
}


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("read", READS)
def test_who_reads_a_file_compares_its_rows(
    read: str, count: int, catalog: Catalog, plain: Table
) -> None:
    _say(plain, "record_count", count, Status.ADDED)
    before = root_of(plain)
    with pytest.raises(FormatError, match=f"the file has 10 rows; the metadata records {count}"):
        READS[read](catalog, plain)
    assert root_of(plain.refresh()) == before


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("read", READS)
def test_who_reads_a_file_beside_a_vector_compares_its_rows(
    read: str, count: int, catalog: Catalog, with_vector: Table
) -> None:
    _say(with_vector, "record_count", count)
    before = root_of(with_vector)
    with pytest.raises(FormatError, match=f"the file has 10 rows; the metadata records {count}"):
        READS[read](catalog, with_vector)
    assert root_of(with_vector.refresh()) == before


@pytest.mark.parametrize("count", COUNTS)
def test_a_deep_check_names_the_file(count: int, with_vector: Table) -> None:
    _say(with_vector, "record_count", count)
    wrong = f"record_count: the file has 10 rows; the metadata records {count}"
    assert any(wrong in str(problem) for problem in with_vector.check(deep=True).problems)


@pytest.mark.parametrize(
    ("key", "value"),
    [("record_count", -1), ("record_count", 1), ("deletion_vector.cardinality", -5)],
)
def test_counts_that_cannot_be_are_refused_by_counting_and_named_by_a_check(
    key: str, value: int, with_vector: Table
) -> None:
    _say(with_vector, key, value)
    for scan in (with_vector.scan(), with_vector.scan("id >= 0"), with_vector.scan().limit(1)):
        with pytest.raises(FormatError, match=r"record_count.*table\.check\(\)"):
            scan.count()
    root = root_of(with_vector).rpartition("/")[2]
    assert root in {problem.path.rpartition("/")[2] for problem in with_vector.check().problems}


def test_a_negative_count_without_a_vector_is_refused_and_named(plain: Table) -> None:
    _say(plain, "record_count", -4, Status.ADDED)
    with pytest.raises(FormatError, match="record_count is -4"):
        plain.scan().count()
    assert any(problem.field == "record_count" for problem in plain.check().problems)
