"""Entries written before and after a date column became a timestamp, in one batch."""

from __future__ import annotations

from datetime import date, datetime

import pyarrow as pa
import pytest

from frazil.format.entries.batch import EntryBatch

KEY = "content_stats.1.lower_bound"


@pytest.mark.parametrize("unit", ["us", "ns"])
def test_dates_become_timestamps_beside_timestamps(unit: str) -> None:
    old = EntryBatch(pa.table({"location": ["a"], KEY: pa.array([date(1969, 12, 31)])}))
    moment = pa.array([datetime(2024, 1, 1, 12)], pa.timestamp(unit))
    new = EntryBatch(pa.table({"location": ["b"], KEY: moment}))
    both = EntryBatch.concat([old, new, EntryBatch(pa.table({"location": ["c"]}))])
    assert both.column(KEY).type == pa.timestamp(unit)
    assert both.pylist(KEY) == [datetime(1969, 12, 31), datetime(2024, 1, 1, 12), None]
