"""A Paimon table opened for reading: its history, its rows and its changes. Nothing is written."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa

from frazil.argument_checks import check_arguments
from frazil.errors import NotFound
from frazil.filter.condition import Where
from frazil.paimon.read import overview
from frazil.paimon.read.paimon_table import PaimonTable
from frazil.paimon.read.snapshot import PaimonSnapshot
from frazil.paimon.scan.changelog import PaimonChanges, changes
from frazil.paimon.scan.paimon_scan import PaimonScan
from frazil.text_format import did_you_mean
from frazil.value_classes import dataclass


@check_arguments
@dataclass(frozen=True)
class PaimonSource:
    """A Paimon table, or one of its branches, as Frazil reads it in place."""

    table: PaimonTable

    def __repr__(self) -> str:
        branch = "" if self.table.branch is None else f", branch {self.table.branch}"
        return f"PaimonSource({self.table.location}{branch})"

    @property
    def schema(self) -> pa.Schema:
        """The columns of the newest snapshot."""
        return self.scan().arrow_schema

    def snapshots(self) -> pa.Table:
        """One row per snapshot that is still there, oldest first."""
        return overview.snapshots(self.table)

    def tags(self) -> pa.Table:
        """One row per tag."""
        return overview.tags(self.table)

    def branches(self) -> pa.Table:
        """`main` and all other branches."""
        return overview.branches(self.table)

    def files(self, *, as_of: int | str | date | None = None) -> pa.Table:
        """The data files of a snapshot with partitions and statistics."""
        return overview.state_files(self.table, self.table.state(self._snapshot(as_of)))

    def on_branch(self, branch: str) -> PaimonSource:
        """The same table, seen from a branch."""
        return PaimonSource(self.table.on_branch(branch))

    def scan(
        self,
        where: Where = None,
        *,
        columns: Sequence[str] | None = None,
        as_of: int | str | date | None = None,
        limit: int | None = None,
        params: Sequence[Any] = (),
    ) -> PaimonScan:
        """Rows that match. `as_of` is a snapshot id, a tag or a time; none is the newest."""
        chosen = None if columns is None else tuple(columns)
        scan = PaimonScan(self.table, self._snapshot(as_of), where, chosen, None, tuple(params))
        return scan if limit is None else scan.limit(limit)

    def changes(
        self,
        *,
        since: int | str | date | None = None,
        until: int | str | date | None = None,
        columns: Sequence[str] | None = None,
    ) -> PaimonChanges:
        """The rows that commits after `since`, up to `until`, changed; by default all of them."""
        last = self._snapshot(until)
        first = 0 if since is None else self._snapshot(since).id
        ids = [number for number in self.table.snapshot_ids() if first < number <= last.id]
        return changes(self.table, [self.table.snapshot(number) for number in ids], columns)

    def _snapshot(self, as_of: int | str | date | None) -> PaimonSnapshot:
        if as_of is None:
            return self.table.snapshot()
        if isinstance(as_of, int):
            return self._numbered(as_of)
        if isinstance(as_of, date):
            return self._at(as_of)
        tags = {tag.name: tag.snapshot for tag in self.table.tags()}
        if as_of in tags:
            return tags[as_of]
        if as_of.isascii() and as_of.isdigit():
            return self._numbered(int(as_of))
        try:
            return self._at(datetime.fromisoformat(as_of))
        except ValueError:
            raise NotFound(
                f"{self.table.location}: {as_of!r} is not a tag, snapshot id or time; tags: "
                f"{', '.join(tags) or 'none'}{did_you_mean(as_of, list(tags))}"
            ) from None

    def _numbered(self, number: int) -> PaimonSnapshot:
        for tag in self.table.tags():
            if tag.snapshot.id == number:
                return tag.snapshot
        ids = self.table.snapshot_ids()
        if number not in ids:
            range_text = f"{ids[0]} to {ids[-1]}" if ids else "none"
            raise NotFound(f"{self.table.location}: no snapshot {number}; there are {range_text}")
        return self.table.snapshot(number)

    def _at(self, moment: date) -> PaimonSnapshot:
        """The newest snapshot that was there at a time; times without a zone are UTC."""
        if not isinstance(moment, datetime):
            moment = datetime(moment.year, moment.month, moment.day)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        at_ms = moment.timestamp() * 1000
        for snapshot in reversed(self.table.snapshots()):
            if snapshot.time_ms <= at_ms:
                return snapshot
        raise NotFound(f"{self.table.location}: no snapshot is as old as {moment.isoformat()}")


def open_paimon(
    path: str | os.PathLike[str],
    *,
    branch: str | None = None,
    properties: Mapping[str, str] | None = None,
) -> PaimonSource:
    """Open a Paimon table for reading, without adopting it and without writing to it.

    >>> orders = frazil.open_paimon("paimon/shop.db/orders")          # doctest: +SKIP
    >>> orders.scan("price > 10", as_of="v1").to_arrow()              # doctest: +SKIP
    """
    return PaimonSource(PaimonTable.open(os.fspath(path), properties=properties, branch=branch))
