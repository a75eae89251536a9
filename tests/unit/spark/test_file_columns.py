"""The names of a plan's files, as Java is told them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from frazil.errors import FormatError
from frazil.spark.bridge import file_columns


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(file_columns, "addresses", lambda _, paths: [f"<{p}>" for p in paths])

    def named(*stored: str) -> list[tuple[str, str]]:
        column = pa.chunked_array([pa.array(stored, pa.string())])
        planned = SimpleNamespace(
            scan=SimpleNamespace(_handle=SimpleNamespace(location="file:///w/t")),
            plan=SimpleNamespace(files=SimpleNamespace(column={"location": column}.__getitem__)),
        )
        told = file_columns.FileNames.of(cast(Any, None), cast(Any, planned))
        assert (told.folder, told.folder_address) == ("file:///w/t", "<file:///w/t>")
        addresses = [text.decode() for text in told.addresses.to_pylist()]
        return list(zip(told.names.to_pylist(), addresses, strict=True))

    return named


def test_a_plain_name_has_no_address_of_its_own(names: Any) -> None:
    assert names("data/a=1/b-2_~.parquet", "data/ä.parquet", "s3://b/x.parquet") == [
        ("data/a=1/b-2_~.parquet", ""),
        ("file:///w/t/data/ä.parquet", "<file:///w/t/data/ä.parquet>"),
        ("s3://b/x.parquet", "<s3://b/x.parquet>"),
    ]


@pytest.mark.parametrize("stored", ["../other/x.parquet", "data/../../x.parquet", "data/.."])
def test_a_name_that_leads_out_of_the_table_is_refused(names: Any, stored: str) -> None:
    with pytest.raises(FormatError):
        names("data/a.parquet", stored)
