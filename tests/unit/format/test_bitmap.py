"""Mumbling bitmaps: bytes written by hand, and what a reader refuses."""

from __future__ import annotations

import numpy as np
import pytest

from frazil.errors import FormatError, InvalidInput
from frazil.format.vectors import bitmap, pfor
from frazil.properties import registry

# (bytes, values): the published check values, and one that only another encoder would choose.
CHECK_VALUES: list[tuple[str, list[int]]] = [
    ("00 00 00", [0] * 256),
    ("00 00 05", [5] * 51),
    ("80 02 00 04 07 FF FE", [0, 0, 0, 0, 0xFF, 0, 0, 0xFE]),
    ("02 00 06 18", [6, 7, 8]),
    ("32 01 06 09 01 E0", [6, 34, 8, 7]),
]


def positions(*values: int) -> bitmap.Positions:
    return np.array(values, np.int64)


@pytest.mark.parametrize(("text", "values"), CHECK_VALUES)
def test_descriptors_encode_to_the_check_values(text: str, values: list[int]) -> None:
    assert pfor.encode(np.array(values, np.uint8)) == bytes.fromhex(text)


@pytest.mark.parametrize(("text", "values"), [*CHECK_VALUES, ("05 00 06 07 04 10", [6, 34, 8, 7])])
def test_descriptors_decode_from_the_check_values(text: str, values: list[int]) -> None:
    data = bytes.fromhex(text)
    decoded, end = pfor.decode(b"\xaa" + data, len(values), offset=1)
    assert decoded.tolist() == values
    assert end == len(data) + 1


def test_descriptors_of_two_chunks_follow_each_other() -> None:
    values = np.array([7] * 256 + [6, 7, 8], np.uint8)
    assert pfor.encode(values) == bytes.fromhex("00 00 07  02 00 06 18")


def test_descriptors_without_a_frame_of_reference_take_a_byte_each() -> None:
    values = np.array([0, 255, 128, 64] * 64, np.uint8)
    encoded = pfor.encode(values)
    assert encoded == bytes.fromhex("08 00 00") + values.tobytes()


@pytest.mark.parametrize(
    ("text", "count"),
    [
        pytest.param("02 00", 3, id="short header"),
        pytest.param("02 00 06", 3, id="short primary array"),
        pytest.param("80 02 00 04 07 FF", 8, id="short exceptions"),
        pytest.param("09 00 00 00 00", 1, id="nine primary bits"),
        pytest.param("18 00 00 00 00", 1, id="nine bits together"),
        pytest.param("02 01 06 18 00", 3, id="an exception of no bits"),
        pytest.param("80 02 00 04 08 FF FE", 8, id="an exception past the end"),
        pytest.param("80 02 00 04 04 FF FE", 8, id="one value patched twice"),
        pytest.param("80 09 00 00 01 02 03 04 05 06 07 00", 8, id="more exceptions than values"),
        pytest.param("01 00 FF 80", 2, id="a value over 255"),
    ],
)
def test_bad_descriptors_are_refused(text: str, count: int) -> None:
    with pytest.raises(FormatError):
        pfor.decode(bytes.fromhex(text), count)


def test_empty_bitmap_is_the_header() -> None:
    data = bytes.fromhex("01 000000 0000")
    assert bitmap.encode(positions()) == data
    assert bitmap.decode(data).tolist() == []
    assert bitmap.cardinality(data) == 0


def test_sparse_container_lists_its_low_bytes() -> None:
    data = bytes.fromhex("01 030000 0100  000003  0022FF")
    assert bitmap.encode(positions(0, 34, 255)) == data
    assert bitmap.decode(data).tolist() == [0, 34, 255]


def test_containers_before_the_first_position_are_empty() -> None:
    # Four descriptors 0 0 0 1: no primary bits, one exception of one bit at offset 3.
    data = bytes.fromhex("01 010000 0400  100100 03 80  05")
    assert bitmap.decode(data).tolist() == [3 * 256 + 5]
    # Ours spends one primary bit instead, which is a byte shorter.
    assert bitmap.encode(positions(3 * 256 + 5)) == bytes.fromhex("01 010000 0400  010000 10  05")


def test_31_positions_are_sparse_and_32_are_dense() -> None:
    assert bitmap.encode(np.arange(31)) == bytes.fromhex("01 1F0000 0100  00001F") + bytes(
        range(31)
    )
    assert bitmap.encode(np.arange(32)) == (
        bytes.fromhex("01 200000 0100  000020") + b"\xff" * 4 + bytes(28)
    )


def test_dense_container_has_its_most_significant_bit_first() -> None:
    even = np.arange(0, 256, 2)
    data = bytes.fromhex("01 800000 0100  000020") + b"\xaa" * 32
    assert bitmap.encode(even) == data
    assert bitmap.decode(data).tolist() == even.tolist()


def test_sparse_and_dense_containers_keep_their_order() -> None:
    # dense, sparse (1), dense, sparse (2): descriptors 32 1 32 2.
    expected = [*range(256), 256 + 9, *range(512, 768), 768 + 1, 768 + 200]
    data = bitmap.encode(np.array(expected))
    assert data.endswith(b"\xff" * 32 + b"\x09" + b"\xff" * 32 + b"\x01\xc8")
    assert bitmap.decode(data).tolist() == expected


