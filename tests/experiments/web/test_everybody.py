"""Whether everybody can use the page: by keys, on a phone, with a screen reader, in a first game."""

import random
import re

import pytest

from dice_envs import names
from dice_envs.table.sitting import PERSON
from tests.experiments.web.browser import ENABLED, ask_hint, click_move, moves_made, new_game, play_on, stands, wait_for

pytestmark = pytest.mark.web


def games():
    liars = {"num_dice": 2, "starter": "first"}
    return {
        **{name: ("liars_dice", liars, seed, [PERSON, "numbers"]) for seed, name in enumerate(("picked", "keys", "bids"))},
        "refused": ("liars_dice", {"num_dice": 3, "starter": "first"}, 1, ["numbers", PERSON]),
        "audited": ("thirties", {"num_players": 1}, 3, [PERSON]),
        "shared": ("liars_dice", {"num_dice": 1, "starter": "first"}, 3, [PERSON, PERSON]),
    }


def fresh(page):
    """Begin a new game until the person is to move."""
    wait_for(page, "mine", "over")
    while stands(page) != "mine" or moves_made(page) > 0:
        new_game(page)


def test_a_bid_that_is_not_possible_says_why_by_key_and_by_pointer(server, open_page):
    page = open_page(server[1]["refused"])
    wait_for(page, "mine")
    refused = page.locator("[data-name^=face-][aria-disabled=true]").first
    why = refused.get_attribute("title")
    assert re.fullmatch(r"\d x (\d) does not raise \d x \d: .* bid on \1 .*", why)
    page.keyboard.press(refused.get_attribute("data-key"))
    page.wait_for_selector(f".q-notification[role=alert]:has-text('{why}')")
    assert (stands(page), moves_made(page)) == ("mine", 1)


@pytest.mark.parametrize("width", [1280, 360])
def test_a_bid_is_a_number_of_dice_and_a_face(width, server, open_page):
    page = open_page(server[1]["picked"], width=width)
    fresh(page)
    assert page.locator(".moves .grid").is_visible() == (width > 600)
    assert page.locator("[data-name=fewer]").is_disabled()
    page.click("[data-name=more]")
    page.wait_for_selector(".quantity:has-text('2 ×')")
    for face in page.locator("[data-name^=face-]").all():
        box = face.bounding_box()
        assert min(box["width"], box["height"]) >= 40, "pixels of what a thumb hits"
    page.click("[data-name=face-5]")
    page.wait_for_selector(".entries:has-text('you: 2 x 5')")
    if width < 600 and stands(page) != "over":
        fresh(page)
        page.click("[data-name=all-bids]")
        page.wait_for_selector(".moves .grid")


def test_the_picker_begins_with_the_bid_that_a_hint_likes(server, open_page):
    page = open_page(server[1]["picked"])
    fresh(page)
    ask_hint(page)
    shares = {}
    for row in page.locator(".hint tbody tr").all_inner_texts():
        words, _, share = row.split("\t")
        shares[words] = int(share.split()[0])
    liked = max(shares, key=shares.get)
    assert page.inner_text(".quantity") == f"{liked.split()[0]} ×"
    assert page.locator(".faces .often").count() > 0


def test_keys_press_buttons_unless_one_types_or_they_are_off(server, open_page):
    page = open_page(server[1]["keys"])
    fresh(page)
    page.keyboard.press("+")
    page.wait_for_selector(".quantity:has-text('2 ×')")
    page.keyboard.press("-")
    page.wait_for_selector(".quantity:has-text('1 ×')")
    page.keyboard.press("h")
    page.wait_for_selector("[data-name=choices]")
    page.keyboard.press("o")
    page.wait_for_selector(".advice h2:has-text('odds')")
    page.keyboard.press("Control+3")
    page.keyboard.press("3")
    page.wait_for_selector(".entries:has-text('x 3')")
    wait_for(page, "mine", "over")
    if stands(page) == "mine":
        page.keyboard.press("u")
        page.wait_for_selector(".moves[data-moves='0']")
    page.click(".rules summary:has-text('Keys')")
    page.uncheck("[data-name=keys]")
    before = moves_made(page)
    page.keyboard.press("3")
    page.keyboard.press("n")
    page.wait_for_timeout(500)
    assert moves_made(page) == before
    page.reload()
    wait_for(page, "mine", "over")
    page.click(".rules summary:has-text('Keys')")
    page.wait_for_selector("[data-name=keys]:not(:checked)")  # kept by the browser, which loads it after the page
    page.check("[data-name=keys]")
    page.locator(".rules summary").first.focus()
    page.keyboard.press("n")
    page.wait_for_selector(".moves[data-moves='0']")


