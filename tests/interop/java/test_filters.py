"""The same filter over the same manifest: which entries Iceberg Java keeps, and which we keep.

We keep nothing that Java drops. Java keeps what we drop only for a reason that is named here.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from frazil.filter.prune.prune import PruneContext, might_match
from frazil.filter.text.filter_text import parse
from frazil.format.entries.batch import EntryBatch
from frazil.format.metadata.derived import DerivedColumn, FieldId
from frazil.iceberg.types import (
    DateType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
)
from tests.interop.java import filters, scenarios
from tests.interop.java.conftest import JavaReader
from tests.interop.java.filters import DIFFERS, Test, Tree
from tests.interop.java.scenarios import SCHEMA, SPECS, Entry, Inherited

pytestmark = pytest.mark.java

THOROUGH = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
CONTEXT = PruneContext(schema=SCHEMA, specs={spec.spec_id: spec for spec in SPECS})


def _kept_by_java(java_reader: JavaReader, entries: list[Entry], tree: Tree) -> set[int]:
    seen = java_reader.read(entries, Inherited(), content="root", filter=filters.iceberg_json(tree))
    return {int(entry["location"].rpartition("/")[2].removesuffix(".parquet")) for entry in seen}


def _kept_by_us(entries: list[Entry], tree: Tree, context: PruneContext = CONTEXT) -> set[int]:
    batch = EntryBatch.from_rows(entries, scenarios.column_types())
    mask = might_match(parse(filters.expression(tree), SCHEMA), batch, context)
    return {number for number, kept in enumerate(mask) if kept}


def _tuple(entry: Entry) -> list[object]:
    return [value for key, value in entry.items() if key.startswith("partition.")]


def _lacks_its_tuple(entry: Entry) -> bool:
    """Whether bounds tell of values where the tuple has none: it is missing to us, null to Java."""
    spec = CONTEXT.specs.get(entry.get("spec_id", 0))
    return spec is not None and any(
        entry.get(f"partition.{field.field_id}") is None
        and any(
            entry.get(f"content_stats.{field.source_id}.{name}") is not None
            for name in ("lower_bound", "upper_bound")
        )
        for field in spec.fields
    )


def _why_we_drop_more(entry: Entry, test: Test) -> str | None:
    """The reason why one predicate lets us drop an entry that Java keeps."""
    stats = {
        name: entry.get(f"content_stats.{test.id}.{name}")
        for name in ("lower_bound", "upper_bound", "value_count", "null_value_count")
    }
    nans = entry.get(f"content_stats.{test.id}.nan_value_count")
    if test.op in DIFFERS:
        return "null is different from nothing in SQL; to Iceberg's expressions it is"
    nulls = stats["null_value_count"]
    if nans and nulls and nans + nulls == stats["value_count"]:
        return "nulls and NaNs together leave no value; Java asks for one of them alone"
    if test.op in ("in", "starts-with") and stats["lower_bound"] is None:
        return "the upper bound alone can rule out; Java asks for the lower one first"
    if "spec_id" in entry and test.op in ("lt", "lt-eq") and None in _tuple(entry):
        return "null is less than nothing in SQL; Java puts it before every value"
    before_1970 = (DateType, TimestampType, TimestamptzType, TimestampNanoType, TimestamptzNanoType)
    if "spec_id" in entry and isinstance(SCHEMA.find_type(test.id), before_1970):
        return "Java widens projected times before 1970, for files with an old bug"
    return None


def _assert_same_but_for_reasons(java_reader: JavaReader, entries: list[Entry], tree: Tree) -> None:
    java, ours = _kept_by_java(java_reader, entries, tree), _kept_by_us(entries, tree)
    assert ours <= java
    for number in java - ours:
        reasons = [_why_we_drop_more(entries[number], test) for test in filters.leaves(tree)]
        assert any(reasons)


@given(case=filters.by_bounds())
@THOROUGH
def test_bounds_and_counts_keep_the_same_entries(
    java_reader: JavaReader, case: tuple[list[Entry], Tree]
) -> None:
    _assert_same_but_for_reasons(java_reader, *case)


@given(case=filters.by_partition())
@THOROUGH
def test_partition_tuples_keep_the_same_files(
    java_reader: JavaReader, case: tuple[list[Entry], Tree]
) -> None:
    _assert_same_but_for_reasons(java_reader, *case)


@given(case=filters.by_everything())
@THOROUGH
def test_all_evidence_together_never_keeps_what_java_drops(
    java_reader: JavaReader, case: tuple[list[Entry], Tree]
) -> None:
    """We weigh tuple and bounds predicate by predicate, Java the whole filter twice."""
    entries, tree = case
    lacking = {number for number, entry in enumerate(entries) if _lacks_its_tuple(entry)}
    ours = _kept_by_us(entries, tree) - lacking
    assert ours <= _kept_by_java(java_reader, entries, tree)


def test_derived_columns_let_us_drop_manifests_that_java_keeps(java_reader: JavaReader) -> None:
    tree = Test(op="eq", id=3, values=(34,))
    bucket = 3  # 34 hashes to 2017239379, says Iceberg's specification
    derived = [
        DerivedColumn(
            expr_id=FieldId(scenarios.DERIVED[field.field_id]),
            source_ids=(FieldId(field.source_id),),
            transform=field.transform,
            name=field.name,
            partition_field_id=field.field_id,
        )
        for field in scenarios.BY_TRANSFORM.fields
    ]
    context = PruneContext(schema=SCHEMA, specs=CONTEXT.specs, derived=derived)
    ranges = [(0, 15), (bucket, bucket), (bucket + 1, 15), (0, bucket - 1)]
    entries = [
        {
            "tracking.status": 0,
            "content_type": 3,
            "location": f"metadata/{number}.parquet",
            "file_format": "parquet",
            "record_count": 7,
            "file_size_in_bytes": 100,
            "content_stats.3.lower_bound": 0,
            "content_stats.3.upper_bound": 1000,
            "content_stats.101.lower_bound": lower,
            "content_stats.101.upper_bound": upper,
        }
        for number, (lower, upper) in enumerate(ranges)
    ]
    assert _kept_by_java(java_reader, entries, tree) == {0, 1, 2, 3}
    assert _kept_by_us(entries, tree) == {0, 1, 2, 3}
    assert _kept_by_us(entries, tree, context) == {0, 1}


def test_zeros_of_both_signs_are_equal_to_us_as_in_sql(java_reader: JavaReader) -> None:
    tree = Test(op="gt-eq", id=5, values=(0.0,))
    entry = {
        "tracking.status": 1,
        "content_type": 0,
        "location": "data/0.parquet",
        "file_format": "parquet",
        "record_count": 1,
        "file_size_in_bytes": 100,
        "content_stats.5.lower_bound": -1.0,
        "content_stats.5.upper_bound": -0.0,
    }
    assert _kept_by_us([entry], tree) == {0}
    assert _kept_by_java(java_reader, [entry], tree) == set()
