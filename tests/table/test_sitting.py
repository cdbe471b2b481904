"""A game at a table: undo, saving and loading, and what each seat may know, for every game."""

import functools
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dice_envs import AgentError, configure
from dice_envs.agent import Promises, Uniform
from dice_envs.core.game import OVER, names
from dice_envs.envs.aec import raw_env
from dice_envs.envs.text import TextEnv
from dice_envs.experiments.ui import seed_or_fresh
from dice_envs.table.sitting import CHOSEN, PERSON, Sitting
from tests.support import variants
from tests.support.sittings import finish

SMALL = {
    **variants.SMALL,
    "liars_dice": {"num_players": 3, "num_dice": 2},
    "score_dice": {"pool_a": (6, 6, 6), "pool_b": (6, 6, 6, 4), "ties": "reroll"},
}


def sit(game, seed=1, seats=None, **options):
    variant = configure(game, **{**SMALL.get(game, {}), **options})
    count = variant.facts.num_seats
    return Sitting(variant, seed, seats or [PERSON, *["random"] * (count - 1)])


def wander(sitting, choices, moves=None):
    """Play on: the person takes the legal action chosen by the next number."""
    for k, number in enumerate(choices):
        if sitting.over or k == moves:
            return
        if sitting.mover in sitting.people:
            legal = sitting.legal()
            sitting.play(legal[number % len(legal)])
        else:
            sitting.step()


def told(sitting, viewer=None):
    """Everything that a sitting shows."""
    shown = [sitting.picture(viewer, k) for k in range(len(sitting) + 1)]
    return shown, sitting.history(viewer), sitting.returns.tolist(), sitting.mover, sitting.legal()


numbers = st.lists(st.integers(0, 99), max_size=30)


@pytest.mark.parametrize("game", names())
@settings(max_examples=15)
@given(seed=st.integers(0, 2**40), choices=numbers, data=st.data())
def test_undo_and_the_same_moves_again(game, seed, choices, data):
    sitting = sit(game, seed)
    wander(sitting, choices)
    before = told(sitting)
    actions = [entry.action for entry in sitting.history()]
    own = [k for k, entry in enumerate(sitting.history()) if entry.seat in sitting.people]
    for _ in range(data.draw(st.integers(0, len(own)))):
        back_to = max(k for k in own if k < len(sitting))
        sitting.undo()
        assert (len(sitting), sitting.mover) == (back_to, 0)
        assert sitting.history() == before[1][:back_to]
    for action in actions[len(sitting) :]:
        if sitting.mover in sitting.people:
            sitting.play(action)
        else:
            assert sitting.step() == action, "an agent draws the same numbers again"
    assert told(sitting) == before


@pytest.mark.parametrize("game", names())
@settings(max_examples=15)
@given(seed=st.integers(0, 2**64), choices=numbers, more=numbers)
def test_a_saved_game_goes_on_as_if_it_had_not_been(game, seed, choices, more):
    sitting = sit(game, seed)
    wander(sitting, choices)
    as_a_browser_reads = {"parse_int": lambda digits: int(float(digits))}
    loaded = Sitting.load(json.loads(json.dumps(sitting.save()), **as_a_browser_reads))
    assert loaded.variant.options == sitting.variant.options
    assert loaded.seats == sitting.seats
    assert told(loaded) == told(sitting)
    for each in (sitting, loaded):
        wander(each, more)
    assert told(loaded) == told(sitting)
    assert loaded.save() == sitting.save()


@pytest.mark.parametrize("game", ["fatestones", "score_dice"])
def test_a_choice_is_unseen_until_all_have_chosen(game):
    pair = [sit(game, 5, [PERSON, PERSON], **({"ties": "none"} if game == "score_dice" else {})) for _ in range(2)]
    for sitting, action in zip(pair, (0, 2)):
        sitting.play(action)
    assert told(pair[0], 1) == told(pair[1], 1)
    for viewer in (0, None):
        assert pair[0].picture(viewer) != pair[1].picture(viewer), "the choice is marked for who may see it"
    (entry,) = pair[0].history(1)
    assert (entry.seat, entry.action, entry.words) == (0, None, CHOSEN)
    assert [sitting.history(0)[0].action for sitting in pair] == [0, 2]
    assert [sitting.history()[0].action for sitting in pair] == [0, 2]
    for sitting in pair:
        sitting.play(1)
    assert [sitting.history(1)[0].action for sitting in pair] == [0, 2]
    for sitting in pair:
        sitting.undo(1)
        assert sitting.history(1)[0].action is None, "unseen again"
        sitting.undo(0)
        assert (sitting.mover, len(sitting)) == (0, 0)


