"""Writes docs/reference/properties.md from the registry of properties.

`--check` fails when the page is old.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from frazil.properties.property import Property
from frazil.properties.registry import OF_CATALOGS, SECTIONS

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "properties.md"

HEAD = """# Properties

<!-- Written by `python tools/property_reference.py` from `frazil.properties.registry`. -->

Every property that Frazil reads, with its default. Names are Iceberg's where Iceberg has the
setting. Set them with `table.set_properties({…})`, `create_table(…, properties={…})` or
`frazil set`. Invalid values are rejected with an error that names the property.
"""

NOTES = {
    "Statistics": "A column with an identity partition always has full bounds; a sort column has\n"
    "bounds unless you override it.",
    "Metadata JSON": "The catalog holds the metadata; the JSON files are copies for other tools\n"
    "and for recovery.",
}

CATALOG = """## Catalog

Arguments of `frazil.connect`, options with a dot of the Spark source, or keys under `[catalog]` in
`frazil.toml`.
"""

TAIL = """| `s3.*`, `gcs.*`, `adls.*`, `hdfs.*`, … | | storage, by PyIceberg's names |

The property `location` of a namespace is the default location of its tables.

| setting of a Spark session | default | meaning |
|---|---|---|
| `spark.frazil.catalog` | | catalog for tables given by name; `frazil.spark.register` sets it |

## Written by Frazil

These are not settings; do not change them.

"""


def rendered() -> str:
    """The page."""
    parts = [HEAD]
    for title, settings in SECTIONS.items():
        parts.append(f"## {title}\n")
        parts.append(_table("table property", settings))
        if title in NOTES:
            parts.append(NOTES[title] + "\n")
    written = PAGE.read_text(encoding="utf-8").partition(TAIL)[2]
    catalog = _table("catalog property", OF_CATALOGS)
    return "\n".join([*parts, CATALOG, catalog]).rstrip("\n") + "\n" + TAIL + written


def _table(heading: str, settings: Iterable[Property[Any]]) -> str:
    rows = [
        f"| `{setting.shown_key}` | {setting.shown_default} | {setting.text} |".replace(
            "|  |", "| |"
        )
        for setting in settings
    ]
    return "\n".join([f"| {heading} | default | meaning |", "|---|---|---|", *rows]) + "\n"


def main() -> int:
    """Write the page, or compare it."""
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(rendered(), encoding="utf-8")
        return 0
    if PAGE.read_text(encoding="utf-8") == rendered():
        return 0
    print(f"{PAGE} is not up to date; run python tools/property_reference.py")
    return 1


if __name__ == "__main__":
    sys.exit(main())
