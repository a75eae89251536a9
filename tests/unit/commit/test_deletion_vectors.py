"""Rows to delete become deletion vectors: one Puffin file, united with what was there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from frazil.commit.change import Change, VectorEdit
from frazil.errors import FormatError, InvalidInput, NotFound
from frazil.format.vectors import puffin
from tests.support.trees import Bench


def test_vectors_of_many_files_are_one_puffin(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.append("D1", "D2", "D3")
    edits = (bench.vector("D3", 1), bench.vector("D1", 2, 3))
    change = Change(vectors=edits, base_snapshot_id=1)
    assert bench.kinds_written(lambda: bench.commit(change)) == ["puffin", "root"]
    assert bench.live() == {"D1": (2, 3), "D2": (), "D3": (1,)}
    (path,) = (name for name in bench.stored() if name.endswith(".puffin"))
    assert path.startswith("data/")
    opened = bench.storage.open(f"{bench.location}/{path}")
    vectors = puffin.read_footer(opened, path=path).vectors(path=path)
    # Other engines look the data file up by its whole address.
    assert [data_file for data_file, _ in vectors] == [
        f"{bench.location}/D3",
        f"{bench.location}/D1",
    ]


def test_rows_that_other_delete_files_retire_join_the_vector(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.append("D1")
    edit = bench.vector("D1", 5, resolved=np.array([2, 5]))
    bench.commit(Change(vectors=(edit,), base_snapshot_id=1))
    assert bench.live() == {"D1": (2, 5)}


def test_a_row_past_the_end_of_the_file_is_refused(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.append("D1")
    before = bench.stored()
    with pytest.raises(InvalidInput, match="D1: position 10 is past the file's 10 rows"):
        bench.delete_rows("D1", 3, 10)
    assert bench.stored() == before


def test_an_old_vector_that_is_damaged_is_not_united(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.append("D1")
    bench.delete_rows("D1", 3)
    (name,) = (path for path in bench.stored() if path.endswith(".puffin"))
    path = Path(bench.location) / name
    data = bytearray(path.read_bytes())
    data[20] ^= 0xFF
    path.write_bytes(bytes(data))
    with pytest.raises(FormatError) as error:
        bench.delete_rows("D1", 4)
    assert error.value.path == str(path)
    path.unlink()
    with pytest.raises(NotFound):
        bench.delete_rows("D1", 4)


def test_an_edit_compares_by_identity() -> None:
    """Positions are arrays: edits are not meant to be compared."""
    one = VectorEdit(location="D1", positions=np.array([1, 2]))
    assert one == one
    assert one != VectorEdit(location="D1", positions=np.array([1, 2]))
