"""Where the probabilities of a player come from when a round of Liar's Dice is walked (see `moves.Source`), and what they
depend on."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from dice_envs.agent import Turn, fresh_memory, promises_of
from dice_envs.core.batch import Batch
from dice_envs.core.dice import new_streams
from dice_envs.core.game import Variant
from dice_envs.core.kernel import kernel
from dice_envs.exact.agents import (
    STEADY,
    Mixed,
    chances_of,
    fixed,
    is_random,
    parts_of,
    positions_of_play,
)
from dice_envs.games.liars_dice import OF_THE_PAST, play
from dice_envs.games.liars_dice.exact.moves import Asking, Source
from dice_envs.games.liars_dice.exact.networks import Networked
from dice_envs.games.liars_dice.exact.round import Round, RoundRules
from dice_envs.games.liars_dice.raises import MAX_FACES

ROWS_AT_ONCE = 16_384  # information sets at which an agent is asked in one call
SAME = 1e-9  # answers that differ by no more are alike
PROBED = 512  # positions at which an agent is tested for whether past rounds matter to it
# Each player's bids that calls may have shown there, and those of them that named a face it held most of.
PASTS = ((1, 0), (1, 1), (10, 0), (10, 5), (10, 10))


# --- an agent -----------------------------------------------------------------------------------------------------


@kernel
def _positions(params, dealt, paths, hands, nodes, which, states):
    """Set states[i] to node nodes[i], its mover holding hand which[i]. In place."""
    for i in range(len(nodes)):
        state = states[i]
        states[i] = dealt[0]
        for k in range(paths.shape[1]):
            play(params, state, np.int64(paths[nodes[i], k]))
        for seat in range(params.num_players):  # the others' hands are drawn again for every observer
            for face in range(MAX_FACES):
                state["counts"][seat, face] = 0
        for face in range(MAX_FACES):
            state["counts"][state["seat"], face] = hands[which[i], face]


@kernel(allocates=False)
def _scatter(rules, call, asking, node_of, begin, chances, copy):
    """Write the answers for the entries from `begin` on to their places in `asking`. In place."""
    for i in range(len(chances)):
        entry = begin + i
        node = node_of[entry]
        slot = asking.slots[node]
        hands = asking.entry_at[node + 1] - asking.entry_at[node]
        at = asking.raise_at[node] + entry - asking.entry_at[node]
        for edge in range(rules.first[slot], rules.first[slot + 1]):
            asking.raises[at, copy] = chances[i, rules.bid[rules.child[edge]]]
            at += hands
        asking.calls[entry, copy] = chances[i, call]


@dataclasses.dataclass
class SeatComparison:
    """Comparison of an agent's play in one seat with its play at the same positions in other seats."""

    alike: bool = True  # whether no difference has been seen so far


class AgentSource(Source):
    """An agent, asked at each information set that it reaches.

    Args:
        round_: the round.
        player: which of them the agent is.
        agent: see `dice_envs.agent.ask_probabilities`.
        seat: the agent's.
        streams: (copies, ROWS_AT_ONCE) of the agent's own random streams; used up.
        seats: compares the agent's seats, as long as they are alike, with another one at each call. None: the agent is asked
            in its own seat only.
    """

    def __init__(
        self, round_: Round, player: int, agent: Any, seat: int, streams: np.ndarray, seats: SeatComparison | None = None
    ) -> None:
        self._round, self._player, self._agent, self._streams = round_, player, agent, streams
        self._seats = SeatComparison(alike=False) if seats is None else seats
        count = round_.variant.params.num_players
        starter = seat - round_.places[player]
        self._dealt = round_.dealt(starter % count)
        self._dealt_elsewhere = itertools.cycle([round_.dealt((starter + more) % count) for more in range(1, count)])

    def write(self, asking: Asking) -> None:
        entries, call = len(asking.calls), self._round.variant.params.call
        node_of, hand_of = np.repeat(np.arange(len(asking.slots)), np.diff(asking.entry_at)), asking.hand.astype(np.int64)
        for begin in range(0, entries, ROWS_AT_ONCE):
            some = slice(begin, begin + ROWS_AT_ONCE)
            for copy in range(asking.calls.shape[1]):
                chances = self.ask(asking.paths, node_of[some], hand_of[some], self._streams[copy])
                _scatter(self._round.rules, call, asking, node_of, begin, chances, copy)

    def ask(self, paths: np.ndarray, nodes: np.ndarray, which: np.ndarray, streams: np.ndarray) -> np.ndarray:
        """Return the agent's probabilities at nodes with hands, (n, actions) float64."""
        turn, *others = self._turns(paths, nodes, which, streams[: len(nodes)])
        chances = chances_of(self._agent, turn)
        if not promises_of(self._agent).observes_only:
            differences = (np.abs(chances_of(self._agent, other) - chances).max(initial=0.0) for other in others)
            self._seats.alike &= all(difference <= SAME for difference in differences)
        return chances

    def observe(self, paths: np.ndarray, nodes: np.ndarray, which: np.ndarray) -> np.ndarray:
        """Return what the agent observes at nodes with hands, (n, observation_size) float32, without asking it."""
        return self._turns(paths, nodes, which, np.zeros(len(nodes), self._streams.dtype))[0].observations

    def _turns(self, paths: np.ndarray, nodes: np.ndarray, which: np.ndarray, streams: np.ndarray) -> list[Turn]:
        """Return the positions with the agent in its seat and, while seats are alike, in another one; compare observations."""
        variant, hands = self._round.variant, self._round.hands[self._player]
        turns: list[Turn] = []
        for dealt in (self._dealt, next(self._dealt_elsewhere)) if self._seats.alike else (self._dealt,):
            states = np.zeros(len(nodes), variant.game.state)
            _positions(variant.params, dealt, paths, hands, nodes, which, states)
            turns.append(Turn(variant, states, np.arange(len(nodes)), streams.copy() if turns else streams))
        if promises_of(self._agent).observes_only:
            self._seats.alike &= all(np.array_equal(turns[0].observations, other.observations) for other in turns[1:])
        return turns


