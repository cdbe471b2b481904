"""The contract that every game fulfils, its kernels compiled into loops over many states, and the discovery of games.

A game is a module of `dice_envs/games` whose last statement is `GAME = Game.of(globals(), ...)`. Environments, agents,
search, solvers and tournaments know games only through this contract.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import importlib.util
import inspect
import pkgutil
import types
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, get_args, get_type_hints

import gymnasium
import numpy as np

from dice_envs.core.dice import choose_from_mask, next_u64, uniform
from dice_envs.core.kernel import kernel
from dice_envs.core.options import Label, check_range, did_you_mean, options_text, python_value, shown
from dice_envs.core.state import MAX_SEATS, OVER, end_game
from dice_envs.core.view import Block, Move, Picture, naming, seat_name

PLACEHOLDER = "options"  # a reset option that PettingZoo's API tests pass to every environment; ignored


@dataclasses.dataclass(frozen=True, kw_only=True)
class Facts:
    """Promises of a game with given options; the conformance tests check them for every game."""

    num_seats: int
    num_actions: int  # actions are 0 … num_actions − 1
    observation_size: int = 0  # length of one observation, float32 in [0, 1]; `Variant` sums it from the game's blocks
    min_return: float  # least and greatest sum of one seat's rewards over a game
    max_return: float
    zero_sum: bool  # all seats' returns add up to 0; with two seats, so do the rewards of every step
    simultaneous: bool  # seats commit without seeing each other's choice: a parallel environment exists
    max_steps: int  # the most actions in one game, all seats together
    cooperative: bool = False  # all seats are paid the same, so they play as a team
    winning_return: float | None = None  # for a team or a single seat: a return of at least this is a win
    # Whatever is played, a higher return has a chance of less than one in ten million; None: `max_return`.
    max_likely_return: float | None = None

    @property
    def likely_returns(self) -> tuple[float, float]:
        """Bounds of what one seat is paid in nearly every game, for intervals of means and for scales."""
        return self.min_return, self.max_return if self.max_likely_return is None else self.max_likely_return


# --- the kernels of a game --------------------------------------------------------------------------------------
# They work in place. In all of them `params` is the NamedTuple that the game's `params` returns, `state` one record of
# its dtype `state`, and `seat` a seat, 0 … num_seats − 1.


class Deal(Protocol):
    """Start a game: set every field of the state except `rng`, the random stream, which the caller has seeded."""

    def __call__(self, params: Any, state: Any, /) -> None: ...


class Legal(Protocol):
    """Set `mask[a] = 1` for each legal action `a` of the seat to move. `mask`, (num_actions,) int8, holds zeros before."""

    def __call__(self, params: Any, state: Any, mask: Any, /) -> None: ...


class Play(Protocol):
    """Play a legal action of the seat to move, and every roll that follows, up to the next decision or the end.

    Sets `rewards` to each seat's reward for this step, `seat` to the next to move, and `out` of seats whose game ends.
    """

    def __call__(self, params: Any, state: Any, action: int, /) -> None: ...


class Observe(Protocol):
    """Write what the seat sees into `out`, as `blocks` lays it out. `out`, (observation_size,) float32, holds zeros before."""

    def __call__(self, params: Any, state: Any, seat: int, out: Any, /) -> None: ...


class RerollHidden(Protocol):
    """Draw again all that is hidden from the seat, from its distribution given what the seat has seen. Change nothing else.

    The caller has given the state a fresh random stream.
    """

    def __call__(self, params: Any, state: Any, seat: int, /) -> None: ...


class Hold(Protocol):
    """Give the seat a hand, one of `Variant.hands`, in place of its own, whose moves stay. Change nothing else."""

    def __call__(self, params: Any, state: Any, seat: int, hand: Any, /) -> None: ...


class RandomAction(Protocol):
    """A uniformly random legal action of the seat to move, drawn from the state's own stream."""

    def __call__(self, params: Any, state: Any, /) -> int: ...


class IsLegal(Protocol):
    """Whether the action, 0 … num_actions − 1, is legal for the seat to move: as `legal` says, but without a mask."""

    def __call__(self, params: Any, state: Any, action: int, /) -> bool: ...


class Retract(Protocol):
    """Undo the commitments that are not revealed yet: the first seat to commit moves again. Without any, do nothing."""

    def __call__(self, params: Any, state: Any, /) -> None: ...


