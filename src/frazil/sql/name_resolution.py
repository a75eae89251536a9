"""From a name in SQL to what it means: a table, a branch or tag of it, its metadata, a view.

`shop.orders` is a table or view; `shop.orders.branch_audit`, `shop.orders.tag_q1`,
`shop.orders.snapshots` and `shop.orders.changes` are what Iceberg's engines call them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final

import pyarrow as pa

from frazil.catalog.backend import ViewState
from frazil.catalog.names import dotted, undotted
from frazil.data.write.row_input import refuse_objects
from frazil.errors import InvalidInput, NotFound
from frazil.rows.duckdb.duckdb_source import UnslicedRows, is_misread, unsliced
from frazil.sql.caller import is_lazy_frame
from frazil.table.catalog import Catalog
from frazil.table.table import Table
from frazil.text_format import did_you_mean
from frazil.value_classes import dataclass, frozen

METADATA_TABLES: Final = (
    "all_data_files",
    "all_delete_files",
    "all_entries",
    "all_files",
    "all_manifests",
    "data_files",
    "delete_files",
    "entries",
    "files",
    "history",
    "manifests",
    "metadata_log_entries",
    "partitions",
    "refs",
    "snapshots",
)
CHANGES: Final = "changes"
_METADATA_METHODS: Final = {"metadata_log_entries": "metadata_log"}
AsOf = int | str | datetime


@frozen
class ResolvedTable:
    """A table as one of its states, or its metadata, or its changes."""

    table: Table
    as_of: AsOf | None = None
    metadata: str | None = None
    changes: bool = False

    @property
    def is_special(self) -> bool:
        """Whether its rows are not the table's."""
        return self.metadata is not None or self.changes

    @property
    def full_name(self) -> tuple[str, ...]:
        """The table's name with its namespace."""
        own = undotted(self.table.name)
        return (*own, self.metadata) if self.metadata is not None else own


@frozen
class ResolvedView:
    """A view of the catalog."""

    state: ViewState

    @property
    def full_name(self) -> tuple[str, ...]:
        """The view's name with its namespace."""
        return (*self.state.identifier.namespace, self.state.identifier.name)


@frozen
class ResolvedRows:
    """Data that came with the call, by its name there."""

    data: Any


Resolved = ResolvedTable | ResolvedView | ResolvedRows


def repeated_name(names: Iterable[str]) -> str | None:
    """A name that one before it equals: SQL ignores case."""
    earlier: set[str] = set()
    for name in names:
        if name.lower() in earlier:
            return name
        earlier.add(name.lower())
    return None


def metadata_rows(table: Table, which: str) -> Any:
    """A metadata table as Arrow. Structs without fields, such as the partition in a table that is
    not partitioned, are left out, as Iceberg does; DuckDB has none."""
    rows: pa.Table = getattr(table.inspect, _METADATA_METHODS.get(which, which))
    empty = [
        field.name
        for field in rows.schema
        if pa.types.is_struct(field.type) and not field.type.num_fields
    ]
    return rows.drop_columns(empty)


def given_rows(data: Any) -> Any:
    """Data as DuckDB registers it: Arrow streams that can be read once are read now, and lazy
    frames are collected."""
    if is_lazy_frame(data):
        data = data.collect()
    if isinstance(data, pa.RecordBatchReader):
        data = data.read_all()
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if isinstance(data, pa.Table):
        if not is_misread(data.schema):
            return data
        return pa.Table.from_batches(map(unsliced, data.to_batches()), data.schema)
    if isinstance(data, list):
        return pa.Table.from_pylist(data)
    if isinstance(data, dict):
        return pa.table(data)
    if re.match(r"pyarrow|pandas|polars", type(data).__module__):
        refuse_objects(data)
        return data
    if hasattr(data, "__arrow_c_stream__"):
        return UnslicedRows(data)
    raise InvalidInput(f"a {type(data).__name__} cannot be used as a table; expected Arrow data")