# --- a memoryless agent -------------------------------------------------------------------------------------------


class _Chances(NamedTuple):
    raises: np.ndarray  # (edges, hands) float64: the chance of each raise
    calls: np.ndarray  # (slots, hands) float64: the chance of a call
    made: np.ndarray  # (edges,) bool: whether some hand makes the raise


@kernel(allocates=False)
def _look_up(rules, tables, asking):
    """Write the chances in the tables. In place; `made` has an entry for each edge of each node."""
    copies = asking.calls.shape[1]
    edges = 0
    for node in range(len(asking.slots)):
        slot = asking.slots[node]
        entry = asking.entry_at[node]
        hands = asking.entry_at[node + 1] - entry
        at = asking.raise_at[node]
        for edge in range(rules.first[slot], rules.first[slot + 1]):
            made = tables.made[edge]
            asking.made[edges] = made
            for k in range(hands if made else 0):
                for c in range(copies):
                    asking.raises[at + k, c] = tables.raises[edge, asking.hand[entry + k]]
            edges += 1
            at += hands
        for k in range(hands):
            for c in range(copies):
                asking.calls[entry + k, c] = tables.calls[slot, asking.hand[entry + k]]


def _shortest_paths(rules: RoundRules, player: int, players: int) -> dict[int, list[int]]:
    """Return slots on the way to each slot at which it may be the player's turn, itself included."""
    ends: dict[int, list[int]] = {0: []}
    found = ends if player == 0 else {}
    for depth in range(1, player + players + 1):
        ends = {slot: [*path, slot] for last, path in ends.items() for slot in rules.raises(last).tolist()}
        if depth % players == player:
            found = ends | found
    return found


class Tabled(Source):
    """An agent whose play depends on its own dice and the last bid only: asked once for each pair of them.

    Attributes:
        tables: the chances of its raises and calls, by its hand.
        ignores_dice: whether its dice make no difference, as in random play.
    """

    def __init__(self, asked: AgentSource, round_: Round, player: int) -> None:
        self._rules = rules = round_.rules
        hands, slots = len(round_.hands[player]), len(rules.need)
        raises, calls = np.zeros((len(rules.child), hands)), np.zeros((slots, hands))
        paths = _shortest_paths(rules, player, len(round_.dice))
        streams = new_streams(0, hands)  # nothing is drawn
        for slot in range(slots):
            to, path = rules.raises(slot), paths.get(slot)
            if not len(to) or path is None:  # forced, or never this player's turn
                continue
            nodes = np.zeros(hands, np.int64)
            bids = rules.bid[np.array([path], np.int64)].astype(np.int16)
            chances = asked.ask(bids, nodes, np.arange(hands), streams)
            raises[rules.first[slot] : rules.first[slot + 1]] = chances[:, rules.bid[to]].T
            calls[slot] = chances[:, round_.variant.params.call]
        self.tables = _Chances(raises, calls, np.asarray(raises.any(axis=1)))
        self.ignores_dice = all(np.array_equal(table, np.broadcast_to(table[:, :1], table.shape)) for table in (raises, calls))

    def write(self, asking: Asking) -> None:
        _look_up(self._rules, self.tables, asking)


class MixedSource(Source):
    """A mixture of agents: each of them by itself, in a copy of its own.

    Attributes:
        weights: how often each is drawn, (agents,) float64.
    """

    def __init__(self, sources: Sequence[Source], weights: np.ndarray) -> None:
        self._sources, self.weights = sources, weights

    def write(self, asking: Asking) -> None:
        made = np.zeros_like(asking.made)
        asking.calls[:, 0] = asking.raises[:, 0] = 0.0  # found by `moves_of`, which knows the reach
        for copy, source in enumerate(self._sources, 1):
            shapes = (len(asking.calls), 1), (len(asking.raises), 1)
            own = asking._replace(calls=np.zeros(shapes[0]), raises=np.zeros(shapes[1]), made=np.ones_like(made))
            source.write(own)
            asking.calls[:, copy], asking.raises[:, copy] = own.calls[:, 0], own.raises[:, 0]
            made |= own.made
        asking.made[:] = made


