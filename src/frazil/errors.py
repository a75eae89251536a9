"""Everything that can go wrong, grouped by what the caller does next.

    FrazilError
     ├─ InvalidInput        fix the call: a bad name, filter, schema, row or option
     ├─ NotFound            name something that exists: table, namespace, snapshot, ref, file
     ├─ AlreadyExists       choose another name
     ├─ CommitConflict      another commit changed what this one relies on; re-run on fresh data
     ├─ CommitUnknown       the outcome is not known; check before retrying
     ├─ FormatError         a file is corrupt or from a newer writer
     ├─ Unsupported         a feature that this version, or this engine, does not have
     ├─ StorageError        the file system or object store failed
     ├─ CatalogError        the catalog database or service failed
     │   └─ Overloaded      the server refused for now; nothing was done, try again later
     └─ Cancelled           the work was stopped before its end

Every error carries a stable `kind`; messages say what was found, where, and what was expected.
Programs test the class or the `kind`, never the message text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from frazil.value_classes import frozen

MAX_MESSAGE = 20_000
"""Characters of a message. A message may quote input of any length."""

_SECRET_WORD = re.compile(
    r"password|passwd|pwd|secret|token|credential"
    r"|(?:access|account|private|api|shared)[-_.]?key|connection[-_.]?string"
    r"|(?:^|[.\-])sig$",
    re.IGNORECASE,
)
# Possessive, and only from the first letter of a name: text that looks like one long name is read
# once, not once per letter.
_NAMED = re.compile(r"(?<![\w.\-])([\w.\-]++)(?:=|['\"]\s*+:\s*+(['\"]))")
_PLAIN_VALUE = re.compile(r"[^\s&;,'\")]*")
_ADDRESS = re.compile(r"[^\s'\"]++")
_USER = re.compile(r"://[^:/@]*:")


def redacted(text: str) -> str:
    """A text without passwords in addresses, and without the values of what is named like a secret.
    Takes time in proportion to the text.

    >>> redacted("mysql://me:hunter2@db/x?password=abc")
    'mysql://me:***@db/x?password=***'
    """
    if "://" in text and "@" in text:
        text = _ADDRESS.sub(_without_password, text)
    parts: list[str] = []
    read_to = 0
    while (name := _NAMED.search(text, read_to)) is not None:
        parts.append(text[read_to : name.end()])
        read_to = name.end()
        if _SECRET_WORD.search(name[1]) is None:
            continue
        end = _end_of_value(text, read_to, quote=name[2])
        if end > read_to:
            parts.append("***")
            read_to = end
    return "".join([*parts, text[read_to:]])


def _without_password(run: re.Match[str]) -> str:
    """An address whose password, which may hold any character, ends at the last @."""
    address = run[0]
    end = address.rfind("@")
    user = _USER.search(address, 0, end)
    return address if user is None else f"{address[: user.end()]}***{address[end:]}"


def _end_of_value(text: str, start: int, *, quote: str | None) -> int:
    """Where a secret's value ends. One whose quote is missing, as in a text that was cut, ends with
    its line."""
    if quote is None:
        value = _PLAIN_VALUE.match(text, start)
        return start if value is None else value.end()
    line = text.find("\n", start)
    line = len(text) if line < 0 else line
    end = text.find(quote, start, line)
    return line if end < 0 else end


def _message(text: str) -> str:
    """A message that shows no secret and has a bounded length."""
    safe = redacted(text[: 2 * MAX_MESSAGE])
    if len(safe) <= MAX_MESSAGE and len(text) <= 2 * MAX_MESSAGE:
        return safe
    return f"{safe[:MAX_MESSAGE]}… ({len(text):,} characters)"


class FrazilError(Exception):
    """Base of every error Frazil raises on purpose. Its message shows no secret."""

    kind: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 1
    position: tuple[int, int] | None = None
    """Line and column in the text that caused it, counted from 1."""

    def __init_subclass__(cls, *, kind: str | None = None, exit_code: int | None = None) -> None:
        cls.kind = cls.kind if kind is None else kind
        cls.exit_code = cls.exit_code if exit_code is None else exit_code

    def __init__(self, *parts: object) -> None:
        super().__init__(*(_message(part) if isinstance(part, str) else part for part in parts))

    @property
    def message(self) -> str:
        """The message without the position."""
        return super().__str__().encode("utf-8", "backslashreplace").decode()

    def __str__(self) -> str:
        """The message, which can be printed whatever it quotes."""
        if self.position is None:
            return self.message
        return "line {}, column {}: {}".format(*self.position, self.message)


class InvalidInput(FrazilError, kind="invalid-input", exit_code=2):
    """Invalid arguments or input.

    `is_certain` means that no other reading of the input would be valid.
    """

    def __init__(self, *message: object, is_certain: bool = False) -> None:
        self.is_certain = is_certain
        super().__init__(*message)


class NotFound(FrazilError, kind="not-found", exit_code=3):
    """A table, snapshot, branch, tag or file was not found."""


class Forbidden(FrazilError, kind="forbidden", exit_code=12):
    """A path that may not be used: it lies outside the folders that the caller may use."""


class AlreadyExists(FrazilError, kind="already-exists", exit_code=4):
    """The name is already in use."""


@frozen
class Conflict:
    """One reason why a change cannot be replayed on the current head."""

    what: str
    where: str
    by_snapshot_id: int | None = None

    def __str__(self) -> str:
        by = "" if self.by_snapshot_id is None else f" (snapshot {self.by_snapshot_id})"
        return f"{self.what}: {self.where}{by}"


class CommitConflict(FrazilError, kind="commit-conflict", exit_code=5):
    """Another commit changed what this one relies on. Lists every conflict found."""

    def __init__(self, message: str, conflicts: Sequence[Conflict] = ()) -> None:
        self.conflicts = tuple(conflicts)
        listed = "".join(f"\n  - {conflict}" for conflict in self.conflicts[:20])
        more = len(self.conflicts) - 20
        super().__init__(message + listed + (f"\n  … and {more} more" if more > 0 else ""))


class CommitUnknown(FrazilError, kind="commit-unknown", exit_code=6):
    """The connection was lost during a commit; it may or may not have landed."""


class FormatError(FrazilError, kind="format", exit_code=7):
    """A file is corrupt or was written by a newer version. Names the file and the field."""

    def __init__(self, problem: str, *, path: str | None = None, field: str | None = None) -> None:
        self.problem = problem
        self.path = path
        self.field = field
        where = ": ".join(part for part in (path, field) if part)
        super().__init__(f"{where}: {problem}" if where else problem)

    def at(self, path: str) -> FormatError:
        """The same problem, naming the file it was found in."""
        return self if self.path else FormatError(self.problem, path=path, field=self.field)


class Unsupported(FrazilError, kind="unsupported", exit_code=8):
    """A feature that is not supported; the error names it."""

    def __init__(self, message: str, *, feature: str | None = None) -> None:
        self.feature = feature
        super().__init__(message)


class StorageError(FrazilError, kind="storage", exit_code=9):
    """Reading, writing, listing or deleting a file failed."""


class CatalogError(FrazilError, kind="catalog", exit_code=10):
    """The catalog database or service failed."""


class Overloaded(CatalogError):
    """The server has no room for the request now. Nothing was done: try again later.

    `is_own` when the limit is the sender's own, not the server's.
    """

    def __init__(self, *message: object, is_own: bool = False) -> None:
        self.is_own = is_own
        super().__init__(*message)


class Cancelled(FrazilError, kind="cancelled", exit_code=11):
    """The work was cancelled by whoever asked for it, or ran out of time."""
