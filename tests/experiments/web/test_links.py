"""The page to which the maker of a table is sent."""

import pytest

from dice_envs.experiments.web.tables import Tables
from dice_envs.table.sitting import PERSON
from tests.experiments.web.test_tables import liars

start_page = pytest.importorskip("dice_envs.experiments.web.start_page")


@pytest.mark.parametrize(
    ("seats", "kind"),
    [((PERSON, "random"), "seat"), (("random", PERSON), "seat"), ((PERSON, PERSON), "maker"), (("random", "random"), "watch")],
)
def test_the_first_link_leads_to_the_only_seat_to_the_links_or_to_the_game(seats, kind):
    tables = Tables()
    table = tables.add(liars(*seats))
    _, first, secret = start_page.first_link(tables, table).split("/")
    assert first == kind
    assert tables.find(secret, kind).table is table
