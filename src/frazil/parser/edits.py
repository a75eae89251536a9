"""Text put in place of parts of another text, which knows where its characters came from.

What is put in place of the names of tables is checked: the edited text must have the same tree as
the text before, with only those names replaced.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from frazil.errors import FrazilError
from frazil.parser import nodes as n
from frazil.parser.duckdb_parser import query_json
from frazil.parser.tokens import Part, Source
from frazil.parser.tree import is_same_tree, table_path
from frazil.value_classes import dataclass

if TYPE_CHECKING:
    import duckdb

Edit = tuple[int, int, str]
_NAMES: Final = ("catalog_name", "schema_name", "table_name", "qualified_name", "alias")
_QUERIES: Final = ("select", "with", "from", "table")


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

    def through(self, before: EngineText) -> EngineText:
        """The same, made from a text that was made itself, with origins in that one's source."""
        starts = ((start, before.origin(origin), size) for start, origin, size in self._starts)
        return EngineText(self.text, tuple(starts))

    def inside(self, prefix: str, suffix: str) -> EngineText:
        """The text between words of ours."""
        starts = ((start + len(prefix), origin, size) for start, origin, size in self._starts)
        return EngineText(f"{prefix}{self.text}{suffix}", tuple(starts))

    def with_origin(self, error: FrazilError, source: Source) -> FrazilError:
        """An error with a position in this text as one with a position in the source."""
        if error.position is not None:
            line, column = error.position
            at = sum(len(text) + 1 for text in self.text.split("\n")[: line - 1]) + column - 1
            error.position = source.position(self.origin(at))
        return error


class Slices:
    """A text that is put together from our words and slices of another, with edits made in them."""

    def __init__(self, source: Source, edits: Iterable[Edit]) -> None:
        self._source = source
        self._edits = sorted(edits, key=lambda edit: (edit[0], -edit[1]))
        self._pieces: list[str] = []
        self._starts: list[tuple[int, int, int]] = []
        self._size = 0

    def add(self, text: str, origin: int | None = None) -> Part:
        """Add words of ours, which stand for what is at an offset of the other text."""
        if origin is not None:
            self._starts.append((self._size, origin, 0))
        start = self._size
        self._pieces.append(text)
        self._size += len(text)
        return Part(start, self._size)

    def slice(self, part: Part) -> Part:
        """Add a slice; returns where it is now."""
        start, at = self._size, part.start
        first = bisect_left(self._edits, part.start, key=itemgetter(0))
        for number in range(first, len(self._edits)):
            begin, end, new = self._edits[number]
            if begin > part.end:
                break
            if begin < at or end > part.end:  # the outer one of two edits counts
                continue
            self._copy(at, begin)
            self.add(new, begin)
            at = end
        self._copy(at, part.end)
        return Part(start, self._size)

    def expression(self, part: Part) -> Part:
        """Add an expression, in brackets: nothing in it can reach out of them."""
        word = self._source.of(part).split(None, 1)[0].lower()
        if word in _QUERIES:  # in brackets it would be a value
            raise self._source.problem(part.start, f"expected an expression, found {word.upper()}")
        self.add("(")
        inner = self.slice(part)
        self.add("\n)")
        return inner

    def _copy(self, start: int, end: int) -> None:
        self._starts.append((self._size, start, end - start))
        self.add(self._source.text[start:end])

    @property
    def text(self) -> EngineText:
        """What was put together."""
        return EngineText("".join(self._pieces), tuple(self._starts))


def rewrite(
    source: Source,
    parts: Sequence[Part],
    edits: Iterable[Edit],
    *,
    prefix: str = "",
    between: str = "",
) -> EngineText:
    """The parts of a text, one after the other, with edits made in them."""
    slices = Slices(source, edits)
    slices.add(prefix, parts[0].start)
    for number, part in enumerate(parts):
        slices.add(between if number else "")
        slices.slice(part)
        slices.add("\n")
    return slices.text


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
    aliases: Mapping[n.Expression, str],
    *,
    near: duckdb.DuckDBPyConnection | None = None,
) -> bool:
    """Whether an edited text says what the query did before, with other names for these tables
    and columns, and aliases for these outputs. `near` as `query_json`'s."""
    tables = {id(table.raw): name for table, name in names.items()}
    refs = {id(ref.raw): list(path) for ref, path in columns.items()}
    outputs = {id(output.raw): alias for output, alias in aliases.items()}
    after_tree = query_json(Source(after), near)
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
