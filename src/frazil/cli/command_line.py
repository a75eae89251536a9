"""The command `frazil`: options every command shares, and how errors become exit codes."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

import frazil
from frazil.cli.terminal import output
from frazil.cli.which_catalog import settings_for
from frazil.errors import FrazilError, InvalidInput

if TYPE_CHECKING:
    from frazil.table import Catalog, Table

INTERRUPTED = 130
GROUPS: Final = {
    "tables": (
        "init",
        "tables",
        "create",
        "describe",
        "schema",
        "drop",
        "rename",
        "set",
        "catalog",
    ),
    "rows": ("append", "upsert", "scan", "plan", "explain", "delete", "update"),
    "sql": ("sql",),
    "history": ("log", "tree", "branch", "tag", "rollback", "changes", "compare"),
    "convert": ("upgrade", "publish", "import", "export", "register", "clone", "recover"),
    "maintain": ("maintain", "analyze", "check"),
    "serve": ("serve", "explore"),
    "demo": ("demo",),
    "doctor": ("doctor",),
}
"""The commands of each module."""
PANELS: Final = {
    "Start": ("init", "demo", "explore", "doctor"),
    "Tables": ("tables", "create", "describe", "schema", "set", "rename", "drop"),
    "Rows": ("scan", "sql", "append", "upsert", "update", "delete", "plan", "explain"),
    "History": ("log", "tree", "changes", "compare", "branch", "tag", "rollback"),
    "Maintenance": ("analyze", "check", "maintain", "recover"),
    "Other formats and places": (
        "import",
        "upgrade",
        "publish",
        "export",
        "register",
        "clone",
        "catalog",
        "serve",
    ),
}
"""Where `frazil --help` lists each command."""


class _Commands(TyperGroup):
    """The commands. One that belongs to a group is found there: `compact` is `maintain compact`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the arguments begin with."""
        try:
            return super().resolve_command(ctx, args)
        except TyperException as error:
            groups = {
                name: getattr(command, "commands", ()) for name, command in self.commands.items()
            }
            near = [
                f"{group} {name}"
                for group, names in groups.items()
                for name in names
                if name.startswith(args[0])
            ]
            if near:
                suggestions = " or ".join(repr(name) for name in sorted(near, key=len))
                error.message = f"No such command {args[0]!r}. Did you mean {suggestions}?"
            raise


app = typer.Typer(
    name="frazil",
    cls=_Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)


CatalogOption = Annotated[
    str | None,
    typer.Option(
        "--catalog",
        "-c",
        help="Folder or database URI [default: FRAZIL_CATALOG, a config file, ./warehouse].",
        show_default=False,
    ),
]


def _version(requested: bool) -> None:
    if requested:
        output.console.print(frazil.__version__, highlight=False)
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    catalog: CatalogOption = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Tables with an adaptive metadata tree. Start with **frazil demo**."""
    if catalog is not None:
        context.default_map = _defaults(context.command, catalog)


def _defaults(group: Any, catalog: str) -> dict[str, Any]:
    """The catalog given before the command, as the default of every command."""
    return {
        name: _defaults(command, catalog) if hasattr(command, "commands") else {"catalog": catalog}
        for name, command in group.commands.items()
    }


JsonOption = Annotated[bool, typer.Option("--json", help="Output JSON.")]
TableArgument = Annotated[
    str, typer.Argument(help="Table as namespace.name or namespace.name@branch.")
]
WhereOption = Annotated[
    str | None, typer.Option("--where", "-w", help="Filter, e.g. \"price > 100 and day = '…'\".")
]
AsOfOption = Annotated[
    str | None,
    typer.Option("--as-of", help="Snapshot id, branch, tag or time, e.g. 2024-01-15T10:00."),
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Show what would happen; change nothing.")
]


_opened = ExitStack()
"""Catalogs that are closed when the command ends."""


def open_catalog(catalog: str | None) -> Catalog:
    """The catalog a command works on."""
    return _opened.enter_context(settings_for(catalog).open())


def open_table(name: str, catalog: str | None) -> Table:
    """The table a command works on; `orders@audit` is its branch `audit`."""
    name, _, branch = name.partition("@")
    table = open_catalog(catalog).load_table(name)
    return table.branch(branch, create=False) if branch else table


def confirm(question: str, *, yes: bool, otherwise: str) -> None:
    """Ask before something is destroyed; without a terminal, `--yes` has to be given."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise InvalidInput(f"{otherwise}: confirmation needed; pass --yes")
    if not typer.confirm(question):
        raise InvalidInput(otherwise)


def _is_reader_gone(error: BaseException) -> bool:
    """Whether output has no reader any more, as with `| head`. Typer makes an exit of it."""
    cause = error.__context__ if isinstance(error, SystemExit) else error
    return isinstance(cause, OSError) and cause.errno == errno.EPIPE


def _stop_writing() -> None:
    """What is left goes nowhere; Python would complain about it at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    with suppress(OSError, ValueError):  # a stream without a file
        os.dup2(nowhere, sys.__stdout__.fileno() if sys.__stdout__ else 1)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit code is that of the kind of error."""
    arguments_given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        with _opened:
            code = app(args=arguments_given, standalone_mode=False)
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit) as error:
        if not _is_reader_gone(error):
            raise
        _stop_writing()
        return 0
    except FrazilError as error:
        output.emit_error(error, as_json="--json" in arguments_given)
        return error.exit_code
    except typer.Abort:
        code = INTERRUPTED
    except TyperException as error:
        message = error.format_message().replace(": Value error, ", ": ")  # a validator's own words
        output.errors.print(message, markup=False, highlight=False)
        return error.exit_code
    if code == INTERRUPTED:
        output.errors.print(
            "Interrupted. Changes already committed are kept; nothing partial is visible."
        )
    return code if isinstance(code, int) else 0


def load_commands(arguments: Sequence[str] = ()) -> None:
    """Register the commands that the arguments may mean: making one takes a millisecond."""
    group_of = {name: group for group, names in GROUPS.items() for name in names}
    groups = {group_of[word] for word in arguments if word in group_of}
    if not arguments or not (arguments[0].startswith("-") or arguments[0] in group_of):
        groups.clear()  # help, or a word that is answered with the nearest of all commands
    for group in GROUPS:
        if not groups or group in groups:
            import_module(f"frazil.cli.{group}")
    panels = {name: panel for panel, names in PANELS.items() for name in names}
    for command in app.registered_commands:
        name = str(command.name or getattr(command.callback, "__name__", ""))
        command.rich_help_panel = panels[name]
    for added in app.registered_groups:
        added.rich_help_panel = panels[str(added.name)]
