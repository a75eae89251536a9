"""The tokens of SQL text, from DuckDB's own lexer, with offsets in characters.

DuckDB says where each token starts and what it is. Where it ends is read here, and what lies
between two tokens must be space or comments: text that the two would read differently is refused.
Names in `backquotes` are ours, for text that was written for other engines.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from enum import Enum
from itertools import accumulate
from typing import Final

from frazil.errors import FrazilError, InvalidInput, Unsupported
from frazil.value_classes import dataclass

_STRING: Final = re.compile(r"(?P<prefix>[A-Za-z]?)'(?:[^']|'')*'")
_ESCAPED: Final = re.compile(r"[eE]'(?:\\.|''|[^'\\])*'", re.DOTALL)
_CONTINUED: Final = re.compile(r"\s*[\n\r]\s*'((?:[^']|'')*)'")
_DOLLAR: Final = re.compile(r"\$(?P<tag>[^\W\d]\w*)?\$.*?\$(?(tag)(?P=tag))\$", re.DOTALL)
_QUOTED: Final = {'"': re.compile(r'"(?:[^"]|"")*"'), "`": re.compile(r"`(?:[^`]|``)*`")}
_PLAIN: Final = re.compile(r"[\w .]*")
_WORD: Final = re.compile(r"[\w$]+")
_SYMBOL: Final = re.compile(r"(?:(?!--|/\*)\S)+")
_COMMENT: Final = re.compile(r"/\*|\*/")
_LINE_COMMENT: Final = re.compile(r"--[^\n\r]*")
_SPACE: Final = re.compile(r"\s+")
_UNICODE_SPACE: Final = re.compile(r"[\u00a0\u2000-\u200d\u202f\u205f\u2060\u3000\ufeff]")
_ESCAPE: Final = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|([0-7]{1,3})|(.))", re.DOTALL)
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


class Kind(Enum):
    """What a token is."""

    WORD = "word"
    QUOTED = "quoted"
    STRING = "string"
    BINARY = "binary"
    """`x'FF'` or `b'01'`."""
    NUMBER = "number"
    PARAM = "param"
    SYMBOL = "symbol"


@dataclass(frozen=True, slots=True)
class Token:
    """One token; `value` is without quotes, `start` and `end` are offsets in the whole text."""

    kind: Kind
    value: str
    start: int
    end: int

    def is_word(self, *words: str) -> bool:
        """Whether it is one of these words, in any case, unquoted."""
        return self.kind is Kind.WORD and self.value.lower() in words

    def is_symbol(self, *symbols: str) -> bool:
        """Whether it is one of these symbols."""
        return self.kind is Kind.SYMBOL and self.value in symbols

    @property
    def is_name(self) -> bool:
        """Whether it can be part of a name."""
        return self.kind in (Kind.WORD, Kind.QUOTED)


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of the text: an expression or a query."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Source:
    """What the user wrote."""

    text: str

    def of(self, part: Part) -> str:
        """The text of a part."""
        return self.text[part.start : part.end]

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column, counted from 1."""
        line = self.text.count("\n", 0, offset) + 1
        return line, offset - (self.text.rfind("\n", 0, offset) + 1) + 1

    def problem(self, offset: int, message: str) -> InvalidInput:
        """An error at a place."""
        error = InvalidInput(message)
        self.with_position(offset, error)
        return error

    def unsupported(self, offset: int, message: str, *, feature: str) -> Unsupported:
        """An error about a part that cannot be carried out."""
        error = Unsupported(message, feature=feature)
        self.with_position(offset, error)
        return error

    def with_position(self, offset: int, error: FrazilError) -> FrazilError:
        """The error, with the place that caused it unless it has one."""
        if error.position is None:
            error.position = self.position(offset)
        return error


def tokens(source: Source) -> list[Token]:
    """All tokens, without space and comments."""
    check_text(source)
    return _Lexer(source).all()