class Expect(Protocol):
    """Play a legal action, taking the expectation over the dice.

    Writes each seat's expected reward into `rewards`, (num_seats,) float64 or the state's own field of that name, and
    returns the probability that the game continues. The state becomes the non-terminal outcome.
    """

    def __call__(self, params: Any, state: Any, action: int, rewards: Any, /) -> float: ...


class Arrange(Protocol):
    """Change a state just dealt to the position that reset options describe. A plain function, not a kernel.

    `options` are the game's options. `wanted` holds reset options: at least one of `Game.reset_options`, and no others.
    Raises ValueError, and changes nothing, if they are malformed.
    """

    def __call__(self, options: Any, state: Any, wanted: Mapping[str, Any], /) -> None: ...


_CONTRACTS = (Deal, Legal, Play, Observe, RerollHidden, Hold, RandomAction, IsLegal, Retract, Expect, Arrange)


class UnknownOptionError(ValueError, TypeError):
    """A game has no option of this name. Also a TypeError, which Python raises for unknown keyword arguments.

    Attributes:
        option: its name.
    """

    def __init__(self, message: str, option: str = "") -> None:
        super().__init__(message)
        self.option = option


@dataclasses.dataclass(frozen=True, eq=False)
class Game:
    """One game: its options, its state and its rules as kernels. `docs/extend/game.md` shows how to write one.

    The types of the kernels, such as `Deal`, explain their arguments.
    """

    name: str  # as in commands and module names: "liars_dice"
    env_name: str  # as in Gymnasium ids: "LiarsDice" for "dice_envs/LiarsDice-v0"
    title: str  # as people write it: "Liar's Dice"
    options: type  # frozen dataclass; raises ValueError from __post_init__
    state: np.dtype[Any]
    params: Callable[[Any], Any]  # options → NamedTuple of numbers
    facts: Callable[[Any], Facts]  # options → Facts, all but the observation's size
    blocks: Callable[[Any], tuple[Block, ...]]  # options → the observation's layout, in order
    deal: Deal
    legal: Legal
    play: Play
    observe: Observe
    reroll_hidden: RerollHidden
    describe_action: Callable[[Any, int], str]  # (options, action) → words, as a `Move` if it has parts
    picture: Callable[[Any, Any, int | None], Picture]  # (options, state, viewer; None sees all)
    full_picture: Callable[[Any], Picture]  # options → a picture that needs the most room; images have its size
    random_action: RandomAction | None = None  # optional: faster than a draw from a mask
    is_legal: IsLegal | None = None  # optional: faster than a look into a mask
    reset_options: tuple[str, ...] = ()  # names that `reset(options=...)` of every environment takes
    arrange: Arrange | None = None  # deals the position that they describe
    gym_options: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # other defaults for `gym.make`
    # (options, state, action) → one line that says why the action is not legal now, or "". It may use only what the seat to
    # move knows.
    explain_illegal: Callable[[Any, Any, int], str] | None = None
    # (options, state, action, chance) → why the action may be best, given the chance that what it claims is true, in a sentence
    # for people. It may use only what the seat to move knows.
    reason: Callable[[Any, Any, int, float], str] | None = None
    seat_names: Callable[[Any], Sequence[str]] | None = None  # options → the players' names; empty: numbers
    # options → the rules in force, in a few sentences for people who have never played; if left out, the docstring's "Play"
    rules_in_short: Callable[[Any], Sequence[str]] | None = None
    labels: Mapping[str, Label] = dataclasses.field(default_factory=dict)  # option → how players read it
    first_game: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # options of a short game to learn with
    known_as: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)  # another title → options it stands for
    usual_table: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)  # such a title → others at first
    # Optional. Search uses `retract` and `expect`. Training on expected rewards needs `expect` or `play_expected`. The latter
    # plays and draws as `play` does, but pays the expected reward, given at least what the seat to move knows.
    retract: Retract | None = None
    expect: Expect | None = None
    play_expected: Play | None = None
    # Optional, for training: options → all hands that each seat may hold, an array (hands, …), and their chances, whatever the
    # others hold; None where a game deals more than once. Which actions are legal must not depend on hands.
    hands: Callable[[Any], tuple[np.ndarray, np.ndarray] | None] | None = None
    hold: Hold | None = None

    @classmethod
    def of(cls, module: Mapping[str, Any], /, **parts: Any) -> Game:
        """The game that a module defines: `GAME = Game.of(globals(), name="pig", env_name="Pig", title="Pig")`.

        Parts are found by name: the dataclass `Options`, the dtype `STATE`, the dictionary `LABELS`, and functions such as
        `deal` or `_picture` (a leading underscore does not matter). `parts` adds others, or replaces those.
        """
        found: dict[str, Any] = {
            "options": module.get("Options"),
            "state": module.get("STATE"),
            "labels": module.get("LABELS", {}),
        }
        for part in (field.name for field in dataclasses.fields(cls)):
            function = module.get(part, module.get(f"_{part}"))
            if callable(function):
                found[part] = function
        found |= parts
        required = (each for each in dataclasses.fields(cls) if each.default is each.default_factory is dataclasses.MISSING)
        missing = [field.name for field in required if found.get(field.name) is None]
        if missing:
            raise TypeError(f"the game {found.get('name', '')} lacks {', '.join(missing)}")
        return cls(**found)

    def __post_init__(self) -> None:
        for name, hint in get_type_hints(Game).items():
            function = vars(self)[name]  # None where a kernel is left out
            for contract in (each for each in _CONTRACTS if function and (each is hint or each in get_args(hint))):
                given = list(inspect.signature(function).parameters)
                wanted = list(inspect.signature(contract.__call__).parameters)[1:]
                if len(given) != len(wanted):
                    raise TypeError(f"{self.name}: {name} must take ({', '.join(wanted)}), not ({', '.join(given)})")
        if unknown := self.labels.keys() - {field.name for field in dataclasses.fields(self.options)}:
            raise TypeError(f"{self.name}: labels name no option: {', '.join(sorted(unknown))}")
        if bool(self.reset_options) != (self.arrange is not None):
            raise TypeError(f"{self.name}: reset_options name what arrange takes, so a game has both or neither")
        if (self.hands is None) != (self.hold is None):
            raise TypeError(f"{self.name}: hold gives a seat one of its hands, so a game has both or neither")

    @functools.cached_property
    def word_options(self) -> tuple[str, ...]:
        """The names of the options that change words alone (see `words`)."""
        return tuple(field.name for field in dataclasses.fields(self.options) if field.metadata.get("words"))

    def configure(self, /, **options: Any) -> Variant:
        """This game with options fixed. Raises ValueError naming the option, its value and what is allowed."""
        known = [field.name for field in dataclasses.fields(self.options)]
        for name in options:
            if name not in known:
                message = (
                    f"{self.name} has no option {shown(name)}; its options are: {', '.join(known)}{did_you_mean(name, known)}"
                )
                raise UnknownOptionError(message, name)
        return Variant(self, self.options(**{name: python_value(value) for name, value in options.items()}))


