"""The command line: one module per group of commands, none of which holds rules."""

from __future__ import annotations

import gc
import os
import sys


def main() -> None:
    """Entry point of the command `frazil`."""
    if sys.argv[1:] == ["--version"]:  # at once: nothing else is loaded for it
        from frazil import __version__

        print(__version__)
        return
    if "_FRAZIL_COMPLETE" in os.environ:
        from frazil.cli.completion import answer

        code = answer(os.environ)
        if code is not None:
            sys.exit(code)
    from frazil.cli.command_line import load_commands
    from frazil.cli.command_line import main as run

    load_commands(sys.argv[1:])
    code = run()
    # At its end Python searches everything for garbage, which takes a tenth of a command's time.
    # DuckDB's binding complains of what was not collected.
    if "duckdb" not in sys.modules:
        gc.freeze()
    sys.exit(code)
