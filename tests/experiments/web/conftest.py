"""A browser and a server for tests marked `web`; other tests here need neither."""

import pytest

from tests.experiments.web.browser import WAIT, find, serving


@pytest.fixture(scope="session")
def chromium():
    playwright = pytest.importorskip("playwright.sync_api")
    path = find()
    if path is None:
        pytest.skip("no Chromium found: tests/experiments/web/install-browser installs one, CHROMIUM names one")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path)
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium):
    """Open an address in a separate browser, like another person. Errors of scripts fail the test."""
    contexts, complaints = [], []

    def open_it(url, width=1280, **options):
        context = chromium.new_context(viewport={"width": width, "height": 860}, **options)
        context.set_default_timeout(WAIT)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda said: complaints.append(said.text) if "Content Security Policy" in said.text else None)
        page.goto(url)
        return page

    yield open_it
    for context in contexts:
        context.close()
    assert not complaints


@pytest.fixture(scope="module")
def server(request, tmp_path_factory):
    """The address of a server, and the links to the tables of the module's `games()` by their names."""
    path = tmp_path_factory.mktemp("server") / "errors.txt"
    games = request.module.games()
    with path.open("w") as log, serving(list(games.values()), log=log) as (address, links):
        yield address, dict(zip(games, links, strict=True))
    assert "Traceback" not in path.read_text()
