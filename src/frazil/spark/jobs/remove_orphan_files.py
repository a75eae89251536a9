"""Remove files that no snapshot reaches, with executors listing folders."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa

from frazil.maintenance.progress import Progress, silent
from frazil.maintenance.removal.listing import Browsable, FolderPart, by_folder
from frazil.maintenance.removal.orphans import Orphans
from frazil.maintenance.removal.orphans import remove_orphan_files as remove
from frazil.spark.jobs.bars import progress_bars
from frazil.spark.jobs.deletion import ExecutorDeleter
from frazil.spark.session.executor_tasks import received, spread
from frazil.spark.session.find_table import CatalogLike, session, table_of
from frazil.storage import Storage
from frazil.table.table import Table
from frazil.value_classes import dataclass

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ENOUGH_FOLDERS = 64
_MAX_LEVELS = 4


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
    with progress_bars(f"orphans of {target.name}", visible=progress) as report:
        return remove(
            target._handle,
            older_than_ms=before,
            location=location,
            dry_run=dry_run,
            lister=_OnExecutors(spark),
            deleter=ExecutorDeleter(spark),
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
    ) -> list[FolderPart]:
        """Every file below a folder."""
        files: list[FolderPart] = []
        folders: Sequence[str] = [folder]
        if isinstance(storage, Browsable):
            for _ in range(_MAX_LEVELS):
                children = [storage.children(child) for child in folders]
                files += [part for _, direct in children for part in by_folder(direct)]
                folders = [below for inner, _ in children for below in inner]
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
            data = pickle.dumps(list(by_folder(self.storage.list(folder))))
            yield pa.RecordBatch.from_arrays([pa.array([data], pa.binary())], names=["found"])