def source_of(
    round_: Round, player: int, agent: Any, seat: int, streams: np.ndarray, seats: SeatComparison | None = None
) -> Source:
    """Return an agent's probabilities.

    They are read from its solution if it plays one, asked once for each hand and bid if it declares itself memoryless,
    computed for many hands at once if it plays a network, and asked everywhere otherwise.
    """
    if isinstance(agent, Mixed):
        parts = [source_of(round_, player, each, seat, streams, seats) for each in agent.parts]
        return MixedSource(parts, agent.weights)
    promised = promises_of(agent)
    if promised.solution is not None:
        played: Source | None = promised.solution(round_.variant).rounds.get(round_.dice)
        if played is not None:
            return played
    by_asking = AgentSource(round_, player, agent, seat, streams, seats)
    if promised.memoryless:
        return Tabled(by_asking, round_, player)
    if promised.network is not None and (numbers := promised.network(round_.variant)) is not None:
        return Networked(round_, player, numbers, by_asking.observe)
    return by_asking


# --- what an agent's play depends on ------------------------------------------------------------------------------


def past_rounds_matter(variant: Variant, agent: Any, seed: int = 0) -> bool | None:
    """Return whether dice and bids that calls have shown in past rounds make a difference to an agent.

    An agent may promise that they make none (`looks_back=False`, or `memoryless`). Any other is asked at positions of
    random play after the first round: as if no call had been seen, with the calls seen there, and with each of PASTS.

    Returns:
        True where a difference was seen, False where there can be none, None where none was seen, and where answers are
        random (`is_random`).
    """
    options = variant.options
    if options.rounds == "single" or sum(options.dice_per_seat) == 2:
        return False  # there are no past rounds
    promised = promises_of(agent)
    if promised.memoryless or not promised.looks_back:
        return False
    if promised.observes_only and not options.past_rounds:
        return False  # it does not observe them
    if is_random(agent):
        return None
    states = positions_of_play(variant, seed)
    states = states[states["in_play"] < sum(options.dice_per_seat)]
    states = states[np.linspace(0, len(states) - 1, min(PROBED, len(states))).astype(np.int64)]
    forgotten, fresh = states.copy(), Batch(variant, 1, seed).states
    for name in OF_THE_PAST:
        forgotten[name] = fresh[name]
    everywhere, streams = np.arange(len(states)), new_streams(seed, len(states))

    def answers(positions: np.ndarray) -> np.ndarray:
        return chances_of(agent, Turn(variant, positions, everywhere, streams.copy()))

    expected = answers(forgotten)

    def matters(positions: np.ndarray) -> bool:
        found = answers(positions)
        if np.abs(found - expected).max() <= SAME:
            return False
        return all(np.array_equal(answers(positions), found) for _ in range(STEADY))  # else the answers are random

    if matters(states):
        return True
    for shown, honest in PASTS:
        forgotten["bids_shown"][:, : options.num_players], forgotten["bids_honest"][:, : options.num_players] = shown, honest
        if matters(forgotten):
            return True
    return None


_OF_PAST_ROUNDS = {
    True: "the best response is to how the agent plays before it has seen a call; past rounds matter to it, so the figure is "
    "neither an upper nor a lower bound of what can be won from it",
    None: f"past rounds made no difference to the agent at {PROBED} positions; it does not declare that they never do",
}
_RANDOM = "whether past rounds matter to the agent is not known, since its answers are random"


def note_on_past_rounds(variant: Variant, agent: Any, seed: int = 0) -> str | None:
    """Return what a reader of a measure should know of an agent to which past rounds may matter; None of any other."""
    matters = past_rounds_matter(variant, agent, seed)
    return _RANDOM if matters is None and is_random(agent) else _OF_PAST_ROUNDS.get(matters)


def fixed_in_a_round(variant: Variant, players: Sequence[Any], what: str) -> contextlib.AbstractContextManager[None]:
    """A block in which players are asked whose probabilities have to be fixed, and depend on one round only.

    Raises:
        ValueError: they are not, as far as can be seen before, within and after the block; `what` is not known of the player.
    """
    only = f"{what} is known for agents"
    for player in itertools.chain.from_iterable(map(parts_of, players)):
        if fresh_memory(player.agent, 1) is not None:
            raise ValueError(f"{player.name} remembers past games: {only} that look at one round only")

    def check(player: Any) -> None:
        if past_rounds_matter(variant, player):
            raise ValueError(f"past rounds matter to {player.name}: {only} that look at one round only")

    return fixed(variant, players, only, check)
