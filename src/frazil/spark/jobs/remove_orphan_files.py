"""Remove files that no snapshot reaches, with executors listing folders."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa

from frazil.maintenance.progress import Progress, silent
from frazil.maintenance.removal.file_deletion import Deleted, delete_all, deleted_together
from frazil.maintenance.removal.listing import Browsable, FolderPart, by_folder
from frazil.maintenance.removal.orphans import Orphans
from frazil.maintenance.removal.orphans import remove_orphan_files as remove
from frazil.spark.jobs.bars import progress_bars
from frazil.spark.session.executor_tasks import answers, received, spread
from frazil.spark.session.find_table import CatalogLike, session, table_of
from frazil.storage import Storage
from frazil.storage.base import delete_reporting
from frazil.table.table import Table
from frazil.value_classes import dataclass

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FEW = 1_000
"""The number of files that the driver deletes itself, with one request where the storage can."""
_ENOUGH_FOLDERS = 64
_MAX_LEVELS = 4


@dataclass(frozen=True, slots=True)
class ExecutorDeleter:
    """Deletes files with a Spark job."""

    spark: SparkSession

    def __call__(
        self, storage: Storage, files: Iterable[str], /, *, progress: Progress = silent
    ) -> Deleted:
        """Delete files; those that could not be are reported."""
        paths = tuple(files)
        if len(paths) <= _FEW:
            return delete_all(storage, paths, progress=progress)
        progress(0, len(paths), "files deleted")
        failed: dict[str, str] = {}
        for answer in answers(spread(self.spark, deleted_together(paths)), _Deleting(storage).run):
            failed |= pickle.loads(answer)
        progress(len(paths), len(paths), "files deleted")
        gone = tuple(path for path in paths if path not in failed)
        return Deleted(paths=gone, failed=tuple(failed.items()))


@dataclass(frozen=True, slots=True)
class _Deleting:
    """Deletes batches of files; travels to executors."""

    storage: Storage

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One row per batch: why files could not be deleted."""
        for paths in received(batches):
            problems = delete_reporting(self.storage, paths)
            reasons = pickle.dumps({path: str(problem) for path, problem in problems.items()})
            yield pa.RecordBatch.from_arrays([pa.array([reasons], pa.binary())], names=["answer"])


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
