"""Any game as an OpenSpiel game: OpenSpiel's algorithms run on it, and agents and policies go both ways.

`openspiel_game("liars_dice", num_dice=1)` makes a `pyspiel.Game`. Importing this module also registers every game, so that
`pyspiel.load_game("dice_envs_liars_dice(num_dice=1)")` gives the same.

Chance
    `chance="explicit"`: every draw of the game is a chance node with all its outcomes and their probabilities
    (`dice_envs.core.chance`), so that exact algorithms run. `chance="sampled"`: one chance node with a single outcome stands
    for the deal, and for all that is drawn after an action; applying it draws. That is much faster where many dice fall, and
    the only way for a game whose chance cannot be enumerated.

What a player knows
    An observation is what the game's own `observe` says. An information state is the observations that the player has had
    after the deal and after each action, and its own actions among them: perfect recall. With `perfect_recall=False` it is
    the observation of the moment, as our agents see it. That merges information sets, which algorithms for perfect recall
    bear where what is forgotten has no influence on what is to come.
    As strings both list entries of the observation that are not 0, or have changed, as INDEX=VALUE; `dice_envs.layout` says
    what they mean. `|` begins a new observation, `>ACTION` is an own action.

Returns
    As OpenSpiel's search wants it, all that a seat has earned is paid at the end (`RewardModel.TERMINAL`).
    A seat that is out before the end stays in the game and has no more moves.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from typing import Any, get_args, get_type_hints

import numpy as np

try:
    import pyspiel
    from open_spiel.python.policy import Policy
except ImportError as problem:
    raise ImportError("dice_envs.envs.openspiel needs OpenSpiel: pip install 'dice-envs[openspiel]'") from problem

from dice_envs.agent import Turn, ask_probabilities, draw_actions
from dice_envs.core.chance import MAX_DRAWS, MAX_OUTCOMES, Draw, Drawn, can_be_enumerated
from dice_envs.core.dice import new_streams
from dice_envs.core.game import MAX_SEATS, OVER, Game, Variant, configure, load, names
from dice_envs.core.options import check_choice, check_range, parse_options, shown
from dice_envs.exact import asked
from dice_envs.pictures.render import ansi

__all__ = ["AgentPolicy", "DiceGame", "DiceState", "PolicyAgent", "estimate_positions", "openspiel_game"]

PREFIX = "dice_envs_"  # of the registered names
MAX_INT = 2**31 - 1  # OpenSpiel counts in C++'s int
MAX_TENSOR = 2**20  # entries; games whose information states would take more offer them as strings only
MAX_KEPT = 2**15  # positions a game keeps, so that algorithms that walk the same tree again and again find them there
NOT_GIVEN = -(2**31)  # the default of parameters for whole numbers that are None by default
DEAL = -1  # in place of an action: what is drawn before the first one
CHANCE_MODES = ("explicit", "sampled")
SETTINGS = {"chance": "", "more": "", "perfect_recall": True, "rng_seed": -1}  # parameters of every registered game


# --- positions ----------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, eq=False)
class _Position:
    """Where a game stands. Never changed, so that copies of a state share it."""

    record: np.ndarray  # (1,) of the game's state, before what `action` leads to where a draw is open; zeros before the deal
    returns: tuple[float, ...]  # earned so far
    logs: tuple[str, ...]  # each seat's information state with perfect recall
    observations: np.ndarray  # (seats, observation_size) float32; zeros before the deal
    legal: list[int]  # actions of the seat to move; none where a draw is open
    action: int | None = DEAL  # what has been done, where a draw is open; None at a decision and at the end
    outcomes: tuple[int, ...] = ()  # of the draws that followed it
    draw: Draw | None = None  # the open one; None where chance is sampled
    next: dict[int, _Position] = dataclasses.field(default_factory=dict)  # positions that followed this one

    def __deepcopy__(self, memo: Any) -> _Position:
        return self

    def __reduce__(self) -> Any:
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        draw = self.draw and self.draw._replace(words=str)  # the words are a function, which the next run makes again
        return functools.partial(_Position, **{**values, "next": {}, "draw": draw}), ()

    @property
    def seat(self) -> int:
        """The seat to move, or OVER."""
        return int(self.record["seat"][0])

    @functools.cached_property
    def views(self) -> tuple[str, ...]:
        """What each seat sees now, without what it has seen before."""
        return tuple(f"p{seat}|{_entries(np.zeros_like(seen), seen)}" for seat, seen in enumerate(self.observations))


def _entries(before: np.ndarray, after: np.ndarray) -> str:
    """The entries of an observation that differ from an earlier one; nine digits tell every float32 apart."""
    return " ".join(f"{at}={after[at]:.9g}" for at in np.flatnonzero(before != after))


# --- the game -----------------------------------------------------------------------------------------------------


class DiceGame(pyspiel.Game):
    """A game as OpenSpiel sees it. Made by `openspiel_game` or `pyspiel.load_game`.

    Attributes:
        variant: the game with its options.
        chance: "explicit" or "sampled".
        perfect_recall: whether information states hold all that a player has seen, or the observation of the moment.
    """

    def __init__(self, variant: Variant, chance: str | None = None, perfect_recall: bool = True, rng_seed: int = -1) -> None:
        explicit = can_be_enumerated(variant.game)
        check_choice("chance", chance, (None, *CHANCE_MODES))
        check_choice("perfect_recall", perfect_recall, (True, False))
        check_range("rng_seed", rng_seed, -1, MAX_INT)
        if chance == "explicit" and not explicit:
            raise ValueError(
                f"chance must be 'sampled' for {variant.game.name}, whose chance cannot be enumerated, not {chance!r}"
            )
        self.variant = variant
        self.chance = chance or CHANCE_MODES[not explicit]
        self.perfect_recall = perfect_recall
        self._drawn = Drawn(variant) if self.chance == "explicit" else None
        self._rng = np.random.default_rng(None if rng_seed < 0 else rng_seed)
        self._kept = 0
        facts = variant.facts
        self._seats = np.arange(facts.num_seats)
        self._rows = np.zeros(facts.num_seats, np.int64)
        blank = np.zeros(1, variant.game.state)
        nothing = np.zeros((facts.num_seats, facts.observation_size), np.float32)
        logs = tuple(f"p{seat}" for seat in range(facts.num_seats))
        start = _Position(blank, (0.0,) * facts.num_seats, logs, nothing, [])
        self._start = dataclasses.replace(start, draw=self._drawn.deal(blank.copy()[0])) if self._drawn else start
        # A step without a draw has no chance node, but nothing says beforehand which steps those are.
        nodes = (facts.max_steps + 1) * (MAX_DRAWS if self._drawn else 1)
        self._most_chance_nodes = min(nodes, MAX_INT - facts.max_steps)
        kind = _game_type(variant, self.chance, self.tensor_shape(True) is not None)
        info = pyspiel.GameInfo(
            num_distinct_actions=facts.num_actions,
            max_chance_outcomes=MAX_OUTCOMES if self._drawn else 1,
            num_players=facts.num_seats,
            min_utility=facts.min_return,
            max_utility=facts.max_return,
            utility_sum=0.0 if facts.zero_sum else None,
            max_game_length=facts.max_steps,
        )
        super().__init__(kind, info, _parameters(variant, chance, perfect_recall, rng_seed))

    def new_initial_state(self) -> DiceState:
        return DiceState(self)

    def make_py_observer(self, iig_obs_type: Any = None, params: Any = None) -> _Observer | None:
        """An observer of all that a player sees; None for other kinds of observation.

        Raises:
            ValueError: `params` are not supported.
        """
        if params:
            raise ValueError(f"observers take no parameters, not {shown(params)}")
        kind = iig_obs_type or pyspiel.IIGObservationType(perfect_recall=False)
        if not kind.public_info or kind.private_info != pyspiel.PrivateInfoType.SINGLE_PLAYER:
            return None
        return _Observer(self, kind.perfect_recall and self.perfect_recall)

    def max_chance_nodes_in_history(self) -> int:
        return self._most_chance_nodes

    def tensor_shape(self, perfect_recall: bool) -> tuple[int, int] | None:
        """The shape of what a player has seen: a row for each observation, and the own action that led to it.

        None where an information state would have more than MAX_TENSOR entries.
        """
        facts = self.variant.facts
        if not (perfect_recall and self.perfect_recall):
            return 1, facts.observation_size
        shape = facts.max_steps + 1, facts.observation_size + facts.num_actions
        return shape if shape[0] * shape[1] <= MAX_TENSOR else None

    def position_of(self, record: Any) -> _Position:
        """A state record where nothing is to be drawn, with what its seats see of it now and no history."""
        records = np.array([record], self.variant.game.state)
        observations, legal = self._seen(records)
        position = _Position(records, (0.0,) * len(self._seats), (), observations, legal, None)
        return dataclasses.replace(position, logs=position.views)

    def after(self, position: _Position, action: int) -> _Position:
        """The position after an action, or after an outcome of the open draw."""
        found = position.next.get(action)
        if found is None:
            found = self._sampled(position, action) if self._drawn is None else self._enumerated(self._drawn, position, action)
            # What is sampled differs each time.
            if self._kept < MAX_KEPT and (self._drawn or position.action is None):
                position.next[action] = found
                self._kept += 1
        return found

    def _enumerated(self, drawn: Drawn, position: _Position, action: int) -> _Position:
        made, outcomes = (action, ()) if position.action is None else (position.action, (*position.outcomes, action))
        record = position.record.copy()
        draw = drawn.deal(record[0], outcomes) if made == DEAL else drawn.play(record[0], made, outcomes)
        if draw is None:
            return self._arrived(position, made, record)
        return dataclasses.replace(position, legal=[], action=made, outcomes=outcomes, draw=draw, next={})

    def _sampled(self, position: _Position, action: int) -> _Position:
        record = position.record.copy()
        kernels, params, first = self.variant.kernels, self.variant.params, self._rows[:1]
        if position.action is None:
            kernels.play(params, record, first, np.array([action]))
            if record["rng"][0] != position.record["rng"][0]:  # something was drawn, so a chance node comes first
                return dataclasses.replace(position, legal=[], action=action, next={})
            return self._arrived(position, action, record)
        record["rng"] = self._rng.integers(2**64, dtype=np.uint64)
        if position.action == DEAL:
            kernels.deal(params, record, first)
        else:
            kernels.play(params, record, first, np.array([position.action]))
        return self._arrived(position, position.action, record)

    def _arrived(self, position: _Position, action: int, record: np.ndarray) -> _Position:
        """The position in which nothing is left to draw."""
        observations, legal = self._seen(record)
        mover = OVER if action == DEAL else position.seat
        logs = tuple(
            f"{log}|{f'>{action} ' if seat == mover else ''}{_entries(before, after)}"
            for seat, (log, before, after) in enumerate(zip(position.logs, position.observations, observations, strict=True))
        )
        earned = [0.0] * len(logs) if action == DEAL else record["rewards"][0, : len(logs)].tolist()
        returns = tuple(sum(pair) for pair in zip(position.returns, earned, strict=True))
        return _Position(record, returns, logs, observations, legal, None)

    def _seen(self, record: np.ndarray) -> tuple[np.ndarray, list[int]]:
        """What every seat sees, (seats, observation_size) float32, and the legal actions."""
        variant, facts = self.variant, self.variant.facts
        observations = np.empty((facts.num_seats, facts.observation_size), np.float32)
        variant.kernels.observe(variant.params, record, self._rows, self._seats, observations)
        mask = np.empty((1, facts.num_actions), np.int8)
        variant.kernels.legal(variant.params, record, self._rows[:1], mask)
        return observations, np.flatnonzero(mask[0]).tolist()


def _game_type(variant: Variant, chance: str, has_tensor: bool, seats: tuple[int, int] | None = None) -> pyspiel.GameType:
    """What OpenSpiel knows of a game; `seats` are the least and the most players, those of the variant by default."""
    facts, game = variant.facts, variant.game
    least, most = seats or (facts.num_seats, facts.num_seats)
    kind = pyspiel.GameType
    return kind(
        short_name=PREFIX + game.name,
        long_name=f"{game.title} (dice-envs)",
        dynamics=kind.Dynamics.SEQUENTIAL,
        chance_mode=kind.ChanceMode.EXPLICIT_STOCHASTIC if chance == "explicit" else kind.ChanceMode.SAMPLED_STOCHASTIC,
        information=kind.Information.IMPERFECT_INFORMATION,
        utility=kind.Utility.ZERO_SUM if facts.zero_sum else kind.Utility.GENERAL_SUM,
        reward_model=kind.RewardModel.TERMINAL,
        max_num_players=most,
        min_num_players=least,
        provides_information_state_string=True,
        provides_information_state_tensor=has_tensor,
        provides_observation_string=True,
        provides_observation_tensor=True,
        parameter_specification={**_default_parameters(game), **SETTINGS},
    )


class DiceState(pyspiel.State):
    """A state of a `DiceGame`.

    Attributes:
        position: where the game stands.
    """

    def __init__(self, game: DiceGame, position: _Position | None = None) -> None:
        super().__init__(game)
        self.position = game._start if position is None else position

    def current_player(self) -> int:
        if self.position.action is not None:
            return pyspiel.PlayerId.CHANCE
        return pyspiel.PlayerId.TERMINAL if self.position.seat == OVER else self.position.seat

    def is_terminal(self) -> bool:
        return self.position.action is None and self.position.seat == OVER

    def _legal_actions(self, player: int) -> list[int]:
        return self.position.legal

    def chance_outcomes(self) -> list[tuple[int, float]]:
        """The outcomes of the open draw with their probabilities; the one outcome 0 where chance is sampled."""
        draw = self.position.draw
        return [(0, 1.0)] if draw is None else list(zip(draw.outcomes, draw.probabilities, strict=True))

    def _apply_action(self, action: int) -> None:
        self.position = self.get_game().after(self.position, action)

    def _action_to_string(self, player: int, action: int) -> str:
        if player != pyspiel.PlayerId.CHANCE:
            return self.get_game().variant.describe_action(action)
        draw = self.position.draw
        return "draw" if draw is None else draw.words(action)

    def returns(self) -> list[float]:
        """What each seat has earned, once the game is over; until then 0."""
        facts = self.get_game().variant.facts
        if not self.is_terminal():
            return [0.0] * facts.num_seats
        # Rewards are float32: a third may exceed the bound, and three thirds 1, by their rounding.
        earned = np.clip(self.position.returns, facts.min_return, facts.max_return)
        inside = (earned > facts.min_return) & (earned < facts.max_return)
        if facts.zero_sum and inside.any():
            earned[inside] -= earned.sum() / inside.sum()
        return earned.tolist()

    def __str__(self) -> str:
        place = self.position
        if place.action == DEAL:
            text = "before the deal"
        else:
            variant = self.get_game().variant
            text = ansi(variant.picture(place.record[0]))
            if place.action is not None:
                text += f"\n{variant.describe_action(place.action)}, then chance"
        return text + "".join(f" {outcome}" for outcome in place.outcomes)


class _Observer:
    """What one player sees, as OpenSpiel's observers give it.

    Attributes:
        tensor: `dict`'s entries one after the other, float32; None where it would be too large.
        dict: "player", one-hot, and "seen": the observation, or, with perfect recall, a row for each observation so far and
            the own action that led to it, one-hot.
    """

    def __init__(self, game: DiceGame, perfect_recall: bool) -> None:
        self._perfect_recall = perfect_recall
        self._size = game.variant.facts.observation_size
        shape = game.tensor_shape(perfect_recall)
        self.tensor: np.ndarray | None = None
        self.dict: dict[str, np.ndarray] = {}
        if shape is not None:
            players = game.variant.facts.num_seats
            self.tensor = np.zeros(players + shape[0] * shape[1], np.float32)
            self.dict = {"player": self.tensor[:players], "seen": self.tensor[players:].reshape(shape)}

    def set_from(self, state: DiceState, player: int) -> None:
        if self.tensor is None:
            return
        self.tensor[:] = 0
        self.dict["player"][player] = 1
        seen = self.dict["seen"]
        if not self._perfect_recall:
            seen[0] = state.position.observations[player]
            return
        for row, told in enumerate(state.position.logs[player].split("|")[1:]):
            if row > 0:
                seen[row, : self._size] = seen[row - 1, : self._size]
            for word in told.split():
                if word[0] == ">":
                    seen[row, self._size + int(word[1:])] = 1
                else:
                    at, value = word.split("=")
                    seen[row, int(at)] = float(value)

    def string_from(self, state: DiceState, player: int) -> str:
        if self._perfect_recall:
            return state.position.logs[player]
        return state.position.views[player]


# --- names and parameters -----------------------------------------------------------------------------------------


def openspiel_game(
    game: str | Game | Variant,
    /,
    *,
    chance: str | None = None,
    perfect_recall: bool = True,
    rng_seed: int = -1,
    **options: Any,
) -> DiceGame:
    """A game as an OpenSpiel game.

    Args:
        game: name, Game or Variant.
        chance: "explicit": every draw is a chance node with all its outcomes; "sampled": they are drawn when the one
            outcome of a chance node is applied. None: explicit where that is possible.
        perfect_recall: False: a player's information state is its observation of the moment, as our agents see it.
        rng_seed: seeds what is sampled; −1 for fresh entropy.
        options: the game's options.

    Raises:
        ValueError: an option or setting is not allowed; the message names it, its value and what is allowed.
    """
    return DiceGame(configure(game, **options), chance, perfect_recall, rng_seed)


_READ_AS_NUMBER = re.compile(r"[-+0-9.]*|[Tt]rue|[Ff]alse")  # what OpenSpiel takes for a number or a truth value


def _text(value: Any) -> str:
    """An option's value in a game string, where commas separate parameters: `6/6/8`, `6/` for a list of one."""
    if isinstance(value, tuple):
        return "/".join(map(str, value)) + "/" * (len(value) == 1)
    return "none" if value is None else str(value)


