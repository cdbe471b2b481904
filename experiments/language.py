"""`benchmark language`: what players who speak in words give away, by the exact price of every move.

Positions of a task are drawn with the values of their moves. Players are asked there and in games, and what their moves give
away is added up. All players move through words: language models, and scripted agents beside them
(`dice_envs.envs.text.InWords`).
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dice_envs import TASKS, ActionValues, Agent, ResponseValues, Task, action_values, evaluate
from dice_envs.agent import ask, check_in_passing, check_plays, fresh_memory, promises_of, resolve
from dice_envs.agent.matches import GAMES_ASKED
from dice_envs.agents.chat import Chat, Tally
from dice_envs.core.dice import new_streams
from dice_envs.core.game import Variant
from dice_envs.core.options import did_you_mean, shown
from dice_envs.envs.text import InWords
from dice_envs.evaluation.games import NO_COST, costs_of
from dice_envs.exact import GameExact
from dice_envs.exact.intervals import half_width, share_half_width
from dice_envs.experiments.jobs import HERE, Workers
from dice_envs.experiments.leaderboard import usual_agents
from dice_envs.experiments.ui.chats import Counted, logged
from dice_envs.table.sitting import PERSON, Sitting

DEFAULT_TASKS = ("liars_dice_openspiel_1", "liars_dice_3", "fatestones", "thirties_maximize", "shakes_3")
EXPLORES = 0.25  # chance of a move at random in the games from which the positions come
MOST_GAMES = 100  # tried for each position that is wanted
ASKED = 32  # positions in a part of the work: what is lost at a stop
BINS = (0.0, 0.05, 0.35, 0.65, 0.95, 1.0)  # of the solution's chance of a bluff


# --- positions ------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Positions:
    """Decisions of a game, each from a game of its own.

    Attributes:
        variant: the game.
        states: (n,) states in which a seat has a choice.
        values: the values of each one's moves, by optimal play afterwards.
    """

    variant: Variant
    states: np.ndarray
    values: tuple[ActionValues, ...]

    def __len__(self) -> int:
        return len(self.states)

    @property
    def unit(self) -> str:
        """The unit of the values: "% of games won", "pips" and so on."""
        return self.values[0].unit

    def regrets(self, actions: np.ndarray) -> np.ndarray:
        """Return what each of (n,) actions gives away, (n,) float64: the best move's value less its own."""
        return costs_of(np.array([each.values for each in self.values]), actions)


def positions_of(variant: Variant, number: int, seed: int = 0, done: Callable[[int], Any] = lambda amount: None) -> Positions:
    """Draw positions, the same for the same arguments.

    In each game every move is the solution's, or with a chance of a quarter any legal move. Of the decisions that optimal play
    can reach, and whose moves differ in value, one is drawn. Games without any are passed over.

    Args:
        variant: a game whose optimal play is known.
        number: of positions.
        seed: fixes the games.
        done: progress callback, called with the number of positions found since the last call.

    Raises:
        ValueError: optimal play is not known or takes too long, or too few games have such decisions.
    """
    states, values = [], []
    for game in range(number * MOST_GAMES):
        found = _decision(variant, np.random.default_rng([seed, game]))
        if found is None:
            continue
        states.append(found[0])
        values.append(found[1])
        done(1)
        if len(states) == number:
            return Positions(variant, np.array(states), tuple(values))
    raise ValueError(f"only {len(states)} of {number * MOST_GAMES:,} games of {variant} have a decision that matters")


def _decision(variant: Variant, rng: np.random.Generator) -> tuple[Any, ActionValues] | None:
    """Return one decision of a new game, each one as likely; None if there is none."""
    sitting = Sitting(variant, int(rng.integers(2**53)), [PERSON] * variant.facts.num_seats)
    kept, seen = None, 0
    while not sitting.over:
        state = sitting.state
        values = action_values(variant, state, in_passing=True)
        legal = np.flatnonzero(~np.isnan(values.values))
        if values.reached and np.ptp(values.values[legal]) > NO_COST:
            seen += 1
            if rng.integers(seen) == 0:
                kept = state, values
        sitting.play(int(rng.choice(legal) if rng.random() < EXPLORES else _optimal(values, rng)))
    return kept


