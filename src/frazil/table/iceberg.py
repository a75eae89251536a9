"""The part of a table that deals with Iceberg's older versions: upgrade, and publish back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from frazil.commit.handle import TableHandle
from frazil.entrance import entrance
from frazil.table import refs
from frazil.table.refs import AsOf

if TYPE_CHECKING:
    from frazil.legacy.publish import Published
    from frazil.legacy.upgrade import UpgradeReport


@entrance
class IcebergOperations:
    """What other Iceberg engines wrote, and what they are given to read."""

    _handle: TableHandle
    branch_name: str

    def upgrade(self, *, dry_run: bool = False) -> UpgradeReport:
        """Upgrade a v1, v2 or v3 table to format-version 4 in place; `dry_run` only reports.

        No manifest and no data file is rewritten, and old snapshots stay readable.
        """
        from frazil.legacy.upgrade import upgrade

        return upgrade(self._handle, dry_run=dry_run)

    def publish(
        self,
        *,
        format_version: int | None = None,
        snapshot: AsOf | None = None,
    ) -> Published:
        """Write a snapshot, by default the current one, as Iceberg v2 or v3 metadata.

        The version defaults to the property `publish.format-version`, else 3. With the property
        set, every commit on `main` is published.
        """
        from frazil.legacy.publish import publish
        from frazil.legacy.publish_property import FORMAT_PROPERTY

        if format_version is None:
            asked = self._handle.metadata.properties.get(FORMAT_PROPERTY, "3")
            format_version = int(asked) if asked.isdigit() else 0
        at = None
        if snapshot is not None:
            at = refs.resolve(self._handle, snapshot, branch=self.branch_name)
        return publish(self._handle, format_version=format_version, snapshot=at)
