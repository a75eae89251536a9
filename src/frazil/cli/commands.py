"""Loads every group of commands, so that the app knows them."""

from __future__ import annotations

from importlib import import_module

GROUPS = ("tables", "rows", "sql", "history", "convert", "care", "serve", "demo", "doctor")


def load() -> None:
    """Register all commands."""
    for group in GROUPS:
        import_module(f"frazil.cli.{group}")
