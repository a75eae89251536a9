"""Deletion vectors against pyroaring, and Puffin files whose bytes went wrong."""

from __future__ import annotations

import struct
import zlib

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap64

from frazil.errors import FormatError
from frazil.format.vectors import puffin, roaring


def runs(first: int, length: int, step: int) -> set[int]:
    return set(range(first, first + length * step, step))


POSITIONS = st.one_of(
    st.sets(st.integers(0, 0x7FFFFFFE_80000000), max_size=30),
    st.sets(st.integers(0, 200_000), max_size=300),
    st.lists(
        st.builds(
            runs,
            st.one_of(st.integers(0, 300_000), st.integers(2**32 - 9000, 2**33)),
            st.integers(1, 9000),
            st.integers(1, 20),
        ),
        max_size=4,
    ).map(lambda parts: set().union(*parts)),
)


def array(positions: set[int]) -> puffin.Positions:
    return np.array(sorted(positions), np.int64)


@st.composite
def mutated(draw: st.DrawFn, original: bytes) -> bytes:
    """The bytes with some overwritten, and perhaps cut or extended."""
    data = bytearray(original)
    for _ in range(draw(st.integers(1, 4))):
        data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    cut = draw(st.one_of(st.just(len(data)), st.integers(0, len(data))))
    return bytes(data[:cut]) + draw(st.binary(max_size=3))


@given(POSITIONS)
def test_decode_undoes_encode(positions: set[int]) -> None:
    blob = puffin.encode_vector(array(positions))
    assert puffin.decode_vector(blob).tolist() == sorted(positions)


@given(POSITIONS, st.booleans())
def test_bitmaps_are_those_of_pyroaring(positions: set[int], with_runs: bool) -> None:
    peer = BitMap64(sorted(positions))
    if with_runs:
        peer.run_optimize()
    assert roaring.decode(peer.serialize()).tolist() == sorted(positions)
    assert list(BitMap64.deserialize(roaring.encode(array(positions)))) == sorted(positions)


@given(st.dictionaries(st.text(min_size=1, max_size=20), POSITIONS.filter(bool), max_size=4))
def test_files_give_back_every_vector(vectors: dict[str, set[int]]) -> None:
    data, written = puffin.write_vectors(
        [(location, array(positions)) for location, positions in vectors.items()],
        location="x",
        created_by="frazil",
    )
    stored = puffin.read_footer(data).vectors(path="x")
    assert stored == tuple(zip(vectors, written, strict=True))
    for data_file, blob in stored:
        found = puffin.read_vector_at(
            data,
            offset=blob.offset,
            size_in_bytes=blob.size_in_bytes,
            cardinality=blob.cardinality,
            path="x",
        )
        assert found.tolist() == sorted(vectors[data_file])


# A limit, as every reader of a data file has one: it bounds what corrupt runs can expand to.
ROWS = 1 << 20


@settings(max_examples=400)
@given(
    st.one_of(
        st.sets(st.integers(0, ROWS - 1), max_size=100),
        st.builds(runs, st.integers(0, 500_000), st.integers(1, 20_000), st.integers(1, 20)),
    ).flatmap(lambda p: mutated(roaring.encode(array(p))))
)
def test_mutated_bitmaps_give_positions_or_our_own_error(bitmap: bytes) -> None:
    # The checksum is made to fit, so the bitmap itself has to be judged.
    body = puffin.VECTOR_MAGIC + bitmap
    blob = struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))
    try:
        found = puffin.read_vector(blob, path="dv.puffin", record_count=ROWS)
    except FormatError as error:
        if error.path != "dv.puffin":
            raise
        return
    assert np.all(found[1:] > found[:-1])
    assert found.tolist() == list(BitMap64.deserialize(bitmap))


@settings(max_examples=300)
@given(POSITIONS.flatmap(lambda p: mutated(puffin.encode_vector(array(p)))))
def test_mutated_vectors_are_refused(blob: bytes) -> None:
    try:
        found = puffin.read_vector(blob, path="dv.puffin")
    except FormatError as error:
        if error.path != "dv.puffin":
            raise
        return
    # Only a change that put back what was there gets past the checksum.
    assert puffin.encode_vector(found) == blob


FILE, _ = puffin.write_vectors(
    [("data/a.parquet", np.array([1, 2, 3])), ("data/ü.parquet", np.arange(10, 5000))],
    location="dv.puffin",
    created_by="frazil",
)


@settings(max_examples=500)
@given(mutated(FILE))
def test_mutated_files_are_read_or_refused(data: bytes) -> None:
    try:
        vectors = puffin.read_footer(data, path="dv.puffin").vectors(path="dv.puffin")
        for _, vector in vectors:
            puffin.read_vector_at(
                data,
                offset=vector.offset,
                size_in_bytes=vector.size_in_bytes,
                cardinality=vector.cardinality,
                path="dv.puffin",
            )
    except FormatError as error:
        if error.path != "dv.puffin":
            raise