# --- loops over many states -----------------------------------------------------------------------------------


class Kernels(NamedTuple):
    """A variant's compiled loops.

    `index` (m,) int64 lists the games of `states` to work on; row k of every other array belongs to game index[k].
    Outputs are written in place.
    """

    deal: Callable[..., None]  # (states, index)
    legal: Callable[..., None]  # (states, index, masks (m, actions) int8)
    play: Callable[..., None]  # (states, index, actions (m,)): the actions must be legal
    first_illegal: Callable[..., int]  # (states, index, actions (m,)): row of the first illegal action, or −1
    checked_play: Callable[..., int]  # as first_illegal; if all actions are legal, plays them
    observe: Callable[..., None]  # (states, index, seats (m,), out (m, size) float32)
    reroll: Callable[..., None]  # (states, index, seats, streams (m,), out (m,) states)
    # (states, index, numbers (m,), plays, out, masks): observe, and legal where the seat is to move. The numbers are the seats;
    # or, with `plays`, actions for `checked_play`, whose result it returns; the seats are then those that are to move next.
    view: Callable[..., int]
    playouts: Callable[..., int]  # (states, steps): random play, dealing again after each end; returns games ended


@functools.cache
def compile_check(game: Game) -> Callable[..., bool]:
    """The kernel `(params, state, action, mask) → bool`: whether an integer is a legal action now.

    `mask` (actions,) int8 is overwritten.
    """
    legal, is_legal = game.legal, game.is_legal

    @kernel(allocates=False)
    def may_play(params, state, action, mask):
        if state["seat"] == OVER or action < 0 or action >= len(mask):
            return False
        if is_legal is not None:
            return is_legal(params, state, action)
        for a in range(len(mask)):
            mask[a] = 0
        legal(params, state, mask)
        return mask[action] != 0

    return may_play


