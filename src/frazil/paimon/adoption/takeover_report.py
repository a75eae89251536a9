"""What an adoption would do, reported in advance.

A dry run goes through the same preparation as an adoption, every check included, and writes
nothing. It prints as text; its tables are Arrow.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pyarrow as pa

from frazil.paimon.adoption import adoption_plan
from frazil.paimon.adoption.takeover import Takeover, prepare, taken_vectors
from frazil.paimon.adoption.verify import Listing
from frazil.paimon.read import as_iceberg
from frazil.paimon.read.paimon_table import PaimonTable
from frazil.storage import Storage
from frazil.text_format import counted, size
from frazil.value_classes import frozen


@frozen(eq=False)
class SnapshotReport:
    """What would become of one Paimon snapshot."""

    branch: str
    snapshot_id: int
    is_goal: bool
    """The latest of its branch: if it cannot be adopted, nothing is."""
    classes: pa.Table
    """One row per class of files: verdict, reason, advice, files, rows, bytes, example."""
    problems: tuple[str, ...]
    needs_merge: bool
    taken_files: int
    taken_rows: int
    deleted_rows: int
    """Rows of taken files that deletion vectors retire."""

    @property
    def can_be_taken(self) -> bool:
        """Whether it can be adopted as it is."""
        return not self.problems and not self.needs_merge


@frozen(eq=False)
class Report:
    """The outcome of a dry run."""

    location: str
    snapshots: tuple[SnapshotReport, ...]
    tags: tuple[str, ...]
    branches: tuple[str, ...]
    notes: tuple[str, ...]
    files: pa.Table
    """Every live file of the latest snapshot with its verdict and reason."""

    @property
    def can_be_adopted(self) -> bool:
        """Whether an adoption would succeed without a merge."""
        return all(item.can_be_taken for item in self.snapshots if item.is_goal)

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def dry_run(
    source: str | PaimonTable,
    *,
    storage: Storage | None = None,
    properties: Mapping[str, str] | None = None,
    history: bool = False,
    snapshot_id: int | None = None,
    tags: bool = True,
    branches: bool = True,
    exclude: Collection[str] = (),
    verify: bool = True,
) -> Report:
    """Prepare an adoption and report what it would do; the arguments are those of `adopt`."""
    table = source
    if isinstance(table, str):
        table = PaimonTable.open(table, storage=storage, properties=properties)
    as_iceberg.check_excluded(table.schemas().values(), exclude)
    adoption = adoption_plan.plan_adoption(
        table, history=history, snapshot_id=snapshot_id, tags=tags, branches=branches
    )
    goal = adoption.plans[0].snapshots[-1]
    versions = [schema for plan in adoption.plans for schema in plan.table.schemas().values()]
    mapping = as_iceberg.name_mapping(table.schema(goal.schema_id), versions, exclude=exclude)
    listing = Listing(table) if verify else None
    reports: list[SnapshotReport] = []
    files = pa.table({})
    for plan in adoption.plans:
        for number, state in enumerate(adoption_plan.states(plan), start=1):
            takeover = prepare(plan.table, state, exclude=exclude, listing=listing, mapping=mapping)
            is_goal = number == len(plan.snapshots)
            reports.append(_snapshot_report(plan, takeover, is_goal=is_goal))
            if is_goal and plan is adoption.plans[0]:
                files = _files(takeover)
    return Report(
        location=table.location,
        snapshots=tuple(reports),
        tags=tuple(tag.name for plan in adoption.plans for tag in plan.tags),
        branches=tuple(plan.branch for plan in adoption.plans[1:]),
        notes=adoption.notes,
        files=files,
    )


def _snapshot_report(
    plan: adoption_plan.BranchPlan, takeover: Takeover, *, is_goal: bool
) -> SnapshotReport:
    rows = takeover.state.files["row_count"].to_numpy()[takeover.taken]
    vectors = taken_vectors(plan.table, takeover)
    return SnapshotReport(
        branch=plan.branch,
        snapshot_id=takeover.state.snapshot.id,
        is_goal=is_goal,
        classes=takeover.summary,
        problems=takeover.problems,
        needs_merge=bool(takeover.merged.any()),
        taken_files=int(takeover.taken.sum()),
        taken_rows=int(rows.sum()),
        deleted_rows=sum(len(positions) for positions in vectors.values()),
    )


def _files(takeover: Takeover) -> pa.Table:
    classes = takeover.classified.classes
    codes = pa.array(takeover.classified.codes)
    columns: dict[str, Any] = {
        "location": takeover.everywhere,
        "row_count": takeover.state.files["row_count"],
        "file_size": takeover.state.files["file_size"],
        "level": takeover.state.files["level"],
        "verdict": pa.array([item.verdict.value for item in classes]).take(codes),
        "reason": pa.array([item.reason for item in classes]).take(codes),
    }
    return pa.table(columns)


def _lines(report: Report) -> list[str]:
    lines = [report.location]
    for item in report.snapshots:
        fate = "can be adopted" if item.can_be_taken else "needs a merge first"
        if item.problems:
            fate = "cannot be adopted"
        if not item.is_goal and not item.can_be_taken:
            fate += ", skipped"
        lines.append(f"snapshot {item.snapshot_id} of {item.branch}: {fate}")
        for line in item.classes.to_pylist():
            lines.append(
                f"  {counted(line['files'], 'file'):>14} {counted(line['rows'], 'row'):>17} "
                f"{size(line['bytes']):>10}  "
                f"{line['verdict']}: {line['reason']}"
            )
            if line["advice"]:
                lines.append(f"{'':46}{line['advice']}")
        if item.deleted_rows:
            lines.append(f"  deletion vectors delete {counted(item.deleted_rows, 'row')}")
        table_problems = [p for p in item.problems if not p.startswith(tuple("0123456789"))]
        lines += [f"  {problem}" for problem in table_problems]
    if report.tags:
        lines.append(f"tags: {', '.join(report.tags)}")
    if report.branches:
        lines.append(f"branches: {', '.join(report.branches)}")
    return lines + [f"note: {note}" for note in report.notes]
