"""What a shell offers when the tab key is pressed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from frazil.cli.completion import answer
from tests.cli.conftest import Run

Offered = Callable[[str], list[str]]


@pytest.fixture
def offered(shop: Run, capsys: pytest.CaptureFixture[str]) -> Offered:
    """The words that bash is offered for a line."""

    def asked(line: str) -> list[str]:
        words = line.split(" ")
        capsys.readouterr()
        code = answer(
            {
                "_FRAZIL_COMPLETE": "complete_bash",
                "COMP_WORDS": line,
                "COMP_CWORD": str(len(words) - 1),
            }
        )
        assert code == 0
        return capsys.readouterr().out.split()

    return asked


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("frazil sc", ["schema", "scan"]),
        ("frazil -c warehouse sc", ["schema", "scan"]),
        ("frazil maintain exp", ["expire-snapshots"]),
        ("frazil scan sh", ["shop.orders"]),
        ("frazil scan --limit 5 sh", ["shop.orders"]),
        ("frazil scan shop.orders sh", []),
        ("frazil -c nowhere scan sh", []),
        ("frazil scan shop.orders --li", ["--limit"]),
        ("frazil scan shop.orders --format ", ["table", "csv", "jsonl", "markdown", "arrow"]),
        ("frazil scan 'unclosed", []),
        (
            "frazil set shop.orders write.root.max-d",
            ["write.root.max-data-entries=", "write.root.max-delete-entries="],
        ),
        (
            "frazil set shop.orders write.wap.enabled=",
            ["write.wap.enabled=true", "write.wap.enabled=false"],
        ),
        ("frazil create shop.new --set gc", ["gc.enabled="]),
    ],
)
def test_a_line_is_completed(offered: Offered, line: str, words: list[str]) -> None:
    assert offered(line) == words


def test_every_shell_is_answered_in_its_own_way(
    shop: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    def asked(shell: str, line: str, **more: str) -> tuple[int | None, str]:
        capsys.readouterr()
        environment = {"_FRAZIL_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_ARGS": line}
        return answer({**environment, **more}), capsys.readouterr().out

    assert asked("zsh", "frazil scan sh") == (0, "_arguments '*: :((\"shop.orders\"))'\n")
    assert asked("zsh", "frazil append shop.orders mon") == (0, "_files\n")
    listed = {"_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    code, out = asked("fish", "frazil reg", **listed)
    assert (code, out.split("\t")[0]) == (0, "register")
    asks = {"_TYPER_COMPLETE_FISH_ACTION": "is-args"}
    assert asked("fish", "frazil reg", **asks) == (0, "")
    assert asked("fish", "frazil append shop.orders mon", **asks) == (1, "")
    assert asked("powershell", "frazil reg") == (None, "")
