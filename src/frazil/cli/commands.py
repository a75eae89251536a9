"""Loads groups of commands, so that the app knows them, and sorts them into panels of help."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Final

from frazil.cli.command_line import app

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


def load(arguments: Sequence[str] = ()) -> None:
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