def _optimal(values: ActionValues, rng: np.random.Generator) -> int:
    """Draw a move of the solution; without one, the best move."""
    if values.mix is None:
        return int(np.nanargmax(values.values))
    return int(rng.choice(len(values.mix), p=values.mix / values.mix.sum()))


# --- scores ---------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Kind:
    """Decisions of one kind.

    Attributes:
        by: the heading under which decisions are sorted, such as "dice left".
        label: the kind, such as "5 v 4".
        decisions: how many there are.
        regret, error: mean regret, and half of its 95 % interval; NaN with one decision.
    """

    by: str
    label: str
    decisions: int
    regret: float
    error: float


@dataclasses.dataclass(frozen=True)
class Bluffs:
    """Positions in which the solution bluffs with about the same chance.

    Attributes:
        positions: how many there are.
        solution: the solution's mean chance of a bluff there.
        player: the share of positions in which the player bluffed.
        error: half of the 95 % interval of `player`.
    """

    positions: int
    solution: float
    player: float
    error: float


@dataclasses.dataclass(frozen=True)
class Score:
    """A player on a task.

    Errors are half of 95 % intervals.

    Attributes:
        task, player: their names.
        unit: of the regret.
        positions: how many it was asked.
        regret, error: what a move gives away, the mean over the positions.
        wrong: share of the moves that give something away.
        kinds: the same by kind of decision.
        bluffs: by the solution's chance of a bluff; empty in games without bluffs.
        games: number of games played.
        result, result_error, best: its result in these games without luck, and a best response's; in `result_unit`.
        result_unit: see `dice_envs.Evaluation`.
        tally: what a language model has done and used; None for scripted players.
    """

    task: str
    player: str
    unit: str
    positions: int
    regret: float
    error: float
    wrong: float
    kinds: tuple[Kind, ...]
    bluffs: tuple[Bluffs, ...]
    games: int
    result: float
    result_error: float
    best: float
    result_unit: str
    tally: Tally | None

    @property
    def illegal(self) -> float:
        """Share of replies without a legal move; 0 for scripted players."""
        if self.tally is None:
            return 0.0
        legal = self.tally.moves - self.tally.random - self.tally.lost
        return self.tally.illegal / max(1, self.tally.illegal + legal)


def task_of(name: str) -> Task:
    """Return the task of a name. ValueError if there is none."""
    if name not in TASKS:
        raise ValueError(f"no task {shown(name)}; tasks are: {', '.join(TASKS)}{did_you_mean(name, TASKS)}")
    return TASKS[name]


def named_players(specs: Sequence[str], json: Path | None = None, resume: bool = False) -> dict[str, Agent]:
    """Return the players of specs by name: a language model by that of its model, others by their spec.

    Replies of language models are logged beside the file `json`, and used again with `resume`. A budget is for all tasks
    together.

    Raises:
        ValueError: a spec names no agent, or a language model that resigns.
    """
    players: dict[str, Agent] = {}
    for spec in dict.fromkeys(specs):
        (agent,) = logged([resolve(spec)], json, resume)
        if not isinstance(agent, Chat):
            players[spec] = InWords(agent)
            continue
        if promises_of(agent).resigns:
            raise ValueError(
                "illegal must be 'random' or 'raise' in this benchmark, not 'lose': lost games have no exact price"
            )
        players[spec if agent.model in players else agent.model] = agent
    return players


def players_of(task: Task, named: Mapping[str, Agent], references: bool = True) -> dict[str, Agent]:
    """Return the players of a task by name: the game's usual agents that answer at once, then `named`.

    Those that do not play the task are left out.
    """
    usual: dict[str, Agent | None] = dict.fromkeys(usual_agents(task.game) if references else ())
    found: dict[str, Agent] = {}
    for name, player in {**usual, **named}.items():
        with contextlib.suppress(ValueError):
            if player is None:
                agent = resolve(name)
                check_in_passing(agent, task.variant, GAMES_ASKED)
                player = InWords(agent)
            check_plays(player, task.variant)
            found[name] = player
    return found


