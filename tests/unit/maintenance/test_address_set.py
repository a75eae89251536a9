"""Sets of addresses that keep hashes alone."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from frazil.maintenance.removal.address_set import AddressSet, hashes_of

texts = st.lists(st.text(max_size=8), max_size=30)


@given(held=texts, more=texts, asked=texts)
def test_a_set_answers_as_python_does(held: list[str], more: list[str], asked: list[str]) -> None:
    columns = [pa.array(names, pa.string()) for names in (held, more)]
    addresses = AddressSet.of(columns[0]).union(AddressSet.of(columns[1]))
    answer = addresses.holds(hashes_of(pa.array(asked, pa.string())))
    assert answer.tolist() == [name in {*held, *more} for name in asked]


def test_a_million_addresses_take_eight_megabytes() -> None:
    parts = (np.arange(start, start + 100_000, dtype=np.int64) for start in range(0, 10**6, 10**5))
    addresses = AddressSet(parts)
    assert len(addresses) == 1_000_000
    assert addresses.nbytes == 8_000_000
