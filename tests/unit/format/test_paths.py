"""Paths: what is relative, what is absolute, and what is refused."""

from __future__ import annotations

import pyarrow as pa
import pytest

from frazil.errors import FormatError, InvalidInput
from frazil.format import paths

# (location, address, how it is stored)
STORED: list[tuple[str, str, str]] = [
    ("s3://b/t", "s3://b/t/data/f.parquet", "data/f.parquet"),
    ("s3://b/t/", "s3://b/t/data/f.parquet", "data/f.parquet"),
    ("s3://b", "s3://b/data/f", "data/f"),
    ("s3://b/t", "s3://b/t2/f", "s3://b/t2/f"),
    ("s3://b/t", "s3://b/t", "s3://b/t"),
    ("s3://b/t", "s3://b/t/", "s3://b/t/"),
    ("s3://b/t", "s3a://b/t/f", "s3a://b/t/f"),
    ("s3://b/t", "s3://b/t/a%20b/%2E%2E/f", "a%20b/%2E%2E/f"),
    ("s3://b/t", "s3://b/t/a/..b/.c/d..", "a/..b/.c/d.."),
    ("s3://b/t", "s3://b/t/ünï/ f", "ünï/ f"),
    ("s3://b/ü", "s3://b/ü/f", "f"),
    # Read back, this tail would be taken for a URI: it stays absolute.
    ("s3://b/t", "s3://b/t/h:1/f", "s3://b/t/h:1/f"),
    ("s3://b/t", "s3://b/t/d/h:1/f", "d/h:1/f"),
    ("/wh/t", "/wh/t/data/f", "data/f"),
    ("/", "/data/f", "data/f"),
    ("/wh/t", "/other/f", "file:///other/f"),
    ("/wh/t", "s3://b/f", "s3://b/f"),
    ("file:///wh/t", "/other/f", "file:///other/f"),
    # One local file, however it is spelled.
    ("/wh/t", "file:///wh/t/f", "f"),
    ("/wh/t", "file:/wh/t/f", "f"),
    ("/wh/t", "FILE:/wh/t/f", "f"),
    ("File:///wh/t", "/wh/t/f", "f"),
    ("file:/wh/t", "/wh/t/f", "f"),
    ("file:///wh/t", "file:/wh/t/a//f", "a//f"),
    ("file:///wh/t", "file://host/wh/t/f", "file://host/wh/t/f"),
    ("hdfs://n:8020/wh/t", "/wh/t/f", "f"),
    ("hdfs://n:8020/wh/t", "/wh/u/f", "hdfs://n:8020/wh/u/f"),
    ("s3://b/t", "data/f", "data/f"),
]

# (location, stored path, address)
RESOLVED: list[tuple[str, str, str]] = [
    ("s3://b/t", "data/f", "s3://b/t/data/f"),
    ("s3://b/t/", "data/f", "s3://b/t/data/f"),
    ("/wh/t", "data/f", "/wh/t/data/f"),
    ("/", "data/f", "/data/f"),
    ("file:///", "data/f", "file:///data/f"),
    ("s3://b/t", "s3://c/./f", "s3://c/./f"),
    ("s3://b/t", "file:/x/f", "file:/x/f"),
    ("s3://b/t", "a%2Fb/c%", "s3://b/t/a%2Fb/c%"),
    ("s3://b/t", "a//b", "s3://b/t/a//b"),
    ("s3://b/t", "day=1:2/f", "s3://b/t/day=1:2/f"),
    ("s3://b/t", "...", "s3://b/t/..."),
]

ESCAPES = ["..", ".", "../f", "./f", "a/../f", "a/./f", "a/..", "a/."]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("s3://b/x", "s3"),
        ("S3A://b/x", "s3a"),
        ("file:/x", "file"),
        ("a+b-c.d://x", "a+b-c.d"),
        ("/x", None),
        ("x", None),
        ("data/x:1", None),
        ("1a:b", None),
        (":x", None),
        ("day=1:2/x", None),
        ("", None),
    ],
)
def test_only_a_uri_scheme_makes_a_path_absolute(path: str, expected: str | None) -> None:
    assert paths.scheme(path) == expected
    assert paths.is_absolute(path) == (expected is not None)


