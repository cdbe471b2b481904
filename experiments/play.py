"""A person, or several, against agents in the terminal."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import typer
from rich.text import Text

from agents.nash import Nash
from dice_envs import Agent, Uniform, Variant
from dice_envs.agent import ask, fresh_memory
from dice_envs.batch import Batch
from dice_envs.dice import new_streams
from dice_envs.game import OVER, check_range, shown
from dice_envs.render import ansi
from experiments.discovery import cast
from experiments.options import game_options
from experiments.output import console, print_mode

__all__ = ["choose", "hint", "play_game"]

MOST_LISTED = 12  # legal actions that are listed one by one
MOST_HINTS = 6  # actions of which a hint says what they are worth


def _plain(words: str) -> str:
    """Words without case, blanks and signs: "3 x 5", "3x5" and "3 5" are the same."""
    return " ".join(re.findall(r"[a-wyz]+|\d+", words.lower()))


def choose(variant: Variant, legal: Sequence[int], words: str) -> int | None:
    """The legal action that a person means: its words, the first letters of them, or `#` and its number."""
    said = words.strip()
    if re.fullmatch(r"#\s*\d{1,9}", said):
        number = int(said.lstrip("# "))
        return number if number in legal else None
    wanted = _plain(said)
    if not wanted:
        return None
    meanings = {action: _plain(variant.describe_action(action)) for action in legal}
    exact = [action for action, meaning in meanings.items() if meaning == wanted]
    starts = [action for action, meaning in meanings.items() if meaning.startswith(wanted)]
    found = exact or starts
    return found[0] if len(found) == 1 else None


def _has_hints(variant: Variant) -> bool:
    try:
        Nash().check_variant(variant)
    except ValueError:
        return False
    return variant.game.name == "liars_dice"


def hint(variant: Variant, state: Any) -> str:
    """What each legal action of the seat to move wins against optimal play, the best first, in lines.

    Raises:
        ValueError: optimal play of the variant is not known, or it is too large to be solved.
    """
    values = Nash().action_values(variant, state)
    legal = np.flatnonzero(~np.isnan(values.wins))
    best = legal[np.argsort(-values.wins[legal], kind="stable")][:MOST_HINTS]
    lines = [
        f"  {variant.describe_action(int(action)):>8}  wins {100 * values.wins[action]:5.1f} %, "
        f"optimal play does it {100 * values.mix[action]:5.1f} % of the time"
        for action in best
    ]
    if not values.reached:
        lines.append("  (optimal play would not have bid this way, so nothing is known of its dice)")
    return "\n".join(["against optimal play:", *lines])


def _ask_person(variant: Variant, legal: list[int], state: Any) -> int:
    listed = [variant.describe_action(action) for action in legal]
    if len(listed) > MOST_LISTED:
        half = MOST_LISTED // 2
        listed = [*listed[:half], "…", *listed[-half:]]
    while True:
        typer.echo(f"you can play: {', '.join(listed)}   ({'? gives a hint, ' if _has_hints(variant) else ''}q quits)")
        words = typer.prompt("your move", prompt_suffix="> ")
        if words.strip().lower() in ("q", "quit", "exit"):
            raise KeyboardInterrupt
        if words.strip() == "?" and _has_hints(variant):
            typer.echo(hint(variant, state))
            continue
        action = choose(variant, legal, words)
        if action is not None:
            return action
        typer.echo(f"{shown(words)} is not one of them; type as much of one as tells it from the others")


def play_game(
    game: str, opponents: Sequence[str], options: Sequence[str], seat: int | None, people: int, seed: int
) -> np.ndarray:
    """Play one game at the terminal.

    In a game of one seat the person plays alone; the opponents then play the same deal, and whoever earns most wins.

    Args:
        game: its name.
        opponents: specs in seat order after the first person; one alone takes every seat that is left, and if there is
            none they play at random.
        options: game options, KEY=VALUE.
        seat: the first person's seat; None: chosen at random. The others sit next to it.
        people: how many people play here.
        seed: fixes the dice and the opponents.

    Returns:
        Each seat's return, (seats,) float64.
    """
    variant, agents, policy = cast(game, game_options(options), opponents)
    seats = variant.facts.num_seats
    check_range("people", people, 1, seats)
    if seat is not None:
        check_range("seat", seat, 0, seats - 1)
    rng = np.random.default_rng(seed)
    first = int(rng.integers(seats)) if seat is None else seat
    persons = [(first + i) % seats for i in range(people)]
    others = [(first + people + i) % seats for i in range(seats - people)]
    alone = seats == 1
    if opponents and not alone and len(opponents) not in (min(1, len(others)), len(others)):
        allowed = {0: "no opponent, since people take all seats", 1: "1 opponent"}
        some = allowed.get(len(others), f"1 opponent, or {len(others)}, one for each other seat")
        raise ValueError(f"name {some}; not {len(opponents)}")
    console.print(Text.assemble((variant.game.title, "bold"), f", seed {seed}"))
    print_mode(variant, policy)
    if alone:
        returns = _play(variant, seed, persons, {})
        _play_after(variant, seed, opponents, agents, returns[0])
        return returns
    if len(opponents) < len(others):
        opponents, agents = [*(opponents or ["random"])] * len(others), [*(agents or [Uniform()])] * len(others)
    for place, spec in zip(others, opponents):
        console.print(f"player {place}: {spec}")
    if people == 1:
        console.print(f"player {first}: you")
    returns = _play(variant, seed, persons, dict(zip(others, agents)))
    if people == 1:
        _tell_winner(returns, first)
    return returns


def _play_after(variant: Variant, seed: int, specs: Sequence[str], agents: Sequence[Agent], earned: float) -> None:
    """Let agents play the deal that a person has played alone."""
    totals = [earned]
    for spec, agent in zip(specs, agents, strict=True):
        typer.echo(f"\n{spec} plays the same deal")
        totals += _play(variant, seed, [], {0: agent}).tolist()
        typer.echo(f"{spec}: {totals[-1]:+g}")
    if len(totals) > 1:
        _tell_winner(np.array(totals), 0)


def _tell_winner(returns: np.ndarray, person: int) -> None:
    best = returns == returns.max()
    typer.echo("a tie" if best.all() else "you win" if best[person] else "you lose")


def _play(variant: Variant, seed: int, persons: Sequence[int], players: Mapping[int, Agent]) -> np.ndarray:
    """One game, in which people sit at the seats `persons` and agents at those of `players`. Returns (seats,) float64."""
    seats, people = variant.facts.num_seats, len(persons)
    batch = Batch(variant, 1, seed=seed)
    streams = new_streams(seed + 1, 1)
    memories = {place: fresh_memory(player, 1) for place, player in players.items()}
    index = np.arange(1)
    returns = np.zeros(seats)
    looking = None
    while True:
        mover = int(batch.seats[0])
        if mover == OVER:
            break
        legal = [int(action) for action in np.flatnonzero(batch.legal()[0])]
        if mover in players:
            action = int(ask(players[mover], variant, batch.states, index, streams, memories[mover])[0])
        else:
            if len(persons) > 1 and looking != mover and seats > 1:
                typer.prompt(f"player {mover}, press Enter when nobody else is looking", default="", show_default=False)
                console.clear()
            looking = mover
            typer.echo(ansi(variant.picture(batch.states[0], mover)))
            action = _ask_person(variant, legal, batch.states[0])
        # What a seat commits unseen stays unseen until all have committed.
        secret = variant.facts.simultaneous and bool(persons) and mover != persons[-1]
        who = "you" if [mover] == persons else f"player {mover}"
        words = variant.describe_action(action)
        typer.echo(f"{who}: {'(has chosen)' if secret else words}")
        before = variant.picture(batch.states[0]).notes
        batch.play(np.array([action]))
        returns += batch.rewards[0]
        for note in variant.picture(batch.states[0], persons[0] if persons else None).notes:
            if note not in before and not note.endswith(words):  # what was just said need not be said again
                typer.echo(f"  {note}")
    typer.echo(ansi(variant.picture(batch.states[0])))  # with all that was hidden
    for place in persons:
        who = "you" if people == 1 else f"player {place}"
        typer.echo(f"{who}: {returns[place]:+g}")
    return returns
