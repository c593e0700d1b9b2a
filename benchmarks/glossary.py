"""Write the table of measures into the glossary of the docs: `python benchmarks/glossary.py`."""

from __future__ import annotations

import re
from pathlib import Path

from distract.report.glossary import list_measures

PAGE = Path(__file__).parents[1] / "docs" / "reading-results.md"

rows = "\n".join("| " + " | ".join(one.replace("|", r"\|") for one in row) + " |" for row in list_measures().items())
text = PAGE.read_text(encoding="utf-8")
block = f"<!-- measures -->\n| word | meaning |\n|---|---|\n{rows}\n<!-- end -->"
PAGE.write_text(re.sub(r"<!-- measures -->.*?<!-- end -->", lambda _: block, text, flags=re.DOTALL), encoding="utf-8")