def test_after_a_tie_the_next_choice_is_unseen_and_the_last_is_known():
    sitting = Sitting(configure("fatestones", dice=(333333,) * 6), 1, [PERSON, PERSON])
    for action in (0, 1, 1):
        sitting.play(action)
    assert [entry.action for entry in sitting.history(1)] == [0, 1, None]
    assert [entry.action for entry in sitting.history(0)] == [0, 1, 1]


# --- agents -----------------------------------------------------------------------------------------------------------


class Counting:
    """Counts its moves, and plays by the count."""

    promises = Promises(remembers=np.dtype([("turns", np.int64)]))

    def act(self, turn):
        turn.memory["turns"] += 1
        choices = turn.legal.sum(axis=1)
        nth = (turn.memory["turns"] + turn.rng.integers(100, size=len(turn))) % choices
        return np.array([np.flatnonzero(mask)[k] for mask, k in zip(turn.legal, nth)])


def make_counting(variant, spec):
    return {"counting": Counting(), "random": Uniform()}[spec]


def test_memories_go_back_with_an_undo_and_come_with_a_file():
    variant = configure("liars_dice", num_dice=3)
    sitting = Sitting(variant, 3, [PERSON, "counting"], make_counting)
    rng = np.random.default_rng(1)
    wander(sitting, rng.integers(100, size=12))
    assert sum(entry.seat == 1 for entry in sitting.history()) > 3
    saved, before = sitting.save(), told(sitting)
    loaded = Sitting.load(saved, make_counting)
    more = rng.integers(100, size=12).tolist()
    for _ in range(3):
        sitting.undo()
    for entry in before[1][len(sitting) :]:
        assert (sitting.step() if entry.seat == 1 else sitting.play(entry.action) or entry.action) == entry.action
    for each in (sitting, loaded):
        wander(each, more)
    assert told(sitting) == told(loaded)
    fresh = Sitting(variant, 3, [PERSON, "counting"], make_counting)
    assert fresh.save()["actions"] == []


def test_what_an_agent_should_have_played_is_checked_where_it_remembers():
    sitting = Sitting(configure("liars_dice"), 3, ["counting", "counting"], make_counting)
    wander(sitting, range(6))
    saved = sitting.save()
    saved["actions"][0] += 1
    with pytest.raises(ValueError, match="actions: move 1: counting plays action"):
        Sitting.load(saved, make_counting)


def test_an_agent_that_answers_wrongly_changes_nothing():
    class Wrong:
        def act(self, turn):
            return np.full(len(turn), 999)

    sitting = Sitting(configure("thirties"), 1, [Wrong(), PERSON])
    assert sitting.seats == ("Wrong", PERSON)
    before = told(sitting)
    with pytest.raises(AgentError, match="Wrong in thirties"):
        sitting.step()
    assert told(sitting) == before
    with pytest.raises(ValueError, match="seats: an agent that is not named by a spec cannot be saved"):
        sitting.save()


# --- what is refused --------------------------------------------------------------------------------------------------


def test_what_is_not_the_movers_to_do_is_refused_and_changes_nothing():
    sitting = sit("thirties")
    before = told(sitting)
    unplayable = {6: "does not exist", -1: "does not exist", 2**70: "64 bits", 1.0: "whole number", "1": "whole number"}
    for refused, words in [
        *((functools.partial(sitting.play, action), words) for action, words in unplayable.items()),
        (lambda: sitting.play(True), "whole number"),
        (sitting.step, "player 0 is to move, played by a person"),
        (sitting.undo, "nothing to undo"),
        (lambda: sitting.cut(1), "moves must be a whole number from 0 to 0, not 1"),
        (lambda: sitting.undo(1), "seat must be that of a person, 0, not 1"),
        (lambda: sitting.position(1), "moves must be a whole number from 0 to 0, not 1"),
        (lambda: sitting.picture(2), "viewer must be a whole number from 0 to 1, not 2"),
    ]:
        with pytest.raises(ValueError, match=words):
            refused()
    assert told(sitting) == before
    sitting.play(0)
    with pytest.raises(ValueError, match="player 1 is to move, played by random, not by a person"):
        sitting.play(0)
    finish(sitting)
    assert sitting.mover == OVER
    assert sitting.legal() == []
    for wrong in (sitting.step, lambda: sitting.play(0)):
        with pytest.raises(ValueError, match="the game is over"):
            wrong()


