"""The part of a table that looks after its history: changes, care, comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from pyiceberg.schema import Schema

from frazil.commit.handle import TableHandle
from frazil.data.columns import with_dropped
from frazil.data.read import Reading, name_mapping_of
from frazil.errors import InvalidInput, NotFound
from frazil.format.metadata import Snapshot
from frazil.scan.changes import Changes
from frazil.table import refs
from frazil.table.scan import select_columns

AsOf = int | str | datetime | Snapshot


class HistoryOperations:
    """What changed, and keeping a table healthy."""

    handle: TableHandle
    branch_name: str

    # Changes

    def changes(
        self,
        since: AsOf | None = None,
        until: AsOf | None = None,
        *,
        columns: Sequence[str] | None = None,
        collapse: bool = False,
        pair_updates: bool = True,
    ) -> Changes:
        """What changed after `since`, up to and with `until`; lazily.

        Both are snapshot ids, branches, tags or times. Without `since` it is everything from the
        beginning; where old snapshots have expired, the oldest one that is left counts as inserted
        whole. `collapse` gives the difference in the end instead of every step, by row id.

        >>> orders.changes(since="yesterday").to_arrow()                     # doctest: +SKIP
        """
        handle = replace(self.handle)
        last = handle.tip(self.branch_name) if until is None else self._at(until)
        first = None if since is None else self._since(since)
        chain, is_whole = _chain(handle, first, last)
        schema = handle.metadata.schema()
        if until is not None and last is not None:
            schema = handle.metadata.schema_of(last)
        return Changes(
            reader=handle.reader(),
            reading=self._feed_reading(schema, columns),
            since=first,
            snapshots=tuple(chain),
            collapse=collapse,
            pair_updates=pair_updates,
            is_whole=is_whole,
        )

    def _at(self, as_of: AsOf) -> Snapshot:
        return refs.resolve(self.handle, as_of, branch=self.branch_name)

    def _since(self, since: AsOf) -> Snapshot | None:
        """The snapshot to start after; a time before the first one is the beginning."""
        try:
            return self._at(since)
        except NotFound:
            if not _is_time(since, self.handle):
                raise
            return None

    def _feed_reading(self, schema: Schema, columns: Sequence[str] | None) -> Reading:
        metadata = self.handle.metadata
        chosen = schema
        if columns is not None:
            chosen = select_columns(schema, columns, specs=metadata.partition_specs)
        return Reading(
            storage=self.handle.storage,
            schema=chosen,
            table_schema=with_dropped(schema, metadata.schemas),
            specs=metadata.specs_by_id(),
            name_mapping=name_mapping_of(metadata.properties),
        )


def _is_time(since: AsOf, handle: TableHandle) -> bool:
    if isinstance(since, datetime):
        return True
    if not isinstance(since, str) or since in handle.metadata.refs or since.isdigit():
        return False
    try:
        datetime.fromisoformat(since)
    except ValueError:
        return False
    return True


def _chain(
    handle: TableHandle, since: Snapshot | None, until: Snapshot | None
) -> tuple[list[Snapshot], bool]:
    """Snapshots after one up to another, oldest first, and whether something lies before them."""
    chain: list[Snapshot] = []
    for snapshot in refs.ancestors(handle, until):
        if since is not None and snapshot.snapshot_id == since.snapshot_id:
            return chain[::-1], False
        chain.append(snapshot)
    expired = bool(chain) and chain[-1].parent_snapshot_id is not None
    if since is not None:
        end = "nothing" if until is None else f"snapshot {until.snapshot_id}"
        reason = (
            f"the snapshots before {chain[-1].snapshot_id} have expired"
            if expired
            else "it is not in its history"
        )
        raise InvalidInput(
            f"{handle.name}: changes from snapshot {since.snapshot_id} to {end} cannot be told: "
            f"{reason}"
        )
    return chain[::-1], expired
