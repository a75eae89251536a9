"""The clauses of a merge: which rows each is for, what it does with them, and a builder that
collects them. Every engine describes its merges with them; what a condition or a value is differs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, Final, Generic, Self, TypeVar

from frazil.argument_checks import check_arguments
from frazil.errors import InvalidInput
from frazil.rows.actions import Action
from frazil.value_classes import dataclass, field, replace

When = TypeVar("When")
Values = TypeVar("Values")


WRITES: Final = frozenset({Action.UPDATE, Action.INSERT})
"""Actions that write a row."""


class Side(Enum):
    """Which rows a clause of a merge is for."""

    MATCHED = "matched"
    SOURCE_ONLY = "not matched"
    TARGET_ONLY = "not matched by source"


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause(Generic[When, Values]):
    """What to do with some rows; to keep them keeps them from the clauses that follow. `values`
    None takes the columns that the source has."""

    side: Side
    action: Action
    condition: When | None = None
    values: Values | None = None


def has(clauses: Iterable[Clause[Any, Any]], *sides: Side) -> bool:
    """Whether a clause is for one of these sides."""
    return any(clause.side in sides for clause in clauses)


def updates(clauses: Iterable[Clause[Any, Any]]) -> bool:
    """Whether rows live on in new files."""
    return any(clause.action is Action.UPDATE for clause in clauses)


def may_meet_once(clauses: Iterable[Clause[Any, Any]]) -> bool:
    """Whether a row of the table may be met by one row of the source only: more of them would be
    ambiguous, unless each has it deleted."""
    matched = [clause for clause in clauses if clause.side is Side.MATCHED]
    deletes = [clause.action is Action.DELETE and clause.condition is None for clause in matched]
    return bool(matched) and deletes != [True]


@check_arguments
@dataclass(frozen=True, kw_only=True)
class MergeClauses(Generic[When]):
    """Collects clauses: each method returns a new builder with one more.

    Of the clauses for a row the first whose condition holds applies; without one it stays.
    """

    clauses: tuple[Clause[Any, Any], ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)

    def when_matched_update(
        self, values: Mapping[str, Any] | None = None, *, condition: When | None = None
    ) -> Self:
        """Give matched rows new values; by default those of every column that the source has."""
        return self._with(Side.MATCHED, Action.UPDATE, condition, values)

    def when_matched_delete(self, *, condition: When | None = None) -> Self:
        """Delete matched rows."""
        return self._with(Side.MATCHED, Action.DELETE, condition)

    def when_not_matched_insert(
        self, values: Mapping[str, Any] | None = None, *, condition: When | None = None
    ) -> Self:
        """Insert source rows without a match; by default, with every column of the source."""
        return self._with(Side.SOURCE_ONLY, Action.INSERT, condition, values)

    def when_not_matched_by_source_update(
        self, values: Mapping[str, Any], *, condition: When | None = None
    ) -> Self:
        """Update table rows without a match in the source."""
        return self._with(Side.TARGET_ONLY, Action.UPDATE, condition, values)

    def when_not_matched_by_source_delete(self, *, condition: When | None = None) -> Self:
        """Delete table rows without a match in the source."""
        return self._with(Side.TARGET_ONLY, Action.DELETE, condition)

    def upsert(self) -> Self:
        """Update matched rows and insert the others."""
        return self.when_matched_update().when_not_matched_insert()

    def summary(self, properties: Mapping[str, str]) -> Self:
        """Add properties to the snapshot's summary."""
        return replace(self, properties={**self.properties, **properties})

    def _with(
        self,
        side: Side,
        action: Action,
        condition: When | None,
        values: Mapping[Any, Any] | None = None,
    ) -> Self:
        clause = Clause(side=side, action=action, condition=condition, values=values)
        return replace(self, clauses=(*self.clauses, clause))

    def _need_clauses(self) -> None:
        if not self.clauses:
            raise InvalidInput("merge has no clause: say what to do, e.g. when_matched_update()")


def check_insert(action: Action, paths: Iterable[tuple[str, ...]]) -> None:
    """Refuse an insert into parts of structs."""
    if action is Action.INSERT and any(len(path) > 1 for path in paths):
        raise InvalidInput("an insert names whole columns, not parts of structs")
