"""BEGIN, COMMIT and ROLLBACK: one open transaction per session."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from frazil.errors import InvalidInput, Unsupported
from frazil.table.table import Table
from frazil.table.transaction import Transaction


class Transactions:
    """What a session has begun. Statements inside see each other's changes; the catalog sees one
    commit."""

    def __init__(self) -> None:
        self.is_open = False
        self._table: Table | None = None
        self._open: Transaction | None = None

    def begin(self) -> None:
        """BEGIN."""
        if self.is_open:
            raise InvalidInput("a transaction is open already; COMMIT or ROLLBACK it first")
        self.is_open = True

    def commit(self) -> None:
        """COMMIT."""
        if not self.is_open:
            raise InvalidInput("no transaction is open; BEGIN starts one")
        opened = self._open
        self._forget()
        if opened is not None:
            opened.commit()

    def roll_back(self, *, must_be_open: bool = False) -> None:
        """ROLLBACK."""
        if must_be_open and not self.is_open:
            raise InvalidInput("no transaction is open; BEGIN starts one")
        opened = self._open
        self._forget()
        if opened is not None:
            opened.abort()

    def staged(self, table: Table) -> Transaction | None:
        """The open transaction of a table, if it has one: reading goes through it."""
        return self._open if self._is_mine(table) else None

    @contextmanager
    def writing(self, table: Table) -> Iterator[Transaction]:
        """A transaction to change a table in: the open one, or one of its own that lands at
        the end."""
        if not self.is_open:
            with table.transaction() as own:
                yield own
            return
        if self._open is None:
            self._table, self._open = table, table.transaction()
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
        self.is_open, self._table, self._open = False, None, None
