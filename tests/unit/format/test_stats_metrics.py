"""Metrics modes and the properties that choose them."""

from __future__ import annotations

import pytest

from frazil.errors import InvalidInput
from frazil.format.entries.metrics import FULL, Kept, MetricsConfig, MetricsMode, check_properties
from frazil.iceberg import types as ice
from frazil.iceberg.schema import Schema
from frazil.iceberg.sorting import SortField, SortOrder
from frazil.iceberg.transforms import BucketTransform, DayTransform, IdentityTransform

SCHEMA = Schema(
    ice.NestedField(1, "id", ice.LongType()),
    ice.NestedField(2, "name", ice.StringType()),
    ice.NestedField(3, "ts", ice.TimestampType()),
    ice.NestedField(4, "st", ice.StructType(ice.NestedField(5, "in.ner", ice.StringType()))),
)
COLUMN = "write.metadata.metrics.column."


def modes(config: MetricsConfig) -> list[str]:
    return [str(config.mode(field_id)) for field_id in (1, 2, 3, 5)]


def test_bounds_are_cut_to_sixteen_unless_told_otherwise() -> None:
    assert modes(MetricsConfig.from_properties({}, SCHEMA)) == ["truncate(16)"] * 4


def test_a_default_applies_to_all_and_a_column_overrides_it() -> None:
    properties = {
        "write.metadata.metrics.default": "counts",
        COLUMN + "name": "Truncate(3)",
        COLUMN + "st.in.ner": " FULL ",
        COLUMN + "gone": "none",
    }
    config = MetricsConfig.from_properties(properties, SCHEMA)
    assert modes(config) == ["counts", "truncate(3)", "counts", "full"]


@pytest.mark.parametrize("text", ["", "truncate", "truncate(0)", "truncate(-1)", "all", "full()"])
def test_a_mode_that_is_none_is_refused(text: str) -> None:
    for name in ("write.metadata.metrics.default", COLUMN + "id"):
        with pytest.raises(InvalidInput, match=name):
            MetricsConfig.from_properties({name: text}, SCHEMA)


@pytest.mark.parametrize("text", ["-1", "many", "", "1.5", "²"])
def test_a_bad_limit_is_refused(text: str) -> None:
    limit = "write.metadata.metrics.max-inferred-column-defaults"
    with pytest.raises(InvalidInput, match="max-inferred"):
        MetricsConfig.from_properties({limit: text}, SCHEMA)


def test_a_wide_table_keeps_statistics_of_its_first_columns() -> None:
    limit = {"write.metadata.metrics.max-inferred-column-defaults": "2"}
    config = MetricsConfig.from_properties(limit, SCHEMA)
    assert modes(config) == ["truncate(16)", "truncate(16)", "none", "none"]
    wide = Schema(*(ice.NestedField(i, f"c{i}", ice.LongType()) for i in range(1, 103)))
    kept = MetricsConfig.from_properties({}, wide)
    assert [str(kept.mode(i)) for i in (1, 100, 101, 102)] == ["truncate(16)"] * 2 + ["none"] * 2


def test_outer_columns_of_a_wide_table_come_before_nested_ones() -> None:
    schema = Schema(
        ice.NestedField(1, "st", ice.StructType(ice.NestedField(2, "a", ice.LongType()))),
        ice.NestedField(3, "b", ice.LongType()),
        ice.NestedField(4, "c", ice.ListType(5, ice.LongType())),
    )
    limit = {"write.metadata.metrics.max-inferred-column-defaults": "2"}
    config = MetricsConfig.from_properties(limit, schema)
    assert [config.mode(i).keep for i in (2, 3, 4)] == [Kept.NONE, Kept.TRUNCATE, Kept.TRUNCATE]


def test_an_explicit_default_lifts_the_limit() -> None:
    properties = {
        "write.metadata.metrics.max-inferred-column-defaults": "0",
        "write.metadata.metrics.default": "full",
    }
    assert modes(MetricsConfig.from_properties(properties, SCHEMA)) == ["full"] * 4


def test_sort_columns_keep_bounds_unless_overridden() -> None:
    order = SortOrder(
        SortField(source_id=1, transform=IdentityTransform()),
        SortField(source_id=3, transform=DayTransform()),
        SortField(source_id=2, transform=BucketTransform(4)),
    )
    counts = {"write.metadata.metrics.default": "counts"}
    config = MetricsConfig.from_properties(counts, SCHEMA, sort_order=order)
    assert modes(config) == ["truncate(16)", "counts", "truncate(16)", "counts"]
    config = MetricsConfig.from_properties(
        counts | {COLUMN + "id": "none"}, SCHEMA, sort_order=order
    )
    assert modes(config)[0] == "none"


def test_identity_partition_columns_are_never_cut() -> None:
    properties = {COLUMN + "name": "truncate(4)", COLUMN + "id": "none"}
    config = MetricsConfig.from_properties(properties, SCHEMA, identity_ids=[1, 2])
    assert modes(config)[:2] == ["full", "full"]


def test_setting_properties_checks_column_names() -> None:
    check_properties({COLUMN + "st.in.ner": "full", COLUMN + "id": "counts"}, SCHEMA)
    with pytest.raises(InvalidInput, match="no column 'gone'"):
        check_properties({COLUMN + "gone": "full"}, SCHEMA)


def test_fitted_bounds_say_whether_they_changed() -> None:
    mode = MetricsMode(keep=Kept.TRUNCATE, length=2)
    assert mode.fit("ab", "zz", ice.StringType()) == ("ab", "zz", True)
    assert mode.fit("abc", "zz", ice.StringType()) == ("ab", "zz", False)
    assert mode.fit(b"a", b"\xff\xff\xff", ice.BinaryType()) == (b"a", None, False)
    assert mode.fit(123_456, 7, ice.LongType()) == (123_456, 7, True)
    assert FULL.fit("abc", "abcd", ice.StringType()) == ("abc", "abcd", True)
