"""BEGIN, COMMIT and ROLLBACK: one open transaction per session."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from frazil.errors import InvalidInput, Unsupported

if TYPE_CHECKING:
    import duckdb

    from frazil.catalog.backend import CatalogBackend
    from frazil.rows.engine import Engine
    from frazil.table.table import Table
    from frazil.table.transaction import Transaction


class Transactions:
    """What a session has begun. Statements inside see each other's changes; the catalog sees one
    commit of all tables."""

    def __init__(self) -> None:
        self.connection: duckdb.DuckDBPyConnection | None = None
        """The engine's connection while a transaction is open: one for all its statements."""
        self._open: dict[str, tuple[Table, Transaction]] = {}

    @property
    def is_open(self) -> bool:
        """Whether BEGIN was said."""
        return self.connection is not None

    def begin(self, connection: duckdb.DuckDBPyConnection) -> None:
        """BEGIN; changes until COMMIT or ROLLBACK are made on the connection."""
        if self.is_open:
            raise InvalidInput("a transaction is open already; COMMIT or ROLLBACK it first")
        self.connection = connection

    def commit(self, pointers: CatalogBackend) -> None:
        """COMMIT."""
        if not self.is_open:
            raise InvalidInput("no transaction is open; BEGIN starts one")
        opened = [tx for _, tx in self._open.values()]
        try:
            if len(opened) == 1:
                opened[0].commit()
            elif opened:
                from frazil.table.transaction import commit_all

                commit_all(opened, pointers)
        finally:
            self._forget()

    def roll_back(self, *, must_be_open: bool = False) -> None:
        """ROLLBACK."""
        if must_be_open and not self.is_open:
            raise InvalidInput("no transaction is open; BEGIN starts one")
        try:
            for _, tx in self._open.values():
                tx.abort()
        finally:
            self._forget()

    def staged(self, table: Table) -> Transaction | None:
        """The open transaction of a table, if it has one: reading goes through it."""
        staged_on, tx = self._open.get(table.name, (None, None))
        return tx if staged_on is not None and staged_on.branch_name == table.branch_name else None

    @contextmanager
    def writing(self, table: Table, engine: Engine) -> Iterator[Transaction]:
        """A transaction to change a table in: the open one, or one of its own that lands at
        the end."""
        if not self.is_open:
            with table.transaction(engine=engine) as own:
                yield own
            return
        if table.name not in self._open:
            self._open[table.name] = (table, table.transaction(engine=engine))
        staged_on, tx = self._open[table.name]
        if staged_on.branch_name != table.branch_name:
            raise Unsupported(
                f"the open transaction changes {table.name} on branch {staged_on.branch_name}; "
                f"COMMIT it before changing branch {table.branch_name}",
                feature="transactions over several branches of a table",
            )
        yield tx

    def refuse(self, what: str) -> None:
        """Refuse a statement that cannot be part of a transaction."""
        if self.is_open:
            raise InvalidInput(f"{what} cannot be part of a transaction; COMMIT or ROLLBACK first")

    def _forget(self) -> None:
        if self.connection is not None:
            self.connection.close()
        self.connection = None
        self._open = {}
