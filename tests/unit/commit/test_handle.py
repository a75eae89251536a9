"""What a handle learns from its commits."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import frazil

ROWS = pa.table({"n": pa.array([1], pa.int64())})


def test_with_rivals_the_head_is_looked_at_before_anything_is_written(tmp_path: Path) -> None:
    with frazil.connect(tmp_path) as here, frazil.connect(tmp_path) as there:
        mine = here.create_table("shop.orders", ROWS.schema).pinned()
        theirs = there.load_table("shop.orders").pinned()

        def attempts(table: frazil.Table) -> int:
            done = table.append(ROWS)
            assert done is not None
            return done.attempts

        assert [attempts(mine), attempts(theirs), attempts(mine)] == [1, 2, 2]
        # Both know of each other now: what they saw last is not written on.
        assert [attempts(theirs), attempts(mine), attempts(theirs)] == [1, 1, 1]
        # Alone again, the state seen last is good enough.
        assert [attempts(theirs), attempts(theirs)] == [1, 1]
        assert not theirs._handle.has_rivals
        assert mine._handle.has_rivals
