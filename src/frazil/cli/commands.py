"""Loads every group of commands, so that the app knows them, and sorts them into panels of help."""

from __future__ import annotations

from importlib import import_module
from typing import Final

from frazil.cli.command_line import app

GROUPS: Final = (
    "tables",
    "catalogs",
    "rows",
    "sql",
    "history",
    "convert",
    "maintain",
    "serve",
    "explore",
    "demo",
    "doctor",
)
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


def load() -> None:
    """Register all commands."""
    for group in GROUPS:
        import_module(f"frazil.cli.{group}")
    panels = {name: panel for panel, names in PANELS.items() for name in names}
    for command in app.registered_commands:
        name = str(command.name or getattr(command.callback, "__name__", ""))
        command.rich_help_panel = panels[name]
    for added in app.registered_groups:
        added.rich_help_panel = panels[str(added.name)]
