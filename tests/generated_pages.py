"""Documentation pages with generated sections: ``<!-- name -->`` ... ``<!-- /name -->``."""

from __future__ import annotations

import os
import re
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"


def check_section(page: str, name: str, wanted: str) -> None:
    """Fails if the section of docs/``page`` is out of date.

    GROUPSTORM_REWRITE=1 writes the section anew; look at the difference before it is committed.
    """
    path = DOCS / page
    pattern = re.compile(rf"(<!-- {name} -->\n)(.*?)(<!-- /{name} -->)", re.DOTALL)
    before = path.read_text("utf-8")
    assert pattern.search(before), f"docs/{page} has no section {name}"
    after = pattern.sub(lambda match: match[1] + wanted + "\n" + match[3], before)
    if os.environ.get("GROUPSTORM_REWRITE"):
        path.write_text(after, "utf-8")
    assert before == after, f"docs/{page} is out of date: run this test with GROUPSTORM_REWRITE=1"
