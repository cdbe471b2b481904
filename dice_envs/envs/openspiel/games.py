"""Games and states as OpenSpiel sees them, its observers, and games by name with options as parameters.

OpenSpiel's parameters are whole numbers, truth values and text. Where commas separate parameters, `/` separates the entries
of a list: `6/6/8`, and `6/` for a list of one. `more` holds the options whose value is not of their parameter's type.
"""

from __future__ import annotations

import dataclasses
import operator
import re
from typing import Any, NamedTuple, get_args, get_type_hints

import numpy as np
import pyspiel

from dice_envs.core.chance import MAX_DRAWS, MAX_OUTCOMES, can_be_enumerated
from dice_envs.core.game import MAX_SEATS, OVER, Game, Variant, configure, load, names
from dice_envs.core.options import check_choice, check_range, parse_options, shown
from dice_envs.envs.openspiel.positions import DEAL, GameTree, Node
from dice_envs.pictures.render import ansi

PREFIX = "dice_envs_"  # of the registered names
CHANCE_MODES = ("explicit", "sampled")
MAX_INT = 2**31 - 1  # OpenSpiel counts in C++'s int
_MAX_TENSOR = 2**20  # entries; games with larger information states offer them as strings only
_NOT_GIVEN = -(2**31)  # the default of parameters for whole numbers that are None by default
_READ_AS_NUMBER = re.compile(r"[-+0-9.]*|[Tt]rue|[Ff]alse")  # text that OpenSpiel takes for a number or a truth value


class DiceGame(pyspiel.Game):
    """A game as OpenSpiel sees it. Made by `openspiel_game` or `pyspiel.load_game`.

    Attributes:
        variant: the game with its options.
        chance: "explicit" or "sampled".
        perfect_recall: whether an information state holds all past observations, or the current one alone.
        positions: the positions, and how they follow each other.
    """

    def __init__(self, variant: Variant, chance: str | None = None, perfect_recall: bool = True, rng_seed: int = -1) -> None:
        explicit = can_be_enumerated(variant.game)
        check_choice("chance", chance, (None, *CHANCE_MODES))
        check_choice("perfect_recall", perfect_recall, (True, False))
        check_range("rng_seed", rng_seed, -1, MAX_INT)
        rng_seed = int(rng_seed)
        if chance == "explicit" and not explicit:
            raise ValueError(
                f"chance must be 'sampled' for {variant.game.name}, whose chance cannot be enumerated, not {chance!r}"
            )
        self.variant = variant
        self.chance = chance or CHANCE_MODES[not explicit]
        self.perfect_recall = perfect_recall
        self.positions = GameTree(variant, self.chance == "explicit", rng_seed)
        self._settings = _Settings(chance or "", perfect_recall, rng_seed)
        facts = variant.facts
        kind = _game_type(variant, self.chance, self.tensor_shape(True) is not None)
        info = pyspiel.GameInfo(
            num_distinct_actions=facts.num_actions,
            max_chance_outcomes=MAX_OUTCOMES if self.chance == "explicit" else 1,
            num_players=facts.num_seats,
            min_utility=facts.min_return,
            max_utility=facts.max_return,
            utility_sum=0.0 if facts.zero_sum else None,
            max_game_length=facts.max_steps,
        )
        super().__init__(kind, info, _parameters_of(variant, self._settings))

    def __reduce__(self) -> Any:
        """Pickle and copy what makes the game again; OpenSpiel's own way knows no sampled chance of games in Python."""
        return DiceGame, (self.variant, self._settings.chance or None, *self._settings[1:]), self.positions.rng

    def __setstate__(self, rng: np.random.Generator) -> None:
        self.positions.rng = rng

    def new_initial_state(self) -> DiceState:
        return DiceState(self)

    def make_py_observer(self, iig_obs_type: Any = None, params: Any = None) -> _Observer | None:
        """Return an observer of all that a player sees; None for other kinds of observation.

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
        """Return an upper bound: steps without a draw have no chance node, and cannot be told from the others beforehand."""
        steps = self.variant.facts.max_steps
        return min((steps + 1) * (MAX_DRAWS if self.chance == "explicit" else 1), MAX_INT - steps)

    def tensor_shape(self, perfect_recall: bool) -> tuple[int, int] | None:
        """Return the shape of an information state: a row for each observation and the own action that led to it.

        None where it would have more than _MAX_TENSOR entries. Without perfect recall there is one row, without an action.
        """
        facts = self.variant.facts
        if not (perfect_recall and self.perfect_recall):
            return 1, facts.observation_size
        shape = facts.max_steps + 1, facts.observation_size + facts.num_actions
        return shape if shape[0] * shape[1] <= _MAX_TENSOR else None


def _game_type(variant: Variant, chance: str, has_tensor: bool, seats: tuple[int, int] | None = None) -> pyspiel.GameType:
    """Describe a game to OpenSpiel. `seats`: the least and the most players; the variant's by default."""
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
        parameter_specification=_default_parameters(game),
    )


