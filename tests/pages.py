"""The pages that users read, README and docs, block by block."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]

_BLOCK = re.compile(
    r"^(?:<!-- (?P<mark>[^\n]*) -->\n)?```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True)
class Block:
    """A fenced block; ``mark`` is the comment right above it: ``slow: 4 minutes`` or ``not run: needs MT-Bench``."""

    page: str
    line: int
    language: str
    text: str
    mark: str

    @property
    def name(self) -> str:
        return f"{self.page}:{self.line}"

    def commands(self) -> list[tuple[str, str]]:
        """Each command of a console block with its output."""
        parts = re.split(r"^\$ ", self.text, flags=re.MULTILINE)[1:]
        return [(command, output) for command, _, output in (part.partition("\n") for part in parts)]


def blocks(language: str = "") -> list[Block]:
    """All blocks of all pages, in order, or those in one language."""
    results = []
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        for match in _BLOCK.finditer(text):
            line = text.count("\n", 0, match.start("text"))
            page = str(path.relative_to(ROOT))
            results.append(Block(page, line, match["language"], match["text"], match["mark"] or ""))
    return [block for block in results if not language or block.language == language]


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")
