"""One filter over the entries of any manifest: which might match, which must, and why not.

`compile_filter` does once what does not depend on the entries (projecting predicates onto
partition fields and derived columns); the `Filter` it returns is applied to a root, then to each
leaf. The functions at the end do both steps for a single batch.

Every predicate is judged three ways: by partition tuple, by the statistics of derived columns, and
by those of its own column. The answers are combined predicate by predicate, which prunes at least
as much as evaluating the whole filter three times. Columns that a batch does not have are unknown:
they never prune.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil.arrow_values import to_numpy
from frazil.errors import InvalidInput
from frazil.filter.bind.comparable import Comparable, Mask, vector
from frazil.filter.bind.file_predicates import BoxPredicate, is_of_files
from frazil.filter.prune import bounds, boxes, partition_test
from frazil.filter.prune.bounds import Stats, both, either
from frazil.filter.prune.partition_test import (
    ComparedValues,
    Equalities,
    PartitionTest,
    holds,
    joint_tests,
    partition_tests,
)
from frazil.filter.text.filter_display import filter_text
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import ContentType, partition_key, stats_key
from frazil.format.values.types import is_floating
from frazil.iceberg.expressions import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BooleanExpression,
    BoundPredicate,
    Or,
)
from frazil.iceberg.partitioning import PartitionSpec
from frazil.iceberg.schema import Schema
from frazil.iceberg.transforms import Transform
from frazil.iceberg.types import IcebergType
from frazil.value_classes import field, frozen

Codes = np.ndarray[Any, np.dtype[np.int32]]
_EVIDENCE: Final = ("partition", "derived", "bounds")
_ENTRY_KEYS: Final = frozenset({"content_type", "spec_id"})


class Derived(Protocol):
    """A derived column: statistics kept of a transform of a source column."""

    @property
    def expr_id(self) -> int:
        """The id its statistics are stored under."""

    @property
    def source_ids(self) -> Sequence[int]:
        """The columns the transform takes."""

    @property
    def transform(self) -> Transform:
        """The transform."""


@frozen
class PruneContext:
    """What a table says about its columns: schema, partition specs by id, derived columns."""

    schema: Schema
    specs: Mapping[int, PartitionSpec] = field(default_factory=dict)
    derived: Sequence[Derived] = ()


@frozen(eq=False)
class PruneResult:
    """Which entries might match, and how many each kind of evidence ruled out.

    An entry is counted once: under partition if the tuples alone rule it out, else under derived
    columns, else under bounds.
    """

    mask: Mask
    by_partition: int = 0
    by_derived: int = 0
    by_bounds: int = 0


@frozen
class Reason:
    """Why an entry cannot match: the predicate that says so, its columns, and the evidence.

    `by` is "partition", "derived" or "bounds". Where an OR rules an entry out, all its parts do.
    """

    field_ids: tuple[int, ...]
    by: str
    text: str


@frozen(eq=False)
class Reasons:
    """A reason for every entry that cannot match: `codes` index `reasons`; -1 might match."""

    codes: Codes
    reasons: tuple[Reason, ...]


@frozen
class _StatsTest:
    """What a predicate asks of the statistics of one column, its own or a derived one."""

    field_id: int
    required: bool
    inclusive: ComparedValues | None
    strict: ComparedValues | None
    inside: tuple[str, bool] | None = None  # a field inside variants, which has bounds alone

    @property
    def conditions(self) -> tuple[ComparedValues, ...]:
        return tuple(c for c in (self.inclusive, self.strict) if c is not None)


@frozen
class _Leaf:
    """One predicate with everything that can judge it.

    Or what several predicates together say of a transform of their columns: it follows from them,
    and no column of its own judges it.
    """

    predicates: tuple[BoundPredicate, ...]
    partition: tuple[PartitionTest, ...]
    derived: tuple[_StatsTest, ...]
    own: _StatsTest | None
    box: BoxPredicate | None = None
    proves: bool = True
    """Whether it may be known to hold for all rows of a file."""

    @property
    def stats(self) -> tuple[_StatsTest, ...]:
        return self.derived if self.own is None else (*self.derived, self.own)


@frozen
class _Node:
    """AND or OR of several nodes."""

    every: bool
    children: tuple[_Leaf | _Node | bool, ...]


@frozen
class _Might:
    """Where a node might match by partition; by that and derived columns; by those and bounds."""

    partition: Mask | None
    derived: Mask | None
    bounds: Mask | None


@frozen
class Filter:
    """A filter compiled for a table, to be applied to any number of batches."""

    root: _Leaf | _Node | bool
    required_keys: frozenset[str]

    def prune(self, batch: EntryBatch) -> PruneResult:
        """The entries that might match, with what ruled the others out."""
        count = batch.num_rows
        might = _might(self.root, _View(batch))
        by_partition = _missing(might.partition)
        upto_derived = _missing(might.derived)
        mask = np.ones(count, dtype=np.bool_) if might.bounds is None else might.bounds
        return PruneResult(
            mask=mask,
            by_partition=by_partition,
            by_derived=upto_derived - by_partition,
            by_bounds=count - int(np.count_nonzero(mask)) - upto_derived,
        )

    def might_match(self, batch: EntryBatch) -> Mask:
        """False only where no row can match."""
        return self.prune(batch).mask

    def must_match(self, batch: EntryBatch) -> Mask:
        """True only where every row matches; such a file needs no row filter."""
        must = _must(self.root, _View(batch))
        if must is None:
            return np.zeros(batch.num_rows, dtype=np.bool_)
        return must

    def reasons(self, batch: EntryBatch) -> Reasons:
        """Which predicate rules out each entry: of several that all have to hold, the first.

        It finds the same entries as `prune` and costs more, so it is optional.
        """
        codes_by_reason: dict[Reason, int] = {}
        codes = _reasons(self.root, _View(batch), codes_by_reason)
        return Reasons(codes=codes, reasons=tuple(codes_by_reason))

    def residual_needed(self, batch: EntryBatch) -> Mask:
        """Where some rows might match and others not: the file's rows have to be filtered.

        Cheapest on a batch that was pruned already.
        """
        return self.might_match(batch) & ~self.must_match(batch)


def compile_filter(expression: BooleanExpression, context: PruneContext) -> Filter:
    """Prepare a filter that `parse` returned for pruning entries of the table."""
    root = _compile(expression, context)
    return Filter(root=root, required_keys=frozenset(_keys(root)))


def prune(expression: BooleanExpression, batch: EntryBatch, context: PruneContext) -> PruneResult:
    """`Filter.prune` for one batch."""
    return compile_filter(expression, context).prune(batch)


def might_match(expression: BooleanExpression, batch: EntryBatch, context: PruneContext) -> Mask:
    """`Filter.might_match` for one batch."""
    return compile_filter(expression, context).might_match(batch)


def must_match(expression: BooleanExpression, batch: EntryBatch, context: PruneContext) -> Mask:
    """`Filter.must_match` for one batch."""
    return compile_filter(expression, context).must_match(batch)


def residual_needed(
    expression: BooleanExpression, batch: EntryBatch, context: PruneContext
) -> Mask:
    """`Filter.residual_needed` for one batch."""
    return compile_filter(expression, context).residual_needed(batch)


def required_keys(expression: BooleanExpression, context: PruneContext) -> frozenset[str]:
    """The columns of a batch that the masks use; others need not be read."""
    return compile_filter(expression, context).required_keys


# --- compiling -----------------------------------------------------------------------------------


def _compile(expression: BooleanExpression, context: PruneContext) -> _Leaf | _Node | bool:
    if isinstance(expression, And):
        conjuncts = _conjuncts(expression)
        children = [_compile(conjunct, context) for conjunct in conjuncts]
        children += _joint_leaves(Equalities.of(conjuncts), context)
        return _Node(every=True, children=tuple(children))
    if isinstance(expression, Or):
        sides = (_compile(expression.left, context), _compile(expression.right, context))
        return _Node(every=False, children=sides)
    if isinstance(expression, AlwaysTrue):
        return True
    if isinstance(expression, AlwaysFalse):
        return False
    if not isinstance(expression, BoundPredicate):
        raise InvalidInput(
            f"the filter is not bound: {expression}; bind it with frazil.filter.text.filter_text"
        )
    if isinstance(expression, BoxPredicate):
        return _Leaf(
            predicates=(expression,),
            partition=(),
            derived=(),
            own=None,
            box=expression,
            proves=False,
        )
    if is_of_files(expression):
        return _expression_leaf(expression)
    return _leaf(expression, context)


def _conjuncts(expression: BooleanExpression) -> list[BooleanExpression]:
    """The parts of a conjunction from left to right, however it is nested."""
    parts: list[BooleanExpression] = []
    rest = [expression]
    while rest:
        part = rest.pop()
        if isinstance(part, And):
            rest += (part.right, part.left)
        else:
            parts.append(part)
    return parts


def _joint_leaves(equalities: Equalities, context: PruneContext) -> list[_Leaf]:
    leaves = [
        _Leaf(predicates=condition.predicates, partition=(test,), derived=(), own=None)
        for condition, test in joint_tests(equalities, context.specs)
    ]
    for derived in context.derived:
        if len(derived.source_ids) < 2:
            continue
        condition = equalities.buckets(derived.source_ids, derived.transform)
        if condition is not None:
            buckets = _StatsTest(
                field_id=derived.expr_id, required=False, inclusive=condition.buckets, strict=None
            )
            leaves.append(
                _Leaf(predicates=condition.predicates, partition=(), derived=(buckets,), own=None)
            )
    return leaves


def _expression_leaf(predicate: BoundPredicate) -> _Leaf:
    """Statistics of an expression, or of a field inside variants, which prove nothing of rows."""
    inside = getattr(predicate.term, "inside", None)
    stats = _StatsTest(
        field_id=predicate.term.field.field_id,
        required=False,
        inclusive=partition_test.condition(predicate),
        strict=None,
        inside=inside,
    )
    derived, own = ((stats,), None) if inside is None else ((), stats)
    return _Leaf(predicates=(predicate,), partition=(), derived=derived, own=own, proves=False)


def _leaf(predicate: BoundPredicate, context: PruneContext) -> _Leaf:
    column = predicate.term.field
    condition = partition_test.condition(predicate)
    own = _StatsTest(
        field_id=column.field_id,
        required=column.required,
        inclusive=condition,
        strict=condition,
    )
    derived = (
        _StatsTest(
            field_id=derived.expr_id,
            required=column.required,
            inclusive=partition_test.inclusive(derived.transform, predicate),
            strict=partition_test.strict(derived.transform, predicate),
        )
        for derived in context.derived
        if tuple(derived.source_ids) == (column.field_id,)
    )
    return _Leaf(
        predicates=(predicate,),
        partition=partition_tests(predicate, context.specs),
        derived=tuple(test for test in derived if test.conditions),
        own=own,
    )


def _keys(node: _Leaf | _Node | bool) -> set[str]:
    if isinstance(node, bool):
        return set()
    if isinstance(node, _Node):
        return set().union(*(_keys(child) for child in node.children))
    keys: set[str] = set() if node.box is None else set(boxes.keys(node.box))
    for test in node.partition:
        keys |= _ENTRY_KEYS | {partition_key(test.partition_field_id)}
        keys |= {stats_key(id, "lower_bound") for id in _sources(node)}
    for stats in node.stats:
        for condition in stats.conditions:
            keys |= bounds.keys(condition, stats.field_id, required=stats.required)
    return keys


def _sources(leaf: _Leaf) -> tuple[int, ...]:
    """The columns whose bounds say that a partition value cannot be null."""
    field_ids = (predicate.term.field.field_id for predicate in leaf.predicates)
    return (*field_ids, *(test.field_id for test in leaf.derived))


# --- evaluating ----------------------------------------------------------------------------------


class _View:
    """The columns of one batch as vectors and counts, each converted at most once."""

    def __init__(self, batch: EntryBatch) -> None:
        self.batch = batch
        self._stats: dict[tuple[int, str, tuple[str, bool] | None], Stats] = {}
        self._values: dict[str, Comparable | None] = {}
        self._in_spec: dict[tuple[int, ...], Mask] = {}
        self._no_tuple: dict[tuple[int, ...], Mask | None] = {}
        self.count = batch.num_rows

    def stats(self, test: _StatsTest, type_: IcebergType) -> Stats:
        """The statistics of the test's column."""
        same = (test.field_id, str(type_), test.inside)
        stats = self._stats.get(same)
        if stats is None and test.inside is not None:
            from frazil.filter.prune.variant_terms import stats_inside

            stats = stats_inside(self.batch, test.field_id, test.inside, type_)
        if stats is None:
            stats = self._stats[same] = Stats(
                lower=self._bound(stats_key(test.field_id, "lower_bound"), type_),
                upper=self._bound(stats_key(test.field_id, "upper_bound"), type_),
                values=self._counts(stats_key(test.field_id, "value_count")),
                nulls=self._counts(stats_key(test.field_id, "null_value_count")),
                nans=self._counts(stats_key(test.field_id, "nan_value_count")),
                required=test.required,
                floating=is_floating(type_),
            )
        return stats

    def _bound(self, key: str, type_: IcebergType) -> Comparable | None:
        if not self.batch.has(key) or not self.count:
            return None
        return vector(self.batch.column(key), type_)

    def _counts(self, key: str) -> bounds.Counts | None:
        return self.batch.numpy(key) if self.batch.has(key) else None

    def holds(self, partition_field_id: int, condition: ComparedValues) -> Mask | None:
        """Where a partition field's value satisfies the condition; None when nothing is known."""
        key = partition_key(partition_field_id)
        if not self.batch.has(key) or not self.batch.has("spec_id"):
            return None
        column: pa.ChunkedArray = self.batch.column(key)
        if column.null_count == self.count:
            return holds(condition, None, self.count)
        if key not in self._values:
            self._values[key] = vector(column, condition.type, nan_known=True)
        values = self._values[key]
        return None if values is None else holds(condition, values, self.count)

    def no_tuple(self, partition_field_id: int, sources: tuple[int, ...]) -> Mask | None:
        """Where a tuple has no value although its column has bounds: the entry has no tuple."""
        same = (partition_field_id, *sources)
        if same not in self._no_tuple:
            mask: Mask | None = None
            values = self.batch.column(partition_key(partition_field_id))
            for id in sources if values.null_count else ():
                bound = self.batch.column(stats_key(id, "lower_bound"))
                if bound.null_count < self.count:
                    mask = either(mask, to_numpy(pc.is_valid(bound)))
            if mask is not None:
                mask &= to_numpy(pc.is_null(values))
            self._no_tuple[same] = mask
        return self._no_tuple[same]

    def in_spec(self, spec_ids: tuple[int, ...]) -> Mask:
        """Where the entry is a file, of one of the specs."""
        mask = self._in_spec.get(spec_ids)
        if mask is None:
            specs = self.batch.numpy("spec_id")
            mask = specs == spec_ids[0] if len(spec_ids) == 1 else np.isin(specs, spec_ids)
            kinds = self.batch.numpy("content_type")
            mask &= (kinds >= 0) & (kinds < ContentType.DATA_MANIFEST)
            self._in_spec[spec_ids] = mask
        return mask


