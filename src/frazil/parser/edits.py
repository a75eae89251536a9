"""Text put in place of parts of another text, which knows where its characters came from.

What is put in place of the names of tables is checked: the edited text must have the same tree as
the text before, with only those names replaced.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from frazil.errors import FrazilError
from frazil.parser import nodes as n
from frazil.parser.duckdb_parser import query_json
from frazil.parser.tokens import Part, Source
from frazil.parser.tree import is_same_tree, table_path
from frazil.value_classes import dataclass

Edit = tuple[int, int, str]
_NAMES: Final = ("catalog_name", "schema_name", "table_name", "qualified_name", "alias")


@dataclass(frozen=True, slots=True)
class EngineText:
    """A text made from parts of another; knows where its characters came from."""

    text: str
    _starts: tuple[tuple[int, int, int], ...]

    @property
    def has_origin(self) -> bool:
        """Whether it was made from a text, and not by us alone."""
        return bool(self._starts)

    def origin(self, offset: int) -> int:
        """Where the character at an offset stood before."""
        for new_start, start, length in reversed(self._starts):
            if offset >= new_start:
                return start + min(offset - new_start, length)
        return self._starts[0][1] if self._starts else 0

    def with_origin(self, error: FrazilError, source: Source) -> FrazilError:
        """An error with a position in this text as one with a position in the source."""
        if error.position is not None:
            line, column = error.position
            at = sum(len(text) + 1 for text in self.text.split("\n")[: line - 1]) + column - 1
            error.position = source.position(self.origin(at))
        return error


def rewrite(
    source: Source,
    parts: Sequence[Part],
    edits: Iterable[Edit],
    *,
    prefix: str = "",
    between: str = "",
    suffix: str = "",
) -> EngineText:
    """The parts of a text, one after the other, with edits made in them."""
    pieces = [prefix]
    size = len(prefix)
    starts: list[tuple[int, int, int]] = [(0, parts[0].start, 0)]
    ordered = sorted(edits, key=lambda edit: (edit[0], -edit[1]))  # the outer one of two counts
    for number, part in enumerate(parts):
        if number and between:
            pieces.append(between)
            size += len(between)
        at = part.start
        for start, end, new in ordered:
            if start < at or end > part.end:
                continue
            starts.append((size, at, start - at))
            pieces.append(source.text[at:start])
            size += start - at
            starts.append((size, start, 0))
            pieces.append(new)
            size += len(new)
            at = end
        starts.append((size, at, part.end - at))
        pieces.append(source.text[at : part.end] + "\n")
        size += part.end - at + 1
    return EngineText("".join([*pieces, suffix]), tuple(starts))


@dataclass(frozen=True, slots=True, kw_only=True)
class NewName:
    """What a table is called in an edited text."""

    path: tuple[str, ...]
    alias: str


def is_renamed(
    before: n.Query,
    after: str,
    names: Mapping[n.BaseTable, NewName],
    columns: Mapping[n.ColumnRef, tuple[str, ...]],
    aliases: Mapping[n.Expression, str] | None = None,
) -> bool:
    """Whether an edited text says what the query did before, with other names for these tables
    and columns, and aliases for these outputs."""
    tables = {id(table.raw): name for table, name in names.items()}
    refs = {id(ref.raw): list(path) for ref, path in columns.items()}
    outputs = {id(output.raw): alias for output, alias in (aliases or {}).items()}
    after_tree = query_json(Source(after))
    return is_same_tree(before.raw, after_tree, partial(_with_names, tables, refs, outputs))


def _with_names(
    tables: Mapping[int, NewName],
    columns: Mapping[int, list[str]],
    aliases: Mapping[int, str],
    raw: n.Json,
) -> n.Json:
    """A part of the tree with the names it must have."""
    if id(raw) in aliases:
        return {**raw, "alias": aliases[id(raw)]}
    if id(raw) in columns:
        return {**raw, "column_names": columns[id(raw)]}
    if raw.get("type") != "BASE_TABLE" or "class" in raw:
        return raw
    name = tables.get(id(raw)) or NewName(path=table_path(raw), alias=raw.get("alias", ""))
    others = {key: value for key, value in raw.items() if key not in _NAMES}
    return {**others, "path": list(name.path), "as": name.alias}