@dataclass(slots=True)
class Names:
    """Looks names up in a catalog; a table is loaded once, so that one statement, or one
    transaction, sees one state of it."""

    catalog: Catalog
    namespace: tuple[str, ...] = ()
    _tables: dict[str, Table] | None = None

    def fresh(self) -> Names:
        """The same with nothing loaded."""
        return Names(self.catalog, self.namespace)

    def within(self, namespace: tuple[str, ...]) -> Names:
        """The same tables, with names that start from another namespace."""
        if self._tables is None:
            self._tables = {}
        return Names(self.catalog, namespace, self._tables)

    def full(self, parts: Sequence[str]) -> str:
        """The full name of a table that need not exist."""
        if len(parts) == 1:
            if not self.namespace:
                raise InvalidInput(
                    f"{parts[0]!r} has no namespace; write namespace.{parts[0]}, or USE namespace"
                )
            parts = (*self.namespace, parts[0])
        return dotted(tuple(parts))

    def table(self, parts: Sequence[str]) -> Table:
        """A table that is written or described; branches may be named."""
        meant = self.find(parts)
        if isinstance(meant, ResolvedTable) and meant.metadata is None and not meant.changes:
            if meant.as_of is None:
                return meant.table
            raise InvalidInput(f"{'.'.join(parts)} is a tag, which cannot be changed")
        raise InvalidInput(f"{'.'.join(parts)} is not a table that can be changed")

    def find(self, parts: Sequence[str]) -> Resolved:
        """What a name means; NotFound with the nearest names."""
        for full in self._candidates(parts):
            resolved = self._exact(full)
            if resolved is not None:
                return resolved
        for full in self._candidates(parts[:-1]) if len(parts) > 1 else ():
            table = self._load(full)
            if table is not None:
                return self._inside(table, parts[-1])
        raise self._missing(parts)

    def _candidates(self, parts: Sequence[str]) -> list[tuple[str, ...]]:
        """The full names that a name may stand for, in the order they are tried."""
        names = []
        if self.namespace:
            names.append((*self.namespace, *parts))
        if len(parts) > 1:
            names.append(tuple(parts))
        elif not self.namespace:
            names += self._by_last(parts[0])
        return names

    def _by_last(self, name: str) -> list[tuple[str, ...]]:
        """A bare name, if one table of the catalog has it."""
        matching = [
            undotted(listed_name)
            for listed_name in self.catalog.list_tables()
            if undotted(listed_name)[-1] == name
        ]
        if len(matching) > 1:
            listed = ", ".join(".".join(parts) for parts in matching)
            raise InvalidInput(f"{name!r} may be {listed}; write its namespace")
        return matching

    def _exact(self, full: Sequence[str]) -> Resolved | None:
        table = self._load(full)
        if table is not None:
            return ResolvedTable(table=table)
        try:
            return ResolvedView(state=self.catalog._pointers.views.load(tuple(full)))
        except (NotFound, InvalidInput):
            return None

    def _load(self, full: Sequence[str]) -> Table | None:
        if len(full) < 2:
            return None
        name = ".".join(full)
        if self._tables is None:
            self._tables = {}
        if name not in self._tables:
            try:
                table = self.catalog.find_table(tuple(full))
            except InvalidInput:
                table = None
            if table is None:
                return None
            self._tables[name] = table._as_loaded()  # a statement sees one state
        return self._tables[name]

    def _inside(self, table: Table, part: str) -> ResolvedTable:
        if part in METADATA_TABLES:
            return ResolvedTable(table=table, metadata=part)
        if part == CHANGES:
            return ResolvedTable(table=table, changes=True)
        if part.startswith("branch_"):
            return ResolvedTable(table=table.branch(part.removeprefix("branch_"), create=False))
        if part.startswith("tag_"):
            return ResolvedTable(table=table, as_of=part.removeprefix("tag_"))
        known = (*METADATA_TABLES, CHANGES)
        raise NotFound(
            f"{table.name} has no metadata table {part!r}; there are {', '.join(known)}, "
            f"branch_<name> and tag_<name>{did_you_mean(part, known)}"
        )

    def _missing(self, parts: Sequence[str]) -> NotFound:
        name = ".".join(parts)
        hint = did_you_mean(name, self.catalog.list_tables())
        return NotFound(f"table {name} does not exist{hint}")
