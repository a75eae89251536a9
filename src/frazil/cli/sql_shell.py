"""The interactive shell of `frazil sql`: lines until a semicolon, history, completion."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from frazil.cli import output
from frazil.errors import FrazilError
from frazil.sql.parse_statement import is_complete
from frazil.sql.procedures import PROCEDURES
from frazil.sql.query_result import Result
from frazil.sql.session import Session

_KEYWORDS: Final = (
    "SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT JOIN LEFT ON USING WITH AS UNION ALL DISTINCT "
    "INSERT INTO OVERWRITE VALUES UPDATE SET DELETE MERGE MATCHED CREATE TABLE VIEW NAMESPACE "
    "REPLACE DROP ALTER ADD COLUMN RENAME TO PARTITIONED PARTITION FIELD WRITE ORDERED BRANCH TAG "
    "SHOW TABLES VIEWS NAMESPACES DESCRIBE HISTORY EXPLAIN ANALYZE CALL USE BEGIN COMMIT ROLLBACK "
    "FOR VERSION TIMESTAMP OF AND OR NOT NULL IN BETWEEN LIKE IS EXISTS CASE WHEN THEN ELSE END"
)
_HISTORY_LINES: Final = 1000
_HELP: Final = """End a statement with a semicolon. Tab completes names. Commands:
  .help         this text
  .tables       list tables
  .quit         leave (also Ctrl-D)"""


class Shell:
    """Reads statements from a terminal and prints their results."""

    def __init__(self, session: Session, show: Callable[[Result], None]) -> None:
        self._session = session
        self._show = show
        self._found: list[str] = []

    def loop(self) -> None:
        """Until the user leaves."""
        output.console.print("Frazil SQL. .help for help, Ctrl-D to leave.", highlight=False)
        with _LineEditor(self.complete):
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
                if not pending and line.strip().startswith("."):
                    if self._command(line.strip()):
                        return
                    continue
                pending = f"{pending}\n{line}" if pending else line
                if is_complete(pending):
                    self.run(pending)
                    pending = ""

    def run(self, text: str) -> None:
        """Run statements and print what they give; errors end nothing."""
        try:
            for result in self._session.results(text):
                self._show(result)
        except FrazilError as error:
            output.emit_error(error, as_json=False)
        except KeyboardInterrupt:
            output.console.print("interrupted")

    def complete(self, text: str, state: int) -> str | None:
        """The completion number `state` of a word, as readline asks for them."""
        if state == 0:
            self._found = self._matches(text)
        return self._found[state] if state < len(self._found) else None

    def _matches(self, text: str) -> list[str]:
        names: set[str] = set()
        with suppress(FrazilError):
            catalog = self._session.catalog
            names |= {*catalog.list_tables(), *catalog.list_namespaces()}
            table = text.rpartition(".")[0]
            if table in names and "." in table:
                columns = catalog.load_table(table).schema.fields
                names |= {f"{table}.{column.name}" for column in columns}
        names |= {f"system.{name}" for name in PROCEDURES}
        found = sorted(name for name in names if name.startswith(text))
        if text and not found:
            found = [word for word in _KEYWORDS.split() if word.startswith(text.upper())]
        return found

    def _prompt(self, pending: str) -> str:
        if pending:
            return "   ...> "
        return "frazil*> " if self._session.in_transaction else "frazil> "

    def _command(self, line: str) -> bool:
        """A dot command; whether it was .quit."""
        match line.split()[0]:
            case ".quit" | ".exit":
                return True
            case ".tables":
                self.run("SHOW TABLES")
            case ".help":
                output.console.print(_HELP, highlight=False)
            case other:
                output.errors.print(f"{other}: not a command; see .help", highlight=False)
        return False


class _LineEditor:
    """The terminal's line editor with a history file, as far as the system has one."""

    def __init__(self, complete: Callable[[str, int], str | None]) -> None:
        self._complete = complete
        place = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
        self._file = Path(place) / "frazil" / "sql_history"

    def __enter__(self) -> None:
        try:
            import readline
        except ImportError:  # no line editor here: plain input
            return
        readline.set_completer(self._complete)
        readline.set_completer_delims(" \t\n(),;=<>")
        readline.parse_and_bind("tab: complete")
        readline.set_history_length(_HISTORY_LINES)
        with suppress(OSError):
            readline.read_history_file(self._file)

    def __exit__(self, *_: object) -> None:
        try:
            import readline
        except ImportError:
            return
        with suppress(OSError):
            self._file.parent.mkdir(parents=True, exist_ok=True)
            readline.write_history_file(self._file)
