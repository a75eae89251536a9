"""Which rows: a filter that prunes, and SQL for an engine where the filter does not say it all.

Plain filters (`frazil.expr.filter_text`) say everything themselves. Any other SQL is parsed by
sqlglot; of the conditions that all have to hold, those that are plain filters prune, and an engine
evaluates the whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyiceberg.schema import Schema

from frazil.errors import InvalidInput
from frazil.expr.bind import conjunction
from frazil.expr.parse import parse
from frazil.expr.sql_text import (
    TARGET,
    SqlText,
    columns_of_schema,
    conjuncts,
    filled,
    sql_text,
)

_METADATA = ("_file", "_pos", "_spec_id", "_row_id", "_last_updated_sequence_number")
Where = str | BooleanExpression | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """Every row that matches passes `filter`; `sql` None says that no other row does."""

    filter: BooleanExpression
    sql: SqlText | None = None

    @property
    def is_everything(self) -> bool:
        """Whether every row matches."""
        return self.sql is None and isinstance(self.filter, AlwaysTrue)


def condition(
    where: Where,
    schema: Schema,
    *,
    params: Sequence[Any] = (),
    case_sensitive: bool = True,
) -> Condition:
    """What the text or expression says, bound to the schema."""
    if not isinstance(where, str):
        if params:
            raise InvalidInput("params go with text that has placeholders (?)")
        return Condition(filter=parse(where, schema, case_sensitive=case_sensitive))
    text = filled(where, params, what="filter")
    try:
        return Condition(filter=parse(text, schema, case_sensitive=case_sensitive))
    except InvalidInput as error:
        if error.is_certain or not text.strip():
            raise
        plain_problem = error
    try:
        sql = sql_text(
            text,
            {TARGET: {**columns_of_schema(schema), **_metadata(schema)}},
            case_sensitive=case_sensitive,
            what="filter",
        )
    except InvalidInput as error:
        raise (error if error.is_certain else plain_problem) from None
    return Condition(filter=_pruning(sql, schema, case_sensitive), sql=sql)


def _metadata(schema: Schema) -> dict[str, None]:
    """Metadata columns whose names the table does not use itself."""
    own = {field.name for field in schema.fields}
    return {name: None for name in _METADATA if name not in own}


def _pruning(sql: SqlText, schema: Schema, case_sensitive: bool) -> BooleanExpression:
    found: list[BooleanExpression] = []
    for part in conjuncts(sql.tree):
        try:
            found.append(parse(part, schema, case_sensitive=case_sensitive))
        except InvalidInput:
            continue
    return conjunction(found) if found else AlwaysTrue()
