"""The interactive shell of `frazil sql`: lines until a semicolon, history, completion, settings."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from frazil.cli.terminal import output
from frazil.cli.terminal.formats import MAX_ROWS, Format, RowDisplay
from frazil.errors import FrazilError
from frazil.filter.text.quotes import quoted
from frazil.sql.output.query_result import Result
from frazil.sql.parse.parse_statement import is_complete
from frazil.sql.run.procedures import PROCEDURES
from frazil.sql.session import Session

_HISTORY_LINES: Final = 1000
_LEAVE: Final = ("exit", "quit", ".exit", ".quit", "\\q")
_SWITCH: Final = {"on": True, "off": False}
_FORMATS: Final = ", ".join(format.value for format in Format)
_HELP: Final = f"""End a statement with a semicolon. Tab completes names, the arrow keys recall
statements, Ctrl-C cancels a query or a line. Commands:
  .help                  this text (also \\?)
  .tables                list tables and views (also \\d and \\dt)
  .schema TABLE          columns of a table or view (also \\d TABLE)
  .mode FORMAT           {_FORMATS}
  .maxrows N             rows that are shown of a result [default: {MAX_ROWS}]
  .timer on|off          tell how long statements take (also \\timing)
  .quit                  leave (also exit, quit, \\q and Ctrl-D)"""


class Shell:
    """Reads statements from a terminal and prints their results."""

    def __init__(
        self, session: Session, show: Callable[[Result], None], display: RowDisplay | None = None
    ) -> None:
        self._session = session
        self._show = show
        self._shown = RowDisplay() if display is None else display
        self._shown.more = "more with .maxrows"
        self._words = Words(session)
        self._matching: list[str] = []

    def loop(self) -> None:
        """Until the user leaves."""
        output.console.print("Frazil SQL. .help for help, Ctrl-D to leave.", highlight=False)
        self._read_and_run()
        if self._session.in_transaction:
            text = "the transaction was not committed; its changes are rolled back"
            output.errors.print(text, highlight=False)

    def _read_and_run(self) -> None:
        with _LineEditor(self.complete) as editor:
            pending = ""
            while True:
                try:
                    line = input(self._prompt(pending))
                except EOFError:
                    output.console.print()
                    return
                except KeyboardInterrupt:
                    output.console.print()
                    pending = ""
                    continue
                if not pending and self._is_command(line):
                    if self.command(line.strip()):
                        return
                    continue
                pending = f"{pending}\n{line}" if pending else line
                if is_complete(pending):
                    editor.remember(pending)
                    self.run(pending)
                    pending = ""

    def run(self, text: str) -> None:
        """Run statements and print what they give. Errors end nothing, and Ctrl-C the query
        alone."""
        began = time.perf_counter()
        try:
            for result in self._session.results(text):
                self._show(result)
        except FrazilError as error:
            output.emit_error(error, as_json=False)
        except KeyboardInterrupt:
            output.console.print("cancelled", highlight=False)
        if self._shown.timing:
            took = (time.perf_counter() - began) * 1000
            output.console.print(f"{took:,.0f} ms", style="dim", highlight=False)

    def complete(self, text: str, state: int) -> str | None:
        """The completion number `state` of a word, as readline asks for them."""
        if state == 0:
            self._matching = self._words.matching(text, _line_so_far())
        return self._matching[state] if state < len(self._matching) else None

    def _prompt(self, pending: str) -> str:
        if pending:
            return "   ...> "
        return "frazil*> " if self._session.in_transaction else "frazil> "

    def _is_command(self, line: str) -> bool:
        text = line.strip()
        return text.startswith((".", "\\")) or text.rstrip(";").lower() in _LEAVE

    def command(self, line: str) -> bool:
        """Carry out a line that is not SQL; whether it was to leave."""
        word, *arguments = line.rstrip(";").split()
        match word.lower(), arguments:
            case leave, [] if leave in _LEAVE:
                return True
            case ((".tables" | "\\dt" | "\\d"), []):
                self.run("SHOW TABLES")
                if self._words.views():
                    self.run("SHOW VIEWS")
            case ((".schema" | "\\d"), [table]):
                parts = table.split(".")
                self.run("DESCRIBE " + ".".join(map(quoted, parts)))
            case ((".help" | "\\?"), _):
                output.console.print(_HELP, highlight=False, markup=False)
            case (".timer", [("on" | "off") as switch]):
                self._shown.timing = _SWITCH[switch]
            case "\\timing", []:
                self._shown.timing = not self._shown.timing
                output.console.print(f"timing is {'on' if self._shown.timing else 'off'}")
            case ".maxrows", [number] if number.isdigit():
                self._shown.max_rows = int(number)
            case ".maxrows", [_]:
                output.errors.print(".maxrows takes a number", highlight=False)
            case ".mode", [name] if name in [format.value for format in Format]:
                self._shown.format = Format(name)
            case ".mode", []:
                output.console.print(self._shown.format.value, highlight=False)
            case ".mode", [name, *_]:
                text = f"{name!r} is not a format; formats: {_FORMATS}"
                output.errors.print(text, highlight=False, markup=False)
            case _:
                text = f"{line}: not a command; see .help"
                output.errors.print(text, highlight=False, markup=False)
        return False


def _line_so_far() -> str:
    try:
        import readline
    except ImportError:
        return ""
    return readline.get_line_buffer()


class _LineEditor:
    """The terminal's line editor with a history file, as far as the system has one."""

    def __init__(self, complete: Callable[[str, int], str | None]) -> None:
        self._complete = complete
        place = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
        self._file = Path(place) / "frazil" / "sql_history"

    def __enter__(self) -> _LineEditor:
        try:
            import readline
        except ImportError:  # no line editor here: plain input
            return self
        readline.set_completer(self._complete)
        readline.set_completer_delims(" \t\n(),;=<>")
        readline.parse_and_bind("tab: complete")
        readline.set_history_length(_HISTORY_LINES)
        with suppress(OSError):
            readline.read_history_file(self._file)
        return self

    def remember(self, text: str) -> None:
        """Make the lines of a statement one line of the history, which can be recalled and edited
        as a whole. A comment would swallow what follows it, so such lines stay as they are."""
        lines = text.split("\n")
        if len(lines) == 1 or "--" in text:
            return
        try:
            import readline
        except ImportError:
            return
        for line in reversed(lines):
            last = readline.get_current_history_length()
            if last and readline.get_history_item(last) == line:
                readline.remove_history_item(last - 1)
        readline.add_history(" ".join(line.strip() for line in lines))

    def __exit__(self, *_: object) -> None:
        try:
            import readline
        except ImportError:
            return
        with suppress(OSError):
            self._file.parent.mkdir(parents=True, exist_ok=True)
            readline.write_history_file(self._file)


