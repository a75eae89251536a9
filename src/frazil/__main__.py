"""`python -m frazil` is the command `frazil`."""

from __future__ import annotations

from frazil.cli import main

if __name__ == "__main__":
    main()