class DiceState(pyspiel.State):
    """A state of a `DiceGame`. A copy shares the game, as a clone does; a pickle has its own, with the same random stream.

    Attributes:
        position: the current position.
    """

    def __init__(self, game: DiceGame, position: Node | None = None) -> None:
        super().__init__(game)
        self.position = game.positions.start if position is None else position

    def __reduce__(self) -> Any:
        return operator.methodcaller("deserialize_state", self.serialize()), (self.get_game(),)

    def __copy__(self) -> DiceState:
        return self.clone()

    def __deepcopy__(self, memo: Any) -> DiceState:
        return self.clone()

    def current_player(self) -> int:
        if self.position.action is not None:
            return pyspiel.PlayerId.CHANCE
        return pyspiel.PlayerId.TERMINAL if self.position.seat == OVER else self.position.seat

    def is_terminal(self) -> bool:
        return self.position.action is None and self.position.seat == OVER

    def _legal_actions(self, player: int) -> list[int]:
        return self.position.legal

    def chance_outcomes(self) -> list[tuple[int, float]]:
        """Return the outcomes of the open draw with their probabilities; where chance is sampled, the one outcome 0."""
        draw = self.position.draw
        return [(0, 1.0)] if draw is None else list(zip(draw.outcomes, draw.probabilities, strict=True))

    def apply_action(self, action: Any) -> None:
        """Play an action of the player to move, or an outcome at a chance node.

        Raises:
            IllegalActionError: it is malformed, not legal or impossible; nothing has changed.
        """
        super().apply_action(self.get_game().positions.checked(self.position, action))

    def apply_action_with_legality_check(self, action: Any) -> None:
        """As `apply_action`, which checks, too."""
        self.apply_action(action)

    def child(self, action: Any) -> DiceState:
        """Return the state after an action or an outcome. IllegalActionError as in `apply_action`."""
        after = self.clone()
        after.apply_action(action)
        return after

    def _apply_action(self, action: int) -> None:
        self.position = self.get_game().positions.after(self.position, action)

    def _action_to_string(self, player: int, action: int) -> str:
        if player != pyspiel.PlayerId.CHANCE:
            return self.get_game().variant.describe_action(action)
        draw = self.position.draw
        return "draw" if draw is None else draw.words(self.get_game().positions.checked(self.position, action))

    def returns(self) -> list[float]:
        """Return each seat's total reward once the game is over; 0 until then."""
        facts = self.get_game().variant.facts
        if not self.is_terminal():
            return [0.0] * facts.num_seats
        # Rewards are float32: a share such as a third is rounded, so sums may exceed a bound or differ from zero.
        earned = np.clip(self.position.returns, facts.min_return, facts.max_return)
        inside = (earned > facts.min_return) & (earned < facts.max_return)
        if facts.zero_sum and inside.any():
            earned[inside] -= earned.sum() / inside.sum()
        return earned.tolist()

    def __str__(self) -> str:
        position = self.position
        if position.action == DEAL:
            text = "before the deal"
        else:
            variant = self.get_game().variant
            text = ansi(variant.picture(position.record[0]))
            if position.action is not None:
                text += f"\n{variant.describe_action(position.action)}, then chance"
        return text + "".join(f" {outcome}" for outcome in position.drawn)