def _value(name: str, text: str) -> Any:
    """The option's value that `_text` has written."""
    return parse_options([f"{name}={text.replace('/', ',')}"])[name]


def _default_parameters(game: Game) -> dict[str, Any]:
    """The options as parameters of a registered game: whole numbers and truth values stay, all others become text."""
    defaults = dataclasses.asdict(game.options())
    clash = sorted(defaults.keys() & SETTINGS.keys())
    if clash:
        raise ValueError(f"{game.name}: the option {clash[0]} has the name of a setting of dice_envs.envs.openspiel")
    kinds = get_type_hints(game.options)
    numbers = [name for name, value in defaults.items() if value is None and int in get_args(kinds[name])]
    made = {name: value if isinstance(value, (bool, int)) else _text(value) for name, value in defaults.items()}
    return made | dict.fromkeys(numbers, NOT_GIVEN)


def _parameters(variant: Variant, chance: str | None, perfect_recall: bool, rng_seed: int) -> dict[str, Any]:
    """What `pyspiel.load_game` needs to make the same game: the parameters that differ from their defaults."""
    made: dict[str, Any] = {}
    more = []
    defaults = _default_parameters(variant.game)
    for name, value in variant.changed_options().items():
        if type(value) is type(defaults[name]):
            made[name] = value
        elif isinstance(defaults[name], str) and not _READ_AS_NUMBER.fullmatch(_text(value)):
            made[name] = _text(value)
        else:
            more.append(f"{name}:{_text(value)}")
    settings = {"chance": chance or "", "more": " ".join(more), "perfect_recall": perfect_recall, "rng_seed": rng_seed}
    return made | {name: value for name, value in settings.items() if value != SETTINGS[name]}


