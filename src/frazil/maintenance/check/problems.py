"""What a check finds: problems that name a file and a field, collected without stopping."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from frazil.errors import FormatError, FrazilError
from frazil.text_format import card, counted, first_line
from frazil.value_classes import field, frozen


@frozen
class Problem:
    """A rule that is broken: where, in which field, and how."""

    path: str
    field: str
    what: str
    snapshot_id: int | None = None

    def __str__(self) -> str:
        by = "" if self.snapshot_id is None else f" (snapshot {self.snapshot_id})"
        field = f": {self.field}" if self.field else ""
        return f"{self.path}{field}: {self.what}{by}"


@frozen
class CheckReport:
    """What was checked and what was found. Without problems, the table follows every rule.

    `revisions` counts the v4 manifests of each revision of the format. `repaired` are bad values in
    the catalog that were replaced by what the table was read as.
    """

    table: str
    problems: tuple[Problem, ...]
    snapshots: int
    manifests: int
    files: int
    is_deep: bool
    repaired: tuple[Problem, ...] = ()
    revisions: Mapping[str, int] = field(default_factory=dict)

    def __repr__(self) -> str:
        state = counted(len(self.problems), "problem") if self.problems else "ok"
        return f"CheckReport({self.table}: {state})"

    def _repr_html_(self) -> str:
        facts = {
            "result": counted(len(self.problems), "problem") if self.problems else "ok",
            "first": str(self.problems[0]) if self.problems else None,
            "snapshots": self.snapshots,
            "manifests": self.manifests,
            "files": self.files,
        }
        return card(f"check of {self.table}", facts)

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return not self.problems

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values."""
        return {**asdict(self), "ok": self.ok}

    def __str__(self) -> str:
        seen = (
            f"{self.table}: checked {counted(self.snapshots, 'snapshot')}, "
            f"{counted(self.manifests, 'manifest')}{_of_revisions(self.revisions)}, "
            f"{counted(self.files, 'file')}"
            f"{', every file opened' if self.is_deep else ''}"
        )
        for problem in self.repaired:
            seen += f"\n  repaired: {problem}"
        if self.ok:
            return f"{seen}; no problem found" if not self.repaired else f"{seen}\nno problems left"
        listed = "".join(f"\n  - {problem}" for problem in self.problems[:100])
        more = len(self.problems) - 100
        omitted = f"\n  … and {more} more" if more > 0 else ""
        return f"{seen}; {counted(len(self.problems), 'problem')}{listed}{omitted}"


def _of_revisions(counts: Mapping[str, int]) -> str:
    if not counts:
        return ""
    return f" ({', '.join(f'{count} of revision {name}' for name, count in counts.items())})"


class Problems:
    """Collects problems, from several threads too. One that repeats is kept once."""

    def __init__(self) -> None:
        self._problems: dict[tuple[str, str, str], Problem] = {}
        self._lock = threading.Lock()

    def add(self, path: str, field: str, what: str, *, snapshot_id: int | None = None) -> None:
        """Note a problem."""
        problem = Problem(path=path, field=field, what=what, snapshot_id=snapshot_id)
        with self._lock:
            self._problems.setdefault((path, field, what), problem)

    def need(
        self, holds: bool, path: str, field: str, what: str, *, snapshot_id: int | None = None
    ) -> bool:
        """Note a problem unless a condition holds; returns whether it does."""
        if not holds:
            self.add(path, field, what, snapshot_id=snapshot_id)
        return bool(holds)

    @contextmanager
    def guarded(self, path: str, *, snapshot_id: int | None = None) -> Iterator[None]:
        """Note whatever goes wrong inside: a check reports, it does not fail."""
        try:
            yield
        except FormatError as error:
            self.add(error.path or path, error.field or "", error.problem, snapshot_id=snapshot_id)
        except FrazilError as error:
            self.add(path, "", f"cannot be read: {error}", snapshot_id=snapshot_id)
        except Exception as error:
            what = f"cannot be read ({type(error).__name__}): {first_line(error)}"
            self.add(path, "", what, snapshot_id=snapshot_id)

    @property
    def listed(self) -> tuple[Problem, ...]:
        """All of them, in the order they were found."""
        return tuple(self._problems.values())
