"""Remove files that no snapshot reaches, with executors listing folders."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa

from frazil.maintenance.listing import Browsable
from frazil.maintenance.orphans import Orphans
from frazil.maintenance.orphans import remove_orphan_files as remove
from frazil.maintenance.progress import Progress, silent
from frazil.spark.find_table import CatalogLike, session, table_of
from frazil.spark.jobs.bars import progress_bars
from frazil.spark.shipping import received, spread
from frazil.storage import FileInfo, Storage
from frazil.table.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ENOUGH_FOLDERS = 64
_MOST_LEVELS = 4


def remove_orphan_files(
    table: Table | str,
    *,
    older_than: datetime | None = None,
    location: str | None = None,
    dry_run: bool = False,
    catalog: CatalogLike | None = None,
    progress: bool | None = None,
) -> Orphans:
    """Delete files below the table, or in one of its folders, that no snapshot references and
    that are older than `older_than` (default: three days). `dry_run` only reports them."""
    spark = session()
    target = table_of(spark, table, catalog)
    before = None if older_than is None else _ms(older_than)
    with progress_bars(f"orphans of {target.name}", shown=progress) as report:
        return remove(
            target._handle,
            older_than_ms=before,
            location=location,
            dry_run=dry_run,
            lister=_OnExecutors(spark),
            progress=report,
        )


def _ms(moment: datetime) -> int:
    """A time without a zone is UTC."""
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return int(aware.timestamp() * 1000)


@dataclass(frozen=True, slots=True)
class _OnExecutors:
    """Lists folders below a folder with a Spark job."""

    spark: SparkSession

    def __call__(
        self, storage: Storage, folder: str, /, *, progress: Progress = silent
    ) -> list[FileInfo]:
        """Every file below a folder."""
        files: list[FileInfo] = []
        folders: Sequence[str] = [folder]
        if isinstance(storage, Browsable):
            for _ in range(_MOST_LEVELS):
                found = [storage.children(each) for each in folders]
                files += [file for _, direct in found for file in direct]
                folders = [below for inner, _ in found for below in inner]
                if not folders or len(folders) >= _ENOUGH_FOLDERS:
                    break
        if not folders:
            return files
        progress(0, len(folders), "folders listed")
        rows = spread(self.spark, list(folders)).mapInArrow(_Listing(storage).run, "found binary")
        for row in rows.collect():
            files += pickle.loads(bytes(row["found"]))
        progress(len(folders), len(folders), "folders listed")
        return files


@dataclass(frozen=True, slots=True)
class _Listing:
    """Lists folders; travels to executors."""

    storage: Storage

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One row per folder."""
        for folder in received(batches):
            data = pickle.dumps(list(self.storage.list(folder)))
            yield pa.RecordBatch.from_arrays([pa.array([data], pa.binary())], names=["found"])