def test_full_bitmap_has_2097152_positions() -> None:
    everything = np.arange(2_097_152)
    data = bitmap.encode(everything)
    assert (
        data == bytes.fromhex("01 000020 0020") + bytes.fromhex("000020") * 32 + b"\xff" * 262_144
    )
    assert bitmap.cardinality(data) == 2_097_152
    assert np.array_equal(bitmap.decode(data), everything)


def test_last_possible_position_is_kept() -> None:
    assert bitmap.decode(bitmap.encode(positions(2_097_151))).tolist() == [2_097_151]


@pytest.mark.parametrize("dtype", [np.uint8, np.uint32, np.int32, np.uint64])
def test_any_integer_type_can_be_encoded(dtype: type[np.integer]) -> None:
    assert bitmap.encode(np.array([1, 2, 200], dtype)) == bitmap.encode(positions(1, 2, 200))


@pytest.mark.parametrize(
    "array",
    [
        pytest.param(positions(3, 2), id="descending"),
        pytest.param(positions(3, 3), id="repeated"),
        pytest.param(positions(-1, 3), id="negative"),
        pytest.param(positions(2_097_152), id="too large"),
        pytest.param(np.array([1.0]), id="floating point"),
        pytest.param(np.array([[1, 2]]), id="two dimensions"),
    ],
)
def test_what_is_no_list_of_positions_is_not_encoded(array: np.ndarray) -> None:
    with pytest.raises(InvalidInput):
        bitmap.encode(array)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("01 000000 00", id="short header"),
        pytest.param("02 000000 0000", id="version 2"),
        pytest.param("01 000000 0120", id="8193 containers"),
        pytest.param("01 000000 0000 00", id="trailing byte after an empty bitmap"),
        pytest.param("01 030000 0100  000003  0022FF 00", id="trailing byte"),
        pytest.param("01 030000 0100  000003  0022", id="short container"),
        pytest.param("01 030000 0100  0000", id="short descriptors"),
        pytest.param("01 020000 0100  000003  0022FF", id="cardinality too low"),
        pytest.param("01 040000 0100  000003  0022FF", id="cardinality too high"),
        pytest.param("01 030000 0100  000003  2200FF", id="unsorted"),
        pytest.param("01 030000 0100  000003  2222FF", id="repeated"),
        pytest.param("01 210000 0100  000021" + "FF" * 33, id="descriptor 33"),
        pytest.param("01 FF0000 0100  000020" + "FF" * 32, id="dense cardinality"),
    ],
)
def test_bad_bitmaps_are_refused(text: str) -> None:
    with pytest.raises(FormatError):
        bitmap.decode(bytes.fromhex(text))


def test_unsorted_sparse_bytes_are_refused_beside_a_dense_container() -> None:
    good = bitmap.encode(np.array([*range(256), 257, 258]))
    bad = good[:-2] + b"\x02\x01"
    with pytest.raises(FormatError, match="ascending"):
        bitmap.decode(bad)


def test_position_past_the_leaf_is_refused_and_names_the_manifest() -> None:
    data = bitmap.encode(positions(0, 9))
    assert bitmap.decode(data, limit=10).tolist() == [0, 9]
    with pytest.raises(FormatError) as caught:
        bitmap.decode(data, limit=9, path="metadata/leaf.parquet", field="manifest_info.dv")
    assert caught.value.path == "metadata/leaf.parquet"
    assert caught.value.field == "manifest_info.dv"
    assert str(caught.value) == (
        "metadata/leaf.parquet: manifest_info.dv: holds position 9; the manifest has 9 entries"
    )


def test_cardinality_reads_the_header_alone() -> None:
    assert bitmap.cardinality(bytes.fromhex("01 040201 0000")) == 0x010204
    with pytest.raises(FormatError) as caught:
        bitmap.cardinality(b"\x07" + bytes(5), path="metadata/root.parquet")
    assert caught.value.path == "metadata/root.parquet"


def test_positions_are_sorted_and_made_unique() -> None:
    assert bitmap.as_positions([5, 1, 5, 3]).tolist() == [1, 3, 5]
    assert bitmap.as_positions(np.array([2, 1], np.uint32)).dtype == np.int64
    assert bitmap.as_positions({7}).tolist() == [7]
    assert bitmap.as_positions([]).tolist() == []
    with pytest.raises(InvalidInput):
        bitmap.as_positions(np.array([1.5]))


def test_union_difference_and_contains() -> None:
    left, right, none = positions(1, 3, 5), positions(3, 4), positions()
    assert bitmap.union(left, right).tolist() == [1, 3, 4, 5]
    assert bitmap.union(left, none).tolist() == [1, 3, 5]
    assert bitmap.union(none, right).tolist() == [3, 4]
    assert bitmap.difference(left, right).tolist() == [1, 5]
    assert bitmap.difference(left, none).tolist() == [1, 3, 5]
    assert bitmap.difference(none, right).tolist() == []
    assert bitmap.contains(left, positions(5, 2, 1, 9, 5)).tolist() == [
        True,
        False,
        True,
        False,
        True,
    ]
    assert bitmap.contains(none, right).tolist() == [False, False]


def test_contains_works_on_positions_far_apart() -> None:
    far = positions(0, 1 << 40, 1 << 60)
    assert bitmap.contains(far, positions(1 << 40, 5, 1 << 61)).tolist() == [True, False, False]


def test_a_leaf_has_as_many_entries_as_a_bitmap_has_positions() -> None:
    assert registry.MAX_LEAF_ENTRIES == bitmap.MAX_POSITIONS