class _Observer:
    """What one player sees, in the form of OpenSpiel's observers.

    Attributes:
        tensor: the entries of `dict` one after the other, float32; None where it would be too large.
        dict: "player", one-hot, and "seen": the observation; with perfect recall a row for each observation so far, followed
            by the own action that led to it, one-hot.
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
        check_range("player", player, 0, len(state.position.logs) - 1)
        if self.tensor is None:
            return
        self.tensor[:] = 0
        self.dict["player"][player] = 1
        seen = self.dict["seen"]
        if not self._perfect_recall:
            seen[0] = state.position.observations[player]
            return
        for row, step in enumerate(state.position.logs[player].split("|")[1:]):
            if row > 0:
                seen[row, : self._size] = seen[row - 1, : self._size]
            for word in step.split():
                if word[0] == ">":
                    seen[row, self._size + int(word[1:])] = 1
                else:
                    at, value = word.split("=")
                    seen[row, int(at)] = float(value)

    def string_from(self, state: DiceState, player: int) -> str:
        check_range("player", player, 0, len(state.position.logs) - 1)
        if self._perfect_recall:
            return state.position.logs[player]
        return state.position.views[player]


# --- options as parameters ---------------------------------------------------------------------------------------------


class _Settings(NamedTuple):
    """Parameters of every registered game beside its options, as `openspiel_game` explains them; `chance` "" for None."""

    chance: str = ""
    perfect_recall: bool = True
    rng_seed: int = -1


def _default_parameters(game: Game) -> dict[str, Any]:
    """Return every parameter of a game with its default: whole numbers and truth values as such, other options as text."""
    defaults = dataclasses.asdict(game.options())
    settings = {"more": "", **_Settings()._asdict()}
    clash = sorted(defaults.keys() & settings.keys())
    if clash:
        raise ValueError(f"{game.name}: the option {clash[0]} has the name of a setting of dice_envs.envs.openspiel")
    kinds = get_type_hints(game.options)
    made = {name: value if isinstance(value, (bool, int)) else _text(value) for name, value in defaults.items()}
    numbers = [name for name, value in defaults.items() if value is None and int in get_args(kinds[name])]
    return made | dict.fromkeys(numbers, _NOT_GIVEN) | settings


def _parameters_of(variant: Variant, settings: _Settings) -> dict[str, Any]:
    """Return the parameters that differ from their defaults: with them `pyspiel.load_game` makes the same game."""
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
    others = {"more": " ".join(more), **settings._asdict()}
    return made | {name: value for name, value in others.items() if value != defaults[name]}


def _options_of(game: Game, given: dict[str, Any]) -> dict[str, Any]:
    """Return the options that a complete dict of OpenSpiel's parameters gives.

    Raises:
        ValueError: `more` is not written as it should be.
    """
    options = {
        name: _value(name, given[name]) if isinstance(default, str) else given[name]
        for name, default in _default_parameters(game).items()
        if name not in ("more", *_Settings._fields) and given[name] != default
    }
    for pair in given["more"].split():
        name, colon, text = pair.partition(":")
        if not name or not colon or not text:
            raise ValueError(f"more must be words such as num_dice:2/1, not {shown(given['more'])}")
        options[name] = _value(name, text)
    return options


def _text(value: Any) -> str:
    """Write an option's value as text."""
    if isinstance(value, tuple):
        return "/".join(map(str, value)) + "/" * (len(value) == 1)
    return "none" if value is None else str(value)


def _value(name: str, text: str) -> Any:
    """Read an option's value that `_text` has written."""
    return parse_options([f"{name}={text.replace('/', ',')}"])[name]


# --- games by name ----------------------------------------------------------------------------------------------------


def openspiel_game(
    game: str | Game | Variant,
    /,
    *,
    chance: str | None = None,
    perfect_recall: bool = True,
    rng_seed: int = -1,
    **options: Any,
) -> DiceGame:
    """Make an OpenSpiel game.

    Args:
        game: name, Game or Variant.
        chance: "explicit": every draw is a chance node with all its outcomes; "sampled": a chance node has one outcome, and
            applying it draws. None: explicit where possible.
        perfect_recall: False: a player's information state is its current observation, as our agents see it.
        rng_seed: seeds sampled chance; −1 for fresh entropy.
        options: the game's options.

    Raises:
        ValueError: an option or setting is not allowed; the message names it, its value and what is allowed.
    """
    return DiceGame(configure(game, **options), chance, perfect_recall, rng_seed)


def register_all() -> None:
    """Register every game with OpenSpiel."""
    for name in names():
        game = load(name)
        mode = CHANCE_MODES[not can_be_enumerated(game)]
        kind = _game_type(game.configure(), mode, has_tensor=True, seats=(1, MAX_SEATS))
        pyspiel.register_game(kind, _creator(name))


def _creator(name: str) -> type:
    """Return what OpenSpiel calls, with all parameters, to make a game.

    A class, because OpenSpiel drops its creators after the interpreter has ended, when freeing a function aborts the process.
    """

    def make(cls: type, given: dict[str, Any]) -> DiceGame:
        variant = configure(name, **_options_of(load(name), given))
        return DiceGame(variant, given["chance"] or None, given["perfect_recall"], given["rng_seed"])

    return type(name, (), {"__new__": make})
