"""The command line: one module per group of commands, none of which holds rules."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point of the command `frazil`."""
    from frazil.cli import commands
    from frazil.cli.app import main as run

    commands.load()
    sys.exit(run())
