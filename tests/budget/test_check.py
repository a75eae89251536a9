"""What checking a history may cost: each root is decoded once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from frazil.format.entries import manifest
from frazil.format.entries.batch import EntryBatch
from frazil.maintenance.check.check_files import FileChecks
from tests.support.history import new_table, rows

PROPERTIES = {"write.root.max-data-entries": "4", "write.leaf.target-entries": "5"}


def test_a_history_is_checked_decoding_each_root_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = new_table(tmp_path, properties=PROPERTIES)
    for number in range(12):
        table.append(rows(number))
    table._handle.context.cache.clear()
    decode = manifest.decode
    decoded: Counter[str] = Counter()

    def counting(source: Any, *, path: str, **options: Any) -> manifest.Manifest:
        decoded[path] += 1
        return decode(source, path=path, **options)

    monkeypatch.setattr(manifest, "decode", counting)
    report = table.check()
    assert report.problems == ()
    roots = [count for path, count in decoded.items() if "/root-" in path]
    assert roots == [1] * report.snapshots == [1] * 12


def test_the_files_of_a_history_are_looked_at_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = new_table(tmp_path, properties=PROPERTIES)
    for number in range(12):
        table.append(rows(number))
    takes: list[int] = []
    take = FileChecks._take

    def counting(checks: FileChecks, batch: EntryBatch) -> None:
        takes.append(batch.num_rows)
        take(checks, batch)

    monkeypatch.setattr(FileChecks, "_take", counting)
    report = table.check()
    assert report.problems == ()
    assert len(takes) == 1
