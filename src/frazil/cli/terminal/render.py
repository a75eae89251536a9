"""Drawings of trees as text, Mermaid and SVG."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from frazil.cli.terminal.drawing import Drawing, Node

_COLOURS = {
    "ADDED": "#1a7f37",
    "MODIFIED": "#9a6700",
    "DELETED": "#cf222e",
    "REPLACED": "#cf222e",
    "EXISTING": "#57606a",
}


def text(drawing: Drawing) -> str:
    """An indented tree with box-drawing lines."""
    lines = [drawing.title]
    if drawing.root:
        lines.append(f"R {drawing.root}")
    lines += _branches(drawing.nodes, drawing.hidden, "")
    return "\n".join(lines)


def _branches(nodes: Sequence[Node], hidden: int, indent: str) -> Iterator[str]:
    for index, node in enumerate(nodes):
        last = index == len(nodes) - 1 and not hidden
        elbow, rail = ("└─ ", "   ") if last else ("├─ ", "│  ")
        yield f"{indent}{elbow}{label(node)}"
        if node.bounds:
            yield f"{indent}{rail}    {' · '.join(node.bounds)}"
        yield from _branches(node.children, node.hidden, indent + rail)
    if hidden:
        yield f"{indent}└─ … {hidden:,} more"


def label(node: Node) -> str:
    """One entry on one line."""
    return f"{node.letter} {node.status:<8} {node.name}  {' · '.join(node.facts)}"


def side_by_side(left: str, right: str) -> str:
    """Two texts beside each other."""
    left_lines, right_lines = left.splitlines(), right.splitlines()
    width = max((len(line) for line in left_lines), default=0)
    height = max(len(left_lines), len(right_lines))
    left_lines += [""] * (height - len(left_lines))
    right_lines += [""] * (height - len(right_lines))
    return "\n".join(
        f"{a:<{width}} │ {b}".rstrip() for a, b in zip(left_lines, right_lines, strict=True)
    )


def mermaid(drawing: Drawing) -> str:
    """A Mermaid flowchart, for Markdown that draws it."""
    lines = ["flowchart LR", f'  root["{_quoted(drawing.title)}<br/>{_quoted(drawing.root)}"]']
    counter = 0

    def add(parent: str, nodes: Sequence[Node], hidden: int) -> None:
        nonlocal counter
        for node in nodes:
            counter += 1
            name = f"n{counter}"
            parts = [f"{node.letter} {node.status}", node.name, " · ".join(node.facts)]
            body = "<br/>".join(_quoted(part) for part in (*parts, *node.bounds) if part)
            lines.append(f'  {parent} --> {name}["{body}"]')
            lines.append(f"  style {name} stroke:{colour(node)}")
            add(name, node.children, node.hidden)
        if hidden:
            counter += 1
            lines.append(f'  {parent} --> n{counter}["… {hidden:,} more"]')

    add("root", drawing.nodes, drawing.hidden)
    return "\n".join(lines)


def _quoted(text: str) -> str:
    return text.replace('"', "#quot;").replace("{", "#123;").replace("}", "#125;")


def colour(node: Node) -> str:
    """The colour of a status."""
    return _COLOURS[node.status.split()[0]]


_LINE, _WIDTH, _INDENT, _PAD = 18, 860, 34, 10


def svg(*drawings: Drawing) -> str:
    """A self-contained picture; several trees stand beside each other."""
    pictures = [_picture(drawing, index * _WIDTH) for index, drawing in enumerate(drawings)]
    width, height = _WIDTH * len(pictures), max(height for _, height in pictures)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" '
        'font-family="ui-monospace, Menlo, monospace" font-size="12">'
        f'<rect width="{width}" height="{height}" fill="#f6f8fa"/>'
        f"{''.join(text for text, _ in pictures)}</svg>"
    )


def _picture(drawing: Drawing, left: int) -> tuple[str, int]:
    """One tree, drawn at an offset from the left, and its height."""
    rows: list[tuple[int, Node | str]] = []
    _flatten(drawing.nodes, drawing.hidden, 1, rows)
    parts = [
        f'<text x="{_PAD}" y="{_LINE}" font-weight="bold">{escape(drawing.title)}</text>',
        f'<text x="{_PAD}" y="{2 * _LINE}" fill="#57606a">R {escape(drawing.root)}</text>',
    ]
    y = 2 * _LINE + 2 * _PAD
    for depth, item in rows:
        lines = _lines_of(item)
        height = len(lines) * _LINE + _PAD
        parts.append(_box(item, lines, depth * _INDENT, y, height))
        y += height + 6
    return f'<g transform="translate({left},0)">{"".join(parts)}</g>', y + _PAD


def _box(item: Node | str, lines: Sequence[str], x: int, y: int, height: int) -> str:
    stroke = colour(item) if isinstance(item, Node) else "#57606a"
    parts = [
        f'<path d="M{x - _INDENT / 2} {y - 6} v{height / 2 + 6} h{_INDENT / 2}" '
        'fill="none" stroke="#d0d7de"/>'
        f'<rect x="{x}" y="{y}" width="{_WIDTH - x - _PAD}" height="{height}" rx="5" '
        f'fill="#ffffff" stroke="{stroke}"/>'
    ]
    for index, line in enumerate(lines):
        weight = ' font-weight="bold"' if index == 0 else ' fill="#57606a"'
        parts.append(
            f'<text x="{x + 8}" y="{y + _LINE * (index + 1) - 2}"{weight}>{escape(line)}</text>'
        )
    return "".join(parts)


def _flatten(
    nodes: Sequence[Node], hidden: int, depth: int, rows: list[tuple[int, Node | str]]
) -> None:
    for node in nodes:
        rows.append((depth, node))
        _flatten(node.children, node.hidden, depth + 1, rows)
    if hidden:
        rows.append((depth, f"… {hidden:,} more"))


def _lines_of(item: Node | str) -> list[str]:
    if isinstance(item, str):
        return [item]
    lines = [f"{item.letter} {item.status}  {item.name}", " · ".join(item.facts)]
    return [*lines, " · ".join(item.bounds)] if item.bounds else lines
