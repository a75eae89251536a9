"""Python values as rows of a frame, so that work reaches executors as data.

One row is one unit of work; `spread` gives every row a partition of its own. What is shipped is
pickled and needs nothing but the package at the other end.
"""

from __future__ import annotations

import gc
import pickle
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.errors import PySparkException

from frazil.errors import FrazilError, InvalidInput
from frazil.value_classes import dataclass

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_COLUMN, _ANSWER = "work", "answer"
_MAX_PARTITIONS = 10_000
_aside = [0]
"""How many modules this process had when they were set aside."""
_REFUSAL = re.compile(r"^frazil\.errors\.(\w+): (.+(?:\n  .+)*)$", re.MULTILINE)
"""The last lines of a trace: a message, and what it lists in lines of its own."""


def spread(spark: SparkSession, work: Sequence[Any]) -> DataFrame:
    """A frame with one row, and as far as that goes one partition, per unit of work."""
    rows = pa.table(
        {
            _COLUMN: pa.array([pickle.dumps(unit) for unit in work], pa.binary()),
            "at": pa.array(range(len(work)), pa.int32()),
        }
    )
    frame = spark.createDataFrame(rows)
    parts = max(1, min(len(work), _MAX_PARTITIONS))
    if parts == 1:
        return frame.coalesce(1)
    by_id = getattr(frame, "repartitionById", None)
    return by_id(parts, frame["at"] % parts) if by_id is not None else frame.repartition(parts)


def received(batches: Iterator[pa.RecordBatch]) -> Iterator[Any]:
    """The units of work that reached this executor."""
    for batch in batches:
        for value in batch.column(_COLUMN):
            yield pickle.loads(value.as_py())


def answers(
    frame: DataFrame, run: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
) -> list[bytes]:
    """What a function makes of the rows of each task: one binary column, brought to the driver.

    PySpark takes a dot in a column's name for a level, so columns travel by number.
    """
    names = tuple(frame.columns)
    numbered = frame.toDF(*(f"c{at}" for at in range(len(names))))
    with plain_errors():
        rows = numbered.mapInArrow(_Named(names, run).run, f"{_ANSWER} binary").collect()
    return [bytes(row[_ANSWER]) for row in rows]


@contextmanager
def plain_errors() -> Iterator[None]:
    """What Frazil refuses inside a task, without the traces of Spark around it."""
    try:
        yield
    except PySparkException as error:
        message = str(error)
        if "No module named 'frazil'" in message:
            raise InvalidInput(
                "the Python of Spark's executors has no frazil: install the version of the driver "
                "there, and set PYSPARK_PYTHON (or spark.pyspark.python) to that interpreter "
                "before the session starts"
            ) from error
        match = _REFUSAL.search(message)
        if match is not None:
            kind = InvalidInput if match[1] == InvalidInput.__name__ else FrazilError
            raise kind(match[2]) from error
        raise


@dataclass(frozen=True, slots=True)
class _Named:
    names: tuple[str, ...]
    work: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        renamed = (batch.rename_columns(self.names) for batch in batches)
        for answer in self.work(renamed):
            yield answer.rename_columns([_ANSWER])
        set_modules_aside()


def set_modules_aside() -> None:
    """In a worker of Spark: take what modules have made out of the garbage collector's view.

    PySpark collects garbage after each task, which looks at every object. In a worker that has
    loaded what a write needs that takes longer than writing a small file.
    """
    if TaskContext.get() is not None and len(sys.modules) > _aside[0]:
        gc.collect()
        gc.freeze()
        _aside[0] = len(sys.modules)


def groups(weights: Sequence[int], target: int, *, cost: int = 0) -> list[list[int]]:
    """Indices in runs of about the target weight; `cost` is what one more item weighs by itself."""
    parts: list[list[int]] = []
    held = 0
    for index, weight in enumerate(weights):
        full = weight + cost
        if not parts or held + full > target:
            parts.append([])
            held = 0
        parts[-1].append(index)
        held += full
    return parts
