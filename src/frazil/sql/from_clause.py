"""What the FROM of a query holds: its sources, how joins bring them in, whose a column is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from sqlglot import exp

_REJECTS_NULL: Final = (
    exp.EQ,
    exp.NEQ,
    exp.LT,
    exp.LTE,
    exp.GT,
    exp.GTE,
    exp.Between,
    exp.In,
    exp.Like,
)


@dataclass(slots=True)
class FromItem:
    """One item of FROM. `entered` is the join that brought it in, 0 for the first."""

    node: exp.Expr
    alias: str
    columns: list[str] | None
    entered: int
    query: exp.Expr | None = None
    cte: Cte | None = None
    is_closed: bool = False
    folded: frozenset[str] | None = None
    """The columns' names in lower case, once they were asked for."""

    def has(self, name: str) -> bool:
        """Whether it surely has a column of this name."""
        if self.columns is None:
            return False
        if self.folded is None:
            self.folded = frozenset(each.lower() for each in self.columns)
        return name.lower() in self.folded


@dataclass(slots=True)
class Cte:
    """A WITH query, and the conditions of the places that use it."""

    query: exp.Expr
    names: list[str] | None
    is_recursive: bool
    uses: list[list[exp.Expr]] = field(default_factory=list)


def cte_of(node: exp.Table, ctes: dict[str, Cte]) -> Cte | None:
    if node.args.get("db") or not isinstance(node.this, exp.Identifier):
        return None
    return ctes.get(node.name.lower())


def without(known: dict[str, Cte], own: list[Cte], cte: Cte) -> dict[str, Cte]:
    """What a CTE's own query can name: those before it, and itself if it is recursive."""
    later = own[own.index(cte) + (1 if cte.is_recursive else 0) :]
    return {name: each for name, each in known.items() if not any(each is x for x in later)}


def resolve(node: exp.Expr, sources: Sequence[FromItem]) -> tuple[FromItem, tuple[str, ...]] | None:
    """The source and path of a column; None when it cannot be told."""
    if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
        return None
    parts = [part.name for part in node.parts]
    for start in range(len(parts) - 1):
        # shop.orders.id: qualifiers before the alias are the table's namespace.
        named = [s for s in sources if s.alias == parts[start].lower()]
        if len(named) == 1 and named[0].has(parts[start + 1]):
            return named[0], tuple(parts[start + 1 :])
    holders = [source for source in sources if source.has(parts[0])]
    return (holders[0], tuple(parts)) if len(holders) == 1 else None


def word(join: exp.Join, key: str) -> str:
    return str(join.args.get(key) or "").upper()


def is_inner(join: exp.Join) -> bool:
    return (
        not join.args.get("side")
        and word(join, "kind") in ("", "INNER", "CROSS")
        and word(join, "method") in ("", "NATURAL")
    )


def _extends(join: exp.Join, at: int, source: FromItem) -> bool:
    """Whether a join can put nulls in place of a row of the source."""
    if word(join, "kind") in ("SEMI", "ANTI"):
        return False
    match word(join, "side"):
        case "LEFT":
            return source.entered == at
        case "RIGHT":
            return source.entered < at
        case "FULL":
            return source.entered <= at
    return False


def may_prune(condition: exp.Expr, stage: int, source: FromItem, joins: Sequence[exp.Join]) -> bool:
    """Whether rows of the source that fail the condition cannot matter to the result."""
    if stage <= len(joins):
        join = joins[stage - 1]
        side, kind = word(join, "side"), word(join, "kind")
        mine = source.entered == stage
        if word(join, "method") == "ASOF" or side == "FULL":
            return False
        if kind == "ANTI" or (side == "LEFT" and kind != "SEMI"):
            return mine  # the left side's rows stay whether the condition holds or not
        if side == "RIGHT" and mine:
            return False
    last = min(stage - 1, len(joins))
    extended = any(_extends(join, at, source) for at, join in enumerate(joins[:last], start=1))
    return not extended or isinstance(condition.unnest(), _REJECTS_NULL)
