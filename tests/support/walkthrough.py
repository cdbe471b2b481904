"""The code that CONTRIBUTING shows."""

import re

from tests.conftest import ROOT


def shown(section: str, begins: str = "") -> str:
    """The one Python block of a section of CONTRIBUTING that begins with a text."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    (found,) = re.findall(rf"^## {section}\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    (block,) = re.findall(rf"```python\n({re.escape(begins)}.*?)```", found, re.S)
    return block
