"""Commands on pages are commands that exist, with arguments and options that they take."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import pytest
import typer.main

from frazil.cli import command_line
from frazil.cli.command_line import app
from tests.docs.pages import pages


def _commands() -> Iterator[tuple[str, str]]:
    for page in pages():
        if page.path.name == "cli.md":
            continue
        for block in page.blocks:
            if block.language in ("sh", "bash"):
                for number, line in enumerate(block.code.splitlines()):
                    if line.startswith("frazil "):
                        yield f"{page.name}:{block.line + number}", line
        # A command in a sentence may go on in the next line.
        text = "\n".join(line for _, line in page.prose)
        for found in re.finditer(r"`(?:\.venv/bin/)?(frazil\s[^`]+)`", text):
            number = page.prose[text.count("\n", 0, found.start())][0]
            yield f"{page.name}:{number}", " ".join(found[1].split())


@pytest.mark.parametrize(("where", "line"), list(_commands()))
def test_a_command_on_a_page_can_be_called(where: str, line: str) -> None:
    command_line.load_commands()
    command = typer.main.get_command(app)
    words = shlex.split(line, comments=True)[1:]
    while words and hasattr(command, "commands") and words[0] in command.commands:
        command = command.commands[words.pop(0)]
    eager = {name for each in command.params if each.is_eager for name in each.opts}
    if set(words) <= {"--help", *eager}:
        return  # only mentioned, or an option that answers without a command
    assert not hasattr(command, "commands"), f"{where}: no such command"
    command.make_context("frazil", words)
