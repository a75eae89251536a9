"""Rewrites leaves: clustered so that each covers a narrow range, without dead entries, few and
full.

Both ways land as a `replace` snapshot that changes no file and no row. A leaf that another commit
touches meanwhile is left as it is, or the whole is begun again where old deletes move with it.
"""

from __future__ import annotations

from collections.abc import Sequence

from frazil.commit.adapt import bulk_target
from frazil.commit.change import CarriedDeletes, Change, RewriteElsewhere
from frazil.commit.handle import TableHandle
from frazil.commit.loop import discard
from frazil.commit.result import CommitResult
from frazil.errors import CommitConflict, CommitUnknown, InvalidInput, NotFound
from frazil.format.entries.fields import ContentType
from frazil.format.metadata.metadata import MAIN, Snapshot
from frazil.legacy.upgrade.carried_deletes import take_over, with_equality_deletes
from frazil.maintenance.progress import Progress, silent
from frazil.tree.clusters import overlap_of
from frazil.tree.policy import Thresholds
from frazil.tree.read import LeafRef, Tree, data_leaves
from frazil.value_classes import frozen, replace

_ATTEMPTS = 5


def rewrite_manifests(
    handle: TableHandle,
    *,
    branch: str = MAIN,
    leaves: Sequence[str] | None = None,
    elsewhere: RewriteElsewhere | None = None,
    progress: Progress = silent,
) -> CommitResult:
    """Rewrite every leaf of a branch, or those named, together with the root's entries; in this
    process, or `elsewhere`.

    Manifests of v1 to v3 become v4 leaves, their deletes deletion vectors. Those with equality
    deletes stay, as v4 has no such entries. Commits nothing when the tree is as good as it gets.
    """
    return _rewrite(handle, branch, _All(only=leaves), progress, elsewhere)


def compact_metadata(
    handle: TableHandle, *, branch: str = MAIN, progress: Progress = silent
) -> CommitResult:
    """Move the root's entries to leaves, merge small leaves, and drop dead entries of others."""
    return _rewrite(handle, branch, _Worn(), progress)


def leaves_due(
    handle: TableHandle, *, branch: str = MAIN, everything: bool
) -> tuple[str, ...] | None:
    """The leaves that `rewrite_manifests` (`everything`) or `compact_metadata` would rewrite
    now; None when neither they nor the root's entries need it."""
    tree = handle.reader().tree(handle.tip(branch))
    policy: _All | _Worn = _All(only=None) if everything else _Worn()
    return policy.choose(handle, tree)


@frozen
class _All:
    """Every leaf, unless they are few, full, alive and apart already."""

    only: Sequence[str] | None

    def choose(self, handle: TableHandle, tree: Tree) -> tuple[str, ...] | None:
        everything = tree.leaves()
        with_equality = with_equality_deletes(handle.reader(), everything)
        refs = [ref for ref in everything if ref not in with_equality]
        if self.only is not None:
            unknown = sorted(set(self.only) - {ref.location for ref in everything})
            if unknown:
                raise NotFound(f"{handle.name}: no leaf {unknown[0]} in the current snapshot")
            staying = sorted(set(self.only) & {ref.location for ref in with_equality})
            if staying:
                raise InvalidInput(
                    f"{handle.name}: leaf {staying[0]} has equality deletes, which leaves of "
                    "version 4 cannot have; convert them to deletion vectors first"
                )
            return tuple(self.only)
        if not refs and not tree.content().num_rows:
            return None
        is_tidy = not tree.content().num_rows and not any(map(_is_worn, refs))
        files = sum(ref.record_count - ref.dead for ref in data_leaves(everything))
        target = bulk_target(handle.metadata, files=files + tree.content().num_rows)
        if is_tidy and _is_full(refs, target) and overlap_of(tree, handle.metadata).average == 0:
            return None
        return tuple(ref.location for ref in refs)


@frozen
class _Worn:
    """Leaves that are small or have dead entries, if there is something to gain."""

    def choose(self, handle: TableHandle, tree: Tree) -> tuple[str, ...] | None:
        limits = Thresholds.of(handle.metadata.properties)
        refs = [ref for ref in tree.leaves() if ref.format_version > 0]
        worn = [ref for ref in refs if _is_worn(ref)]
        small = [
            ref
            for ref in refs
            if ref not in worn and ref.record_count <= limits.leaf_target_entries // 2
        ]
        by_kind = [
            [ref for ref in small if ref.content_type is kind]
            for kind in (ContentType.DATA_MANIFEST, ContentType.DELETE_MANIFEST)
        ]
        has_content = tree.content().num_rows > 0
        merged = [ref for group in by_kind if len(group) > 1 or has_content for ref in group]
        chosen = tuple(ref.location for ref in (*worn, *merged))
        return chosen if worn or has_content or len(merged) > 1 else None


def _is_worn(ref: LeafRef) -> bool:
    return ref.dead > 0 or ref.format_version == 0


def _is_full(refs: Sequence[LeafRef], target: int) -> bool:
    """Whether fewer leaves could not hold the entries."""
    for kind in (ContentType.DATA_MANIFEST, ContentType.DELETE_MANIFEST):
        mine = [ref for ref in refs if ref.content_type is kind]
        entries = sum(ref.record_count for ref in mine)
        if len(mine) > -(-entries // target):
            return False
    return True


def _rewrite(
    handle: TableHandle,
    branch: str,
    policy: _All | _Worn,
    progress: Progress,
    elsewhere: RewriteElsewhere | None = None,
) -> CommitResult:
    handle.check_writable()
    for attempt in range(_ATTEMPTS):
        handle.refresh()
        tip = handle.tip(branch)
        tree = handle.reader().tree(tip)
        chosen = policy.choose(handle, tree)
        if chosen is None:
            return CommitResult.nothing("the metadata tree needs no rewriting")
        progress(0, len(chosen), "leaves rewritten")
        change, written = _change(handle, branch, tip, tree, chosen)
        try:
            committed = handle.commit(replace(change, rewrite_elsewhere=elsewhere))
        except CommitUnknown:
            raise
        except BaseException as error:
            discard(handle.storage, written)
            if not isinstance(error, CommitConflict) or attempt + 1 == _ATTEMPTS:
                raise
            continue
        progress(len(chosen), len(chosen), "leaves rewritten")
        return committed
    raise AssertionError("the loop returns or raises")


def _change(
    handle: TableHandle, branch: str, tip: Snapshot | None, tree: Tree, chosen: tuple[str, ...]
) -> tuple[Change, tuple[str, ...]]:
    base = None if tip is None else int(tip.snapshot_id)
    deletes: CarriedDeletes | None = None
    written: tuple[str, ...] = ()
    old = {leaf.location for leaf in tree.leaves() if leaf.format_version == 0}
    if old.intersection(chosen):
        takeover = take_over(handle, tip)
        if takeover is not None:
            deletes, written = takeover.deletes, takeover.written
            chosen = tuple(sorted({*chosen, *takeover.leaves}))
    change = Change(
        branch=branch, base_snapshot_id=base, rewrite_leaves=chosen, carried_deletes=deletes
    )
    return change, written
