"""Delete many files with executors: a batch is what one request of the storage may delete."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from frazil.maintenance.progress import Progress, silent
from frazil.maintenance.removal.file_deletion import Deleted, delete_all, deleted_together
from frazil.spark.session.executor_tasks import answers, received, spread
from frazil.storage import Storage
from frazil.storage.base import delete_reporting
from frazil.value_classes import dataclass

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FEW = 1_000
"""The number of files that the driver deletes itself, with one request where the storage can."""


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
