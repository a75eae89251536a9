"""Upgrade in place: a table of v1 to v3, or of Java's interim v4, becomes format-version 4.

The catalog entry is swapped for v4 metadata in one transaction; manifests and data files stay as
they are, and old snapshots keep their manifest lists. Everything that could stand in the way is
checked first, so a table is upgraded completely or not at all. The next commit writes a root that
points at the old manifests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from frazil.catalog.backend import CatalogBackend
from frazil.catalog.export import as_spelled
from frazil.catalog.json_head import JsonHead
from frazil.commit.handle import TableHandle, now_ms
from frazil.commit.head import Landed, State, Unknown
from frazil.errors import CommitConflict, CommitUnknown, InvalidInput, NotFound, Unsupported
from frazil.format import paths
from frazil.format.checks import check_not_encrypted
from frazil.format.entries.fields import ContentType
from frazil.format.metadata.metadata import (
    FORMAT_VERSION,
    History,
    MetadataLogEntry,
    Snapshot,
    TableMetadata,
)
from frazil.text_format import counted
from frazil.tree.read import LeafRef, TreeReader
from frazil.value_classes import frozen, replace

_ATTEMPTS = 5


@frozen
class UpgradeReport:
    """What an upgrade did or, as a dry run, would do. Counts are those of the named snapshots."""

    table: str
    from_version: int
    is_dry_run: bool
    snapshots: int
    manifests: int
    delete_manifests: int
    data_files: int
    delete_files: int
    derived_columns: tuple[str, ...]
    metadata_location: str | None
    notes: tuple[str, ...]

    def __str__(self) -> str:
        verb = "would become" if self.is_dry_run else "is now"
        lines = [
            f"{self.table}: format-version {self.from_version} {verb} {FORMAT_VERSION}",
            f"  still readable: {counted(self.snapshots, 'snapshot')}",
            f"  kept as they are: {_manifests(self.manifests, 'data manifest', self.data_files)}, "
            + _manifests(self.delete_manifests, "delete manifest", self.delete_files),
        ]
        if self.derived_columns:
            lines.append(f"  derived columns: {', '.join(self.derived_columns)}")
        if self.metadata_location is not None:
            lines.append(f"  metadata: {self.metadata_location}")
        return "\n".join([*lines, *(f"  {note}" for note in self.notes)])


def _manifests(count: int, noun: str, files: int) -> str:
    return f"{counted(count, noun)} ({counted(files, 'file')})" if count else f"no {noun}s"


def upgrade(handle: TableHandle, *, dry_run: bool = False) -> UpgradeReport:
    """Make a table format-version 4 where it is; afterwards the handle can be committed to.

    Raises before anything is changed.
    """
    head = handle.head
    if not isinstance(head, JsonHead):
        raise InvalidInput(f"{handle.name}: already has format-version {FORMAT_VERSION}")
    for _ in range(_ATTEMPTS):
        base = head.load()
        handle.state = base
        report = _checked(handle, head, base, is_dry_run=dry_run)
        if dry_run:
            return report
        catalog = head.catalog
        if catalog is None:
            raise Unsupported(
                f"{handle.name}: no Frazil catalog holds it. Load it from one on the same "
                "database, or enter it with "
                f"catalog.register_table(name, {base.metadata_location!r}), and upgrade it there",
                feature="upgrade without a catalog",
            )
        metadata = base.metadata.upgraded(now_ms=max(now_ms(), base.metadata.last_updated_ms))
        metadata = as_spelled(replace(metadata, format_version=FORMAT_VERSION), head.history())
        outcome = catalog.upgrade(head.identifier, base, metadata)
        if isinstance(outcome, Landed):
            return _landed(handle, catalog, head, report)
        if isinstance(outcome, Unknown):
            return _looked_up(handle, catalog, head, report, outcome.cause)
    raise CommitConflict(
        f"{handle.name}: other writers kept committing while it was upgraded ({_ATTEMPTS} "
        "attempts); nothing was changed. Pause them and repeat."
    )


def upgraded_unregistered(
    name: str,
    metadata_location: str,
    metadata: TableMetadata,
    history: History,
    reader: Callable[[TableMetadata], TreeReader],
) -> tuple[TableMetadata, History]:
    """What a table of v1 to v3 that no catalog holds yet becomes: v4 metadata and its history.

    Raises when it cannot be upgraded, as `upgrade` does.
    """
    _check_supported(name, metadata, history.snapshots)
    changed = metadata.upgraded(now_ms=max(now_ms(), metadata.last_updated_ms))
    changed = as_spelled(replace(changed, format_version=FORMAT_VERSION), history)
    ref_targets = {ref.snapshot_id for ref in metadata.refs.values()}
    _leaves(
        reader(changed),
        [snapshot for snapshot in history.snapshots if snapshot.snapshot_id in ref_targets],
    )
    entry = MetadataLogEntry(metadata_file=metadata_location, timestamp_ms=metadata.last_updated_ms)
    return changed, replace(history, metadata_log=(*history.metadata_log, entry))


def _landed(
    handle: TableHandle, catalog: CatalogBackend, head: JsonHead, report: UpgradeReport
) -> UpgradeReport:
    now = catalog.load(head.identifier)
    handle.head, handle.state = now, now.state
    handle.context = replace(handle.context, location=now.state.metadata.location)
    return replace(report, metadata_location=now.state.metadata_location)


def _looked_up(
    handle: TableHandle,
    catalog: CatalogBackend,
    head: JsonHead,
    report: UpgradeReport,
    cause: Exception,
) -> UpgradeReport:
    """After a lost reply: the catalog says which of the two tables it holds."""
    if isinstance(catalog.load(head.identifier), JsonHead):
        raise CommitUnknown(
            f"{handle.name}: the connection was lost while it was upgraded ({cause}), and it is "
            "still as before; look again before repeating"
        ) from cause
    return _landed(handle, catalog, head, report)


# --- checks ----------------------------------------------------------------------------------


def _checked(
    handle: TableHandle, head: JsonHead, base: State, *, is_dry_run: bool
) -> UpgradeReport:
    """What will happen; raises when the table cannot be upgraded."""
    snapshots = tuple(head.snapshots())
    metadata = base.metadata
    _check_supported(handle.name, metadata, snapshots)
    leaves = _leaves(handle.reader(), base.snapshots.values())
    data = [leaf for leaf in leaves if leaf.content_type is ContentType.DATA_MANIFEST]
    deletes = [leaf for leaf in leaves if leaf.content_type is ContentType.DELETE_MANIFEST]
    return UpgradeReport(
        table=handle.name,
        from_version=metadata.format_version,
        is_dry_run=is_dry_run,
        snapshots=len(snapshots),
        manifests=len(data),
        delete_manifests=len(deletes),
        data_files=sum(leaf.record_count for leaf in data),
        delete_files=sum(leaf.record_count for leaf in deletes),
        derived_columns=tuple(f"{c.name} = {c.transform}" for c in metadata.expressions),
        metadata_location=None,
        notes=tuple(_notes(metadata, deletes)),
    )


def _check_supported(name: str, metadata: TableMetadata, snapshots: Iterable[Snapshot]) -> None:
    if any(snapshot.root_manifest is not None for snapshot in snapshots):
        raise InvalidInput(
            f"{name}: already has format-version {FORMAT_VERSION}, with roots; register its "
            "metadata file instead"
        )
    check_not_encrypted(name, metadata.properties, metadata.extra)


def _leaves(reader: TreeReader, snapshots: Iterable[Snapshot]) -> tuple[LeafRef, ...]:
    """The manifests of the snapshots that branches and tags name; each must be there."""
    by_location: dict[str, LeafRef] = {}
    for snapshot in snapshots:
        for leaf in reader.tree(snapshot).leaves():
            by_location.setdefault(leaf.location, leaf)
    leaves = tuple(by_location.values())
    addresses = [paths.resolve(reader.location, leaf.location) for leaf in leaves]
    there = reader.map(addresses, reader.storage.exists)
    missing = [path for path, exists in zip(addresses, there, strict=True) if not exists]
    if missing:
        raise NotFound(
            f"{len(missing)} of {len(leaves)} manifests are missing, {missing[0]} among them; "
            "the table is damaged and was not upgraded"
        )
    return leaves


def _notes(metadata: TableMetadata, deletes: list[LeafRef]) -> Iterable[str]:
    if metadata.format_version < 3 and metadata.refs:
        yield "existing rows get row ids at the first commit"
    if deletes:
        yield "position deletes become deletion vectors when their manifests are rewritten"


__all__ = ["UpgradeReport", "upgrade", "upgraded_unregistered"]
