"""Reviews on the page, in a browser."""

import random
import re

import pytest

from dice_envs.table.sitting import PERSON
from tests.experiments.web.browser import moves_made, play_on, wait_for

pytestmark = pytest.mark.web


def games():
    seeds = {"solo": 4, "worst": 5, "light": 6, "dark": 6}
    alone = {name: ("thirties", {"num_players": 1}, seed, [PERSON]) for name, seed in seeds.items()}
    return alone | {"two": ("liars_dice", {"num_dice": 1}, 7, [PERSON, "random"])}


def reviewed(page, seed=1):
    """Play the page's game to its end, and review it."""
    play_on(page, random.Random(seed))
    page.click("[data-name=review]")
    page.wait_for_selector(".advice .total")


def test_a_result_is_divided_every_move_is_marked_and_the_graph_leads_to_positions(server, open_page):
    page = open_page(server[1]["solo"])
    reviewed(page)
    assert re.search(r"luck [+−]\S+.*, play [+−]\S+", page.inner_text(".split"))
    assert page.locator(".entries .mark").count() > 0
    for mark in page.locator(".mark").all():
        assert re.search("best|fine|slip|blunder", mark.inner_text())
        assert mark.get_attribute("title")
    graph = page.locator(".advice .graph")
    assert graph.get_attribute("role") == "img"
    assert re.match(r"Graph of your expected .* after each move: .* at the start", graph.get_attribute("aria-label"))
    page.wait_for_selector(".graph svg text")
    count = moves_made(page)
    box = graph.bounding_box()
    view = {"x": 40 + (box["width"] - 54) * 0.5 / count, "y": box["height"] / 2}
    graph.hover(position=view)
    page.wait_for_selector(".graph :text-matches('your play|dice and others')")
    graph.click(position=view)
    page.wait_for_selector(f".steps :text('1 / {count}')")
    page.click("[data-name=everything]")
    page.wait_for_selector("[data-name=everything]:has-text('as you saw it')")
    page.locator(".entries .seen").first.click()
    page.wait_for_selector(f".steps :text('{count} / {count}')")


def test_the_worst_move_is_shown_and_played_again(server, open_page):
    page = open_page(server[1]["worst"])
    reviewed(page)
    count = moves_made(page)
    page.click("[data-name=worst]")
    page.wait_for_selector(".lesson")
    number = int(page.locator(".lesson").get_attribute("data-move"))
    page.wait_for_selector(f".steps :text('{number - 1} / {count}')")
    said = page.inner_text(".lesson")
    assert re.search(r"You played .+, worth .+\.", said)
    assert re.search(r"Better was .+, worth .+\.", said)
    page.click("[data-name=play-on]")
    wait_for(page, "mine")
    assert moves_made(page) == number - 1
    assert page.locator(".advice .total").count() == 0


def test_each_seats_review_is_a_button_away(server, open_page):
    page = open_page(server[1]["two"])
    reviewed(page)
    for shown, other in ((1, 0), (0, 1)):
        page.click(f"[data-name=of-{shown}]")
        page.wait_for_selector(f"[data-name=of-{shown}][aria-pressed=true]")
        assert page.get_attribute(f"[data-name=of-{other}]", "aria-pressed") == "false"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_review_on_a_phone(scheme, server, open_page):
    page = open_page(server[1][scheme], width=360, color_scheme=scheme)
    reviewed(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    letters = "[...document.querySelectorAll('.graph text')].map(text => text.getBoundingClientRect().height)"
    assert min(page.evaluate(letters)) > 10, "pixels of letters on a phone"
    page.click("[data-name=worst]")
    page.wait_for_function("document.querySelector('.picture').getBoundingClientRect().top > -1")
