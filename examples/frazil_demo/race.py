"""The same small work on Frazil and on PyIceberg v2, measured in this process.

Both write to local disk through a SQLite catalog. Times are of the whole call, data file included;
files and bytes are counted in the tables' folders, so nothing is taken on trust.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

SCHEMA = pa.schema(
    [
        pa.field("order_id", pa.int64(), nullable=False),
        pa.field("customer_id", pa.int64()),
        pa.field("country", pa.string()),
        pa.field("status", pa.string()),
        pa.field("price", pa.float64()),
        pa.field("ordered_at", pa.timestamp("us", tz="UTC")),
    ]
)
COUNTRIES = ("AT", "BR", "DE", "FR", "IN", "JP", "UK", "US")
_START = datetime(2024, 1, 1, tzinfo=UTC)


def orders(batch: int, *, rows: int, seed: int = 7) -> pa.Table:
    """The orders of one batch: six hours, ids that follow those of the batch before."""
    chance = np.random.default_rng([seed, batch])
    ids = np.arange(batch * rows, (batch + 1) * rows)
    began = _START + timedelta(hours=6 * batch)
    seconds = np.sort(chance.integers(0, 6 * 3600, rows))
    return pa.table(
        {
            "order_id": ids,
            "customer_id": chance.integers(1, 5000, rows),
            "country": [COUNTRIES[i] for i in chance.integers(0, len(COUNTRIES), rows)],
            "status": ["new"] * rows,
            "price": np.round(chance.gamma(2.0, 40.0, rows), 2),
            "ordered_at": [began + timedelta(seconds=int(second)) for second in seconds],
        },
        schema=SCHEMA,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One call on one engine: how long it took, what it left on disk."""

    what: str
    ms: float
    metadata_files: int
    metadata_bytes: int
    data_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """An engine's course through the work."""

    engine: str
    steps: tuple[Step, ...]

    def of(self, what: str) -> tuple[Step, ...]:
        """Steps of one kind."""
        return tuple(step for step in self.steps if step.what == what)

    def to_dict(self) -> dict[str, Any]:
        """For JSON: medians and sums per kind of step."""
        kinds = dict.fromkeys(step.what for step in self.steps)
        return {kind: summed(self.of(kind)) for kind in kinds}


def summed(steps: Sequence[Step]) -> dict[str, float]:
    """What a kind of step cost."""
    return {
        "calls": len(steps),
        "median-ms": round(float(np.median([step.ms for step in steps])), 2),
        "metadata-files": sum(step.metadata_files for step in steps),
        "metadata-bytes": sum(step.metadata_bytes for step in steps),
        "data-bytes": sum(step.data_bytes for step in steps),
    }


class Meter:
    """Measures calls on one table by looking at its folder before and after."""

    def __init__(self, engine: str, folder: Path) -> None:
        self.engine = engine
        self._folder = folder
        self._known = self._files()
        self._steps: list[Step] = []

    def run(self, what: str, call: Callable[[], object]) -> Step:
        """Do it and note what it cost."""
        began = time.perf_counter()
        call()
        ms = (time.perf_counter() - began) * 1000
        now = self._files()
        new = [path for path in now if path not in self._known]
        metadata = [path for path in new if "metadata" in path.relative_to(self._folder).parts]
        step = Step(
            what=what,
            ms=ms,
            metadata_files=len(metadata),
            metadata_bytes=sum(now[path] for path in metadata),
            data_bytes=sum(now[path] for path in new if path not in metadata),
        )
        self._known = now
        self._steps.append(step)
        return step

    def lane(self) -> Lane:
        """Everything measured so far."""
        return Lane(engine=self.engine, steps=tuple(self._steps))

    def _files(self) -> dict[Path, int]:
        return {path: path.stat().st_size for path in self._listed()}

    def _listed(self) -> Iterator[Path]:
        return (path for path in self._folder.rglob("*") if path.is_file())


def pyiceberg_table(folder: Path, name: str, *, partition_by_day: bool) -> Any:
    """A v2 table of PyIceberg in the same warehouse and database as Frazil's tables."""
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.transforms import DayTransform

    catalog = SqlCatalog(
        "default", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}"
    )
    catalog.create_namespace_if_not_exists(name.split(".")[0])
    table = catalog.create_table(name, SCHEMA, properties={"format-version": "2"})
    if partition_by_day:
        with table.update_spec() as spec:
            spec.add_field("ordered_at", DayTransform(), "ordered_at_day")
    return table