def _missing(mask: Mask | None) -> int:
    return 0 if mask is None else len(mask) - int(np.count_nonzero(mask))


def _might(node: _Leaf | _Node | bool, view: _View) -> _Might:
    if isinstance(node, bool):
        nowhere = None if node else np.zeros(view.count, dtype=np.bool_)
        return _Might(partition=None, derived=None, bounds=nowhere)
    if isinstance(node, _Node):
        children = [_might(child, view) for child in node.children]
        combine = both if node.every else _or
        return _Might(
            partition=_fold(combine, [m.partition for m in children]),
            derived=_fold(combine, [m.derived for m in children]),
            bounds=_fold(combine, [m.bounds for m in children]),
        )
    # Each kind of evidence is counted apart, so each mask includes the one before it.
    partition: Mask | None = None
    for test in node.partition:
        partition = both(partition, _by_tuples(test, view, _sources(node), strict=False))
    derived = partition
    for stats_test in node.derived:
        derived = both(derived, _stats_might(stats_test, view))
    own = derived if node.own is None else both(derived, _stats_might(node.own, view))
    if node.box is not None:
        own = both(own, boxes.might(node.box, view.batch))
    return _Might(partition=partition, derived=derived, bounds=own)


def _reasons(node: _Leaf | _Node | bool, view: _View, codes_by_reason: dict[Reason, int]) -> Codes:
    """As `_might`, with the reason in place of each False."""
    codes = np.full(view.count, -1, dtype=np.int32)
    if isinstance(node, bool):
        if not node:
            codes[:] = _code(Reason(field_ids=(), by="bounds", text="false"), codes_by_reason)
        return codes
    if isinstance(node, _Leaf):
        might = _might(node, view)
        for by, mask in zip(_EVIDENCE, (might.partition, might.derived, might.bounds), strict=True):
            if mask is None:
                continue
            ruled_out = ~mask & (codes < 0)
            if ruled_out.any():
                ids = (predicate.term.field.field_id for predicate in node.predicates)
                text = " and ".join(filter_text(predicate) for predicate in node.predicates)
                reason = Reason(field_ids=tuple(ids), by=by, text=text)
                codes[ruled_out] = _code(reason, codes_by_reason)
        return codes
    parts = [_reasons(child, view, codes_by_reason) for child in node.children]
    if node.every:
        for part in parts:
            codes = np.where(codes < 0, part, codes)
        return codes
    # An OR rules an entry out only where every side does.
    joined = np.stack(parts)
    everywhere: Mask = np.all(joined >= 0, axis=0)
    reasons = tuple(codes_by_reason)
    for combination in np.unique(joined[:, everywhere], axis=1).T:
        same = everywhere & (joined == combination[:, None]).all(axis=0)
        codes[same] = _code(_joined([reasons[code] for code in combination]), codes_by_reason)
    return codes


