"""Writes docs/reference/cli.md and the list for completion from the commands themselves.

`--check` fails when one of them is old.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import typer.main

from frazil.cli import command_line
from frazil.cli.command_line import app
from frazil.cli.completion import LIST, PROPERTIES
from frazil.errors import FrazilError

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "cli.md"

_TABLE = "Table as namespace.name"
HEAD = """# Command line

<!-- Written by `python tools/cli_reference.py` from the commands. -->

Every command accepts `--json` and `--help`. A table is named
`namespace.name`, or `namespace.name@branch` on a branch. Rows are printed exactly, as a table or
with `--format csv|jsonl|markdown|arrow`. Commands that destroy something ask first; without a
terminal they need `--yes`. `frazil doctor` checks the installation. After Ctrl-C, changes
already committed are kept; nothing partial is visible.

## Which catalog

The catalog is determined in this order: `--catalog` (before or after the command), the environment
variable
`FRAZIL_CATALOG`, the file `frazil.toml` in the current folder or `~/.config/frazil/config.toml`,
and the folder
`warehouse`. A catalog is a folder, a database URI (`postgresql://…`, `sqlite:///…`;
`FRAZIL_WAREHOUSE` sets the default location of its tables), or the name of a SQL catalog in
PyIceberg's `.pyiceberg.yaml`, whose storage properties are used as well.

```toml
[catalog]
uri = "postgresql://user@host/lake"
warehouse = "s3://bucket/lake"
s3.endpoint = "https://storage.example"
```
"""


def main() -> int:
    """Write the page, or compare it."""
    command_line.load_commands()
    tree = _completion(typer.main.get_command(app))
    written = {PAGE: _page(), LIST: json.dumps(tree, indent=1, ensure_ascii=False) + "\n"}
    for path, text in written.items():
        if "--check" not in sys.argv[1:]:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            print(f"{path} is not up to date; run python tools/cli_reference.py")
            return 1
    return 0


def _completion(command: Any) -> dict[str, Any]:
    """What a shell may offer after a command: see `frazil.cli.completion`."""
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name == "option"]
    tables = 0
    while tables < len(arguments) and (arguments[tables].help or "").startswith(_TABLE):
        tables += 1
    return {
        "help": _first_sentence(command.help),
        "options": {
            flag: {
                "name": each.name,
                "help": _first_sentence(each.help),
                "value": not each.is_flag,
                "choices": _choices(each.default),
            }
            for each in options
            if not each.hidden
            for flag in (*each.opts, *each.secondary_opts)
        },
        "tables": tables,
        "properties": any(each.name == PROPERTIES for each in arguments),
        "commands": {
            name: _completion(child) for name, child in getattr(command, "commands", {}).items()
        },
    }


def _choices(default: Any) -> list[str]:
    return [str(each.value) for each in type(default)] if isinstance(default, Enum) else []


def _first_sentence(text: str | None) -> str:
    return " ".join((text or "").split("\n\n")[0].split()).removesuffix(".")


def _page() -> str:
    parts = [HEAD, _exit_codes()]
    for name, command in sorted(_walk("", typer.main.get_command(app))):
        parts.append(_section(name, command))
    return "\n".join(parts)


def _exit_codes() -> str:
    rows = ["| code | kind | when |", "|---|---|---|", "| 0 | | success |"]
    kinds = sorted(FrazilError.__subclasses__(), key=lambda kind: kind.exit_code)
    for kind in kinds:
        doc = (kind.__doc__ or "").strip().splitlines()[0]
        rows.append(f"| {kind.exit_code} | `{kind.kind}` | {doc} |")
    rows.append("| 130 | | interrupted (Ctrl-C) |")
    return "## Exit codes\n\n" + "\n".join(rows) + "\n\nIncorrect usage also exits with 2.\n"


def _walk(prefix: str, group: Any) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        full = f"{prefix} {name}".strip()
        if hasattr(command, "commands"):
            yield from _walk(full, command)
        else:
            yield full, command


def _section(name: str, command: Any) -> str:
    text, _, example = command.help.partition("Example: ")
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name == "option"]
    shown = " ".join(_argument(each) for each in arguments)
    lines = [f"## frazil {name}", "", " ".join(text.split()), ""]
    lines += ["```sh", f"frazil {name} {shown}".rstrip() + " [OPTIONS]", "```", ""]
    if example:
        lines += [f"Example: {' '.join(example.split())}", ""]
    rows = [(f"`{_argument(each)}`", each.help or "") for each in arguments]
    rows += [
        (", ".join(f"`{flag}`" for flag in (*each.opts, *each.secondary_opts)), _meaning(each))
        for each in options
        if each.name not in ("help", "catalog", "as_json")
    ]
    if rows:
        lines += ["| | |", "|---|---|", *(f"| {left} | {right} |" for left, right in rows), ""]
    return "\n".join(lines)


def _argument(parameter: Any) -> str:
    name = parameter.name.upper() + ("…" if parameter.nargs == -1 else "")
    return str(name if parameter.required else f"[{name}]")


def _meaning(parameter: Any) -> str:
    text = (parameter.help or "").replace("|", "\\|")
    default = parameter.default
    if default in (None, False, (), []) or callable(default) or parameter.is_flag:
        return text
    shown = getattr(default, "value", default)
    return f"{text} Default: `{shown}`."


if __name__ == "__main__":
    sys.exit(main())
