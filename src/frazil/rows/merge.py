"""Merging rows into a table: a builder that collects clauses and carries them out at the end."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, Self

from frazil.argument_checks import check_arguments, checked
from frazil.commit.change import Change
from frazil.commit.result import CommitResult
from frazil.data.write.row_input import Rows
from frazil.errors import InvalidInput
from frazil.filter.text.sql_text import (
    SOURCE,
    TARGET,
    Columns,
    Expression,
    SqlText,
    columns_of_schema,
    judged,
    sql_text,
)
from frazil.iceberg.schema import Schema
from frazil.rows.actions import Action
from frazil.rows.editor import RowEditor, assigned
from frazil.rows.engine import Assignments, KeyPair, MergeClause, MergePlan
from frazil.rows.merge_clauses import Clause, MergeClauses, Side, check_insert
from frazil.text_format import did_you_mean
from frazil.value_classes import dataclass, replace

if TYPE_CHECKING:
    from frazil.parser import nodes as n

Condition = str | Expression | None
Run = Callable[[Callable[[RowEditor], Change], Mapping[str, str]], CommitResult]
"""Gives an editor to what makes the change, and commits it with a summary."""


@check_arguments
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
        now = replace(self, schema=editor.metadata.schema())  # others may have changed it
        with closing(editor.engine.source(now.source, now.schema)) as source:
            return editor.merge(source, now._plan(source.columns))

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
            clauses=[self._clause(clause, scopes) for clause in self.clauses],
        )

    def _meeting(self, scopes: Mapping[str, Columns]) -> tuple[SqlText | None, list[KeyPair]]:
        """Which rows meet: a condition that is left over, and columns that must be equal."""
        if isinstance(self.on, tuple):
            return None, [self._pair(name, scopes[SOURCE]) for name in self.on]
        text, tree = judged(self.on, scopes, what="merge condition")
        target, source = (([(alias,)], list(scopes[alias])) for alias in (TARGET, SOURCE))
        return text, key_pairs(tree, target, source)

    def _pair(self, name: str, source: Columns) -> KeyPair:
        tables = [column.name for column in self.schema.fields]
        if name not in tables or name not in source:
            where = "table" if name not in tables else "source"
            names = tables if name not in tables else list(source)
            hint = did_you_mean(name, names)
            raise InvalidInput(f"key column {name!r} is not in the {where}{hint}")
        return KeyPair(target=name, source=name)

    def _clause(self, clause: Clause[Any, Any], scopes: Mapping[str, Columns]) -> MergeClause:
        visible = dict(scopes)
        if clause.side is Side.SOURCE_ONLY:
            visible.pop(TARGET)
        elif clause.side is Side.TARGET_ONLY:
            visible.pop(SOURCE)
        condition = None
        if clause.condition is not None:
            condition = sql_text(clause.condition, visible, what="condition")
        values: Assignments | None = None
        if clause.values is not None:
            values = assigned(clause.values, self.schema, visible)
            check_insert(clause.action, values)
        return Clause(side=clause.side, action=clause.action, condition=condition, values=values)


NamedColumns = tuple[Collection[tuple[str, ...]], Sequence[str]]
"""What may stand before the columns of some rows, in lower case, and the columns."""


def key_pairs(on: n.Expression, target: NamedColumns, source: NamedColumns) -> list[KeyPair]:
    """The columns that a condition wants to be equal, one of each side."""
    from frazil.parser import nodes as n

    pairs: list[KeyPair] = []
    for part in n.conjuncts(on):
        if not isinstance(part, n.Comparison) or part.operator != "=":
            continue
        for side, other in ((part.left, part.right), (part.right, part.left)):
            target_column, source_column = (
                _column(side, target, source),
                _column(other, source, target),
            )
            if target_column is not None and source_column is not None:
                pairs.append(KeyPair(target=target_column, source=source_column))
                break
    return pairs


def _column(node: n.Expression, rows: NamedColumns, others: NamedColumns) -> str | None:
    """The column of some rows that an expression is: after their name, or alone if the other rows
    have none of its name. A part of a struct is not a column."""
    from frazil.parser import nodes as n

    if not isinstance(node, n.ColumnRef):
        return None
    *before, name = (name.lower() for name in node.names)
    if before and (tuple(before) not in rows[0] or tuple(before) in others[0]):
        return None
    if not before and any(name == other.lower() for other in others[1]):
        return None
    return next((column for column in rows[1] if column.lower() == name), None)


def merge(schema: Schema, source: Rows, on: str | Expression | Sequence[str], run: Run) -> Merge:
    """Begin a merge. `on` names key columns that both sides have, or is a condition over the
    aliases `t` (the table) and `s` (the source)."""
    if isinstance(on, str):
        is_name = on in {column.name for column in schema.fields}
        condition: str | Expression | tuple[str, ...] = (on,) if is_name else on
    else:
        condition = on if isinstance(on, Expression) else tuple(on)
    if not condition:
        raise InvalidInput("merge needs a condition or key columns: on=['id']")
    return Merge(schema=schema, source=source, on=condition, _run=run)
