"""A learner's turns on a GPU: a thread for each game."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import cuda

from dice_envs.agent import Agent, fault_of, name_of, promises_of
from dice_envs.agent.compiled import ASKED, NO_FAULT, Team
from dice_envs.agent.kernel import HUGE, Chooser, Network, sample_softmax
from dice_envs.core.batch import MOST_ACTION, illegal_error
from dice_envs.core.dice import uniform
from dice_envs.core.game import Game, Variant, compile_view
from dice_envs.core.kernel import makes_arrays
from dice_envs.envs.learner import SeatGames
from dice_envs.envs.learner.turn import (
    ANSWERS,
    ASKS,
    BEGINS,
    DONE,
    FAILS,
    LEARNER,
    PLAYS,
    TURN,
    Shown,
    compile_advance,
    compile_hands,
    compile_views,
    fields_of,
    pay_nothing,
    room_for,
)

SIMULATED = bool(getattr(numba.config, "ENABLE_CUDASIM", False))  # whether numba's simulator stands for a GPU

_BLOCK = 128  # threads

warnings.filterwarnings("ignore", message=r".*Grid size \d+ will likely")  # how many games there are is the caller's choice


class Orders(NamedTuple):
    """What to do in n games, as for `compile_advance`."""

    actions: Any  # (n,) int64
    todo: Any  # (n,) int8
    goes_on: Any  # (1,) int8


class Queries(NamedTuple):
    """Networks that are to move in n games."""

    numbers: Any  # (n,) int64, the agent's number; LEARNER where none is to move
    observations: Any  # (n, size) float32
    masks: Any  # (n, actions) int8
    logits: Any  # (n, actions) float32, its answer


class Players(NamedTuple):
    """The opponents, and how new games begin."""

    numbers: Any  # as in `Context`
    options: tuple[Any, ...]
    samples: Any  # (n,) of the game's states, work space
    weights: Any  # probability of each agent of a pool, (agents,) float64; None without a pool
    floors: Any  # (agents,) float64, see `Network`
    table: Any  # (1,) of TABLE


def threads(params: Any, game: Game, choosers: tuple[Chooser, ...]) -> dict[str, Callable[..., None]]:
    """Return the functions that CUDA runs in a thread for each game, not compiled yet; they close over a variant's params.

    `turn(players, records, orders, shown, asked)` takes the turn of game k in thread k, and writes which agents are asked
    and what they see. `records` are the games and their turns, `orders` the actions, what there is to do, and whether turns go
    on. A game with a fault stands still. `draw(players, records, asked)` draws the answers from the softmax of their logits.
    `views(records, (out,))` writes what all seats see, (n, seats, size), the learner's first. In games that list their hands,
    `suppose(records, (samples, hands, out))` writes that for each of them.
    """
    values, advance, view = tuple(params), compile_advance(game, choosers), compile_view(game)
    (see, _), (see_hands, _) = compile_views(game), compile_hands(game)

    def turn(players, records, orders, shown, asked):
        k = cuda.grid(1)
        games, turns = records
        if k < len(turns):
            fault, (seen, masks) = turns[k]["fault"], shown
            if fault[0] == NO_FAULT:
                sample = players.samples[k : k + 1]
                lasting = values, players.numbers, players.options, sample, players.table, players.weights, games
                todo, views = (orders.actions, orders.todo, MOST_ACTION), (seen, masks, seen[:0], masks[:0])
                stands = advance(lasting, turns, todo, views, orders.goes_on[0], k, k + 1)
                if stands >= 0:
                    fault[0] = k
            if fault[0] != NO_FAULT:
                turns[k]["todo"] = FAILS
                pay_nothing(players.table[0]["num_seats"], turns[k])
            asked.numbers[k] = LEARNER
            if turns[k]["todo"] == ASKS:
                state = games[k]["state"]
                seat = np.int64(state["seat"])
                asked.numbers[k] = games[k]["players"][seat]
                view(params, state, seat, asked.observations[k], asked.masks[k])

    def draw(players, records, asked):
        k = cuda.grid(1)
        games, turns = records
        if k < len(turns) and asked.numbers[k] != LEARNER:
            drawn = uniform(games[k]["stream"])
            turns[k]["action"] = sample_softmax(asked.logits[k], asked.masks[k], players.floors[asked.numbers[k]], drawn)
            turns[k]["todo"] = ANSWERS

    def views(records, out):
        k = cuda.grid(1)
        if k < len(out[0]):
            see(params, records[0][k], out[0][k])

    def suppose(records, hands_and_out):
        k = cuda.grid(1)
        samples, hands, out = hands_and_out
        if k < len(out):
            see_hands(params, records[0][k], samples[k : k + 1], hands, out[k])

    return {"turn": turn, "draw": draw, "views": views, "suppose": suppose}


def example(games: SeatGames) -> tuple[dict[str, Callable[..., None]], dict[str, tuple[Any, ...]]]:
    """Return the functions of `threads` for these games, and NumPy arguments of the types that they are called with."""
    variant, count, prepared = games.variant, games.num_games, games.follow()
    team = prepared.team
    records, shown = (games.records, np.zeros(count, TURN)), room_for(variant, count)
    orders = Orders(np.zeros(count, np.int64), np.zeros(count, np.int8), np.zeros(1, np.int8))
    asked = Queries(np.full(count, LEARNER), *room_for(variant, count), shown.masks.astype(np.float32))
    samples, floors = np.empty(count, variant.game.state), np.zeros(len(prepared.agents))
    players = Players(team.numbers, team.options, samples, prepared.weights, floors, games.table)
    views = np.zeros((count, variant.facts.num_seats, variant.facts.observation_size), np.float32)
    arguments: dict[str, tuple[Any, ...]] = {
        "turn": (players, records, orders, shown, asked),
        "draw": (players, records, asked),
        "views": (records, (views,)),
    }
    if variant.hands:
        arguments["suppose"] = records, (samples, variant.hands[0], views[:, :, None])
    functions = threads(variant.params, games.played, team.choosers)
    return {name: functions[name] for name in arguments}, arguments


def networks_of(agents: Sequence[Agent], team: Team, variant: Variant) -> dict[int, Network]:
    """Return the networks of the agents that are asked, by the agent's number. ValueError if one can't choose on a GPU."""
    networks: dict[int, Network] = {}
    for number, (agent, (chooser, _)) in enumerate(zip(agents, team.numbers, strict=True)):
        offers = promises_of(agent).network if chooser == ASKED else None
        if network := offers and offers(variant):
            networks[number] = network
        elif chooser == ASKED or makes_arrays(team.choosers[chooser].choose):
            raise ValueError(
                f"opponents must be policy networks (ppo) or have kernels that make no arrays (numbers, random) on the device "
                f"'cuda', not {name_of(agent)}; the device 'cpu' takes it"
            )
    return networks


@functools.lru_cache(maxsize=16)
def _compiled(rules: Game, options: Any, game: Game, choosers: tuple[Chooser, ...]) -> dict[str, Any]:
    """Return CUDA's kernels for `rules` with `options`, played as `game`. Cached by these; a Variant equals only itself."""
    return {name: cuda.jit(each) for name, each in threads(rules.params(options), game, choosers).items()}


