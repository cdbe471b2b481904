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
from dice_envs.agent.compiled import ASKED, NO_FAULT, Context, Team, context_of, mixed_team
from dice_envs.agent.kernel import HUGE, Chooser, Network, sample_softmax
from dice_envs.core.batch import MOST_ACTION, illegal_error
from dice_envs.core.dice import uniform
from dice_envs.core.game import Game, Variant, compile_view
from dice_envs.core.kernel import makes_arrays
from dice_envs.envs.learner import SeatGames
from dice_envs.envs.learner.records import LEARNER, Orders, Shown, Step, empty_step
from dice_envs.envs.learner.turn import ANSWERS, ASKS, BEGINS, DONE, FAILS, PLAYS, compile_hands, compile_may_act, compile_turn

SIMULATED = bool(getattr(numba.config, "ENABLE_CUDASIM", False))  # whether numba's simulator stands for a GPU

_BLOCK = 128  # threads

warnings.filterwarnings("ignore", message=r".*Grid size \d+ will likely")  # how many games there are is the caller's choice


class Queries(NamedTuple):
    """Networks that are to move in n games."""

    numbers: Any  # (n,) int64, the agent's number; LEARNER where none is to move
    observations: Any  # (n, size) float32
    masks: Any  # (n, actions) int8
    logits: Any  # (n, actions) float32, its answer
    floors: Any  # (agents,) float64, see `Network`


def threads(params: Any, game: Game, choosers: tuple[Chooser, ...]) -> dict[str, Callable[..., None]]:
    """Return the functions that CUDA runs in a thread for each game, not compiled yet; they close over a variant's params.

    `turn(context, seats, start, moves, step, asked)` takes the turn of game k in thread k, and writes which agents are asked
    and what they see. Work space and faults of `context` have a row for each game; `context.params` is not read. A game with
    a fault stands still. `draw(seats, moves, asked)` draws the answers from the softmax of their logits.
    `views(seats, (out,))` writes what all seats see, (n, seats, size), the learner's first. In games that list their hands,
    `suppose(seats, (other, hands, out))` writes what each seat would see with each of them.
    """
    observe, view = game.observe, compile_view(game)
    take, may_act, see = compile_turn(game, choosers), compile_may_act(game), compile_hands(game)

    def turn(context, seats, start, moves, step, asked):
        k = cuda.grid(1)
        if k < len(moves.todo) and moves.todo[k] != DONE:
            sample, mask, fault = context.sample[k : k + 1], context.mask[k], context.fault[k]
            own = Context(params, context.numbers, context.options, sample, mask, fault)
            if fault[0] == NO_FAULT and may_act(own, seats, moves, k):
                take(own, seats, start, moves, step, k)
            else:
                moves.todo[k] = FAILS
            if moves.todo[k] == FAILS:
                fault[0] = k
                step.ended[k] = False
                for each in range(step.earned.shape[1]):
                    step.earned[k, each] = 0.0
        if k < len(moves.todo):
            asked.numbers[k] = LEARNER
            if moves.todo[k] == ASKS:
                seat = np.int64(seats.states[k]["seat"])
                asked.numbers[k] = seats.players[k, seat]
                view(params, seats.states[k], seat, asked.observations[k], asked.masks[k])

    def draw(seats, moves, asked):
        k = cuda.grid(1)
        if k < len(moves.todo) and asked.numbers[k] != LEARNER:
            drawn = uniform(seats.streams[k])
            moves.actions[k] = sample_softmax(asked.logits[k], asked.masks[k], asked.floors[asked.numbers[k]], drawn)
            moves.todo[k] = ANSWERS

    def views(seats, out):
        k = cuda.grid(1)
        for place in range(out[0].shape[1] if k < len(out[0]) else 0):
            for j in range(out[0].shape[2]):
                out[0][k, place, j] = 0
            observe(params, seats.states[k], (seats.learners[k] + place) % out[0].shape[1], out[0][k, place])

    def suppose(seats, room):
        k = cuda.grid(1)
        other, hands, out = room
        if k < len(out):
            see(params, seats.states, k, k + 1, other[k : k + 1], hands, out)

    return {"turn": turn, "draw": draw, "views": views, "suppose": suppose}