@pytest.mark.parametrize(("location", "address", "stored"), STORED)
def test_what_lies_under_the_table_is_stored_relative(
    location: str, address: str, stored: str
) -> None:
    assert paths.relativise(location, address) == stored
    assert paths.relativise_all(location, pa.chunked_array([[address]])).to_pylist() == [stored]


@pytest.mark.parametrize(("location", "stored", "address"), RESOLVED)
def test_stored_paths_resolve_against_the_location(
    location: str, stored: str, address: str
) -> None:
    assert paths.resolve(location, stored) == address
    assert paths.resolve_all(location, pa.chunked_array([[stored]])).to_pylist() == [address]


@pytest.mark.parametrize("path", ESCAPES)
def test_dot_segments_are_refused_and_named(path: str) -> None:
    for attempt in (
        lambda: paths.resolve("s3://b/t", path),
        lambda: paths.relativise("s3://b/t", path),
        lambda: paths.relativise("s3://b/t", f"s3://b/t/{path}"),
        lambda: paths.resolve_all("s3://b/t", pa.chunked_array([["ok", path]])),
        lambda: paths.relativise_all("s3://b/t", pa.chunked_array([["ok", path]])),
        lambda: paths.relativise_all("/wh/t", pa.chunked_array([["ok", f"/wh/t/{path}"]])),
    ):
        with pytest.raises(FormatError) as caught:
            attempt()
        assert caught.value.path is not None
        assert caught.value.path.endswith(path)


def test_an_empty_path_is_refused() -> None:
    with pytest.raises(FormatError):
        paths.resolve("s3://b/t", "")
    with pytest.raises(FormatError):
        paths.resolve_all("s3://b/t", pa.chunked_array([["a", ""]]))
    with pytest.raises(FormatError):
        paths.relativise("s3://b/t", "")


def test_an_empty_location_is_refused() -> None:
    with pytest.raises(InvalidInput):
        paths.resolve("", "f")
    with pytest.raises(InvalidInput):
        paths.relativise("", "f")


@pytest.mark.parametrize(
    ("location", "path", "address"),
    [
        ("hdfs://n:8020/wh/t", "/wh/t/f", "hdfs://n:8020/wh/t/f"),
        ("file:/wh/t", "/wh/t/f", "file:/wh/t/f"),
        ("file:///wh/t", "/wh/t/f", "file:///wh/t/f"),
        ("s3://b/t", "/t/f", "s3://b/t/f"),
        ("/wh/t", "/wh/t/f", "/wh/t/f"),
        ("wh/t", "wh/t/f", "wh/t/f"),
        ("hdfs://n/t", "s3://b/a/./f", "s3://b/a/./f"),
    ],
)
def test_older_paths_take_the_scheme_of_the_table(location: str, path: str, address: str) -> None:
    assert paths.resolve_legacy(location, path) == address


def test_an_older_path_that_is_not_absolute_is_refused() -> None:
    with pytest.raises(FormatError) as caught:
        paths.resolve_legacy("s3://b/t", "data/f")
    assert caught.value.path == "data/f"


def test_columns_keep_nulls_chunks_and_order() -> None:
    column = pa.chunked_array([["data/a", None], ["s3://c/x"], []], pa.string())
    resolved = paths.resolve_all("s3://b/t", column)
    assert resolved.to_pylist() == ["s3://b/t/data/a", None, "s3://c/x"]
    assert resolved.type == pa.string()
    back = paths.relativise_all("s3://b/t", resolved)
    assert back.to_pylist() == ["data/a", None, "s3://c/x"]
    assert back.type == pa.string()


def test_an_empty_column_stays_empty() -> None:
    empty = pa.chunked_array([], pa.string())
    assert paths.resolve_all("s3://b/t", empty).to_pylist() == []
    assert paths.relativise_all("s3://b/t", empty).to_pylist() == []


def test_a_moved_table_resolves_at_its_new_place() -> None:
    stored = paths.relativise("file:///old/t", "file:///old/t/data/f")
    assert paths.resolve("s3://new/t", stored) == "s3://new/t/data/f"
