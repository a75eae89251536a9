"""What every catalog answers: namespaces, tables by name, and one head per table.

A head (`frazil.commit.head.Head`) loads a table's state and swaps it by compare-and-set. Loading
costs the same however long the history is: it brings the metadata and the snapshots that refs
name, nothing else. `sql` implements it (SQLite, PostgreSQL), and tests have one in memory; one
contract suite runs on all of them. Nothing here deletes a table's files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from frazil.catalog.export import json_every
from frazil.catalog.names import Identifier, Namespace, dotted
from frazil.catalog.notes import Notes
from frazil.catalog.ownership import OtherTables
from frazil.commit.head import Draft, Head, Outcome, State
from frazil.errors import (
    AlreadyExists,
    CommitConflict,
    FormatError,
    InvalidInput,
    NotFound,
    Unsupported,
)
from frazil.format.metadata.metadata import FORMAT_VERSION, History, SnapshotId, TableMetadata
from frazil.storage import Storage
from frazil.value_classes import frozen

ViewName = str | tuple[str, ...] | Identifier


@frozen
class ViewState:
    """A view as loaded; `version` counts its changes."""

    identifier: Identifier
    metadata: Mapping[str, Any]
    version: int


class Views(Protocol):
    """Views by name."""

    def create(self, identifier: ViewName, metadata: Mapping[str, Any]) -> ViewState:
        """Enter a view; AlreadyExists when a table or view has the name."""

    def load(self, identifier: ViewName) -> ViewState:
        """A view; NotFound when it does not exist."""

    def exists(self, identifier: ViewName) -> bool:
        """Whether the view exists."""

    def list(self, namespace: str | Namespace) -> list[Identifier]:
        """The views of a namespace, sorted."""

    def replace(self, base: ViewState, metadata: Mapping[str, Any]) -> ViewState:
        """Store new metadata; CommitConflict when `base` is not current any more."""

    def rename(self, identifier: ViewName, to: ViewName) -> None:
        """Give a view another name."""

    def drop(self, identifier: ViewName) -> None:
        """Remove a view; NotFound when it does not exist."""


def checked_name(name: ViewName, namespace_exists: Callable[[Namespace], bool]) -> Identifier:
    """The name of a new view, whose namespace must exist."""
    parsed = Identifier.parse(name)
    if not namespace_exists(parsed.namespace):
        raise NotFound(f"{parsed}: namespace {dotted(parsed.namespace)} does not exist")
    return parsed


def name_taken(identifier: Identifier) -> AlreadyExists:
    """The error for a name in use."""
    return AlreadyExists(f"{identifier}: a table or view has this name already")


def no_view(identifier: Identifier) -> NotFound:
    """The error for a view that does not exist."""
    return NotFound(f"view {identifier} does not exist")


def view_moved(base: ViewState) -> CommitConflict:
    """The error for a view that changed after it was loaded."""
    return CommitConflict(
        f"view {base.identifier} was replaced or dropped in the meantime; load it again"
    )


def view_text(metadata: Mapping[str, Any], name: str) -> str:
    """The SQL a view was made with."""
    current = metadata.get("current-version-id")
    for version in metadata.get("versions", ()):
        if version.get("version-id") == current:
            for representation in version.get("representations", ()):
                return str(representation["sql"])
    raise NotFound(f"view {name} has no SQL")


TableName = str | Sequence[str] | Identifier
NamespaceName = str | Sequence[str]


@frozen
class Purged:
    """A table that was dropped from the catalog, with what is needed to know which files it
    owned."""

    identifier: Identifier
    metadata: TableMetadata
    history: History
    metadata_location: str | None


@frozen
class TableVersion:
    """A sign of life of one table: `version` is another text after every change, and
    `committed_ms` are the times at which a snapshot became current."""

    identifier: Identifier
    version: str
    committed_ms: tuple[int, ...] = ()


class TableHead(Head, Protocol):
    """The head of one table of a catalog. Follows the table when it is renamed."""

    @property
    def identifier(self) -> Identifier:
        """The name it was loaded by."""

    @property
    def state(self) -> State:
        """What this head saw last; makes no request."""

    @property
    def notes(self) -> Notes:
        """Small texts kept beside the table; gone when it is dropped."""

    def history(self) -> History:
        """Every snapshot and both logs; costs what the history is long."""

    def snapshot_id_as_of(self, timestamp_ms: int) -> SnapshotId | None:
        """The snapshot that was current at a time, by the snapshot log."""

    def export(self) -> str:
        """Write the metadata JSON of the current version now; returns its location."""

    def stored_problems(self, *, repair: bool = False) -> tuple[FormatError, ...]:
        """Values in the catalog that cannot be used and are left out when the table is loaded;
        `repair` stores what was loaded in their place."""

    def neighbourhood(self) -> OtherTables:
        """The other tables around it, for deciding which files are its own."""


class Namespaces(Protocol):
    """Namespaces by name, with their properties."""

    def create(self, namespace: NamespaceName, properties: Mapping[str, str] | None = None) -> None:
        """Make a namespace; AlreadyExists when it is there."""

    def children(self, parent: NamespaceName = ()) -> list[Namespace]:
        """The namespaces one level below a parent, sorted."""

    def exists(self, namespace: NamespaceName) -> bool:
        """Whether it was created, or something lies below it."""

    def properties(self, namespace: NamespaceName) -> dict[str, str]:
        """Its properties."""

    def set_properties(
        self, namespace: NamespaceName, updates: Mapping[str, str], *, removals: Iterable[str] = ()
    ) -> None:
        """Set and remove properties."""

    def drop(self, namespace: NamespaceName) -> None:
        """Remove an empty namespace; InvalidInput when it still holds something."""


def all_namespaces(pointers: CatalogBackend) -> list[Namespace]:
    """Every namespace of a catalog, sorted."""
    pending: list[Namespace] = [()]
    namespaces: list[Namespace] = []
    while pending:
        children = pointers.namespaces.children(pending.pop())
        namespaces += children
        pending += children
    return sorted(namespaces)


class CatalogBackend(Protocol):
    """Namespaces and tables by name."""

    @property
    def name(self) -> str:
        """The catalog's own name; several may share one database."""

    @property
    def warehouse(self) -> str | None:
        """Where tables go that are given no location."""

    @property
    def notes(self) -> Notes:
        """Small texts kept beside the catalog itself."""

    @property
    def namespaces(self) -> Namespaces:
        """Its namespaces."""

    @property
    def views(self) -> Views:
        """Its views."""

    def storage(self, location: str) -> Storage:
        """The storage that serves a location, with this catalog's properties."""

    def location_for(self, identifier: TableName) -> str:
        """An unused location for a new table with this name."""

    def create_table(
        self, identifier: TableName, metadata: TableMetadata, history: History | None = None
    ) -> TableHead:
        """Enter a table, with its history if it has one already."""

    def register(
        self, identifier: TableName, metadata_location: str, *, location: str | None = None
    ) -> TableHead:
        """Enter a table from its metadata JSON. A copied or moved v4 table opens where the JSON is;
        `location` says otherwise."""

    def load(self, identifier: TableName) -> TableHead:
        """The head of a table, loaded; NotFound when there is none."""

    def table_exists(self, identifier: TableName) -> bool:
        """Whether a table with this name exists."""

    def list_tables(self, namespace: NamespaceName) -> list[Identifier]:
        """The tables of a namespace, sorted."""

    def table_versions(self, since_ms: int | None = None) -> list[TableVersion]:
        """Every table of the catalog with its version, sorted, in one request; with `since_ms` also
        the times of commits from then on, in one more. Tables of v1 to v3 have no such times."""

    def upgrade(self, identifier: TableName, base: State, metadata: TableMetadata) -> Outcome:
        """Swap a v1-v3 table for its v4 metadata, if `base` is still what the catalog holds."""

    def swap_all(self, swaps: Sequence[tuple[TableHead, State, Draft]]) -> Outcome:
        """Swap the heads of several tables of this catalog: all of them, or none.

        As for one head, an error that is raised means that nothing landed.
        """

    def rename(self, identifier: TableName, to: TableName) -> None:
        """Give a table another name; its files stay where they are."""

    def drop(self, identifier: TableName) -> None:
        """Take a table out of the catalog and leave its files."""

    def purge(self, identifier: TableName) -> Purged:
        """Take a table out of the catalog and say what it was, so its files can be deleted."""

    def close(self) -> None:
        """Give connections back; the catalog cannot be used afterwards."""


