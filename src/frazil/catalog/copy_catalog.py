"""Copies the names of one catalog to another: namespaces, views, and the pointers of tables.

Files of tables stay where they are; a table gets one metadata JSON file more. Two catalogs must not
write to one table, so after a copy either only one of them is written to, or the source gives its
tables up (`drop_source`): then the state in which a table left the source is what the target has.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from frazil.catalog.backend import CatalogBackend, Purged, TableHead, all_namespaces
from frazil.catalog.json_head import JsonHead
from frazil.catalog.names import Identifier, Namespace
from frazil.commit.head import Draft, Landed
from frazil.errors import AlreadyExists, CommitConflict, InvalidInput, NotFound
from frazil.storage import is_local
from frazil.text_format import counted
from frazil.value_classes import frozen


@frozen
class CatalogCopy:
    """What was copied. `known` were in the target already, as the same tables."""

    namespaces: tuple[str, ...]
    tables: tuple[str, ...]
    views: tuple[str, ...]
    known: tuple[str, ...] = ()
    is_source_dropped: bool = False

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values."""
        return {
            "namespaces": list(self.namespaces),
            "tables": list(self.tables),
            "views": list(self.views),
            "known": list(self.known),
            "source-dropped": self.is_source_dropped,
        }

    def __str__(self) -> str:
        verb = "moved" if self.is_source_dropped else "copied"
        text = f"{verb} {counted(len(self.tables), 'table')}, {counted(len(self.views), 'view')}"
        if self.known:
            text += f"; there already: {', '.join(self.known)}"
        if self.tables and not self.is_source_dropped:
            text += (
                "\nWrite to these tables through one of the catalogs only: each would delete files "
                "that the other needs. --drop-source moves them instead"
            )
        return text


def copy_catalog(
    source: CatalogBackend,
    target: CatalogBackend,
    *,
    tables: Collection[str] | None = None,
    drop_source: bool = False,
) -> CatalogCopy:
    """Copy every table and view, or the tables given by name."""
    chosen = None if tables is None else {Identifier.parse(name) for name in tables}
    names = [name for name in _tables(source) if chosen is None or name in chosen]
    for name in (chosen or set()) - set(names):
        raise NotFound(f"table {name} does not exist in the source")
    heads = {name: source.load(name) for name in names}
    for name, head in heads.items():
        _check_reachable(name, head, target)
    copied_names = [name for name, head in heads.items() if _is_there(target, name, head)]
    namespaces = [
        namespace
        for namespace in all_namespaces(source)
        if chosen is None or any(name.namespace == namespace for name in names)
    ]
    for namespace in namespaces:
        _copy_namespace(source, target, namespace)
    copied = [name for name in names if name not in copied_names]
    for name in copied:
        _copy_table(heads[name], target)
    views = [] if chosen is not None else _copy_views(source, target, namespaces)
    if drop_source:
        for name in names:
            _take_over(target, source.purge(name), heads[name])
        for view in views:
            source.views.drop(view)
    return CatalogCopy(
        namespaces=tuple(".".join(namespace) for namespace in namespaces),
        tables=tuple(map(str, copied)),
        views=tuple(map(str, views)),
        known=tuple(map(str, copied_names)),
        is_source_dropped=drop_source,
    )


def _tables(source: CatalogBackend) -> Iterator[Identifier]:
    for namespace in all_namespaces(source):
        yield from source.list_tables(namespace)


def _check_reachable(name: Identifier, head: TableHead, target: CatalogBackend) -> None:
    """Refuse a table that users of the target could not reach."""
    location = head.state.metadata.location
    if is_local(location) and target.warehouse is not None and not is_local(target.warehouse):
        raise InvalidInput(
            f"{name}: its files are on this machine ({location}), where users of the target cannot "
            "read them. Copy the table there first: table.copy_to(…). Nothing was copied"
        )


def _copy_namespace(source: CatalogBackend, target: CatalogBackend, namespace: Namespace) -> None:
    try:
        target.namespaces.create(namespace, source.namespaces.properties(namespace))
    except AlreadyExists:
        return


def _is_there(target: CatalogBackend, name: Identifier, head: TableHead) -> bool:
    """Whether the target has the table; another table of its name is refused."""
    if target.views.exists(name):
        raise AlreadyExists(f"{name}: the target has a view of this name. Nothing was copied")
    if not target.table_exists(name):
        return False
    if target.load(name).state.metadata.table_uuid != head.state.metadata.table_uuid:
        raise AlreadyExists(
            f"{name}: the target has another table of this name; rename one of them. Nothing was "
            "copied"
        )
    return True


def _copy_table(head: TableHead, target: CatalogBackend) -> None:
    if isinstance(head, JsonHead):
        assert head.state.metadata_location is not None
        target.register(head.identifier, head.state.metadata_location)
    else:
        target.create_table(head.identifier, head.state.metadata, head.history())


def _copy_views(
    source: CatalogBackend, target: CatalogBackend, namespaces: Collection[Namespace]
) -> list[Identifier]:
    copied = []
    for namespace in namespaces:
        for name in source.views.list(namespace):
            if not target.views.exists(name):
                target.views.create(name, source.views.load(name).metadata)
                copied.append(name)
    return copied


def _take_over(target: CatalogBackend, left: Purged, copied: TableHead) -> None:
    """Give the target what landed in the source after the table was copied."""
    head = target.load(left.identifier)
    if isinstance(head, JsonHead) or left.metadata == copied.state.metadata:
        return
    stored_ids = {int(snapshot.snapshot_id) for snapshot in head.snapshots()}
    left_ids = {int(snapshot.snapshot_id) for snapshot in left.history.snapshots}
    draft = Draft(
        metadata=left.metadata,
        added_snapshots=tuple(
            snapshot
            for snapshot in left.history.snapshots
            if int(snapshot.snapshot_id) not in stored_ids
        ),
        removed_snapshot_ids=tuple(sorted(stored_ids - left_ids)),
    )
    if not isinstance(head.swap(head.load(), draft), Landed):
        raise CommitConflict(
            f"{left.identifier}: was changed in the target while it was copied; its newest "
            f"metadata in the source was {left.metadata_location}"
        )
