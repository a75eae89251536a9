"""Statements that change a table beside queries that say what it must hold, on plain Spark tables.

`beside/*.sql` has records separated by blank lines:

    -- what the record is about
    a statement on {t}; and another     statements follow each other behind a semicolon
    = a query of the plain tables       what {t} holds afterwards
    ! a regular expression              or: what the refusal says; {t} stays as it was

`t` in a query is what {t} held before, `s` is another table. What the statements are about follows
the tests of Iceberg and Delta Lake for Spark.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import frazil
import frazil.spark

_FOLDER = Path(__file__).parent / "beside"
LAYOUTS = {
    "whole": "",
    "by value": "PARTITIONED BY (dep)",
    "by bucket": "PARTITIONED BY (bucket(2, id))",
    "by several": "PARTITIONED BY (days(day), truncate(dep, 1))",
}
_COLUMNS = (
    "id INT, dep STRING, n INT, day DATE, s STRUCT<x: INT, y: STRUCT<z: STRING>>, l ARRAY<INT>"
)
_TARGET = """
    SELECT 1 AS id, 'hr' AS dep, 10 AS n, date'2024-01-01' AS day,
        named_struct('x', 1, 'y', named_struct('z', 'a')) AS s, array(1, 2) AS l
    UNION ALL SELECT 2, 'it', 20, date'2024-01-02', NULL, NULL
    UNION ALL SELECT 3, 'hr', NULL, date'2024-01-03',
        named_struct('x', NULL, 'y', named_struct('z', 'b')), array()
    UNION ALL SELECT 4, NULL, 40, NULL, named_struct('x', 4, 'y', NULL), array(4, NULL)
    UNION ALL SELECT 5, 'it', 50, date'2024-02-05',
        named_struct('x', 5, 'y', named_struct('z', NULL)), array(5)
    UNION ALL SELECT NULL, 'hr', 60, date'2024-01-01', NULL, array(NULL)
"""
_SOURCE = """
    SELECT * FROM VALUES
        (1, 'new', 100), (2, 'it', NULL), (6, 'hr', 60), (7, NULL, 70), (NULL, 'x', 0)
    AS s (id, dep, n)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One record."""

    name: str
    statements: tuple[str, ...]
    query: str | None = None
    refusal: str | None = None

    def __str__(self) -> str:
        return self.name


def cases() -> list[Case]:
    """The records of all files."""
    return [case for path in sorted(_FOLDER.glob("*.sql")) for case in _cases_of(path)]


def _cases_of(path: Path) -> Iterator[Case]:
    for block in path.read_text().strip().split("\n\n"):
        head, _, body = block.partition("\n")
        statements, mark, expected = re.split(r"^([=!]) ", body, maxsplit=1, flags=re.MULTILINE)
        yield Case(
            name=f"{path.stem}: {head.removeprefix('-- ')}",
            statements=tuple(each.strip() for each in statements.split(";")),
            query=expected if mark == "=" else None,
            refusal=expected.strip() if mark == "!" else None,
        )


class Beside:
    """The plain tables as views of a session, and a catalog for one table after the other."""

    def __init__(self, spark: Any, catalog: frazil.Catalog) -> None:
        self._spark = spark
        self._catalog = catalog
        frazil.spark.register(spark, catalog)
        spark.sql(_SOURCE).createOrReplaceTempView("s")
        plain = spark.createDataFrame(spark.sql(_TARGET).coalesce(1).collect(), _COLUMNS)
        plain.createOrReplaceTempView("t")
        self._target = plain.toArrow()
        self._made = 0

    def check(self, case: Case, layout: str) -> None:
        """Run the statements of a case, and compare the table with what it must hold."""
        name = self._filled(layout)
        expected = self._rows(case.query or "SELECT * FROM t")
        texts = [text.format(t=f"frazil.{name}") for text in case.statements]
        if case.refusal is None:
            for text in texts:
                self._spark.sql(text).collect()
        else:
            with pytest.raises(Exception, match=case.refusal) as caught:
                self._spark.sql(texts[0]).collect()
            assert "\tat " not in str(caught.value)
        assert self._rows(f"SELECT * FROM frazil.{name}") == expected

    def _filled(self, layout: str) -> str:
        """The name of a new table; its rows lie in two files at least."""
        self._made += 1
        name = f"beside.t{self._made}"
        self._spark.sql(f"CREATE TABLE frazil.{name} ({_COLUMNS}) {LAYOUTS[layout]}")
        table = self._catalog.load_table(name)
        table.append(self._target.slice(0, 3))
        table.append(self._target.slice(3))
        return name

    def _rows(self, query: str) -> list[str]:
        return sorted(str(tuple(row)) for row in self._spark.sql(query).collect())
