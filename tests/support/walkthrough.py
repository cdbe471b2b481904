"""What CONTRIBUTING shows to people who add something."""

import re

from tests.conftest import ROOT


def shown(section: str, begins: str = "") -> str:
    """The one block of Python of a section of CONTRIBUTING that begins like this."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    (found,) = re.findall(rf"^## {section}\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    (block,) = re.findall(rf"```python\n({re.escape(begins)}.*?)```", found, re.S)
    return block