def check_text(source: Source) -> None:
    """Refuse text that DuckDB cannot be given."""
    zero = source.text.find("\0")
    if zero >= 0:
        raise source.problem(zero, "the text has a zero byte here; write chr(0)")
    try:
        source.text.encode()
    except UnicodeEncodeError as error:
        raise source.problem(error.start, "lone surrogates are refused") from None


class _Lexer:
    def __init__(self, source: Source) -> None:
        self._source = source
        self._text = source.text
        self._tokens: list[Token] = []

    def all(self) -> list[Token]:
        at = 0
        while at < len(self._text):
            at = self._read_from(at)
        return self._tokens

    def _read_from(self, first: int) -> int:
        """Read on from an offset; returns where to go on, which is behind a quoted name that the
        lexer cannot know."""
        starts = _starts(self._text, first)
        size, at = len(self._text), first
        limits = [start for start, _ in starts[1:]] + [size]
        for (start, kind), limit in zip(starts, limits, strict=False):
            if start < at or kind == "comment":
                continue  # inside a name in backquotes, or skipped as space is
            at = self._skip(at, start)
            quote = self._backquote(start, limit, kind)
            if quote is None:
                at = self._token(start, limit, kind)
                continue
            if quote > start:
                self._add_symbol(start, quote)
            match = _QUOTED["`"].match(self._text, quote)
            if match is None:
                raise self._unclosed(quote)
            at = match.end()
            inner = match[0][1:-1]
            self._tokens.append(Token(Kind.QUOTED, inner.replace("``", "`"), quote, at))
            if _PLAIN.fullmatch(inner) is None:
                return at  # it may have quotes in it: what follows was misread
        return self._skip(at, size)

    def _backquote(self, start: int, limit: int, kind: str) -> int | None:
        """Where a name in backquotes begins, alone or behind an operator."""
        if kind not in ("operator", "identifier"):
            return None
        match = _SYMBOL.match(self._text, start, limit)
        quote = -1 if match is None else match[0].find("`")
        return None if quote < 0 else start + quote

    def _token(self, start: int, limit: int, kind: str) -> int:
        """Add the token that starts here; returns where it ends."""
        text, first = self._text, self._text[start]
        if kind == "string_const":
            return self._string(start, limit)
        if first == '"':
            match = _QUOTED[first].match(text, start)
            if match is None:
                raise self._unclosed(start)
            value = match[0][1:-1].replace('""', '"')
            return self._add(Kind.QUOTED, value, start, match.end())
        if kind == "numeric_const" and text[start:limit].rstrip() != ".":
            match = _SYMBOL.match(text, start, limit)
            assert match is not None
            return self._add(Kind.NUMBER, match[0].replace("_", ""), start, match.end())
        match = _WORD.match(text, start, limit) if first != "$" else None
        if match is not None:
            return self._word(start, match.end())
        match = _SYMBOL.match(text, start, limit)
        if match is None:
            raise self._unclosed(start)
        return self._add_symbol(start, match.end())

    def _word(self, start: int, end: int) -> int:
        before = self._tokens[-1] if self._tokens else None
        if before is not None and before.is_symbol("$", "?") and before.end == start:
            self._tokens.pop()  # $name and ?1 are one token
            return self._add(Kind.PARAM, self._text[before.start : end], before.start, end)
        return self._add(Kind.WORD, self._text[start:end], start, end)

    def _add_symbol(self, start: int, end: int) -> int:
        value = self._text[start:end]
        if value[0] in "?$" and (value == "?" or value[1:].isdigit()):
            return self._add(Kind.PARAM, value, start, end)
        return self._add(Kind.SYMBOL, value, start, end)

    def _add(self, kind: Kind, value: str, start: int, end: int) -> int:
        before = self._tokens[-1] if self._tokens else None
        if (
            kind is Kind.NUMBER
            and before is not None
            and before.end == start
            and (before.kind is Kind.PARAM or before.is_symbol("$"))
            and before.value in "?$"
        ):
            self._tokens.pop()
            kind, value, start = Kind.PARAM, self._text[before.start : end], before.start
        self._tokens.append(Token(kind, value, start, end))
        return end

    def _string(self, start: int, limit: int) -> int:
        text = self._text
        if text[start] == "$":
            match = _DOLLAR.match(text, start)
            if match is None:
                raise self._unclosed(start)
            size = len(match["tag"] or "") + 2
            return self._add(Kind.STRING, match[0][size:-size], start, match.end())
        escaped = text[start] in "eE"
        match = (_ESCAPED if escaped else _STRING).match(text, start)
        if match is None:
            raise self._unclosed(start)
        prefix = "" if escaped else match["prefix"].lower()
        inner = match[0][match[0].index("'") + 1 : -1]
        value = _unescaped(inner) if escaped else inner.replace("''", "'")
        end = match.end()
        while end < limit and (more := _CONTINUED.match(text, end, limit)) is not None:
            value, end = value + more[1].replace("''", "'"), more.end()
        return self._add(Kind.BINARY if prefix in ("x", "b") else Kind.STRING, value, start, end)

    def _skip(self, at: int, limit: int) -> int:
        """Step over space and comments, which must be all there is up to the next token."""
        text = self._text
        while at < limit:
            space = _SPACE.match(text, at, limit) or _LINE_COMMENT.match(text, at, limit)
            if space is not None:
                at = space.end()
            elif _UNICODE_SPACE.match(text, at) is not None:
                at += 1
            elif text.startswith("/*", at):
                at = self._comment_end(at)
            else:
                raise self._unclosed(at)
        return at

    def _comment_end(self, start: int) -> int:
        depth = 0
        for match in _COMMENT.finditer(self._text, start):
            depth += 1 if match[0] == "/*" else -1
            if depth == 0:
                return match.end()
        raise self._unclosed(start)

    def _unclosed(self, at: int) -> InvalidInput:
        return self._source.problem(
            at,
            "a quote or comment is opened here and never closed"
            if self._text[at : at + 1] in ("'", '"', "`", "$", "/") or self._text[at] in "eExXbB"
            else f"the text cannot be read from here on: {self._text[at : at + 20]!r}",
        )