def _load(name: str, given: dict[str, Any]) -> DiceGame:
    """The game from OpenSpiel's parameters, all of them given."""
    game = load(name)
    options = {
        option: _value(option, given[option]) if isinstance(default, str) else given[option]
        for option, default in _default_parameters(game).items()
        if given[option] != default
    }
    for pair in given["more"].split():
        option, colon, text = pair.partition(":")
        if not option or not colon or not text:
            raise ValueError(f"more must be words such as num_dice:2/1, not {shown(given['more'])}")
        options[option] = _value(option, text)
    return openspiel_game(
        game, chance=given["chance"] or None, perfect_recall=given["perfect_recall"], rng_seed=given["rng_seed"], **options
    )


def _creator(name: str) -> type:
    """What OpenSpiel calls with all parameters to make a game.

    A class: OpenSpiel drops its creators after the interpreter has ended, where freeing a function would abort the process.
    """
    return type(name, (), {"__new__": lambda cls, given: _load(name, given)})


def _register(name: str) -> None:
    game = load(name)
    variant = game.configure()
    mode = CHANCE_MODES[not can_be_enumerated(game)]
    kind = _game_type(variant, mode, has_tensor=True, seats=(1, MAX_SEATS))
    pyspiel.register_game(kind, _creator(name))


for _name in names():
    _register(_name)


