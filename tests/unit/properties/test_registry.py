"""Values of properties: what is read, what is refused, and what another engine may have stored."""

from __future__ import annotations

import pytest

from frazil.errors import InvalidInput
from frazil.properties import registry
from frazil.properties.registry import check_values, table_property


def test_a_property_that_is_not_set_has_its_default() -> None:
    assert registry.TARGET_FILE_SIZE.of({}) == 536_870_912
    assert registry.MAX_REF_AGE_MS.of({}) == 2**63 - 1
    assert registry.GC_ENABLED.of({}) is True
    assert registry.PUBLISH_FORMAT_VERSION.of({}) is None


def test_values_are_parsed_to_their_types() -> None:
    assert registry.LEAF_TARGET_ENTRIES.of({"write.leaf.target-entries": "2097152"}) == 2_097_152
    assert registry.LEAF_MAX_DEAD_RATIO.of({"write.leaf.max-dead-ratio": "1"}) == 1.0
    assert registry.WAP_ENABLED.of({"write.wap.enabled": "TRUE"}) is True
    assert registry.COMPRESSION.of({"write.parquet.compression-codec": "ZSTD"}) == "zstd"
    assert registry.METRICS_DEFAULT.of({"write.metadata.metrics.default": "truncate(8)"}) == (
        "truncate",
        8,
    )


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("write.leaf.target-entries", "0"),
        ("write.leaf.target-entries", "2097153"),
        ("write.leaf.max-dead-ratio", "nan"),
        ("commit.retry.num-retries", "²"),
        ("commit.retry.num-retries", "-1"),
        ("history.expire.max-ref-age-ms", "9223372036854775808"),
        ("write.parquet.bloom-filter-fpp.column.a.b", "1"),
        ("write.parquet.compression-level", "fast"),
        ("gc.enabled", "no"),
        ("schema.name-mapping.default", "{"),
        ("publish.format-version", "4"),
    ],
)
def test_other_values_are_refused_by_name(key: str, value: str) -> None:
    setting = table_property(key)
    assert setting is not None
    with pytest.raises(InvalidInput, match=f"property {key} is {value!r}; expected"):
        setting.of({key: value})
    with pytest.raises(InvalidInput, match="expected"):
        check_values({key: value})


def test_every_bad_value_is_in_one_error() -> None:
    with pytest.raises(InvalidInput) as error:
        check_values({"gc.enabled": "no", "commit.group": "maybe", "owner": "ann"})
    assert str(error.value).splitlines() == [
        "property gc.enabled is 'no'; expected true or false",
        "property commit.group is 'maybe'; expected true or false",
    ]


def test_what_another_engine_stored_may_be_read_as_something_else() -> None:
    assert registry.SERVE_FORMAT_VERSION.lenient({"serve.format-version": "9"}, otherwise=3) == 3
    assert registry.SERVE_FORMAT_VERSION.lenient({"serve.format-version": "2"}, otherwise=3) == 2


def test_a_property_of_a_column_is_found_by_its_start() -> None:
    stored = {"write.metadata.metrics.column.a.column.b": "none", "write.metadata.x": "1"}
    assert list(registry.METRICS_COLUMN.columns(stored)) == ["a.column.b"]
    assert registry.METRICS_COLUMN.for_column("a.column.b").of(stored) == ("none", None)
    assert table_property("write.metadata.metrics.column.") is registry.METRICS_COLUMN
    assert table_property("owner") is None