def _starts(text: str, first: int) -> list[tuple[int, str]]:
    """Where DuckDB sees tokens from an offset on, and what they are."""
    import _duckdb

    # DuckDB takes other spaces for plain ones when it parses, but not when it tokenizes.
    rest = text[first:]
    spaced = _UNICODE_SPACE.sub(" ", rest) if not rest.isascii() else rest
    starts = _duckdb.tokenize(spaced)
    kinds = {kind: kind.name for _, kind in starts}
    if spaced.isascii():
        return [(first + at, kinds[kind]) for at, kind in starts]
    ends = list(accumulate(len(char.encode()) for char in spaced))
    return [(first + bisect_right(ends, at), kinds[kind]) for at, kind in starts]


def _unescaped(text: str) -> str:
    def put(match: re.Match[str]) -> str:
        if match[1] or match[2]:
            return chr(int(match[1], 16) if match[1] else int(match[2], 8))
        return _ESCAPES.get(match[3], match[3])

    return _ESCAPE.sub(put, text.replace("''", "'"))


def other_spaces(source: Source, tokens_: Sequence[Token]) -> Iterator[tuple[int, int, str]]:
    """Edits that put plain spaces where other ones stand between tokens: DuckDB does so too, and
    its offsets would no longer be those of the text."""
    if source.text.isascii():
        return
    at = 0
    for start, end in [*((token.start, token.end) for token in tokens_), (len(source.text),) * 2]:
        for match in _UNICODE_SPACE.finditer(source.text, at, start):
            yield match.start(), match.end(), " "
        at = end


def statements(tokens_: Sequence[Token]) -> Iterator[list[Token]]:
    """The tokens of each statement; semicolons separate them."""
    current: list[Token] = []
    for token in tokens_:
        if token.is_symbol(";"):
            if current:
                yield current
            current = []
        else:
            current.append(token)
    if current:
        yield current