@pytest.mark.parametrize(
    ("seed", "seats", "words"),
    [
        (None, [PERSON, PERSON], "seed must be"),
        (1, [PERSON], "each of the 2 seats of thirties"),
        (1, "person", "each of the 2 seats"),
        (1, [PERSON, "wizard"], "unknown agent 'wizard'"),
        (1, [PERSON, "nash"], "nash plays fatestones and liars_dice and score_dice only"),
    ],
)
def test_a_table_that_cannot_be(seed, seats, words):
    with pytest.raises(ValueError, match=words):
        Sitting(configure("thirties"), seed, seats)


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        *(("format", wrong, f"format must be 1, not {wrong}") for wrong in (2, True)),
        ("game", "chess", "game: unknown game 'chess'"),
        ("game", None, "game must be a name, not None"),
        ("options", {"num_dices": 1}, "options: thirties has no option 'num_dices'"),
        ("options", {"rounds": 0}, "options: rounds must be"),
        ("options", [1], "options must be an object"),
        *(("seed", wrong, "seed must be") for wrong in (None, "1")),
        ("seats", ["person"], "seats: seats must name who sits"),
        ("seats", ["person", "wizard"], "seats: unknown agent"),
        ("seats", ["person", 1], "seats must be a list of specs"),
        ("seats", ["person", "random\x1b[2J"], "seats must be a list of specs in printable characters"),
        ("actions", [0, 99], "actions: move 2: action 99 does not exist"),
        ("actions", [0, 1, 2**70], "actions: move 3: the action must be a whole number of 64 bits"),
        ("actions", [0] * 99, "actions: move 3: the game is over"),
        *(("actions", wrong, "actions must be a list of whole numbers") for wrong in ([0, 0.5], None)),
        ("actions", [1], "digest: the moves do not lead to where the game was saved"),
        ("seed", 2, "digest: the moves do not lead"),
        ("digest", 1, "digest must be text"),
        ("more", 1, "'more' is no field of a saved game"),
    ],
)
def test_a_wrong_field_of_a_saved_game_is_named(field, value, words):
    sitting = sit("thirties")
    sitting.play(0)
    saved = {**sitting.save(), field: value}
    with pytest.raises(ValueError, match=words) as caught:
        Sitting.load(saved)
    assert len(str(caught.value).splitlines()) == 1


def test_a_missing_field_is_named():
    saved = sit("thirties").save()
    for field in saved:
        with pytest.raises(ValueError, match=field):
            Sitting.load({name: value for name, value in saved.items() if name != field})


def test_files(tmp_path):
    sitting = sit("shakes")
    wander(sitting, range(7))
    path = tmp_path / "game.json"
    sitting.save_to(path)
    assert told(Sitting.load_from(path)) == told(sitting)
    for content, words in ((b"{", "is no saved game"), (b"\xff\xfe\x00", "is no saved game"), (b"[1]", "is an object"),
                           (b"[" * 10**6, "is no saved game"), (b" " * 2**25, "is no saved game")):  # fmt: skip
        path.write_bytes(content)
        with pytest.raises(ValueError, match=f"game.json.*{words}"):
            Sitting.load_from(path)
    with pytest.raises(OSError, match=r"none\.json"):
        Sitting.load_from(tmp_path / "none.json")


def of_the_assistant():
    pytest.importorskip("mcp")
    from dice_envs.experiments.assistant import Games

    games = Games()
    games.new_game("thirties")
    return games._games[1].table.sitting.seed


def of_words():
    env = TextEnv("thirties")
    env.reset()
    return env.table.sitting.seed


def of_pettingzoo():
    env = raw_env("thirties")
    env.reset()
    return int(env._states["rng"][0])


@pytest.mark.parametrize("drawn", [lambda: seed_or_fresh(None), of_the_assistant, of_words, of_pettingzoo])
def test_nobody_at_the_table_finds_a_fresh_seed_by_trying(drawn):
    assert max(drawn() for _ in range(20)) >= 2**60, "64 bits; this fails by chance once in 16**20 runs"
