"""The code that docs/extend shows."""

import re

from tests.conftest import ROOT

PAGES = ROOT / "docs" / "extend"


def shown(page: str, begins: str = "") -> str:
    """Return the one Python block of a page of docs/extend that begins with a text."""
    text = (PAGES / f"{page}.md").read_text()
    (block,) = re.findall(rf"```python\n({re.escape(begins)}.*?)```", text, re.S)
    return block