@functools.cache
def compile_random_action(game: Game) -> Callable[..., int]:
    """The kernel `(params, state, mask) → a uniformly random legal action`, drawn from the state's own stream.

    `mask` (actions,) int8 is overwritten, unless the game has `random_action`.
    """
    legal, direct_action = game.legal, game.random_action

    @kernel(allocates=False)
    def draw(params, state, mask):
        if direct_action is not None:
            return direct_action(params, state)
        for a in range(len(mask)):
            mask[a] = 0
        legal(params, state, mask)
        return choose_from_mask(state, mask)

    return draw


@functools.cache
def compile_view(game: Game) -> Callable[..., None]:
    """The kernel `(params, state, seat, observation, mask)`: writes what the seat sees, and its legal actions if it is to move.

    The kernel is compiled into the loop that calls it.
    """
    legal, observe = game.legal, game.observe

    @kernel(merge=True)
    def view(params, state, seat, observation, mask):
        for j in range(len(observation)):  # zero each row just before filling it, while it is in cache
            observation[j] = 0
        for a in range(len(mask)):
            mask[a] = 0
        observe(params, state, seat, observation)
        if state["seat"] == seat:
            legal(params, state, mask)

    return view


@functools.cache
def compile_kernels(game: Game) -> Kernels:
    """The loops of Kernels, compiled on first use and cached on disk.

    `values` come first: the variant's params as a plain tuple, which numba takes from Python in a third of the time.
    """
    params_of = type(game.params(game.options()))
    deal, legal, play, observe, reroll_hidden = game.deal, game.legal, game.play, game.observe, game.reroll_hidden
    may_play, view = compile_check(game), compile_view(game)

    @kernel
    def deal_all(values, states, index):
        params = params_of(*values)
        for i in index:
            deal(params, states[i])

    @kernel
    def legal_all(values, states, index, masks):
        params = params_of(*values)
        for k in range(len(index)):
            for a in range(masks.shape[1]):
                masks[k, a] = 0
            state = states[index[k]]
            if state["seat"] != OVER:
                legal(params, state, masks[k])

    @kernel
    def first_illegal(values, states, index, actions):
        params = params_of(*values)
        mask = np.zeros(params.num_actions, np.int8)
        for k in range(len(index)):
            if not may_play(params, states[index[k]], actions[k], mask):
                return k
        return -1

    @kernel
    def checked_play(values, states, index, actions):
        params = params_of(*values)
        row = first_illegal(values, states, index, actions)
        if row < 0:
            for k in range(len(index)):
                play(params, states[index[k]], actions[k])
        return row

    @kernel
    def play_all(values, states, index, actions):
        params = params_of(*values)
        for k in range(len(index)):
            play(params, states[index[k]], actions[k])

    @kernel
    def observe_all(values, states, index, seats, out):
        params = params_of(*values)
        out[:] = 0
        for k in range(len(index)):
            observe(params, states[index[k]], np.int64(seats[k]), out[k])

    @kernel
    def reroll_all(values, states, index, seats, streams, out):
        params = params_of(*values)
        for k in range(len(index)):
            out[k] = states[index[k]]
            out[k]["rng"] = next_u64(streams[k])
            reroll_hidden(params, out[k], np.int64(seats[k]))

    @kernel
    def view_all(values, states, index, numbers, plays, out, masks):
        params = params_of(*values)
        row = checked_play(values, states, index, numbers) if plays else -1
        for k in range(len(index) if row < 0 else 0):
            seat = np.int64(states[index[k]]["seat"]) if plays else np.int64(numbers[k])
            if seat != OVER:
                view(params, states[index[k]], seat, out[k], masks[k])
        return row

    playouts = _compile_playouts(game)
    return Kernels(deal_all, legal_all, play_all, first_illegal, checked_play, observe_all, reroll_all, view_all, playouts)


