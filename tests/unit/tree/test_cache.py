"""Decoded manifests kept by location, column by column, within a bound."""

from __future__ import annotations

import pickle
from collections.abc import Collection

from frazil.format.entries.batch import EntryBatch
from frazil.tree.cache import ManifestCache

WHOLE = EntryBatch.from_rows(
    [{"location": f"d{n}", "record_count": n, "file_size_in_bytes": n} for n in range(100)]
)


class _Source:
    """A manifest that notes what is read of it."""

    def __init__(self) -> None:
        self.reads: list[frozenset[str] | None] = []

    def __call__(self, keys: Collection[str] | None) -> EntryBatch:
        self.reads.append(None if keys is None else frozenset(keys))
        return WHOLE if keys is None else WHOLE.select(keys)


def test_what_is_held_is_not_read_again() -> None:
    cache, source = ManifestCache(), _Source()
    for _ in range(3):
        assert cache.fetch("m", ["location"], source).pylist("location") == WHOLE.pylist("location")
    assert source.reads == [frozenset({"location"})]


def test_more_columns_read_only_what_is_missing() -> None:
    cache, source = ManifestCache(), _Source()
    cache.fetch("m", ["location"], source)
    both = cache.fetch("m", ["location", "record_count"], source)
    assert both.pylist("record_count") == list(range(100))
    assert both.pylist("location") == WHOLE.pylist("location")
    assert source.reads == [frozenset({"location"}), frozenset({"record_count"})]
    cache.fetch("m", ["record_count"], source)
    assert len(source.reads) == 2


def test_a_column_the_manifest_does_not_have_is_asked_for_once() -> None:
    cache, source = ManifestCache(), _Source()
    for _ in range(2):
        assert cache.fetch("m", ["location", "spec_id"], source).pylist("spec_id")[0] is None
    assert len(source.reads) == 1


def test_a_whole_manifest_answers_everything() -> None:
    cache, source = ManifestCache(), _Source()
    cache.fetch("m", ["location"], source)
    cache.fetch("m", None, source)
    cache.fetch("m", None, source)
    cache.fetch("m", ["file_size_in_bytes"], source)
    assert source.reads == [frozenset({"location"}), None]
    written = ManifestCache()
    written.put("m", WHOLE)
    written.fetch("m", None, source)
    assert len(source.reads) == 2


def test_the_least_recently_used_leaves_first() -> None:
    size = int(WHOLE.table.get_total_buffer_size())
    cache, source = ManifestCache(max_bytes=2 * size), _Source()
    cache.fetch("a", None, source)
    cache.fetch("b", None, source)
    cache.fetch("a", None, source)
    cache.fetch("c", None, source)  # b goes
    assert len(source.reads) == 3
    cache.fetch("a", None, source)
    assert len(source.reads) == 3
    cache.fetch("b", None, source)
    assert len(source.reads) == 4


def test_what_is_larger_than_the_bound_is_not_kept() -> None:
    cache, source = ManifestCache(max_bytes=10), _Source()
    cache.fetch("a", None, source)
    cache.fetch("a", None, source)
    assert len(source.reads) == 2


def test_a_cleared_cache_is_cold() -> None:
    cache, source = ManifestCache(), _Source()
    cache.fetch("a", None, source)
    cache.clear()
    cache.fetch("a", None, source)
    assert len(source.reads) == 2


def test_a_cache_travels_empty() -> None:
    cache, source = ManifestCache(max_bytes=10_000_000), _Source()
    cache.fetch("a", None, source)
    there: ManifestCache = pickle.loads(pickle.dumps(cache))
    there.fetch("a", None, source)
    assert len(source.reads) == 2
