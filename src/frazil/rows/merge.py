"""Merging rows into a table: a builder that collects clauses and carries them out at the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Self

from pyiceberg.schema import Schema

from frazil.commit.change import Change
from frazil.commit.result import CommitResult
from frazil.data.row_input import Rows
from frazil.entrance import checked, entrance
from frazil.errors import InvalidInput
from frazil.expr.sql_text import (
    SOURCE,
    TARGET,
    Columns,
    Expression,
    SqlText,
    columns_of_schema,
    conjuncts,
    sql_text,
)
from frazil.rows.actions import Action
from frazil.rows.editor import RowEditor, assigned
from frazil.rows.engine import Assignments, KeyPair, MergeClause, MergePlan
from frazil.rows.merge_clauses import Clause, MergeClauses, Side, check_insert
from frazil.words import did_you_mean

Condition = str | Expression | None
Run = Callable[[Callable[[RowEditor], Change], Mapping[str, str]], CommitResult]
"""Gives an editor to what makes the change, and commits it with a summary."""


@entrance
@dataclass(frozen=True, kw_only=True)
class Merge(MergeClauses[str | Expression]):
    """Builds a merge: each method returns a new builder with one more clause; `execute` runs it.

    Of the clauses for a row the first whose condition holds applies; without one it stays.
    Conditions are SQL over the aliases `t` (the table) and `s` (the source). Values are taken as
    they are, `frazil.expr("s.price * 2")` makes an expression.
    """

    schema: Schema
    source: Rows
    on: str | Expression | tuple[str, ...]
    _run: Run

    def execute(self) -> CommitResult:
        """Run the merge as one snapshot."""
        return self._run(self._change, self.properties)

    @checked
    def _with(
        self,
        side: Side,
        action: Action,
        condition: Condition,
        values: Mapping[Any, Any] | None = None,
    ) -> Self:
        return super()._with(side, action, condition, values)

    def _change(self, editor: RowEditor) -> Change:
        self._need_clauses()
        with closing(editor.engine.source(self.source, self.schema)) as source:
            return editor.merge(source, self._plan(source.columns))

    def _plan(self, source_columns: Sequence[str]) -> MergePlan:
        scopes: dict[str, Columns] = {
            TARGET: columns_of_schema(self.schema),
            SOURCE: dict.fromkeys(source_columns),
        }
        on, pairs = self._meeting(scopes)
        return MergePlan(
            schema=self.schema,
            pairs=pairs,
            on=on,
            clauses=[self._clause(wish, scopes) for wish in self.clauses],
        )

    def _meeting(self, scopes: Mapping[str, Columns]) -> tuple[SqlText | None, list[KeyPair]]:
        """Which rows meet: a condition that is left over, and columns that must be equal."""
        if isinstance(self.on, tuple):
            return None, [self._pair(name, scopes[SOURCE]) for name in self.on]
        text = _checked(self.on, scopes, "merge condition")
        pairs = [pair for part in conjuncts(text.tree) if (pair := _equality(part, scopes))]
        return text, pairs

    def _pair(self, name: str, source: Columns) -> KeyPair:
        tables = [column.name for column in self.schema.fields]
        if name not in tables or name not in source:
            where = "table" if name not in tables else "source"
            known = tables if name not in tables else list(source)
            hint = did_you_mean(name, known)
            raise InvalidInput(f"key column {name!r} is not in the {where}{hint}")
        return KeyPair(target=name, source=name)

    def _clause(self, wish: Clause[Any, Any], scopes: Mapping[str, Columns]) -> MergeClause:
        visible = dict(scopes)
        if wish.side is Side.SOURCE_ONLY:
            visible.pop(TARGET)
        elif wish.side is Side.TARGET_ONLY:
            visible.pop(SOURCE)
        condition = None
        if wish.condition is not None:
            condition = _checked(wish.condition, visible, "condition")
        values: Assignments | None = None
        if wish.values is not None:
            values = {
                path: value.qualified(visible) if isinstance(value, SqlText) else value
                for path, value in assigned(wish.values, self.schema, visible).items()
            }
            check_insert(wish.action, values)
        return Clause(side=wish.side, action=wish.action, condition=condition, values=values)


def _checked(text: str | Expression, scopes: Mapping[str, Columns], what: str) -> SqlText:
    if isinstance(text, Expression):
        return sql_text(text.text, scopes, params=text.params, what=what).qualified(scopes)
    return sql_text(text, scopes, what=what).qualified(scopes)


def _equality(part: str, scopes: Mapping[str, Columns]) -> KeyPair | None:
    """The columns that a conjunct wants to be equal, one of each side."""
    from sqlglot import exp, parse_one

    tree = parse_one(part, dialect="duckdb")
    if not isinstance(tree, exp.EQ):
        return None
    names: dict[str, str] = {}
    for side in (tree.left, tree.right):
        if not isinstance(side, exp.Column) or len(side.parts) != 2:
            return None
        alias, name = (found.name for found in side.parts)
        if alias not in scopes or name not in scopes[alias]:
            return None
        names[alias] = name
    if set(names) != {TARGET, SOURCE}:
        return None
    return KeyPair(target=names[TARGET], source=names[SOURCE])


def merge(schema: Schema, source: Rows, on: str | Expression | Sequence[str], run: Run) -> Merge:
    """Begin a merge. `on` names key columns that both sides have, or is a condition over the
    aliases `t` (the table) and `s` (the source)."""
    if isinstance(on, str):
        is_name = on in {column.name for column in schema.fields}
        found: str | Expression | tuple[str, ...] = (on,) if is_name else on
    else:
        found = on if isinstance(on, Expression) else tuple(on)
    if not found:
        raise InvalidInput("merge needs a condition or key columns: on=['id']")
    return Merge(schema=schema, source=source, on=found, _run=run)