@functools.cache
def _compile_playouts(game: Game) -> Callable[..., int]:
    params_of, random_action = type(game.params(game.options())), compile_random_action(game)
    deal, play = game.deal, game.play

    @kernel
    def playouts(values, states, steps):
        params = params_of(*values)
        finished = 0
        mask = np.zeros(params.num_actions, np.int8)
        for i in range(len(states)):
            state = states[i]
            for _ in range(steps):
                if state["seat"] == OVER:
                    finished += 1
                    deal(params, state)
                play(params, state, random_action(params, state, mask))
        return finished

    return playouts


@functools.cache
def with_expected_rewards(game: Game) -> Game:
    """The game with another `play`, which pays the expected reward over the roll that decides a step.

    The next position is still drawn, with the same probabilities. So every policy has the same expected return, with less
    variance, and a learner needs fewer games. `play` is the game's `play_expected`, or is made from its `expect`.

    Raises:
        ValueError: the game has neither.
    """
    if game.play_expected is not None:
        return dataclasses.replace(game, play=game.play_expected)
    expect = game.expect
    if expect is None:
        raise ValueError(f"expected_rewards must be false: {game.name} has no kernel `expect` or `play_expected`")

    @kernel(allocates=False)
    def play(params, state, action):
        goes_on = expect(params, state, action, state["rewards"])
        if goes_on < 1.0 and uniform(state) >= goes_on:
            end_game(state, MAX_SEATS)

    return dataclasses.replace(game, play=play)


# --- variants -------------------------------------------------------------------------------------------------


class Refusal(NamedTuple):
    """Why an action cannot be played, as `Variant.why_not` returns it.

    Attributes:
        reason: why, in words.
        legal: the actions that are legal now, and their words.
    """

    reason: str
    legal: tuple[tuple[int, str], ...]

    def text(self, most: int = 3, numbered: bool = False) -> str:
        """The reason, and up to `most` legal actions, with their numbers for programs."""
        if not self.legal:
            return self.reason
        words = [f"{action} ({words})" if numbered else words for action, words in self.legal[:most]]
        more = f" and {len(self.legal) - most} more" if len(self.legal) > most else ""
        return f"{self.reason}; legal: {', '.join(words)}{more}"