# Words that may come next


_KEYWORDS: Final = (
    "SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT JOIN LEFT ON USING WITH AS UNION ALL DISTINCT "
    "INSERT INTO OVERWRITE VALUES UPDATE SET DELETE MERGE MATCHED CREATE TABLE VIEW NAMESPACE "
    "REPLACE DROP ALTER ADD COLUMN RENAME TO PARTITIONED PARTITION FIELD WRITE ORDERED BRANCH TAG "
    "SHOW TABLES VIEWS NAMESPACES DESCRIBE HISTORY EXPLAIN ANALYZE CALL USE BEGIN COMMIT ROLLBACK "
    "FOR VERSION TIMESTAMP OF AND OR NOT NULL IN BETWEEN LIKE IS EXISTS CASE WHEN THEN ELSE END"
)
_NAME: Final = re.compile(r"[\w.]+")


class Words:
    """What a session's catalog has names for."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def matching(self, begun: str, line: str = "") -> list[str]:
        """Words that begin as this one does: names first, words of SQL if no name does. Columns
        are those of tables that the line names."""
        names = {f"system.{name}" for name in PROCEDURES}
        with suppress(FrazilError):
            names |= self._names(begun, line)
        words = sorted(name for name in names if name.lower().startswith(begun.lower()))
        if begun and not words:
            words = [word for word in _KEYWORDS.split() if word.startswith(begun.upper())]
        return words

    def views(self) -> list[str]:
        """The names of the catalog's views; none where they cannot be listed."""
        with suppress(FrazilError):
            return self._session.catalog.list_views()
        return []

    def _names(self, begun: str, line: str) -> set[str]:
        catalog = self._session.catalog
        tables = catalog.list_tables()
        namespace = ".".join(self._session.names.namespace)
        short = {name.removeprefix(f"{namespace}."): name for name in tables} if namespace else {}
        tables_by_name = {**{name: name for name in tables}, **short}
        names = {*tables_by_name, *self.views(), *catalog.list_namespaces()}
        within = begun.rpartition(".")[0]
        for word in {within, *_NAME.findall(line)} & tables_by_name.keys():
            schema = catalog.load_table(tables_by_name[word]).metadata.schema()
            columns = [field.name for field in schema.fields]
            is_qualified = word == within
            names |= {f"{word}.{column}" if is_qualified else column for column in columns}
        return names
