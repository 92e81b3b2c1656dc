"""The Markdown pages of the project, and what stands in their code blocks."""

from __future__ import annotations

import re
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md"), *(REPOSITORY / "benchmarks").rglob("*.md")]
)

_BLOCK = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
_LITERAL = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"\]\(([^)\s]+)\)")


def name_of(page: Path) -> str:
    """The path below the repository."""
    return str(page.relative_to(REPOSITORY))


def blocks(page: Path, language: str) -> list[str]:
    """The code blocks of a language, in order."""
    return [text for _, found, text in _BLOCK.findall(page.read_text()) if found == language]


def commands(page: Path) -> list[str]:
    """The lines of the blocks of a shell, in order; one that goes on is one line."""
    return "\n".join(blocks(page, "sh")).replace("\\\n", " ").splitlines()


def literals(page: Path) -> list[str]:
    """What stands between backticks, outside of code blocks."""
    return _LITERAL.findall(_BLOCK.sub("", page.read_text()))


def links(page: Path) -> list[str]:
    """The targets of links, outside of code blocks."""
    return _LINK.findall(_BLOCK.sub("", page.read_text()))
