"""BEGIN, COMMIT and ROLLBACK: one open transaction per session."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from frazil.errors import InvalidInput, Unsupported
from frazil.rows.engine import Engine
from frazil.table.table import Table
from frazil.table.transaction import Transaction

if TYPE_CHECKING:
    import duckdb


class Transactions:
    """What a session has begun. Statements inside see each other's changes; the catalog sees one
    commit."""

    def __init__(self) -> None:
        self.connection: duckdb.DuckDBPyConnection | None = None
        """The engine's connection while a transaction is open: one for all its statements."""
        self._table: Table | None = None
        self._open: Transaction | None = None

    @property
    def is_open(self) -> bool:
        """Whether BEGIN was said."""
        return self.connection is not None

    def begin(self, connection: duckdb.DuckDBPyConnection) -> None:
        """BEGIN; statements until COMMIT or ROLLBACK run on the connection."""
        if self.is_open:
            raise InvalidInput("a transaction is open already; COMMIT or ROLLBACK it first")
        self.connection = connection

    def commit(self) -> None:
        """COMMIT."""
        if not self.is_open:
            raise InvalidInput("no transaction is open; BEGIN starts one")
        try:
            if self._open is not None:
                self._open.commit()
        finally:
            self._forget()

    def roll_back(self, *, must_be_open: bool = False) -> None:
        """ROLLBACK."""
        if must_be_open and not self.is_open:
            raise InvalidInput("no transaction is open; BEGIN starts one")
        try:
            if self._open is not None:
                self._open.abort()
        finally:
            self._forget()

    def staged(self, table: Table) -> Transaction | None:
        """The open transaction of a table, if it has one: reading goes through it."""
        return self._open if self._is_mine(table) else None

    @contextmanager
    def writing(self, table: Table, engine: Engine) -> Iterator[Transaction]:
        """A transaction to change a table in: the open one, or one of its own that lands at
        the end."""
        if not self.is_open:
            with table.transaction(engine=engine) as own:
                yield own
            return
        if self._open is None:
            self._table, self._open = table, table.transaction(engine=engine)
        elif not self._is_mine(table):
            assert self._table is not None
            raise Unsupported(
                f"the open transaction changes {self._table.name}; a transaction can change one "
                f"table, so COMMIT it before changing {table.name}",
                feature="transactions over several tables",
            )
        yield self._open

    def refuse(self, what: str) -> None:
        """Refuse a statement that cannot be part of a transaction."""
        if self.is_open:
            raise InvalidInput(f"{what} cannot be part of a transaction; COMMIT or ROLLBACK first")

    def _is_mine(self, table: Table) -> bool:
        return (
            self._table is not None
            and self._table.name == table.name
            and self._table.branch_name == table.branch_name
        )

    def _forget(self) -> None:
        if self.connection is not None:
            self.connection.close()
        self.connection = self._table = self._open = None