class Variant:
    """A game with its options fixed: what environments and agents are built on.

    Attributes: `game`, `options` (the dataclass), `params` (what kernels receive), `facts`, `blocks`, the observation's layout
    without absent blocks, and `players`, the names given by `named`.
    """

    players: tuple[str, ...] = ()

    def __init__(self, game: Game, options: Any) -> None:
        self.game = game
        self.options = options
        self.params = game.params(options)
        self.blocks = tuple(block for block in game.blocks(options) if block.size)
        self.facts = dataclasses.replace(game.facts(options), observation_size=sum(block.size for block in self.blocks))

    @functools.cached_property
    def kernels(self) -> Kernels:
        """The game's compiled loops over many states, with the variant's params."""
        return Kernels._make(functools.partial(loop, tuple(self.params)) for loop in compile_kernels(self.game))

    @functools.cached_property
    def hands(self) -> tuple[np.ndarray, np.ndarray] | None:
        """All hands that each seat may hold, and their chances; None where the game does not list them, see `Game`."""
        return self.game.hands(self.options) if self.game.hands else None

    def arrange(self, state: Any, wanted: Mapping[str, Any]) -> None:
        """Change a state just dealt to the position that reset options describe.

        Raises:
            ValueError: the game has no such option, or they are malformed; nothing has changed.
        """
        name, known = self.game.name, self.game.reset_options
        for option in wanted:
            if option not in known and option != PLACEHOLDER:
                raise ValueError(f"{name} has no reset option {shown(option)}; it has: {', '.join(known) or 'none'}")
        given = {option: value for option, value in wanted.items() if option in known}
        if given and self.game.arrange is not None:
            self.game.arrange(self.options, state, given)

    def describe_action(self, action: int) -> Move:
        """The action in words, whether it is legal now or not. ValueError if there is no such action."""
        check_range("action", action, 0, self.facts.num_actions - 1)
        words = self.game.describe_action(self.options, action)
        return words if isinstance(words, Move) else Move(words)

    def legal_actions(self, state: Any) -> list[int]:
        """The legal actions of the seat to move in one state record, in their order; none once the game is over."""
        mask = np.zeros(self.facts.num_actions, np.int8)
        self.game.legal(self.params, state, mask)
        return [int(action) for action in np.flatnonzero(mask)]

    def why_not(self, state: Any, action: int) -> Refusal:
        """Why an action is not legal now, and what is, from what the seat to move may know."""
        if state["seat"] == OVER:
            return Refusal("the game is over; reset it to play on", ())
        if not 0 <= action < self.facts.num_actions:
            return Refusal(f"action {shown(action)} does not exist; actions are 0 to {self.facts.num_actions - 1}", ())
        explain = self.game.explain_illegal
        with naming(self.players):
            reason = explain(self.options, state, action) if explain else f"{self.describe_action(action)} is not legal now"
        return Refusal(reason, tuple((each, self.describe_action(each)) for each in self.legal_actions(state)))

    def seat_name(self, seat: int, viewer: int | None = None) -> str:
        """A seat's name for people: "you", the name that the options give it, or "player 1"."""
        with naming(self.players):
            given = self.game.seat_names(self.options) if self.game.seat_names else ()
            return given[seat] if given and seat != viewer else seat_name(seat, viewer)

    def named(self, players: Sequence[str]) -> Variant:
        """The same game for people with these names, which stand in its words and pictures. Copies by pickle lack them.

        Raises:
            ValueError: there are fewer names than seats.
        """
        if len(players) < self.facts.num_seats:
            raise ValueError(f"players must have {self.facts.num_seats} names, one for each seat, not {shown(players)}")
        return self if self.players == tuple(players) else _named(self, tuple(players))

    def picture(self, state: Any, viewer: int | None = None) -> Picture:
        """What `viewer` sees of one state record; None sees everything. It prints as text, and notebooks draw it.

        Raises:
            ValueError: `viewer` is neither a seat nor None.
        """
        if viewer is not None:
            check_range("viewer", viewer, 0, self.facts.num_seats - 1)
        with naming(self.players):
            return self.game.picture(self.options, state, viewer)

    def full_picture(self) -> Picture:
        """A picture that needs at least as much room as any other of this variant."""
        return self.game.full_picture(self.options)

    def changed_options(self) -> dict[str, Any]:
        """The options that differ from their defaults, as plain values."""
        defaults = dataclasses.asdict(type(self.options)())
        return {name: value for name, value in dataclasses.asdict(self.options).items() if value != defaults[name]}

    @functools.cached_property
    def plain(self) -> Variant:
        """The same rules with every option that changes words alone at its default (see `words`).

        Policies and solutions belong to these.
        """
        usual = {field.name: field.default for field in dataclasses.fields(self.options)}
        options = dataclasses.replace(self.options, **{name: usual[name] for name in self.game.word_options})
        return self if options == self.options else Variant(self.game, options)

    def same_rules(self, other: Variant) -> bool:
        """Whether both are the same game with the same rules; options that change words alone may differ."""
        return self.game is other.game and self.plain.options == other.plain.options

    def differences(self, other: Variant) -> tuple[str, str]:
        """The rules in which two variants of one game differ, as text for each: `mode=physician`, `mode=maesters`.

        Options that change words alone are left out.
        """
        ours, theirs = dataclasses.asdict(self.plain.options), dataclasses.asdict(other.plain.options)
        differ = [name for name in ours if ours[name] != theirs[name]]
        return options_text({name: ours[name] for name in differ}), options_text({name: theirs[name] for name in differ})

    def __deepcopy__(self, memo: dict[int, Any]) -> Variant:
        return self  # nothing in it changes

    def __reduce__(self) -> Any:
        return configure, (self.game.name,), {"options": self.options}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(self.game, state["options"])  # type: ignore[misc]

    def __repr__(self) -> str:
        return f"Variant({self.game.name}, {self.options})"

    def __str__(self) -> str:
        """The variant as messages show it: `liars_dice (num_dice=2)`, `shakes (mode=maesters)`.

        Options at their defaults are left out, except those with another default for `gym.make`.
        """
        changed = self.changed_options()
        values = dataclasses.asdict(self.options)
        text = options_text({name: values[name] for name in values if name in changed or name in self.game.gym_options})
        return f"{self.game.name} ({text or 'default options'})"


@functools.lru_cache(maxsize=256)  # results are kept by variant
def _named(variant: Variant, players: tuple[str, ...]) -> Variant:
    made = Variant(variant.game, variant.options)
    made.players = players
    return made


