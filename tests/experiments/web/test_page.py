"""The page in a browser: whole games by clicks, and all other controls."""

import contextlib
import json
import random
import re
import signal

import pytest

from dice_envs import configure, names
from dice_envs.table.sitting import PERSON, Sitting
from tests.experiments.web.browser import (
    ENABLED,
    WAIT,
    ask_hint,
    moves_made,
    new_game,
    play_on,
    serving,
    stands,
    started,
    wait_for,
)
from tests.support.variants import ALL_OF_PERUDO, SMALL

pytestmark = pytest.mark.web

AGENTS = {"fatestones": "best_response", "liars_dice": "numbers", "score_dice": "highest", "shakes": "argument"}


def games():
    others = {name: [AGENTS.get(name, "random")] * (configure(name).facts.num_seats - 1) for name in names()}
    return {
        **{name: (name, SMALL.get(name, {}), 5, [PERSON, *others[name]]) for name in names()},
        "said": ("score_dice", {"pool_a": [6] * 3, "pool_b": [6] * 3}, 5, [PERSON, "highest"]),
        "tabs": ("thirties", {"rounds": 2}, 4, [PERSON, "random"]),
        "hinted": ("liars_dice", {"num_dice": 1, "rules": "openspiel"}, 4, [PERSON, "random"]),
        "watched": ("liars_dice", {"num_dice": 2}, 3, ["numbers", "random"]),
        "shared": ("liars_dice", {"num_dice": 1, "starter": "first"}, 3, [PERSON, PERSON]),
    }


def saved(page):
    late = pytest.importorskip("playwright.sync_api").TimeoutError
    for _ in range(3):  # a click is lost if the page changes under it
        with contextlib.suppress(late), page.expect_download(timeout=WAIT / 4) as download:
            page.click("[data-name=save]")
            return json.loads(download.value.path().read_text())
    pytest.fail("nothing is saved")


@pytest.mark.parametrize(
    "game", [pytest.param(name, marks=() if name in ("liars_dice", "fatestones") else pytest.mark.slow) for name in names()]
)
def test_a_whole_game_by_clicks(game, server, open_page):
    page = open_page(server[1][game])
    play_on(page, random.Random(1))
    sitting = Sitting.load(saved(page))
    assert sitting.over
    assert len(sitting) == moves_made(page)
    assert f"The seed was {sitting.seed}" in page.inner_text(".moves")
    assert page.locator(".entries li").count() == len(sitting)
    page.click("[data-name=again]")
    page.wait_for_function("document.querySelector('.moves').dataset.stands != 'over'")


PROGRAMS = re.compile(r"[a-z]_[a-z]|[Pp]layer \d|seat \d|\w=|`|nash|gymnasium|numbers:")
ICONS = re.compile(r"\w*arrow_\w+")


def test_what_others_did_is_said_and_dice_are_buttons(server, open_page):
    page = open_page(server[1]["said"])
    wait_for(page, "mine")
    assert page.locator(ENABLED).first.get_attribute("aria-label").startswith("die 1")
    assert page.locator(f"{ENABLED} svg.die").count() == page.locator(ENABLED).count() == 3
    said = page.locator("[role=status][aria-live=polite].said")
    said.evaluate("element => { element.kept = true }")
    page.locator(ENABLED).first.click()
    page.wait_for_selector(".said:has-text('B: die')")
    assert said.evaluate("element => element.kept"), "built once, so that a screen reader notices a change"