# --- agents and policies ------------------------------------------------------------------------------------------


class AgentPolicy(Policy):
    """An agent as an OpenSpiel policy.

    Args:
        game: the game that is played.
        agent: a spec such as "numbers:bluff=0.25", an Agent, or a function from observations and action masks to action
            probabilities, as `dice_envs.measure` takes them. One without probabilities is asked for actions, many times if
            they differ, and the policy is how often it gave each.
        seed: fixes what the agent draws.

    An agent that remembers past games plays as when a match begins.

    Raises:
        ValueError: no such agent, or it does not play the game.
    """

    def __init__(self, game: DiceGame, agent: Any, seed: int = 0) -> None:
        super().__init__(game, list(range(game.num_players())))
        self._agent = asked(agent, game.variant)
        self._streams = new_streams(seed, 1)

    def action_probabilities(self, state: DiceState, player_id: int | None = None) -> dict[int, float]:
        """Every legal action of the seat to move with its probability."""
        turn = Turn(self.game.variant, state.position.record, np.zeros(1, np.int64), self._streams)
        chances = ask_probabilities(self._agent, turn)[0]
        return {action: float(chances[action]) for action in state.legal_actions()}


MOST_WALKED = 10_000_000  # positions: half an hour
_DIVES = 200


def estimate_positions(game: DiceGame) -> float:
    """About how many positions the game's tree has, those of chance included, from random plays.

    A play counts what the tree would have if it were everywhere as wide as on its way: the mean over plays is unbiased.
    Source: D. E. Knuth, Estimating the efficiency of backtrack programs (1975).
    """
    rng, total = np.random.default_rng(0), 0.0
    for _ in range(_DIVES):
        state, width = game.new_initial_state(), 1.0
        while not state.is_terminal():
            total += width
            legal = state.legal_actions()
            width *= len(legal)
            state.apply_action(int(rng.choice(legal)))
        total += width
    return total / _DIVES