def example(games: SeatGames) -> tuple[dict[str, Callable[..., None]], dict[str, tuple[Any, ...]]]:
    """Return the functions of `threads` for these games, and NumPy arguments of the types that they are called with."""
    variant, count, team = games.variant, games.num_games, mixed_team(games.agents, games.variant)
    context = context_of(variant, team)._replace(
        params=np.int64(0),
        sample=np.empty(count, variant.game.state),
        mask=np.empty((count, variant.facts.num_actions), np.int8),
        fault=np.full((count, 3), NO_FAULT, np.int64),
    )
    moves = Orders(np.zeros(count, np.int64), np.full(count, BEGINS, np.int8), restart=True, most=MOST_ACTION, arranged=False)
    step, logits = empty_step(variant, count), np.zeros((count, variant.facts.num_actions), np.float32)
    asked = Queries(np.full(count, LEARNER), *empty_step(variant, count).shown, logits, np.zeros(len(games.agents)))
    views = np.zeros((count, variant.facts.num_seats, variant.facts.observation_size), np.float32)
    arguments: dict[str, tuple[Any, ...]] = {
        "turn": (context, games.seats, games.begin, moves, step, asked),
        "draw": (games.seats, moves, asked),
        "views": (games.seats, (views,)),
    }
    if variant.hands:
        arguments["suppose"] = games.seats, (context.sample, variant.hands[0], views[:, :, None])
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
    """The turns of SeatGames on a GPU, where their arrays live. Only `upload`, `download` and `check` copy them.

    Under `NUMBA_ENABLE_CUDASIM=1` numba's simulator runs the same functions on a CPU's tensors.

    Args:
        games: the games; opponents must have kernels for CUDA, or networks, which are asked in batches.
        step: PyTorch tensors in the form of `Step`, which turns write into.

    Attributes:
        learners: (n,) int64 tensor, as in `Seating`.

    Raises:
        ValueError: an opponent can't choose on a GPU.
    """

    def __init__(self, games: SeatGames, step: Step) -> None:
        import torch

        self.games, self._torch, self._device = games, torch, step.ended.device
        _, arguments = example(games)
        context, seats, _, moves, own, asked = arguments["turn"]
        self._following: tuple[Any, ...] = ()
        self.follow()  # before any room is taken: it refuses opponents
        self._todo, self._actions, self.learners = map(self._tensor, (moves.todo, moves.actions, seats.learners))
        self._asked = Queries(*map(self._tensor, asked))
        self._queries = Queries(*map(self._shared, self._asked))
        self._room = self._moved(context._replace(numbers=np.zeros((0, 2), np.int64), options=()))
        self._moves = self._moved(moves)._replace(todo=self._shared(self._todo), actions=self._shared(self._actions))
        shown = Shown(*map(self._shared, step.shown))
        self._step: Any = Step._make([*map(self._shared, step[:-2]), shown, self._moved(own.finals)])
        self._hands = self._moved(games.variant.hands)
        self._seats = self._moved(seats)._replace(learners=self._shared(self.learners))

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

    def upload(self, faults: Any = NO_FAULT) -> None:
        """Copy the arrays of `games` and faults to the device, into the same places as before."""
        self._room.fault[:] = faults
        for there, here in zip(self._seats, self.games.seats, strict=True):
            if SIMULATED:
                there[...] = here
            elif here.size:
                there.copy_to_device(here)

    def download(self) -> np.ndarray:
        """Copy the arrays to `games`. Return the faults since the last check, (n, 3) int64 as in `Context`."""
        for there, here in zip(self._seats, self.games.seats, strict=True):
            here[...] = self._read(there)
        return self._read(self._room.fault)

    def _read(self, there: Any) -> np.ndarray:
        return there if isinstance(there, np.ndarray) else there.copy_to_host()

    # --- turns ------------------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Deal all games, from the streams that they have in `games`."""
        self.upload()
        self._run(BEGINS)

    def play(self, actions: Any) -> None:
        """Play the learner's actions, (n,) int64 tensor, up to its next turns; ended games begin again."""
        self._actions.copy_(actions)
        self._run(PLAYS)

    def view_all(self, out: Any) -> None:
        """Write what all seats see into `out`, (n, seats, size) float32 tensor: the learner first, then in turn order."""
        self._launch("views", self._seats, (self._shared(out),))

    def suppose(self, out: Any) -> None:
        """Write what each seat would see with each hand into `out`, (n, seats, hands, size) float32 tensor."""
        self._launch("suppose", self._seats, (self._room.sample, self._hands[0], self._shared(out)))

    def check(self) -> None:
        """Raise an error if an action since the last check was illegal. Its game has stood still.

        Raises:
            IllegalActionError: an action of the learner's was not legal.
            AgentError: an opponent's was not; `begin` again.
        """
        faults = self._read(self._room.fault)
        found = np.flatnonzero(faults[:, 0] != NO_FAULT)
        if len(found):
            self.download()
            game, (_, player, action) = int(found[0]), faults[found[0]].tolist()
            self._room.fault[:] = NO_FAULT
            variant, state = self.games.variant, self.games.states[game]
            if player == LEARNER:
                raise illegal_error(variant, state, game, action)
            raise fault_of(self.games.agents[player], variant, state, game, action)

    def follow(self) -> Any:
        """Take over what has changed among the opponents: a pool's agents and weights.

        Return a value that changes with them; None where networks are asked until all have answered, which no graph can hold.
        """
        games = self.games
        start, agents, team = games.begin, list(games.agents), mixed_team(games.agents, games.variant)
        now = (*map(id, agents), id(team), start.weights.tobytes())
        if now != self._following:
            variant = games.variant
            networks = networks_of(agents, team, variant)
            self._layers = {each: [tuple(map(self._tensor, layer)) for layer in networks[each].layers] for each in networks}
            self._following, self._followed = now, (agents, team)  # kept, so that no other objects get their ids
            self._kernels = _compiled(variant.game, variant.options, games.played, team.choosers)
            floors = np.array([networks[number].floor if number in networks else 0.0 for number in range(len(agents))])
            self._own = self._moved((team.numbers, team.options, start, floors))
        return None if self._layers else now

    def _run(self, todo: int) -> None:
        self.follow()
        self._todo.fill_(todo)
        numbers, options, start, floors = self._own
        context = self._room._replace(numbers=numbers, options=options)
        asked = self._queries._replace(floors=floors)
        while True:
            self._launch("turn", context, self._seats, start, self._moves, self._step, asked)
            if not self._layers or not self._answer(asked):
                return

    def _answer(self, asked: Queries) -> bool:
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
        self._launch("draw", self._seats, self._moves, asked)
        return True

    def _launch(self, name: str, *arguments: Any) -> None:
        count = self.games.num_games
        shape: tuple[Any, ...] = (-(-count // _BLOCK), min(count, _BLOCK))
        if not SIMULATED:  # PyTorch's stream, which may be one that a graph captures
            shape += (cuda.external_stream(self._torch.cuda.current_stream(self._device).cuda_stream),)
        self._kernels[name][shape](*arguments)
