"""A stored view: its SQL for this engine, and which columns it has."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from frazil.errors import InvalidInput, NotFound, Unsupported
from frazil.extras import needed
from frazil.filter.text.quotes import quoted
from frazil.parser import nodes as n
from frazil.parser.tokens import Source
from frazil.parser.tree import parse_query
from frazil.sql.bind.from_clause import renamed
from frazil.sql.bind.pushed_conditions import substituted
from frazil.value_classes import frozen, replace

QUERY_COLUMNS: Final = "frazil.query-columns"
"""In the summary of a view's version: what its query called the columns when it was created."""
CATALOG_NAME: Final = "frazil.catalog-name"
"""In the same summary: what the engine that created the view calls this catalog."""


@frozen
class StoredView:
    """The current version of a view."""

    text: str
    namespace: tuple[str, ...]
    """Where its names start from."""
    columns: tuple[str, ...]
    query_columns: tuple[str, ...] = ()
    """What its query calls these columns; empty for those of 0.2, which go by position."""

    @property
    def may_have_moved(self) -> bool:
        """Whether the columns that the query gives may be others than when it was created, and it
        is not known which they were."""
        return bool(self.columns) and not self.query_columns and self.has_star

    def with_query_columns(self, current: Sequence[str]) -> StoredView:
        """The view of 0.2 with the columns it had then: those of the same names, if there are all
        of them, else those that are there now."""
        folded = {name.lower() for name in current}
        if all(name.lower() in folded for name in self.columns):
            return replace(self, query_columns=self.columns)
        if len(current) == len(self.columns):
            return replace(self, query_columns=tuple(current))
        raise InvalidInput(
            f"its query gives the columns {', '.join(current)}; it was created with "
            f"{', '.join(self.columns)}"
        )

    def check_columns(self, current: Callable[[], Sequence[str]]) -> None:
        """Refuse a view whose query has lost one of its columns. Only a star can lose one without
        an error."""
        if not self.query_columns or not self.has_star:
            return
        folded = {name.lower() for name in current()}
        gone = [name for name in self.query_columns if name.lower() not in folded]
        if gone:
            raise InvalidInput(f"column {gone[0]}, which it was created with, is gone")

    @property
    def has_star(self) -> bool:
        """Whether the columns of its query depend on those of tables."""
        try:
            query = parse_query(Source(self.text))
        except InvalidInput:
            return True
        return any(isinstance(part, n.Star) for part in n.expressions_of(query))

    def own_conditions(self, conditions: Sequence[n.Expression]) -> list[n.Expression]:
        """Conditions over the view's columns as conditions over its query's."""
        if not self.query_columns:
            return list(conditions)
        own = {
            name.lower(): column
            for name, column in zip(self.columns, self.query_columns, strict=True)
        }

        def put(ref: n.ColumnRef) -> n.ColumnRef | None:
            column = own.get(ref.names[0].lower())
            return None if column is None else renamed(ref, (column, *ref.names[1:]))

        moved = [substituted(condition, put) for condition in conditions]
        return [condition for condition in moved if condition is not None]

    def selected(self) -> str:
        """What stands between the name of an engine's view and the query in brackets."""
        if self.query_columns:
            chosen = ", ".join(
                f"{quoted(column)} AS {quoted(name)}"
                for name, column in zip(self.columns, self.query_columns, strict=True)
            )
            return f" AS SELECT {chosen} FROM"
        named = f"({', '.join(map(quoted, self.columns))})" if self.columns else ""
        return f"{named} AS SELECT * FROM"


def stored_view(metadata: Mapping[str, Any], name: str) -> StoredView:
    """The current version of a view."""
    current = metadata.get("current-version-id")
    versions = [v for v in metadata.get("versions", ()) if v.get("version-id") == current]
    if not versions:
        raise NotFound(f"view {name} has no version {current}")
    version = versions[0]
    schemas = {schema.get("schema-id"): schema for schema in metadata.get("schemas", ())}
    fields = schemas.get(version.get("schema-id"), {}).get("fields", ())
    columns = tuple(str(field["name"]) for field in fields)
    return StoredView(
        text=_text(version, name),
        namespace=tuple(version.get("default-namespace") or ()),
        columns=columns,
        query_columns=_query_columns(version, len(columns)),
    )


def _query_columns(version: Mapping[str, Any], count: int) -> tuple[str, ...]:
    try:
        value = json.loads((version.get("summary") or {}).get(QUERY_COLUMNS, "[]"))
    except (ValueError, TypeError):
        return ()
    if not isinstance(value, list) or len(value) != count:
        return ()
    return tuple(map(str, value))


def _text(version: Mapping[str, Any], name: str) -> str:
    texts = {
        str(representation.get("dialect", "")).lower(): str(representation["sql"])
        for representation in version.get("representations", ())
        if representation.get("type") == "sql"
    }
    if "duckdb" in texts:
        return texts["duckdb"]
    own_name = (version.get("summary") or {}).get(CATALOG_NAME)
    for dialect, text in texts.items():
        translated = translated_view(text, dialect, "duckdb", own_name=own_name)
        if translated is not None:
            return translated
    known = ", ".join(texts) or "none"
    raise Unsupported(
        f"view {name} has no SQL for this engine; its dialects: {known}", feature="view dialect"
    )


def translated_view(text: str, dialect: str, to: str, *, own_name: str | None = None) -> str | None:
    """The text of another engine's view. What comes of it is judged as every other text is.
    Tables that it names with `own_name`, the other engine's name of this catalog, lose that."""
    sqlglot = needed("sqlglot", f"a view in the dialect {dialect}")
    try:
        parsed = sqlglot.parse_one(text, read=dialect)
        for table in parsed.find_all(sqlglot.exp.Table):
            if own_name is not None and table.catalog == own_name:
                table.set("catalog", None)
        return str(parsed.sql(dialect=to)) if _divides_alike(sqlglot.exp, parsed) else None
    except (sqlglot.errors.SqlglotError, ValueError):
        return None


def _divides_alike(exp: Any, parsed: Any) -> bool:
    """Whether every quotient is the same here. Some dialects (Trino, PostgreSQL) divide whole
    numbers to a whole number: sqlglot knows what to write once it knows the types."""
    if not any(quotient.args.get("typed") for quotient in parsed.find_all(exp.Div)):
        return True
    needed("sqlglot.optimizer.annotate_types", "a view").annotate_types(parsed)
    whole = exp.DataType.INTEGER_TYPES
    for quotient in parsed.find_all(exp.Div):
        sides = (quotient.left, quotient.right)
        are_known = [side.type is not None and not side.is_type("unknown") for side in sides]
        is_fraction = any(
            known and not side.is_type(*whole) for known, side in zip(are_known, sides, strict=True)
        )
        if quotient.args.get("typed") and not is_fraction and not all(are_known):
            return False
    return True