class PolicyAgent:
    """An OpenSpiel policy as an agent, for `dice_envs.measure`, tournaments and environments.

    An agent sees the observation of the moment. With perfect recall the policy's information states hold more, so the game's
    tree is walked once to learn which of them goes with an observation; that needs explicit chance and a small game.
    With `perfect_recall=False` the policy is asked as it stands, in games of any size. Where a table has no entry, the agent
    chooses at random: exact measures also ask at positions that no play leads to.

    A policy may treat the seats differently, and an agent made of it does too.

    Args:
        game: the game that the policy is for.
        policy: an `open_spiel.python.policy.Policy` or a `pyspiel.Policy`.

    Raises:
        ValueError: the policy plays in two ways where a player sees the same; or, with perfect recall, chance is sampled or
            the game has about more than MOST_WALKED positions.
    """

    def __init__(self, game: DiceGame, policy: Any) -> None:
        self.game = game
        self.policy = policy
        self._known: dict[tuple[int, bytes], np.ndarray] = {}
        if game.perfect_recall:
            if game.chance != "explicit":
                raise ValueError("a policy with perfect recall is made an agent by walking the tree: chance must be 'explicit'")
            about = estimate_positions(game)
            if about > MOST_WALKED:
                raise ValueError(
                    f"{game.variant} has about {about:.0e} positions, and a policy with perfect recall is made an agent by "
                    f"walking them all: {MOST_WALKED:,} are allowed; make the game with perfect_recall=False, or smaller"
                )
            self._walk()

    def check_variant(self, variant: Variant) -> None:
        """Raise ValueError for another variant than the policy's."""
        if not variant.same_rules(self.game.variant):
            raise ValueError(f"the policy plays {self.game.variant}, not {variant}")

    def act(self, turn: Turn) -> np.ndarray:
        return draw_actions(turn.streams, ask_probabilities(self, turn))

    def probabilities(self, turn: Turn) -> np.ndarray:
        rows = zip(turn.seats.tolist(), turn.observations, strict=True)
        return np.stack([self._at(turn, row, seat, seen) for row, (seat, seen) in enumerate(rows)])

    def _at(self, turn: Turn, row: int, seat: int, seen: np.ndarray) -> np.ndarray:
        key = seat, seen.tobytes()
        if key not in self._known:
            # After a walk, what is not known is never seen in play.
            state = None if self.game.perfect_recall else DiceState(self.game, self.game.position_of(turn.states[row]))
            self._known[key] = turn.legal[row] / turn.legal[row].sum() if state is None else self._asked(state)
        return self._known[key]

    def _asked(self, state: DiceState) -> np.ndarray:
        """The policy's probabilities, (num_actions,) float64."""
        try:
            stated = self.policy.action_probabilities(state)
        except (KeyError, pyspiel.SpielError):  # a table of OpenSpiel's, in Python or C++, has no such information state
            stated = dict.fromkeys(state.legal_actions(), 1 / len(state.legal_actions()))
        chances = np.zeros(self.game.num_distinct_actions())
        for action, probability in stated.items():
            chances[action] = probability
        return chances

    def _walk(self) -> None:
        """Fill `_known` from every position of the game's tree."""
        states = [self.game.new_initial_state()]
        while states:
            state = states.pop()
            if state.is_terminal():
                continue
            if not state.is_chance_node():
                seat = state.current_player()
                chances = self._asked(state)
                key = seat, state.position.observations[seat].tobytes()
                if np.abs(self._known.setdefault(key, chances) - chances).max() > 1e-9:
                    raise ValueError(
                        f"the policy plays in two ways where player {seat} sees the same, and agents see no history: "
                        "make it for a game with perfect_recall=False"
                    )
            states += [state.child(action) for action in state.legal_actions()]
