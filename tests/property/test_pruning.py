"""Pruning never loses a row, never claims one too many, and rows agree with plain Python."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given, settings

from frazil.filter.prune.prune import compile_filter
from frazil.filter.row_filter import row_mask, to_arrow
from frazil.filter.text.filter_text import parse
from frazil.format.entries.batch import EntryBatch
from tests.property.pruning_model import (
    SCHEMA,
    Case,
    aggregated,
    arrow_rows,
    cases,
    matches,
    to_iceberg,
)


@settings(max_examples=200, deadline=None)
@given(cases())
def test_no_file_with_a_matching_row_is_pruned_and_no_file_is_claimed_in_vain(case: Case) -> None:
    compiled = compile_filter(parse(to_iceberg(case.node), SCHEMA), case.context)
    batch = EntryBatch.from_rows(case.entries, case.types)
    result = compiled.prune(batch)
    must = compiled.must_match(batch)
    for index, rows in enumerate(case.files):
        hits = [matches(case.node, row) for row in rows]
        assert result.mask[index] or not any(hits)
        assert all(hits) or not must[index]
    ruled_out = result.by_partition + result.by_derived + result.by_bounds
    assert ruled_out == batch.num_rows - int(result.mask.sum())
    assert min(result.by_partition, result.by_derived, result.by_bounds) >= 0


@settings(max_examples=120, deadline=None)
@given(cases())
def test_a_manifest_with_a_matching_row_in_some_file_is_kept(case: Case) -> None:
    compiled = compile_filter(parse(to_iceberg(case.node), SCHEMA), case.context)
    batch = EntryBatch.from_rows([aggregated(case.entries), *case.entries], case.types)
    hits = [matches(case.node, row) for rows in case.files for row in rows]
    assert compiled.might_match(batch)[0] or not any(hits)
    assert all(hits) or not compiled.must_match(batch)[0]


@settings(max_examples=120, deadline=None)
@given(cases(exact_single_rows=True))
def test_exact_statistics_of_one_row_decide_both_masks(case: Case) -> None:
    compiled = compile_filter(parse(to_iceberg(case.node), SCHEMA), case.context)
    batch = EntryBatch.from_rows(case.entries, case.types)
    hits = np.array([matches(case.node, rows[0]) for rows in case.files])
    np.testing.assert_array_equal(compiled.might_match(batch), hits)
    np.testing.assert_array_equal(compiled.must_match(batch), hits)
    assert not compiled.residual_needed(batch).any()


@settings(max_examples=60, deadline=None)
@given(cases())
def test_the_required_columns_are_all_that_the_masks_look_at(case: Case) -> None:
    compiled = compile_filter(parse(to_iceberg(case.node), SCHEMA), case.context)
    batch = EntryBatch.from_rows(case.entries, case.types)
    narrow = batch.select([*compiled.required_keys, "record_count"])
    np.testing.assert_array_equal(compiled.might_match(batch), compiled.might_match(narrow))
    np.testing.assert_array_equal(compiled.must_match(batch), compiled.must_match(narrow))


@settings(max_examples=120, deadline=None)
@given(cases())
def test_row_masks_agree_with_plain_python(case: Case) -> None:
    bound = parse(to_iceberg(case.node), SCHEMA)
    rows = [row for group in case.files for row in group]
    table = arrow_rows(case.kinds, rows)
    expected = [matches(case.node, row) for row in rows]
    assert row_mask(bound, table).to_pylist() == expected
    numbered = table.append_column("#", pa.array(range(len(rows))))
    kept = numbered.filter(to_arrow(bound)).column("#").to_pylist()
    assert kept == [index for index, hit in enumerate(expected) if hit]
