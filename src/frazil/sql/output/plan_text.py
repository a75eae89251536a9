"""DuckDB's plan of a query as lines that fit a terminal: a step per node, what it works on below.

DuckDB draws boxes as wide as their longest text, and shows what looks deleted rows up as columns.
Here the condition on them is the words "not deleted", and long texts are folded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any, Final

from frazil.rows.duckdb.duckdb_deleted import DELETED, NOT_DELETED
from frazil.text_format import counted

_WIDTH: Final = 64
_IN_WORDS: Final = "not deleted"
_OUTER: Final = ("RESULT_COLLECTOR", "EXPLAIN_ANALYZE")
_ESTIMATE: Final = "Estimated Cardinality"
_REFERENCE: Final = re.compile(r"#(\d+)")
_TEXT_OR_REFERENCE: Final = re.compile(r"'[^']*'|\"[^\"]*\"|#(\d+)")
_CAST: Final = re.compile(r"CAST\((#\d+) AS \w+\)")
_COMPRESSED: Final = re.compile(r"__internal_(?:de)?compress_\w+\(([^(),]+)(?:, [^()]*)?\)")
_SAID_BY_NAME: Final = ("Function", "Total Files Read")


def plan_text(plan: str, names: Mapping[str, str]) -> str:
    """The lines of a plan that EXPLAIN (FORMAT json) gave; `names` are what the user calls the
    names of views in it."""
    for view, name in names.items():
        plan = plan.replace(view, json.dumps(name)[1:-1])
    document = json.loads(plan)
    nodes = document if isinstance(document, list) else document["operator"]
    return "\n".join(line for node in nodes for line in _lines(node, "", ""))


def _lines(node: Mapping[str, Any], first: str, rest: str) -> Iterator[str]:
    name = str(node.get("name") or node.get("type") or "").strip()
    children = node.get("children", [])
    if name in _OUTER:
        for child in children:
            yield from _lines(child, first, rest)
        return
    yield f"{first}{name.replace('_', ' ').capitalize()}{_counts(node)}"
    below = f"{rest}│ " if children else f"{rest}  "
    inputs = _columns(children[0]) if children else ()
    for detail in _details(node.get("extra_info", {}), inputs):
        width = max(_WIDTH - len(below), 24)
        for at, part in enumerate(wrap(detail, width, break_on_hyphens=False)):
            yield f"{below}{'  ' if at else ''}{part}"
    for at, child in enumerate(children, start=1):
        is_last = at == len(children)
        mark, beside = ("└─ ", "   ") if is_last else ("├─ ", "│  ")
        yield from _lines(child, rest + mark, rest + beside)


def _counts(node: Mapping[str, Any]) -> str:
    if "timing" in node:
        rows = counted(int(node.get("intermediate_rows", 0)), "row")
        return f": {rows}, {node['timing'] * 1000:.1f} ms"
    estimate = str(node.get("extra_info", {}).get(_ESTIMATE, ""))
    # DuckDB says 0 where it has no estimate, for LIMIT as an example.
    is_estimated = estimate.isdigit() and int(estimate) > 0
    return f": about {counted(int(estimate), 'row')}" if is_estimated else ""


def _details(info: Mapping[str, Any], inputs: Sequence[str]) -> Iterator[str]:
    for key, value in info.items():
        if key == _ESTIMATE or key in _SAID_BY_NAME or not value:
            continue
        texts = [_named(_without_deleted(text), inputs) for text in _texts(value)]
        texts = [text for text in texts if DELETED not in text]
        unnamed = [_CAST.sub(r"\1", text) for text in texts]
        if not all(map(_REFERENCE.fullmatch, unnamed)):  # numbers alone tell nothing
            yield f"{key.lower()}: " + ", ".join(_named(text, (), "…") for text in unnamed)


def _columns(node: Mapping[str, Any]) -> tuple[str, ...]:
    """What the columns are called that a step gives; none where the plan does not say so. DuckDB
    counts them: `#1` is the second column of the step below."""
    name, info = str(node.get("name", "")).strip(), node.get("extra_info", {})
    children = node.get("children", [])
    below = _columns(children[0]) if children else ()
    by_kind = [_texts(info.get(key)) for key in ("Groups", "Aggregates", "Projections")]
    if name.endswith("GROUP_BY") or name == "UNGROUPED_AGGREGATE":
        texts = [*by_kind[0], *by_kind[1]]
    elif name == "PROJECTION" or not children:
        # A cast of a column alone is DuckDB's own, to a smaller type for the steps above.
        texts = [_CAST.sub(r"\1", text) for text in by_kind[2]]
    elif name.endswith("WINDOW") and below:
        return (*below, *by_kind[2])
    else:
        return below if name == "UNION" else ()
    return tuple(_named(text, below) for text in texts)


def _texts(value: Any) -> list[str]:
    return [_plain(str(text)) for text in (value if isinstance(value, list) else [value]) if text]


def _plain(text: str) -> str:
    """A text without the functions that DuckDB packs values with between its own steps."""
    while (plain := _COMPRESSED.sub(r"\1", text)) != text:
        text = plain
    return text.replace("count_star()", "count(*)")


def _named(text: str, inputs: Sequence[str], other: str | None = None) -> str:
    """A text with the names of columns instead of their numbers; those that `inputs` does not have
    stay, or become `other`."""

    def name(match: re.Match[str]) -> str:
        if match[1] is None:  # a text of the user
            return match[0]
        number = int(match[1])
        return inputs[number] if number < len(inputs) else other or match[0]

    return _TEXT_OR_REFERENCE.sub(name, text)


def _without_deleted(text: str) -> str:
    """A condition in which the one on deleted rows is said in words."""
    return text.replace(f"({NOT_DELETED})", _IN_WORDS).replace(NOT_DELETED, _IN_WORDS)
