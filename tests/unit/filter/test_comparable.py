"""Vectors of bounds beside sorted values, also where Arrow cannot search."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute
import pytest

from frazil import arrow_compute
from frazil.filter.bind.comparable import vector
from frazil.iceberg import types as ice

TEXTS = ["", "a", "b", "b", "Österreich", "z", None]


@pytest.mark.parametrize(
    ("kind", "convert"), [(ice.StringType(), str), (ice.BinaryType(), str.encode)]
)
@pytest.mark.parametrize("is_old", [False, True])
def test_a_rank_is_the_number_of_values_before(
    monkeypatch: pytest.MonkeyPatch, kind: ice.IcebergType, convert: Any, is_old: bool
) -> None:
    if is_old:  # as before pyarrow 23

        def named(name: str) -> Any:
            if name == "search_sorted":
                raise AttributeError(name)
            return getattr(pa.compute, name)

        monkeypatch.setattr(arrow_compute, "_named", named)
    values = [None if text is None else convert(text) for text in TEXTS]
    ordered = [convert(text) for text in ("a", "b", "c")]
    found = vector(pa.chunked_array([values]), kind)
    assert found is not None
    known = slice(0, len(values) - 1)
    assert found.rank(ordered, right=False)[known].tolist() == [0, 0, 1, 1, 3, 3]
    assert found.rank(ordered, right=True)[known].tolist() == [0, 1, 2, 2, 3, 3]