def gone(identifier: Identifier, is_taken: Callable[[Identifier], bool] | None) -> NotFound:
    """The error for a table that is not there any more; another one may have its name."""
    if is_taken is not None and is_taken(identifier):
        return NotFound(
            f"{identifier}: the table was dropped and another was created under its name. "
            "Load it with catalog.load_table to use the new one"
        )
    return NotFound(f"{identifier}: the table was dropped")


def check_draft(base: TableMetadata, draft: Draft) -> None:
    """Refuse a draft that no catalog could store, or whose definition cannot follow its base."""
    metadata = draft.metadata
    if metadata.format_version < FORMAT_VERSION:
        raise Unsupported(
            f"{metadata.location}: format-version {metadata.format_version} is not written; "
            "upgrade the table first",
            feature=f"writing format-version {metadata.format_version}",
        )
    if (base.shape, base.properties) != (metadata.shape, metadata.properties):
        # Loaded here: most commits leave the definition as it is.
        from frazil.format.metadata.definition_checks import check_definition

        check_definition(base, metadata, keeps_rows=not _replaces_rows(draft))
    json_every(metadata)  # a setting that cannot be read is refused before anything lands
    removed = set(draft.removed_snapshot_ids)
    holders = [name for name, ref in metadata.refs.items() if ref.snapshot_id in removed]
    if holders:
        raise InvalidInput(f"snapshots to be removed are still named by {', '.join(holders)}")


def _replaces_rows(draft: Draft) -> bool:
    """Whether `main` is left without what it held: it has no snapshot, or one without a past."""
    added = {int(snapshot.snapshot_id): snapshot for snapshot in draft.added_snapshots}
    number = draft.metadata.current_snapshot_id
    while number is not None:
        snapshot = added.get(int(number))
        if snapshot is None:
            return False
        number = snapshot.parent_snapshot_id
    return True