def names() -> list[str]:
    """The games found in `dice_envs/games`, sorted."""
    return list(_names(*importlib.import_module("dice_envs.games").__path__))


@functools.cache  # a game is looked up by its name often, and reading a folder takes milliseconds
def _names(*folders: str) -> tuple[str, ...]:
    return tuple(sorted(module.name for module in pkgutil.iter_modules(folders) if not module.name.startswith("_")))


def part_of(name: str, part: str) -> types.ModuleType | None:
    """The module of this name in a game's folder, such as `exact`; None if there is none."""
    home = f"dice_envs.games.{name}"
    spec = importlib.util.find_spec(home)
    inside = spec is not None and spec.submodule_search_locations and importlib.util.find_spec(f"{home}.{part}")
    return importlib.import_module(f"{home}.{part}") if inside else None


def load(name: str) -> Game:
    """The game of that name. Hyphens count as underscores. ValueError if there is none."""
    if not isinstance(name, str):
        raise TypeError(f"a game is a name, a Game or a Variant, not {shown(name)}")
    wanted = name.replace("-", "_").lower()
    if wanted in _registered:
        return _registered[wanted]
    if wanted not in names():
        own = "a game of your own is known once the module that registers it is imported, in each worker process too"
        hint = did_you_mean(wanted, names()) or f"; {own}"
        raise ValueError(f"unknown game {shown(name)}; the games are: {', '.join(names())}{hint}")
    return _load(wanted)


@functools.cache
def _load(wanted: str) -> Game:
    game = importlib.import_module(f"dice_envs.games.{wanted}").GAME
    if not isinstance(game, Game) or game.name != wanted:
        raise TypeError(f"dice_envs/games/{wanted}.py must end with GAME = Game.of(globals(), name={wanted!r}, ...)")
    return game


_registered: dict[str, Game] = {}  # the user's own games


def register(game: Game) -> Game:
    """Let agents, policies and commands find a game of your own by its name. Returns the game.

    Gymnasium knows it as `dice_envs/ENV_NAME-v0`, or by its name where another game has its `env_name`.

    A game registered before under the name is replaced, with a warning, as when a notebook's cell runs again. What has been
    made of the old one keeps it. Other processes, such as workers of Ray, must import the module that registers the game.

    Raises:
        TypeError: it is not a Game.
        ValueError: a game of this package has its name.
    """
    if not isinstance(game, Game):
        raise TypeError(f"a game must be a dice_envs.Game, not {shown(game)}")
    if game.name in names():
        raise ValueError(f"there is another game with the name {shown(game.name)}")
    if _registered.get(game.name, game) is not game:
        warnings.warn(f"the game registered as {shown(game.name)} before is replaced", stacklevel=2)
    _registered[game.name] = game
    register_id(game)
    return game


def gym_id(game: Game) -> str:
    """Return the game's id in Gymnasium: `dice_envs/Pig-v0`, by its `env_name`; by its name if another game has that one."""
    known = gymnasium.registry.get(wanted := f"dice_envs/{game.env_name}-v0")
    return wanted if known is None or known.kwargs["game"] == game.name else f"dice_envs/{game.name}-v0"


def register_id(game: Game) -> None:
    """Let `gymnasium.make` and `gymnasium.make_vec` find a game that `load` knows."""
    gymnasium.registry.pop(name := gym_id(game), None)  # Gymnasium warns of an id that it knows
    one, many = "dice_envs.envs.gym:SeatEnv", "dice_envs.envs.gym:SeatVectorEnv"
    gymnasium.register(name, one, kwargs={"game": game.name}, disable_env_checker=False, vector_entry_point=many)


def configure(game: str | Game | Variant, /, **options: Any) -> Variant:
    """A game with options fixed, from its name, a Game of your own, or a Variant, whose other options stay as they are."""
    if isinstance(game, Variant):
        return game.game.configure(**{**game.changed_options(), **options}) if options else game
    return (game if isinstance(game, Game) else load(game)).configure(**options)


def single_seat(game: str | Game | Variant, /, **options: Any) -> Variant:
    """As `configure`, but a name or a Game has the defaults of `gymnasium.make` (`Game.gym_options`)."""
    if isinstance(game, Variant):
        return configure(game, **options)
    plain = game if isinstance(game, Game) else load(game)
    return plain.configure(**{**plain.gym_options, **options})
