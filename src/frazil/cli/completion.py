"""Completion in a shell: commands, options, their values, and names of tables.

A shell asks on every press of a key, and loading all commands takes far longer than a user waits.
Commands and options are therefore read from `completion.json`, which `tools/cli_reference.py`
writes from the commands, properties from their registry, and tables from the SQLite file of the
catalog; nothing else is loaded.
"""

from __future__ import annotations

import json
import shlex
import sqlite3
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from frazil.cli.which_catalog import CatalogSettings, quick_settings
from frazil.errors import FrazilError

VARIABLE: Final = "_FRAZIL_COMPLETE"
LIST: Final = Path(__file__).with_name("completion.json")
PROPERTIES: Final = "properties"
"""The name of arguments and options that are properties as key=value."""
_SHELLS: Final = ("complete_bash", "complete_zsh", "complete_fish")
_TABLES: Final = (
    "SELECT table_namespace, table_name FROM iceberg_tables "
    "WHERE catalog_name = ? AND (iceberg_type IS NULL OR iceberg_type <> 'VIEW4') ORDER BY 1, 2"
)

Offer = tuple[str, str]
"""A word that may come next, and its help."""


def answer(environment: Mapping[str, str]) -> int | None:
    """Print what a shell asks for; None if it does not ask, or in a way that is not known."""
    instruction = environment.get(VARIABLE, "")
    if instruction not in _SHELLS:
        return None
    words, begun = _words(instruction, environment)
    matching = [offer for offer in offers(words, begun) if offer[0].startswith(begun)]
    if (
        instruction == "complete_fish"
        and environment.get("_TYPER_COMPLETE_FISH_ACTION") == "is-args"
    ):
        return 0 if matching else 1
    lines = {"complete_bash": _bash, "complete_zsh": _zsh, "complete_fish": _fish}[instruction](
        matching
    )
    sys.stdout.write(lines + "\n")
    return 0


def _words(asked: str, environment: Mapping[str, str]) -> tuple[list[str], str]:
    """The words before the cursor, without the program's name, and the one that is begun."""
    if asked == "complete_bash":
        words = _split(environment.get("COMP_WORDS", ""))
        at = int(environment.get("COMP_CWORD", "1"))
        return words[1:at], words[at] if at < len(words) else ""
    line = environment.get("_TYPER_COMPLETE_ARGS", "")
    words = _split(line)[1:]
    if words and not line.endswith(" "):
        return words[:-1], words[-1]
    return words, ""


def _split(line: str) -> list[str]:
    """Words as a shell parts them; a quote that is not closed yet ends with the line."""
    for end in ("", "'", '"'):
        try:
            return shlex.split(line + end)
        except ValueError:
            continue
    return line.split()


def offers(words: Sequence[str], begun: str) -> Iterator[Offer]:
    """What may follow these words; options are offered when a hyphen is begun."""
    node: dict[str, Any] = json.loads(LIST.read_text(encoding="utf-8"))
    options: dict[str, str] = {}
    pending: str | None = None
    arguments = 0
    for word in words:
        if pending is not None:
            options[pending], pending = word, None
        elif word.startswith("-"):
            name, equals, value = word.partition("=")
            option = node["options"].get(name)
            if option and option["value"]:
                options[option["name"]] = value
                pending = None if equals else option["name"]
        elif word in node["commands"]:
            node = node["commands"][word]
        else:
            arguments += 1
    if pending is not None:
        if pending == PROPERTIES:
            yield from _settings(begun)
            return
        choices = (
            candidate for candidate in node["options"].values() if candidate["name"] == pending
        )
        yield from ((choice, "") for choice in next(choices)["choices"])
        return
    if begun.startswith("-"):
        yield from ((name, option["help"]) for name, option in node["options"].items())
        return
    yield from ((name, command["help"]) for name, command in node["commands"].items())
    if arguments < node["tables"]:
        yield from ((name, "") for name in _tables(options.get("catalog")))
    elif node["properties"]:
        yield from _settings(begun)


def _settings(begun: str) -> Iterator[Offer]:
    """Properties as key=value; the values of a key that is complete, if they are few."""
    from frazil.properties.registry import OF_TABLES, table_property

    key, equals, _ = begun.partition("=")
    setting = table_property(key) if equals else None
    if setting is not None:
        yield from ((f"{key}={choice}", "") for choice in setting.kind.choices)
        return
    for setting in OF_TABLES.values():
        key = setting.key if setting.is_per_column else f"{setting.key}="
        yield key, setting.text.replace("`", "")


def _tables(catalog: str | None) -> list[str]:
    """Names of tables, if the catalog is a SQLite file on this machine; else none."""
    try:
        settings = quick_settings(catalog)
        path = _database(settings)
        if not path.is_file():
            return []
        source = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, timeout=0.1)
        try:
            rows = source.execute(_TABLES, (settings.name,)).fetchall()
        finally:
            source.close()
    except (FrazilError, OSError, sqlite3.Error):
        return []
    return [f"{namespace}.{name}" for namespace, name in rows]


def _database(settings: CatalogSettings) -> Path:
    scheme, _, path = settings.uri.partition(":///")
    if scheme == "sqlite":
        return Path(path)
    return Path(settings.uri, "catalog.db")


def _bash(matching: Sequence[Offer]) -> str:
    return "\n".join(word for word, _ in matching)


def _zsh(matching: Sequence[Offer]) -> str:
    if not matching:
        return "_files"
    lines = (
        f'"{_zsh_word(word)}"' + (f':"{_zsh_word(text)}"' if text else "")
        for word, text in matching
    )
    return "_arguments '*: :((" + "\n".join(lines) + "))'"


def _zsh_word(text: str) -> str:
    word = text.replace("\\", "").replace('"', "").replace("'", "’")
    return word.replace("$", "\\$").replace("`", "").replace(":", "\\\\:")


def _fish(matching: Sequence[Offer]) -> str:
    return "\n".join(f"{word}\t{text}" if text else word for word, text in matching)
