"""The pages of the documentation, and what is in them: blocks of code, links, headings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"

_FENCE = re.compile(r"^(?P<indent> *)(?P<fence>```+|~~~+)(?P<info>[^\n`]*)$")
_HEADING = re.compile(r"^#{1,6} +(?P<text>.+?) *$")
_LINK = re.compile(r"!?\[[^\]]*\]\((?P<target>[^)\s]+)(?: \"[^\"]*\")?\)")
_SOURCE = re.compile(r"(?:src|href)=\"(?P<target>[^\"]+)\"")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Code of a page; `line` is the first line of the code, from 1."""

    language: str
    words: tuple[str, ...]
    line: int
    code: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One Markdown file, cut into blocks of code and the text around them."""

    path: Path
    blocks: tuple[Block, ...]
    prose: tuple[tuple[int, str], ...]

    @staticmethod
    def read(path: Path) -> Page:
        """The page at a path."""
        blocks: list[Block] = []
        prose: list[tuple[int, str]] = []
        opened: tuple[str, str, int, int] | None = None
        code: list[str] = []
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            fence = _FENCE.match(line)
            if opened is None and fence is None:
                prose.append((number, line))
            elif opened is None and fence is not None:
                opened = (fence["fence"], fence["info"], len(fence["indent"]), number)
                code = []
            elif opened is not None and line.strip() == opened[0]:
                language, *words = opened[1].split() or [""]
                blocks.append(
                    Block(
                        language=language,
                        words=tuple(words),
                        line=opened[3] + 1,
                        code="\n".join(code),
                    )
                )
                opened = None
            elif opened is not None:
                code.append(line[opened[2] :])
        return Page(path=path, blocks=tuple(blocks), prose=tuple(prose))

    @property
    def name(self) -> str:
        """The path from the top of the repository."""
        return str(self.path.relative_to(ROOT))

    def snippets(self) -> list[Block]:
        """Python that a reader can run, in order."""
        return [b for b in self.blocks if b.language == "python" and "no-run" not in b.words]

    def links(self) -> Iterator[tuple[int, str]]:
        """Targets of links and pictures, with their lines."""
        for number, line in self.prose:
            shown = re.sub(r"`[^`]*`", "", line)
            for pattern in (_LINK, _SOURCE):
                for found in pattern.finditer(shown):
                    yield number, found["target"]

    def anchors(self) -> set[str]:
        """The names that headings can be linked by."""
        found = (_HEADING.match(line) for _, line in self.prose)
        return {slug(heading["text"]) for heading in found if heading}


def slug(heading: str) -> str:
    """A heading as an anchor, by the rule that MkDocs and GitHub share for plain headings."""
    kept = re.sub(r"[^\w\s-]", "", heading.replace("`", "").lower()).strip()
    return re.sub(r"[\s]+", "-", kept)


def pages() -> list[Page]:
    """Every page for readers: those at the top of the repository and all below docs."""
    files = [*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *(ROOT / "examples").glob("*.md")]
    return [Page.read(path) for path in sorted(files)]
