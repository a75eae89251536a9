"""Appends that a head commits together with those of other writers: a strategy before the loop.

Only plain appends qualify: new data files on a branch and nothing that depends on the state they
meet. Everything else goes through the loop of `frazil.commit.loop`, and so does the group itself
where it is committed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from frazil.commit.change import Change
from frazil.commit.head import Appender, Head, State
from frazil.commit.result import CommitResult
from frazil.commit.summary import Tally, check_keys
from frazil.format import paths
from frazil.format.entries.batch import EntryBatch
from frazil.properties.registry import GROUP_COMMITS
from frazil.value_classes import replace

"""The property that switches group commits off."""
MAX_ENTRIES: Final = 1_000
"""An append of more files is worth a commit of its own."""

GROUP_SIZE: Final = "frazil.group.size"
GROUP_IDS: Final = "frazil.group.ids"
"""Summary keys of a snapshot that holds several appends: how many, and the id of each."""
_OWN: Final = "frazil."
"""Keys that Frazil reads back from summaries belong to one append alone."""


def shareable(change: Change, base: State) -> EntryBatch | None:
    """What a change adds, if it is an append that may share a snapshot with others."""
    if not _is_plain_append(change) or not is_grouped(base.metadata.properties):
        return None
    check_keys(change.summary)
    return change.added


def is_grouped(properties: Mapping[str, str]) -> bool:
    """Whether a table's appends may share a snapshot."""
    return GROUP_COMMITS.lenient(properties, otherwise=True)


def _is_plain_append(change: Change) -> bool:
    """Whether a change is an append that can share a snapshot with others."""
    added = change.added
    if added is None or not 0 < added.num_rows <= MAX_ENTRIES:
        return False
    is_more = (
        change.updates
        or not change.only_adds
        or change.is_rewrite
        or change.rewrite_leaves is not None
        or change.carried_deletes is not None
        or change.searched
        or change.snapshot_id is not None
        or change.recorded_operation is not None
        or change.is_staged
        or change.starts_empty
        or change.rows_updated
    )
    if is_more or any(key.startswith(_OWN) for key in change.summary):
        return False
    return change.operation == "append" and _are_new_files(added)


def _are_new_files(added: EntryBatch) -> bool:
    """Files of the table's own folder, without rows that had an id before, or a vector."""
    keys = ("tracking.first_row_id", "tracking.sequence_number", "deletion_vector.location")
    if any(added.has(key) and added.column(key).null_count < added.num_rows for key in keys):
        return False
    locations = added.pylist("location")
    return all(name and name[0] != "/" and not paths.is_absolute(name) for name in locations)


def append_together(
    change: Change, *, head: Head, base: State, new_id: Callable[[], int]
) -> CommitResult | None:
    """Land an append through a head that groups them; None when it has to go its own way."""
    if not isinstance(head, Appender) or (added := shareable(change, base)) is None:
        return None
    result = head.append(
        base,
        added,
        branch=change.branch,
        summary=change.summary,
        append_id=new_id(),
    )
    if result is None:
        return None
    return of_own(result, added)


def of_own(shared: CommitResult, added: EntryBatch) -> CommitResult:
    """The result of one append, whoever shares its snapshot."""
    tally = Tally.of(added)
    return replace(shared, rows_added=tally.records, files_added=tally.data_files)


def append_ids(summary: Mapping[str, str], snapshot_id: int) -> tuple[int, ...]:
    """The appends that a snapshot holds."""
    listed = summary.get(GROUP_IDS)
    if listed is None:
        return (snapshot_id,)
    return tuple(int(text) for text in listed.split() if text.isascii() and text.isdigit())


def group_summary(append_ids: tuple[int, ...]) -> dict[str, str]:
    """What the snapshot of several appends says of them; one append needs no more than its id."""
    if len(append_ids) < 2:
        return {}
    return {GROUP_SIZE: str(len(append_ids)), GROUP_IDS: " ".join(map(str, append_ids))}


__all__ = [
    "GROUP_IDS",
    "GROUP_SIZE",
    "MAX_ENTRIES",
    "append_ids",
    "append_together",
    "group_summary",
    "is_grouped",
    "of_own",
    "shareable",
]