def choose(page, seat, player):
    """Choose who sits in a seat. The list is made anew, and closes, once it is known who plays the variant fast enough."""
    from playwright.sync_api import Error

    for _ in range(WAIT // 5000):
        page.click(f".who-{seat}")
        with contextlib.suppress(Error):
            page.click(f".q-item:has-text('{player}')", timeout=5000)
            return
    raise AssertionError(f"{player} cannot be chosen")


def test_a_table_from_the_form(server, open_page):
    address, _ = server
    page = open_page(f"{address}/?game=liars_dice")
    page.fill(".option-num_dice input", "9")
    page.wait_for_selector("[role=alert]:has-text('dice each must be a whole number from 1 to 6, not 9')")
    page.fill(".option-num_dice input", "1")
    page.wait_for_selector(".rules li:has-text('1 die each')")
    page.fill(".option-num_players input", "9")
    page.click("[data-name=play-now]")
    page.wait_for_selector("[role=alert]:has-text('players must be a whole number from 2 to 6, not 9')")
    assert page.input_value(".option-num_players input") == "9", "refused, and not changed to six"
    page.fill(".option-num_players input", "2")
    choose(page, 1, "another player")
    page.fill(".how-1 input", "nash:precision=1e-6")
    page.click("[data-name=play-now]")
    page.wait_for_selector("[role=alert]:has-text('precision must be at least 0.001 where people wait')")
    choose(page, 1, "optimal player")
    page.wait_for_selector(":text('against an optimal player')")
    page.click(".more .q-item")
    page.fill(".seed input", "11")
    page.click("[data-name=play-now]")
    page.wait_for_url("**/seat/*")
    play_on(page, random.Random(2))
    game = saved(page)
    assert game["options"]["num_dice"] == 1
    assert game["seed"] == 11
    assert "nash" in game["seats"]


def test_play_now_begins_a_game_at_once(server, open_page):
    """Perudo: values that follow from its rules are no choice, and who cannot play it is not offered."""
    page = open_page(f"{server[0]}/?game=perudo")
    page.wait_for_selector(":text('against a mind reader, a bluffer and a careful player')")
    page.click(".more .q-item")
    for option, value in ALL_OF_PERUDO.items():
        value = "yes" if value is True else value
        page.wait_for_selector(f".option-{option}.q-field--disabled:has-text('{value}'):has-text('follows from the rules')")
    assert page.locator(".option-num_players.q-field--disabled").count() == 0
    page.wait_for_timeout(1000)  # who plays is found in a thread
    page.click(".who-1")
    page.wait_for_selector(".q-item:has-text('mind reader')")
    assert page.locator(".q-item:has-text('optimal')").count() == 0
    page.keyboard.press("Escape")
    page.click("[data-name=play-now]")
    page.wait_for_url("**/seat/*")
    wait_for(page, "mine", "theirs")
    assert page.inner_text("h1") == "Perudo"
    assert "(mind reader)" in page.inner_text(".card:has(.entries)")


def test_hints_stand_in_a_table_and_on_buttons(server, open_page):
    page = open_page(server[1]["hinted"])
    wait_for(page, "mine")
    ask_hint(page)
    legal = page.locator(ENABLED).count()
    assert page.locator(".hint tbody tr").count() == legal
    table = {row.split("\t")[0]: row.split("\t")[2] for row in page.locator(".hint tbody tr").all_inner_texts()}
    often = page.locator(".moves button[data-name^=action] .often").all_inner_texts()
    assert sorted(often) == sorted(share for share in map(str.strip, table.values()) if share != "0 %"), "also on the buttons"
    labels = [button.get_attribute("aria-label") for button in page.locator(ENABLED).all()]
    assert {label.split(",")[0] for label in labels} == set(table)
    assert sum("optimal play does it" in label for label in labels) == len(often) > 0
    page.click("[data-name=odds]")
    page.wait_for_selector(".advice h2:has-text('odds')")


def test_a_hint_says_what_it_waits_for_and_can_be_stopped(tmp_path, monkeypatch, open_page):
    monkeypatch.setenv("DICE_ENVS_CACHE", str(tmp_path))  # nothing is solved yet
    options = {"num_dice": 4, "num_faces": 4, "starter": "first"}
    with serving([("liars_dice", options, 4, [PERSON, "numbers"])]) as (_, (link,)):
        page = open_page(link)
        wait_for(page, "mine")
        page.click("[data-name=hint]")
        page.wait_for_selector(".advice:has-text('Working out')")
        page.wait_for_selector(".advice:has-text('of 13 rounds')")
        page.click("[data-name=stop]")
        page.wait_for_selector("[data-name=hint]:enabled")
        page.wait_for_selector(".advice", state="hidden")
        ask_hint(page)  # even while the solver is about to stop
        shares = page.locator(".hint .share").all_inner_texts()
        assert sum(float(share.split()[0]) for share in shares) == pytest.approx(100, abs=3)


def test_two_tabs_of_a_seat_stay_in_step(server, open_page):
    one = open_page(server[1]["tabs"])
    two = open_page(server[1]["tabs"], width=390)
    for page in (one, two):
        wait_for(page, "mine")
    before = moves_made(one)
    two.locator(ENABLED).first.click()
    for page in (one, two):
        page.wait_for_function(f"Number(document.querySelector('.moves').dataset.moves) > {before}")
        wait_for(page, "mine")
    shown = one.locator(".picture .wide-only svg").inner_html()
    assert two.locator(".picture .wide-only svg").inner_html() == shown
    for page, wide in ((one, True), (two, False)):
        assert page.locator(".picture .wide-only").is_visible() == wide
        assert page.locator(".picture .narrow-only").is_visible() != wide
    smallest = "[...document.querySelectorAll('.narrow-only text')].map(text => text.getBoundingClientRect().height)"
    assert min(two.evaluate(smallest)) > 10, "pixels of letters on a phone"
    one.reload()
    wait_for(one, "mine")
    assert one.locator(".picture .wide-only svg").inner_html() == shown
    one.click("[data-name=undo]")
    two.wait_for_function(f"Number(document.querySelector('.moves').dataset.moves) <= {before}")


def test_agents_are_watched_and_stepped_through(server, open_page):
    page = open_page(server[1]["watched"])
    wait_for(page, "over")
    count = moves_made(page)
    assert count > 1
    last = page.locator(".picture .wide-only svg").inner_html()
    for number in reversed(range(count)):
        page.click("[data-name=back]")
        page.wait_for_selector(f".steps :text('{number} / {count}')")
    assert page.locator(".picture .wide-only svg").inner_html() != last
    page.click("[data-name=next]")
    page.wait_for_selector(f".steps :text('1 / {count}')")
    page.locator(".position [tabindex='0']").press("ArrowRight")
    page.wait_for_selector(f".steps :text('2 / {count}')")
    page.keyboard.press("ArrowLeft")  # the slider still has the focus
    page.wait_for_selector(f".steps :text('1 / {count}')")
    page.keyboard.press("ArrowLeft")
    page.wait_for_selector(f".steps :text('0 / {count}')")
    page.locator(".entries .seen").first.click()
    page.wait_for_selector(f".steps :text('{count} / {count}')")
    assert page.locator(".picture .wide-only svg").inner_html() == last


def test_a_saved_game_is_loaded(server, open_page, tmp_path):
    address, links = server
    page = open_page(links["watched"])
    wait_for(page, "over")
    game = saved(page)
    file = tmp_path / "game.json"
    file.write_text(json.dumps({**game, "digest": "0" * 16}))
    page = open_page(f"{address}/")
    page.set_input_files("input[type=file]", file)
    page.wait_for_selector("[role=alert]:has-text('digest')")
    file.write_text(json.dumps(game))
    page.reload()
    with page.expect_file_chooser() as chooser:
        page.click("[data-name=load]")
    chooser.value.set_files(file)
    page.wait_for_url("**/watch/*")
    moves = len(game["actions"])
    page.wait_for_selector(f".steps :text('{moves} / {moves}')")
    page.click("[data-name=back]")
    page.wait_for_selector(f".steps :text('{moves - 1} / {moves}')")


def test_people_share_a_device(server, open_page):
    page = open_page(server[1]["shared"])
    assert "These links work on this computer only" in page.inner_text("main")
    page.click("a.together")
    for mover in ("Ada", "Ben"):
        wait_for(page, "covered")
        assert page.locator(".picture .wide-only svg").count() == 0
        assert mover in page.inner_text(".moves")
        page.click("[data-name=uncover]")
        wait_for(page, "mine")
        rows = page.locator(".picture .wide-only svg desc").text_content()
        assert rows.count("1 hidden die") == 1  # the other's only die
        page.locator(ENABLED).last.click()
    page.wait_for_function("document.querySelector('.moves').dataset.stands != 'mine'")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_no_wider_than_a_phone_and_in_words_for_players(scheme, server, open_page):
    address, links = server
    pages = [f"{address}/?game={name}" for name in ("perudo", *names())] + [
        links[name] for name in (*names(), "shared", "watched")
    ]
    page = open_page(pages[0], width=360, color_scheme=scheme)
    for url in pages:
        page.goto(url)
        page.wait_for_selector("main .card:visible")
        if url != links["shared"]:
            page.locator(".more .q-item, details.rules summary").first.click()
            page.wait_for_selector(".seed:visible, details[open]")
            assert PROGRAMS.findall(ICONS.sub("", page.inner_text("main") + page.inner_text("header"))) == [], url
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, url
        assert page.title().endswith("dice-envs")


def test_a_keyboard_is_enough(server, open_page):
    page = open_page(server[1]["thirties"])
    wait_for(page, "mine", "over")
    if stands(page) == "over":  # another test has played this game
        new_game(page)
    before = moves_made(page)
    page.keyboard.press("Tab")
    for _ in range(40):
        if page.evaluate("document.activeElement.matches('.moves button')"):
            break
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_function(f"Number(document.querySelector('.moves').dataset.moves) > {before}")


STUCK = """
import threading

class Stuck:
    def act(self, turn):
        print("asked", flush=True)
        threading.Event().wait()
"""


def test_ctrl_c_ends_a_server_whose_agent_thinks(open_page, tmp_path):
    (tmp_path / "stuck.py").write_text(STUCK)
    game = ("fatestones", {}, 1, ["random", f"{tmp_path / 'stuck.py'}:Stuck"])
    with (tmp_path / "log").open("w+") as log, started([game], pause=0.0, log=log) as (server, lines):
        open_page(lines[0].split()[-1])  # agents play only while somebody looks
        assert server.stdout.readline() == "asked\n"
        server.send_signal(signal.SIGINT)
        assert server.wait(60) in (-signal.SIGINT, 130, 1)
        log.seek(0)
        assert "pending" not in log.read()