def score(
    task: Task,
    positions: Positions,
    values: ResponseValues,
    name: str,
    player: Agent,
    games: int,
    seed: int = 0,
    workers: Workers = HERE,
    done: Callable[[float], Any] = lambda amount: None,
) -> Score:
    """Ask a player at the positions, and play games against optimal play.

    Args:
        task: the task.
        positions: of the task.
        values: of choices against optimal play, see `dice_envs.response_values`.
        name: the player's, in the result.
        player: plays through words, or is a language model.
        games: number of games.
        seed: fixes the games and the player's draws.
        workers: ask the player and play the games.
        done: progress callback, called with the number of positions and games that are done since the last call.

    Raises:
        AgentError: a language model's server does not answer, or its budget is spent.
        ValueError: too few games.
    """
    variant = positions.variant
    firsts = range(0, len(positions), ASKED)
    parts = [(positions.states[first : first + ASKED], first, seed) for first in firsts]
    counted = Counted(workers, [player])
    actions = np.concatenate(counted.run(_answers, (variant, player), parts, [float(len(part[0])) for part in parts], done))
    result = evaluate(variant, player, None, games, seed=seed, name=name, values=values, done=done, run=counted.run)
    regrets = positions.regrets(actions)
    mean, error = _mean(positions, regrets)
    return Score(
        task=task.name,
        player=name,
        unit=positions.unit,
        positions=len(positions),
        regret=mean,
        error=error,
        wrong=float((regrets > 0).mean()),
        kinds=_kinds(positions, actions, regrets),
        bluffs=_bluffs(positions, actions),
        games=games,
        result=result.value,
        result_error=result.error,
        best=result.best,
        result_unit=result.unit,
        tally=counted.tallies[0] if counted.tallies else None,
    )


def _answers(
    variant: Variant, player: Agent, states: np.ndarray, first: int, seed: int, done: Callable[[int], Any]
) -> np.ndarray:
    """Return the player's actions at some positions, the first of which has the number `first`."""
    streams = new_streams(np.random.SeedSequence(seed), first + len(states))[first:]
    memory = fresh_memory(player, len(states))
    actions = ask(player, variant, states.copy(), np.arange(len(states)), streams, memory)
    done(len(states))
    return actions


def _mean(positions: Positions, regrets: np.ndarray) -> tuple[float, float]:
    """Return the mean regret, and half of its 95 % interval; no position offers a larger one than the largest of these."""
    most = max(float(np.nanmax(each.values) - np.nanmin(each.values)) for each in positions.values)
    return float(regrets.mean()), half_width(regrets, 0.0, most)


def _kinds(positions: Positions, actions: np.ndarray, regrets: np.ndarray) -> tuple[Kind, ...]:
    kinds = []
    situations = GameExact(positions.variant.game).situations(positions.variant, positions.states, actions)
    for by, labels in situations.items():
        for label in np.unique(labels) if len(np.unique(labels)) > 1 else ():
            mine = regrets[labels == label]
            kinds.append(Kind(by, str(label), len(mine), *_mean(positions, mine)))
    return tuple(kinds)


def _bluffs(positions: Positions, actions: np.ndarray) -> tuple[Bluffs, ...]:
    """Sort the positions in which one may bluff and need not by the solution's chance of a bluff."""
    if positions.values[0].mix is None:
        return ()
    which = GameExact(positions.variant.game).bluffs(positions.variant, positions.states)
    legal = np.array([~np.isnan(each.values) for each in positions.values])
    free = (which & legal).any(axis=1) & (~which & legal).any(axis=1)
    mixes = np.array([each.mix for each in positions.values])
    chance = np.where(which, mixes, 0).sum(axis=1)[free]
    bluffed = which[np.arange(len(actions)), actions][free]
    place = np.clip(np.searchsorted(BINS, chance, side="right") - 1, 0, len(BINS) - 2)
    found = []
    for number in np.unique(place):
        mine = place == number
        count, share = int(mine.sum()), float(bluffed[mine].mean())
        found.append(Bluffs(count, float(chance[mine].mean()), share, share_half_width(share, count)))
    return tuple(found)