def _code(reason: Reason, codes_by_reason: dict[Reason, int]) -> int:
    return codes_by_reason.setdefault(reason, len(codes_by_reason))


def _joined(parts: Sequence[Reason]) -> Reason:
    """What an OR says: each of its parts is needed, the weakest evidence names the kind."""
    ids = dict.fromkeys(id for part in parts for id in part.field_ids)
    by = max((part.by for part in parts), key=_EVIDENCE.index)
    texts = dict.fromkeys(part.text for part in parts)
    return Reason(field_ids=tuple(ids), by=by, text=" or ".join(texts))


def _must(node: _Leaf | _Node | bool, view: _View) -> Mask | None:
    if isinstance(node, bool):
        return np.ones(view.count, dtype=np.bool_) if node else None
    if isinstance(node, _Node):
        combine = _and if node.every else either
        return _fold(combine, [_must(child, view) for child in node.children])
    if not node.proves:
        return None
    if node.own is None:  # it holds wherever the predicates that it follows from do
        return np.ones(view.count, dtype=np.bool_)
    mask: Mask | None = None
    for test in node.partition:
        mask = either(mask, _by_tuples(test, view, _sources(node), strict=True))
    for stats_test in node.stats:
        condition = stats_test.strict
        if condition is not None:
            stats = view.stats(stats_test, condition.type)
            mask = either(mask, bounds.must(condition, stats))
    return mask


