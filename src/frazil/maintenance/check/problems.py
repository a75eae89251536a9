"""What a check finds: problems that name a file and a field, collected without stopping."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any, Final

import numpy as np

from frazil.errors import FormatError, FrazilError
from frazil.text_format import card, counted, first_line
from frazil.value_classes import field, frozen

Mask = np.ndarray[Any, np.dtype[np.bool_]]
_MAX_ENTRIES: Final = 5


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

    def at(self, path: str, *, snapshot_id: int | None = None) -> Place:
        """Where the problems of one file, or of one part of the metadata, are noted."""
        return Place(problems=self, path=path, snapshot_id=snapshot_id)

    @property
    def listed(self) -> tuple[Problem, ...]:
        """All of them, in the order they were found."""
        return tuple(self._problems.values())


@frozen(eq=False)
class Place:
    """One file or one part of the metadata, and what is wrong with it."""

    problems: Problems
    path: str
    snapshot_id: int | None = None

    def add(self, field: str, what: str) -> None:
        """Note a problem."""
        self.problems.add(self.path, field, what, snapshot_id=self.snapshot_id)

    def need(self, holds: bool, field: str, what: str) -> None:
        """Note a problem unless a condition holds."""
        if not holds:
            self.add(field, what)

    def need_none(self, bad: Mask, names: Sequence[str], field: str, what: str) -> None:
        """Note the first few entries where a mask is true."""
        for row in np.flatnonzero(bad)[:_MAX_ENTRIES]:
            self.add(field, f"{names[row]}: {what}")

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Note whatever goes wrong inside: a check reports, it does not fail."""
        try:
            yield
        except FormatError as error:
            place = self.problems.at(error.path or self.path, snapshot_id=self.snapshot_id)
            place.add(error.field or "", error.problem)
        except FrazilError as error:
            self.add("", f"cannot be read: {error}")
        except Exception as error:
            self.add("", f"cannot be read ({type(error).__name__}): {first_line(error)}")
