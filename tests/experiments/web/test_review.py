"""Reviews on the page, and a person's record, in a browser."""

import json
import random
import re

import pytest

from dice_envs.table.sitting import PERSON
from tests.experiments.web.browser import WAIT
from tests.experiments.web.test_page import ENABLED, moves_made, new_game, play_on, saved, stands, wait_for

pytestmark = pytest.mark.web


def games():
    solo = {"game": "thirties", "options": {"num_players": 1}, "seats": [PERSON]}
    return {
        "solo": {**solo, "seed": 4},
        "worst": {**solo, "seed": 5},
        "phone": {**solo, "seed": 6},
        "kept": {**solo, "seed": 7},
        "liars": {"game": "liars_dice", "options": {"num_dice": 1}, "seed": 4, "seats": [PERSON, "numbers"]},
        "shakes": {
            "game": "shakes",
            "options": {"num_patients": 3, "goal": 2},
            "seed": 5,
            "seats": [PERSON, "argument", "argument"],
        },
    }


def reviewed(page, seed=1):
    """Play the page's game to its end, and review it."""
    play_on(page, random.Random(seed))
    page.click("[data-name=review]")
    page.wait_for_selector(".advice .total")


def record_of(page, server):
    """Open the record in the same browser, and wait until all games are reviewed."""
    page.goto(f"{server[0]}/record")
    page.wait_for_function("document.querySelector('.progress')?.dataset.done === 'yes'", timeout=WAIT)


def test_a_result_is_divided_and_every_move_is_marked(server, open_page):
    page = open_page(server[1]["solo"])
    reviewed(page)
    assert re.search(r"luck [+−]\S+.*, play [+−]\S+", page.inner_text(".split"))
    assert page.locator(".entries .mark").count() > 0
    for mark in page.locator(".mark").all():
        assert re.search("best|fine|slip|blunder", mark.inner_text())
        assert mark.get_attribute("title")
    graph = page.locator(".advice svg.graph")
    assert graph.get_attribute("role") == "img"
    assert re.match(r"Graph of your expected .* after each move: .* at the start", graph.get_attribute("aria-label"))
    assert graph.locator("path.play").count() > 0
    assert graph.locator("path.luck").count() > 0
    for step in graph.locator(".step title").all():
        assert re.search(r"your play|dice and others", step.text_content())


def test_the_graph_and_the_history_lead_to_positions(server, open_page):
    page = open_page(server[1]["solo"])
    if page.locator(".advice .total").count() == 0:  # another test may have played and reviewed it
        reviewed(page)
    count = moves_made(page)
    page.locator(".graph .step[data-at='1'] rect").last.click()
    page.wait_for_selector(f".steps :text('1 / {count}')")
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
    play_on(page, random.Random(2))
    record_of(page, server)
    assert page.locator(".game").count() == 1, "a game that is taken up again counts once"


@pytest.mark.parametrize("name", ["liars", "shakes"])
def test_other_games_lead_to_their_worst_move(name, server, open_page):
    page = open_page(server[1][name])
    for seed in range(20):
        reviewed(page, seed)
        if page.locator("[data-name=worst]").count():
            break
        new_game(page)
    page.click("[data-name=worst]")
    page.wait_for_selector(".lesson:has-text('You played')")
    page.click("[data-name=play-on]")
    page.wait_for_selector(".moves[data-stands=mine]")
    assert page.locator(ENABLED).count() > 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_review_and_a_record_on_a_phone(scheme, server, open_page):
    page = open_page(server[1]["phone"], width=360, color_scheme=scheme)
    reviewed(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    letters = "[...document.querySelectorAll('.graph text')].map(text => text.getBoundingClientRect().height)"
    assert min(page.evaluate(letters)) > 10, "pixels of letters on a phone"
    page.click("[data-name=worst]")
    page.wait_for_function("document.querySelector('.picture').getBoundingClientRect().top > -1")
    new_game(page)
    play_on(page, random.Random(3))
    record_of(page, server)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_a_record_is_kept_downloaded_cleared_and_loaded(server, open_page, tmp_path):
    page = open_page(server[1]["kept"])
    files = []
    for seed in range(3):
        play_on(page, random.Random(seed))
        files.append(tmp_path / f"{seed}.json")
        files[-1].write_text(json.dumps(saved(page)))
        new_game(page)
    record_of(page, server)
    assert page.locator(".game").count() == 3
    assert "3" in page.inner_text(".tiles")
    assert page.locator(".tiles b:has-text('±')").count() == 2  # what is given away, and the trend
    assert page.locator(".sum svg.graph[role=img] circle.dot").count() == 3
    assert page.locator(".game .figure.luck").count() == page.locator(".game .figure.play").count() == 3
    sums = page.inner_text(".sums")
    with page.expect_download() as download:
        page.click("[data-name=download]")
    (tmp_path / "record.json").write_text(download.value.path().read_text())
    page.click("[data-name=clear]")
    page.click("[data-name=clear-all]")
    page.wait_for_selector(".progress:has-text('No game yet')")
    assert page.evaluate("diceRecord.read().length") == 0
    files.append(tmp_path / "other.json")
    files[-1].write_text("{}")
    page.set_input_files("[data-name=files]", files)
    page.wait_for_selector(".q-notification:has-text('other.json: this is no saved game')")
    page.wait_for_function("document.querySelectorAll('.game .figure.play').length === 3", timeout=WAIT)
    assert page.inner_text(".sums") == sums
    page.set_input_files("[data-name=files]", tmp_path / "record.json")
    page.wait_for_selector(".q-notification:has-text('are here already')")
    page.locator("[data-name=open]").first.click()
    page.wait_for_url("**/seat/*")
    page.wait_for_selector(".steps :text('0 /')")
    assert stands(page) == "over"


def test_another_browser_sees_nothing_of_it(server, open_page):
    page = open_page(f"{server[0]}/record")
    page.wait_for_selector(".progress:has-text('No game yet')")
    assert page.locator(".game").count() == 0


def test_a_kept_game_that_cannot_be_reviewed_says_why(server, open_page):
    page = open_page(f"{server[0]}/record")
    page.evaluate(
        "localStorage.setItem(diceRecord.name, JSON.stringify([{seat: 0, ended: 'then', saved: {game: '<b>chess'}}]))"
    )
    record_of(page, server)
    assert page.inner_text(".game").startswith("<b>chess\nformat must be 1, not None")
