"""Which table a name in a query can mean: CTEs, aliases of subqueries, rows of a change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The names that stand for the rows of a change, and what row-level changes call them."""

    aliases: Mapping[tuple[str, ...], str]
    columns: Sequence[str]

    def qualifier(self, names: Sequence[str]) -> tuple[int, str]:
        """How many of a column's names are a table's, and what it is called; 0 for none."""
        for size in range(len(names) - 1, 0, -1):
            alias = self.aliases.get(tuple(name.lower() for name in names[:size]))
            if alias is not None:
                return size, alias
        return 0, ""

    def spelled(self, name: str) -> str | None:
        """A column as the table spells it; SQL ignores case."""
        if name in self.columns:
            return name
        found = [column for column in self.columns if column.lower() == name.lower()]
        return found[0] if len(found) == 1 else None


def aliases_around(node: exp.Expr) -> set[str]:
    """The tables of the subqueries a node is in; the outermost SELECT is our own."""
    found: set[str] = set()
    select = node.find_ancestor(exp.Select)
    while select is not None and (outer := select.find_ancestor(exp.Select)) is not None:
        start = select.args.get("from_")
        sources = [] if start is None else [start.this, *(start.this.args.get("joins") or ())]
        sources += [join.this for join in select.args.get("joins") or ()]
        found |= {(each.alias_or_name or "").lower() for each in sources}
        select = outer
    return found


def is_cte(node: exp.Table) -> bool:
    """Whether the name is one of a WITH clause that the table can see."""
    if node.args.get("db") or not isinstance(node.this, exp.Identifier):
        return False
    name = node.name.lower()
    above: exp.Expr | None = node
    while above is not None:
        clause = above.args.get("with_")
        if clause is not None:
            inside = _inside(node, clause)
            for each in clause.expressions:
                if each is inside and not clause.args.get("recursive"):
                    break  # a CTE sees those before it
                if each.alias.lower() == name:
                    return True
        above = above.parent
    return False


def _inside(node: exp.Expr, clause: exp.Expr) -> exp.Expr | None:
    """The CTE of a clause that a node is in."""
    child = node
    while child.parent is not None and child.parent is not clause:
        child = child.parent
    return child if child.parent is clause else None
