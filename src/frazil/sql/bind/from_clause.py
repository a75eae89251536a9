"""What the FROM of a query has: its sources, how joins bring them in, whose a column is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from frazil.iceberg.types import IcebergType
from frazil.parser import nodes as n
from frazil.value_classes import dataclass, field

Types = Mapping[str, IcebergType | None]
"""Columns in their order, with types where they are known."""
Conjuncts = list[n.Expression]
_REJECTING: Final = ("=", "<>", "<", "<=", ">", ">=")


@dataclass(slots=True)
class FromItem:
    """One source of FROM. `entered` is the join that brought it in, 0 for the first."""

    node: n.TableRef
    alias: str
    entered: int
    columns: list[tuple[str, IcebergType | None]] | None = None
    """Names that the query has for its columns; None if they are not known."""
    own: list[str] = field(default_factory=list)
    """What a table itself calls them."""
    path: tuple[str, ...] = ()
    """The name of a table without an alias, in lower case."""
    query: n.Query | None = None
    cte: CteUse | None = None
    is_closed: bool = False
    """Whether no condition may pass into it."""

    def position(self, name: str) -> int | None:
        """The number of the column of this name, if it surely has exactly one."""
        folded = name.lower()
        numbers = [
            number
            for number, (column, _) in enumerate(self.columns or ())
            if column.lower() == folded
        ]
        return numbers[0] if len(numbers) == 1 else None

    def type_of(self, name: str) -> IcebergType | None:
        """The type of a column, if it is known."""
        number = self.position(name)
        return None if number is None or self.columns is None else self.columns[number][1]


@dataclass(slots=True)
class CteUse:
    """A query of WITH, and the conditions of the places that use it."""

    cte: n.Cte
    columns: list[tuple[str, IcebergType | None]] | None
    uses: list[Conjuncts] = field(default_factory=list)


Ctes = dict[str, CteUse]


class FromClause(NamedTuple):
    """The sources of a query, and the joins that bring in all but the first."""

    sources: list[FromItem]
    joins: list[n.JoinRef]


def cte_of(table: n.BaseTable, ctes: Ctes) -> CteUse | None:
    """The query of WITH that a name means."""
    return ctes.get(table.path[0].lower()) if len(table.path) == 1 else None


def resolve(ref: n.Expression, sources: Sequence[FromItem]) -> tuple[FromItem, n.ColumnRef] | None:
    """The source of a column, and the column by the names of the source alone; None when it cannot
    be told. Names of tables count before those of columns, longer ones first, as in DuckDB."""
    if not isinstance(ref, n.ColumnRef):
        return None
    names = ref.names
    lower = tuple(name.lower() for name in names)
    for size in range(len(names) - 1, 0, -1):
        called = [source for source in sources if _is_called(source, lower[:size])]
        if len(called) > 1:
            return None
        if called:
            if called[0].columns is None:
                return None
            if called[0].position(names[size]) is not None:
                return called[0], renamed(ref, names[size:])
    holders = [source for source in sources if source.position(names[0]) is not None]
    return (holders[0], ref) if len(holders) == 1 else None


def _is_called(source: FromItem, qualifier: tuple[str, ...]) -> bool:
    if len(qualifier) == 1:
        return source.alias == qualifier[0]
    return source.path[-len(qualifier) :] == qualifier


def renamed(ref: n.ColumnRef, names: Sequence[str]) -> n.ColumnRef:
    """A column under another name."""
    return n.ColumnRef(
        kind=ref.kind, raw=ref.raw, start=ref.start, alias=ref.alias, names=tuple(names)
    )


def is_inner(join: n.JoinRef) -> bool:
    """Whether only pairs of rows that match are in the result."""
    return join.type == "INNER" and join.method in ("REGULAR", "NATURAL", "CROSS")


def _extends(join: n.JoinRef, at: int, source: FromItem) -> bool:
    """Whether a join can put nulls in place of a row of the source."""
    # LEFT keeps every row of the sources before it, so only the one that enters here gets nulls.
    match join.type:
        case "LEFT":
            return source.entered == at
        case "RIGHT":
            return source.entered < at
        case "INNER" | "SEMI" | "ANTI":
            return False
    return source.entered <= at


def may_prune(
    condition: n.Expression, stage: int, source: FromItem, joins: Sequence[n.JoinRef]
) -> bool:
    """Whether rows of the source that fail the condition cannot matter to the result. `stage` is
    the number of the join whose ON it stands in, or one more than there are for WHERE."""
    if stage <= len(joins):
        join = joins[stage - 1]
        mine = source.entered == stage
        if join.method == "ASOF" or join.type not in ("INNER", "LEFT", "RIGHT", "SEMI", "ANTI"):
            return False
        if join.type in ("LEFT", "ANTI"):
            return mine  # the left side's rows stay whether the condition holds or not
        if join.type == "RIGHT" and mine:
            return False
    last = min(stage - 1, len(joins))
    extended = any(_extends(join, at, source) for at, join in enumerate(joins[:last], start=1))
    return not extended or _rejects_null(condition)


def _rejects_null(condition: n.Expression) -> bool:
    match condition:
        case n.Comparison(operator=operator):
            return operator in _REJECTING
        case n.Between() | n.Operator(name="IN") | n.Function(name="~~"):
            return True
    return False