class DeviceTurns:
    """The turns of SeatGames on a GPU, where their records live. Only `upload`, `download` and `check` copy them.

    Under `NUMBA_ENABLE_CUDASIM=1` numba's simulator runs the same functions on a CPU's tensors.

    Args:
        games: the games; opponents must have kernels for CUDA, or networks, which are asked in batches.
        shown: PyTorch tensors that turns write what the learners see into.

    Attributes:
        games_there, turns_there: the records of the games and of TURN as tensors, see `fields_of`.

    Raises:
        ValueError: an opponent can't choose on a GPU.
    """

    def __init__(self, games: SeatGames, shown: Shown) -> None:
        import torch

        self.games, self._torch, self._device = games, torch, shown.masks.device
        _, arguments = example(games)
        players, records, orders, _, asked = arguments["turn"]
        self._following: Any = None
        self._changes = 0
        (self._samples,) = self._moved((players.samples,))
        self.follow()  # before more room is taken: it refuses opponents
        self._bytes = [self._tensor(each.view(np.uint8)) for each in records]
        kinds = [each.dtype for each in records]
        self.games_there, self.turns_there = map(fields_of, self._bytes, kinds)
        self._records = tuple(self._shared(each).view(kind) for each, kind in zip(self._bytes, kinds, strict=True))
        self._asked, self._orders = Queries(*map(self._tensor, asked)), Orders(*map(self._tensor, orders))
        self._queries, self._ordered = Queries(*map(self._shared, self._asked)), Orders(*map(self._shared, self._orders))
        self._hands = self._moved(games.variant.hands)
        self._shown = Shown(*map(self._shared, shown))
        self.upload()

    # --- arrays there -----------------------------------------------------------------------------------------------------

    def _tensor(self, array: np.ndarray) -> Any:
        return self._torch.from_numpy(array.copy()).to(self._device)

    def _shared(self, tensor: Any) -> Any:
        """Return the tensor as kernels take it, without a copy."""
        return cuda.as_cuda_array(tensor) if tensor.is_cuda else tensor.numpy()

    def _moved(self, value: Any) -> Any:
        """Return an array, or those of a tuple, copied to the device. (In tuples the simulator takes NumPy's own.)"""
        if isinstance(value, tuple):
            moved = [self._moved(each) for each in value]
            return type(value)(*moved) if hasattr(value, "_fields") else tuple(moved)
        if not isinstance(value, np.ndarray):
            return value
        return value.copy() if SIMULATED else cuda.to_device(value)

    def upload(self, turns: np.ndarray | None = None) -> None:
        """Copy the records of `games` to the device, and those of TURN, by default such without faults."""
        if turns is None:
            turns = np.zeros(self.games.num_games, TURN)
            turns["fault"], turns["todo"] = NO_FAULT, DONE
        for there, here in zip(self._bytes, (self.games.records, turns), strict=True):
            there.copy_(self._torch.from_numpy(here.view(np.uint8)))

    def download(self) -> np.ndarray:
        """Copy the records to `games`. Return those of TURN, (n,), with the faults since the last check."""
        self.games.records.view(np.uint8)[...] = self._bytes[0].cpu().numpy()
        return np.array(self._bytes[1].cpu().numpy()).view(TURN)

    # --- turns ------------------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Deal all games, from the streams that they have in `games`."""
        self.games.follow(always=True)
        self.upload()
        self._run(BEGINS)

    def play(self, actions: Any) -> None:
        """Play the learner's actions, (n,) int64 tensor, up to its next turns; ended games begin again."""
        self._orders.actions.copy_(actions)
        self._run(PLAYS)

    def view_all(self, out: Any) -> None:
        """Write what all seats see into `out`, (n, seats, size) float32 tensor: the learner first, then in turn order."""
        self._launch("views", self._records, (self._shared(out),))

    def suppose(self, out: Any) -> None:
        """Write what each seat would see with each hand into `out`, (n, seats, hands, size) float32 tensor."""
        self._launch("suppose", self._records, (self._samples, self._hands[0], self._shared(out)))

    def check(self) -> None:
        """Raise an error if an action since the last check was illegal. Its game has stood still.

        Raises:
            IllegalActionError: an action of the learner's was not legal.
            AgentError: an opponent's was not; `begin` again.
        """
        faults = self.turns_there["fault"].cpu().numpy()
        found = np.flatnonzero(faults[:, 0] != NO_FAULT)
        if len(found):
            self.download()
            game, (_, player, action) = int(found[0]), faults[found[0]].tolist()
            self.turns_there["fault"].fill_(NO_FAULT)
            variant, state = self.games.variant, self.games.states[game]
            if player == LEARNER:
                raise illegal_error(variant, state, game, action)
            raise fault_of(self._following.agents[player], variant, state, game, action)

    def follow(self) -> Any:
        """Take over what has changed among the opponents: a pool's agents and weights.

        Return a value that changes with them; None where networks are asked until all have answered, which no graph can hold.
        """
        games, prepared, variant = self.games, self.games.follow(), self.games.variant
        if prepared is not self._following:
            agents, team = prepared.agents, prepared.team
            networks = networks_of(agents, team, variant)
            self._layers = {each: [tuple(map(self._tensor, layer)) for layer in networks[each].layers] for each in networks}
            self._following, self._changes = prepared, self._changes + 1
            self._kernels = _compiled(variant.game, variant.options, games.played, team.choosers)
            floors = np.array([networks[number].floor if number in networks else 0.0 for number in range(len(agents))])
            self._players = self._moved(
                Players(team.numbers, team.options, self._samples, prepared.weights, floors, games.table)
            )
        return None if self._layers else self._changes

    def _run(self, todo: int) -> None:
        self.follow()
        self._orders.todo.fill_(todo)
        self._orders.goes_on.fill_(0)
        while True:
            self._launch("turn", self._players, self._records, self._ordered, self._shown, self._queries)
            if not self._layers or not self._answer():
                return
            self._orders.goes_on.fill_(1)

    def _answer(self) -> bool:
        """Let networks answer where they are to move; return whether there were any."""
        if not (self._asked.numbers != LEARNER).any():
            return False
        for number, layers in self._layers.items():
            rows = (self._asked.numbers == number).nonzero()[:, 0]
            hidden = self._asked.observations[rows]
            for i, (weights, biases) in enumerate(layers):
                hidden = self._torch.addmm(biases, hidden, weights.T)
                hidden = hidden.tanh() if i + 1 < len(layers) else hidden.nan_to_num(-HUGE, HUGE, -HUGE)
            self._asked.logits[rows] = hidden
        self._launch("draw", self._players, self._records, self._queries)
        return True

    def _launch(self, name: str, *arguments: Any) -> None:
        count = self.games.num_games
        shape: tuple[Any, ...] = (-(-count // _BLOCK), min(count, _BLOCK))
        if not SIMULATED:  # PyTorch's stream, which may be one that a graph captures
            shape += (cuda.external_stream(self._torch.cuda.current_stream(self._device).cuda_stream),)
        self._kernels[name][shape](*arguments)
