"""The same statements through a catalog and through plain DuckDB, and the rows of both."""

from __future__ import annotations

import math
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import duckdb

import frazil
from frazil.errors import FrazilError
from frazil.sql.session import Session


class BesideDuckDb:
    """A session of a new catalog and a DuckDB database, which have the same tables."""

    def __init__(self, location: Path, *namespaces: str) -> None:
        self.catalog = frazil.connect(location)
        self.session = Session(self.catalog)
        self.plain = duckdb.connect()
        self.plain.execute("SET TimeZone = 'UTC'")
        for name in namespaces or ("s", "r"):
            self.both(f"CREATE SCHEMA {name}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.session.close()
        self.catalog.close()
        self.plain.close()

    def both(self, *statements: str) -> None:
        """Run statements that both must take."""
        for statement in statements:
            self.plain.execute(statement)
            self.session.sql(statement)

    def change(self, statement: str) -> tuple[str | None, str | None]:
        """Run a statement; the problem that each side has with it."""
        ours = theirs = None
        try:
            self.session.sql(statement)
        except FrazilError as error:
            ours = str(error)
        try:
            self.plain.execute(statement)
        except duckdb.Error as error:
            theirs = str(error)
        return ours, theirs

    def query(self, text: str) -> tuple[list[Any] | None, list[Any] | None]:
        """Our rows of a query and DuckDB's, in one order; None where it is refused."""
        ours = theirs = None
        with suppress(FrazilError):
            result = self.session.sql(text).to_arrow()
            columns = [column.to_pylist() for column in result.columns]
            ours = ordered(list(zip(*columns, strict=True)))
        with suppress(duckdb.Error):
            theirs = ordered(self.plain.execute(text).fetchall())
        return ours, theirs

    def rows(self, table: str) -> tuple[list[Any], list[Any]]:
        """Our rows of a table and DuckDB's, in one order."""
        query = f"SELECT * FROM {table}"
        ours = [tuple(row.values()) for row in self.session.sql(query).to_pylist()]
        theirs = self.plain.execute(query).fetchall()
        return ordered(ours), ordered(theirs)

    def check(self, *tables: str) -> None:
        """Compare the rows of tables."""
        for table in tables:
            ours, theirs = self.rows(table)
            assert ours == theirs, table

    def same(self, statement: str, *tables: str) -> None:
        """Both carry a statement out, and have the same rows after it."""
        ours, theirs = self.change(statement)
        assert (ours, theirs) == (None, None), statement
        self.check(*(tables or ("s.t",)))

    def refused(self, statement: str, *tables: str) -> str:
        """Both refuse a statement, and have the same rows after it."""
        ours, theirs = self.change(statement)
        assert ours is not None, statement
        assert theirs is not None, statement
        self.check(*(tables or ("s.t",)))
        return ours


def ordered(rows: list[Any]) -> list[Any]:
    """Rows as values that compare by content, in one order."""
    return sorted(map(_comparable, rows), key=repr)


def _comparable(value: Any) -> Any:
    match value:
        case float() if math.isnan(value):
            return "NaN"
        case float() if value == 0:
            return 0.0
        case Decimal() if value == int(value):
            return int(value)
        case dict():
            return {key: _comparable(part) for key, part in value.items()}
        case list() | tuple():
            return tuple(map(_comparable, value))
    return value