def test_no_two_buttons_have_the_same_key(server, open_page):
    page = open_page(server[1]["keys"])
    fresh(page)
    while stands(page) != "over":
        keys = page.locator("[data-key]").evaluate_all("all => all.filter(one => one.offsetParent).map(one => one.dataset.key)")
        assert len(keys) == len(set(keys)) > 3
        click_move(page, page.locator(ENABLED).first)


@pytest.mark.parametrize(
    "game",
    [pytest.param(name, marks=() if name in ("liars_dice", "perudo") else pytest.mark.slow) for name in ("perudo", *names())],
)
def test_a_first_game_is_explained_to_its_end(game, server, open_page):
    page = open_page(f"{server[0]}/?game={game}")
    page.click("[data-name=learn]")
    page.wait_for_url("**/seat/*")
    wait_for(page, "mine")
    assert "Press Hint" in page.inner_text(".guide")
    assert ("a faded one" in page.inner_text(".guide").lower()) == (page.locator(".picker").count() > 0), "of bids only"
    page.click("[data-name=hint]")
    page.wait_for_selector(".guide h2:has-text('2 of 5: What a hint says')")
    play_on(page, random.Random(2))
    page.wait_for_selector(".guide h2:has-text('4 of 5: The end')")
    page.click("[data-name=review]")
    page.wait_for_selector(".guide h2:has-text('5 of 5: What a review says')")
    said = page.inner_text(".guide")
    for word, shown in (("luck", ".split"), ("graph", ".graph"), ("worst move", "[data-name=worst]"), ("★", ".entries .mark")):
        assert (word in said) == (page.locator(shown).count() > 0), "what this review has"
    page.click("[data-name=close-guide]")
    page.wait_for_selector(".guide", state="hidden")


def test_the_guide_stays_in_sight_on_a_phone(server, open_page):
    page = open_page(f"{server[0]}/?game=perudo", width=390)
    page.click("[data-name=learn]")
    page.wait_for_url("**/seat/*")
    wait_for(page, "mine")
    page.click("[data-name=odds]")
    page.wait_for_selector(".hint td")
    page.locator(".entries, .hint").last.scroll_into_view_if_needed()
    box = page.locator(".guide").bounding_box()
    assert 0 <= box["y"] < 860 - 100, "beside what it talks about"
    assert page.locator(".loading").is_hidden()


def violations(page):
    """What axe finds: rules of WCAG 2.2 and its best practices."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page.wait_for_timeout(500)
    found = axe.run(page).response["violations"]
    return [(each["id"], [node["html"][:200] for node in each["nodes"]][:3]) for each in found]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(scheme, server, open_page):
    address, links = server
    page = open_page(f"{address}/?game=liars_dice", color_scheme=scheme)
    page.wait_for_selector(".who-0")
    assert violations(page) == []
    page.goto(links["shared"])
    page.wait_for_selector("main .card:visible")
    assert violations(page) == []
    page.goto(links["bids"])
    fresh(page)
    assert violations(page) == []
    ask_hint(page)
    assert violations(page) == []
    page.goto(links["audited"])
    wait_for(page, "mine", "over")
    play_on(page, random.Random(1))
    if page.locator(".advice .total").count() == 0:
        page.click("[data-name=review]")
        page.wait_for_selector(".advice .total")
    assert violations(page) == []
    page.click("[data-name=worst]")
    page.wait_for_selector(".lesson")
    assert violations(page) == []


def test_links_are_copied(server, open_page):
    page = open_page(server[1]["shared"], permissions=["clipboard-read", "clipboard-write"])
    links = page.locator(".seat-link").all_inner_texts()
    for link, copy in zip(links, page.locator("button:has-text('Copy')").all(), strict=True):
        copy.click()
        page.wait_for_function("async link => await navigator.clipboard.readText() === link", arg=link)
