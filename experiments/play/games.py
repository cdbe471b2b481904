"""Games at the terminal: seats people and agents, opens saved games, plays them or steps through them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import typer
from rich.text import Text

from dice_envs import Variant
from dice_envs.agent import Agent
from dice_envs.agent.casting import cast
from dice_envs.agents import NOT_FOUND
from dice_envs.core.game import load
from dice_envs.core.options import check_range
from dice_envs.experiments.play.terminal import Terminal
from dice_envs.experiments.ui.console import console, print_mode
from dice_envs.experiments.ui.options import game_options
from dice_envs.pictures.render import ansi
from dice_envs.table.sitting import PERSON, Sitting


class Seated(NamedTuple):
    """A game that is set up, with its players.

    Attributes:
        sitting: the game.
        policy: the trained policy that set the options, as `cast` names it.
        made: spec → agent.
    """

    sitting: Sitting
    policy: str
    made: dict[str, Agent]


def set_up(
    game: str,
    opponents: Sequence[str],
    options: Sequence[str],
    seat: int | None,
    people: int,
    seed: int,
    watch: bool = False,
) -> Seated:
    """Seat people and agents at a game.

    Args:
        game: its name.
        opponents: specs in seat order after the last person. One takes all remaining seats; none means random play. In a
            game of one seat they are only made, not seated.
        options: game options, KEY=VALUE.
        seat: the first person's seat; None: chosen at random. Other people sit next to it.
        people: number of people who play here.
        seed: fixes the dice and the opponents.
        watch: nobody plays; agents take all seats, from `seat` or seat 0 on.

    Raises:
        ValueError: unknown names, or the wrong number of people or agents for the seats.
    """
    variant, agents, policy = cast(game, game_options(options), opponents)
    seats = variant.facts.num_seats
    if not watch:
        check_range("people", people, 1, seats)
    if seat is not None:
        check_range("seat", seat, 0, seats - 1)
    people = 0 if watch else people
    rng = np.random.default_rng(seed)
    first = (0 if watch else int(rng.integers(seats))) if seat is None else seat
    persons = [(first + i) % seats for i in range(people)]
    others = [(first + people + i) % seats for i in range(seats - people)]
    alone = seats == 1 and not watch
    if opponents and not alone and len(opponents) not in (min(1, len(others)), len(others)):
        what = "agent" if watch else "opponent"
        allowed = {0: "no opponent, since people take all seats", 1: f"1 {what}"}
        some = allowed.get(len(others), f"1 {what}, or {len(others)}, one for each {'seat' if watch else 'other seat'}")
        raise ValueError(f"name {some}; not {len(opponents)}")
    made = dict(zip(opponents, agents, strict=True))
    specs = list(opponents) if len(opponents) == len(others) else [*(opponents or ["random"])][:1] * len(others)
    seated = {**dict.fromkeys(persons, PERSON), **dict(zip(others, specs, strict=False))}
    sitting = _sit(variant, seed, [seated[place] for place in range(seats)], made)
    return Seated(sitting, policy, made)


def play_game(seated: Seated, replay: bool = False, reviewed: bool = False) -> None:
    """Play a game at the terminal, a new or a saved one; step through it if it is over, has no people, or `replay` is set.

    In a game of one seat the person plays alone. The opponents then play the same deal, and the highest return wins.

    Args:
        seated: the game.
        replay: whether to step through a game that is not over.
        reviewed: whether to show at the end the cost of each move.
    """
    sitting = seated.sitting
    people, alone = sitting.people, len(sitting.seats) == 1
    console.print(_title(sitting) + (f", after {len(sitting)} moves" if len(sitting) else ""))
    print_mode(sitting.variant, seated.policy)
    if not (people and alone):
        _introduce(sitting)
    terminal = Terminal(sitting)
    if (replay or sitting.over or not people) and not terminal.look():
        if reviewed and sitting.over:
            terminal.show_review()
        return
    goes_on = True
    while goes_on:  # and again after each undo
        terminal.play_on()
        terminal.show_end()
        if len(people) == 1 and not alone:
            _tell_winner(sitting.returns, people[0])
        if reviewed:
            terminal.show_review()
        goes_on = terminal.after()
    if alone:
        _play_after(sitting.variant, sitting.seed, seated.made, float(sitting.returns[0]))


def open_game(path: Path, game: str | None, start: int | None = None, opponents: Sequence[str] = ()) -> Sitting:
    """Return a saved game.

    Args:
        path: its file.
        game: the name of the game that it must be; None: any.
        start: the number of a move: it and all after it are taken back.
        opponents: agents instead of those that the file names, in seat order; one takes all seats.

    Raises:
        ValueError: the file is not a saved game, or is one of another game; an agent that the file names could do harm; or
            `start` is not the number of one of its moves.
        OSError: the file cannot be read.
    """
    try:
        sitting = Sitting.load_from(path, agents=opponents)
    except ValueError as problem:
        if not str(problem).endswith(NOT_FOUND):
            raise
        raise ValueError(f"{problem}. Name who plays instead: play GAME AGENT --load {path}") from None
    if game is not None and load(game).name != sitting.variant.game.name:
        raise ValueError(f"{path} holds a game of {sitting.variant.game.name}, not {game}")
    if start is not None:
        if not 1 <= start <= len(sitting):
            raise ValueError(f"--from must be the number of a move, 1 to {len(sitting)} in {path}, not {start}")
        sitting.cut(start - 1)
    return sitting


def _sit(variant: Variant, seed: int, seats: Sequence[str], made: dict[str, Agent]) -> Sitting:
    """Return a sitting with agents that were made before; `random` is made here where needed."""
    if all(who in made or who == PERSON for who in seats):
        return Sitting(variant, seed, seats, lambda variant, spec: made[spec])
    return Sitting(variant, seed, seats)


def _title(sitting: Sitting) -> Text:
    """The game, and its seed unless that would tell people about each other's dice."""
    secret = len(sitting.people) > 1 and not sitting.over
    return Text.assemble((sitting.variant.game.title, "bold"), "" if secret else f", seed {sitting.seed}")


def _introduce(sitting: Sitting) -> None:
    for place, who in enumerate(sitting.seats):
        if who != PERSON:
            console.print(Text(f"{sitting.variant.seat_name(place)}: {who}"))
        elif len(sitting.people) == 1:
            console.print(Text(f"{sitting.variant.seat_name(place)}: you"))


def _play_after(variant: Variant, seed: int, made: dict[str, Agent], earned: float) -> None:
    """Let the agents play the deal that a person has played alone, and say who wins."""
    totals = [earned]
    for spec in made:
        typer.echo(f"\n{spec} plays the same deal")
        terminal = Terminal(_sit(variant, seed, [spec], made))
        terminal.play_on()
        typer.echo(ansi(terminal.sitting.picture()))
        totals += terminal.sitting.returns.tolist()
        typer.echo(f"{spec}: {totals[-1]:+g}")
    if len(totals) > 1:
        _tell_winner(np.array(totals), 0)


def _tell_winner(returns: np.ndarray, person: int) -> None:
    best = returns == returns.max()
    typer.echo("a tie" if best.all() else "you win" if best[person] else "you lose")