def _stats_might(test: _StatsTest, view: _View) -> Mask | None:
    condition = test.inclusive
    if condition is None:
        return None
    return bounds.might(condition, view.stats(test, condition.type))


def _by_tuples(
    test: PartitionTest, view: _View, sources: tuple[int, ...], *, strict: bool
) -> Mask | None:
    """Which files must match by their partition tuples, or may; where nothing is known of a tuple,
    a file may match and need not."""
    condition = test.strict if strict else test.inclusive
    mask = None if condition is None else view.holds(test.partition_field_id, condition)
    if mask is None:
        return None
    missing = view.no_tuple(test.partition_field_id, sources)
    in_spec = view.in_spec(test.spec_ids)
    if strict:
        return (mask if missing is None else mask & ~missing) & in_spec
    return (mask if missing is None else mask | missing) | ~in_spec


def _or(left: Mask | None, right: Mask | None) -> Mask | None:
    """OR of masks where None is true everywhere."""
    return None if left is None or right is None else left | right


def _and(left: Mask | None, right: Mask | None) -> Mask | None:
    """AND of masks where None is false everywhere."""
    return None if left is None or right is None else left & right


def _fold(
    combine: Callable[[Mask | None, Mask | None], Mask | None],
    masks: Sequence[Mask | None],
) -> Mask | None:
    folded = masks[0]
    for mask in masks[1:]:
        folded = combine(folded, mask)
    return folded
