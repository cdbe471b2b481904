"""Pictures of the page for the documentation: `python -m tests.experiments.web.screenshots docs/_static`.

The top of a page in a file, such as a report: `chromium --headless --screenshot=report.png --window-size=1280,1000 index.html`.
"""

import io
import random
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from dice_envs.table.sitting import PERSON
from tests.experiments.web.browser import WAIT, ask_hint, find, play_on, serving

GAMES = {
    "perudo": (
        "liars_dice",
        {"rules": "perudo", "num_players": 4},
        21,
        [PERSON, "reader", "numbers:bluff=0.25,threshold=0.3", "numbers:bluff=0"],
    ),
    "liars_dice": ("liars_dice", {"num_dice": 2}, 5, [PERSON, "nash"]),
    "fatestones": ("fatestones", {}, 8, [PERSON, "strongest"]),
}
SETTLED = 700  # milliseconds until nothing moves any more
COLOURS = 128
MOVING = 900, 562  # size of the moving picture, width and height in pixels
SHOWN = 2500  # milliseconds, each frame of it


def picture(page, full_page=True):
    """What the page shows once nothing moves any more."""
    page.wait_for_timeout(SETTLED)
    return Image.open(io.BytesIO(page.screenshot(full_page=full_page))).convert("RGB")


def save(page, path):
    """Save a PNG with few colours."""
    picture(page).quantize(COLOURS).save(path, optimize=True)
    print(f"{path}: {path.stat().st_size / 1000:.0f} kB")


def save_moving(frames, path):
    """Save pictures of the page, one after another, as a GIF that begins again at its end."""
    first, *others = (frame.resize(MOVING, Image.Resampling.LANCZOS).quantize(COLOURS // 2) for frame in frames)
    first.save(path, save_all=True, append_images=others, duration=SHOWN, loop=0, optimize=True)
    print(f"{path}: {path.stat().st_size / 1000:.0f} kB")


def play(page, moves):
    play_on(page, random.Random(1), moves, among=4)


def hint(page):
    page.wait_for_timeout(5 * SETTLED)  # a click is lost if the page changes in that moment
    ask_hint(page)


def documentation(browser, folder, links):
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.set_default_timeout(WAIT)
    page.goto(links["fatestones"])
    play(page, 0)
    hint(page)
    save(page, folder / "page_fatestones.png")
    page.goto(links["liars_dice"])
    play(page, 0)
    hint(page)
    save(page, folder / "page_liars_dice.png")
    frames = [picture(page, False)]  # a hint is what whoever does not wait sees
    play(page, 1)
    frames.append(picture(page, False))
    play(page, 100)
    frames.append(picture(page, False))
    page.click("[data-name=review]")
    page.wait_for_selector(".total")
    frames.append(picture(page, False))
    page.click("[data-name=worst]")
    page.wait_for_selector(".lesson")
    save(page, folder / "page_review.png")
    save_moving([*frames, picture(page, False)], folder / "page.gif")
    phone = browser.new_page(viewport={"width": 390, "height": 800}, color_scheme="dark", device_scale_factor=2)
    phone.set_default_timeout(WAIT)
    phone.goto(links["perudo"])
    play(phone, 1)
    phone.wait_for_timeout(5 * SETTLED)
    phone.click("[data-name=hint]")
    phone.wait_for_selector("[data-name=choices]")
    save(phone, folder / "page_phone.png")


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    with serving(list(GAMES.values()), pause=0.3) as (_, links), sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=find())
        documentation(browser, folder, dict(zip(GAMES, links, strict=True)))
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
