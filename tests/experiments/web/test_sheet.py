"""Score sheets of The Shakes in Chromium: each prints on one page."""

import re

import pytest

from dice_envs.core.options import option_texts
from dice_envs.experiments.commands import sheet

pytestmark = pytest.mark.web

TABLES = [
    {},
    {"treatments": "rules", "maesters": ("<b>Ada", "Ł & Co", 'the "x"')},
    {"num_players": 6, "open_efficacies": True},
    {"num_players": 6, "num_patients": 40, "ties": "random"},
    {"num_players": 6, "num_patients": 200},
    {"num_players": 2, "num_patients": 1, "goal": 1},
    {"num_players": 6, "variation": "competitive", "efficacy": 5, "num_patients": 100},
    {"variation": "competitive", "goal": 30},
    {"mode": "physician", "num_players": 5},
    {"mode": "physician", "num_players": 6, "num_patients": 40, "maesters": tuple("abcdef"), "open_efficacies": True},
    {"treatments": tuple(letter * 24 for letter in "WMX"), "maesters": tuple(letter * 24 for letter in "WMX")},
]


@pytest.mark.parametrize("paper", sheet.PAPERS)
def test_all_fits_on_one_page(paper, chromium, tmp_path):
    page = chromium.new_page()
    for options in TABLES:
        sheet.main("shakes", tmp_path / "sheet.html", option_texts(options), paper)
        page.set_content((tmp_path / "sheet.html").read_text(encoding="utf-8"))
        assert len(re.findall(rb"/Type\s*/Page\b", page.pdf(prefer_css_page_size=True))) == 1, options
        assert page.evaluate("document.body.scrollWidth <= document.body.clientWidth"), options
