"""A learner's turns: the records of its games, what a turn gives, and a turn as one kernel.

A turn is the learner's action, the opponents' answers, pay, a new game, and what it sees then. A CPU takes those of all games
in one call of `compile_advance`, each thread of a GPU (`device`) that of one game. Where an agent without a kernel is to move,
the turn stops; it goes on once Python has given the answer.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from dice_envs.agent.compiled import ASKED, NO_ACTION, NO_FAULT, Context, compile_legal_chooser
from dice_envs.agent.kernel import Chooser
from dice_envs.core.dice import STREAM, below, choose_weighted, uniform
from dice_envs.core.game import OVER, Game, Variant, compile_check, compile_view
from dice_envs.core.kernel import kernel
from dice_envs.core.state import MAX_SEATS

# --- records ----------------------------------------------------------------------------------------------------------

LEARNER = -1  # the learner's number in arrays that list the player of each seat

Array = TypeVar("Array")  # NumPy's or PyTorch's

# How new games of a SeatGames begin.
TABLE = np.dtype(
    [
        ("num_seats", np.int64),
        ("fixed_seat", np.int64),  # the learner's; negative: drawn
        ("self_play", np.float64),  # probability that the learner has every seat
        ("places", np.int64, (MAX_SEATS,)),  # number of the agent at each place after the learner's; LEARNER at its own
    ],
    align=True,
)

# A turn of the learner's in one game: what to do, and what it gave. No game has more than MAX_SEATS seats; entries of seats
# that there are not mean nothing. The last three say nothing of games that go on.
TURN = np.dtype(
    [
        ("todo", np.int8),  # one of the codes below
        ("action", np.int64),  # where one is to be played
        ("arranged", np.bool_),  # whether Python has arranged the game that begins
        ("seat", np.int64),  # the learner's before it played
        ("before", np.int64, (MAX_SEATS,)),  # work space
        ("fault", np.int64, (3,)),  # as in `dice_envs.agent.compiled.Context`; its first entry is for GPUs
        ("reward", np.float64),  # what `seat` has earned up to the learner's next turn; 0 in a game that begins
        ("earned", np.float64, (MAX_SEATS,)),  # the same for each seat
        ("ended", np.bool_),  # whether the learner's game has ended
        ("length", np.int64),  # the learner's turns in that game so far; 0 in one that begins
        ("learner", np.int64),  # the learner's seat in a game that has ended; with every seat, the one that moved last
        ("players", np.int64, (MAX_SEATS,)),  # who had each seat in it
        ("returns", np.float64, (MAX_SEATS,)),  # each seat's rewards in it
    ],
    align=True,
)
RESULTS = ("reward", "earned", "ended", "length", "learner", "players", "returns")  # what a turn gave, of TURN


def game_record(variant: Variant, memory: int) -> np.dtype[Any]:
    """Return the data type of a game and who plays it, in which each agent remembers so many bytes."""
    return np.dtype(
        [
            ("state", variant.game.state),
            ("stream", STREAM),  # for the opponents' draws
            ("memory", np.uint8, (MAX_SEATS, memory)),  # of the agent at each place after the learner's
            ("learner", np.int64),  # the learner's seat; where it has all, the one that is to move or moved last
            ("players", np.int64, (MAX_SEATS,)),  # the number of the agent at each seat, or LEARNER
            ("shared", np.bool_),  # whether the learner has every seat
            ("earned", np.float64, (MAX_SEATS,)),  # each seat's rewards since the learner's last turn
            ("returns", np.float64, (MAX_SEATS,)),  # and from the start of its game to the learner's last turn
            ("length", np.int64),  # the learner's turns in its game so far; -1 before the first game
        ],
        align=True,
    )


class Shown(NamedTuple, Generic[Array]):
    """The learner's view of n games."""

    observations: Array  # (n, size) float32
    masks: Array  # (n, actions) int8, the legal actions; all 1 where its game has ended, so that a masked softmax has no NaN


def part(records: str, name: str, doc: str = "", by_seat: bool = False) -> Any:
    """Return a property: a field of the owner's attribute `records`; with `by_seat` without the seats that there are not."""
    if by_seat:
        return property(lambda owner: getattr(owner, records)[name][:, : owner.num_seats], doc=doc)
    return property(lambda owner: getattr(owner, records)[name], doc=doc)


class Step(Generic[Array]):
    """Result of a learner's turn in n games.

    Args:
        turns: (n,) of TURN, or its fields by name.
        num_seats: of the game.
        shown: the games as the learners see them now.
        finals: games that have begun again, as the learners saw them last. Rows of other games mean nothing, and the next step
            overwrites them; may have no rows.

    The attributes `earned`, `players` and `returns` (n, seats), `rewards`, `ended`, `lengths` and `learners` (n,) are the
    results in `turns`, see TURN.
    """

    def __init__(self, turns: Any, num_seats: int, shown: Shown[Array], finals: Shown[Array]) -> None:
        self.turns, self.num_seats, self.shown, self.finals = turns, num_seats, shown, finals

    earned, players, returns = (part("turns", name, by_seat=True) for name in ("earned", "players", "returns"))
    rewards, ended, lengths, learners = (part("turns", name) for name in ("reward", "ended", "length", "learner"))


def room_for(variant: Variant, count: int) -> Shown[np.ndarray]:
    """Return empty arrays for the learner's view of `count` games."""
    facts = variant.facts
    return Shown(np.empty((count, facts.observation_size), np.float32), np.empty((count, facts.num_actions), np.int8))


def fields_of(memory: Any, kind: np.dtype[Any]) -> dict[str, Any]:
    """Return the signed and real fields of records as PyTorch tensors, by name, that share `memory`, a tensor of their bytes.

    A record within the record is a dictionary of its own.
    """
    import torch

    def tensors(fields: np.dtype[Any], begin: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name in fields.names or ():
            field, offset = fields.fields[name][:2]  # type: ignore[index]
            base, shape = field.subdtype or (field, ())
            if base.fields:
                found[name] = tensors(base, begin + offset)
            elif base.kind in "bif" and 0 not in shape:
                numbers = memory.view(torch.from_numpy(np.zeros(0, base)).dtype)
                # Aligned fields begin at multiples of their size, and so do records.
                steps = [stride // base.itemsize for stride in (kind.itemsize, *np.zeros(shape, base).strides)]
                rows, first = len(memory) // kind.itemsize, (begin + offset) // base.itemsize
                found[name] = numbers.as_strided((rows, *shape), steps, first)
        return found

    return tensors(kind, 0)


# --- turns ------------------------------------------------------------------------------------------------------------

# What there is to do in a game, `todo` of TURN. The first two are those of a bool that says whether a game begins.
PLAYS = 0  # the learner's action
BEGINS = 1  # a new game
ARRANGES = 2  # a new game, up to its deal, which Python arranges
SHOWS = 3  # nothing but what the learner sees
FORFEITS = 4  # collect rewards only: Python ended the game after an illegal action of the learner's
ASKS = 5  # Python asks the agent to move, writes its action into the turn, and sets
ANSWERS = 6  # the agent's action; without one the game goes on from where it is
FAILS = 7  # nothing more: an action is illegal
DONE = 8  # nothing: the learner's turn has come, or its game has ended


@kernel(allocates=False)
def _begin(table, weights, game, turn):
    """Draw the players of a new game; where a pool puts another agent at a place, its match begins. Modified in place."""
    state, num_seats = game["state"], table["num_seats"]
    if weights is not None:  # else this is not compiled
        for place in range(num_seats):
            turn["before"][place] = game["players"][(game["learner"] + place) % num_seats]
    learner = below(state, num_seats) if table["fixed_seat"] < 0 else table["fixed_seat"]
    game["learner"] = learner
    game["length"] = 0
    for seat in range(num_seats):
        game["earned"][seat] = 0.0
        game["returns"][seat] = 0.0
        game["players"][seat] = table["places"][(seat - learner) % num_seats]
        if weights is not None and seat != learner:
            game["players"][seat] = choose_weighted(state, weights, len(weights))
    if table["self_play"] > 0.0:
        game["shared"] = uniform(state) < table["self_play"]
        for seat in range(num_seats if game["shared"] else 0):
            game["players"][seat] = LEARNER
    if weights is not None:
        for place in range(num_seats):
            if turn["before"][place] != game["players"][(learner + place) % num_seats]:
                for byte in range(game["memory"].shape[1]):
                    game["memory"][place, byte] = 0


@kernel(allocates=False)
def pay_nothing(num_seats, turn):
    """Write the results of a turn in which a game begins, or stands still."""
    turn["ended"] = False
    turn["length"] = 0
    turn["reward"] = 0.0
    for seat in range(num_seats):
        turn["earned"][seat] = 0.0


@kernel(allocates=False)
def _open(num_seats, game, turn):
    """Note at its beginning what a turn is. Modified in place."""
    todo = turn["todo"]
    if todo != ANSWERS:
        turn["arranged"] = todo == ARRANGES
    if todo in (BEGINS, ARRANGES):
        pay_nothing(num_seats, turn)
    elif todo in (PLAYS, FORFEITS):
        turn["seat"] = game["learner"]
        game["length"] += 1


@kernel(allocates=False)
def _pay(num_seats, game, turn, over, stops):
    """Move each seat's rewards to its returns. Write what the game gave into the turn; who played, if it stops here."""
    turn["ended"] = over
    turn["length"] = game["length"]
    turn["reward"] = game["earned"][turn["seat"]]
    for seat in range(num_seats):
        turn["earned"][seat] = game["earned"][seat]
        game["returns"][seat] += game["earned"][seat]
        game["earned"][seat] = 0.0
    if stops:
        turn["learner"] = game["learner"]
        for seat in range(num_seats):
            turn["returns"][seat] = game["returns"][seat]
            turn["players"][seat] = game["players"][seat]


@functools.cache
def compile_hands(game: Game) -> tuple[Callable[..., None], Callable[..., None]]:
    """Return the kernel `(params, record, other, hands, out)` for one game, and its loop over games, as for `compile_views`.

    It writes what each seat would see with each of the hands into `out`, (seats, hands, size); `other` (1,) is overwritten.
    """
    hold, observe = game.hold, game.observe

    @kernel(allocates=False)
    def suppose(params, record, other, hands, out):
        for seat in range(out.shape[0]):
            other[0] = record["state"]
            for k in range(len(hands)):
                hold(params, other[0], seat, hands[k])
                for j in range(out.shape[2]):
                    out[seat, k, j] = 0
                observe(params, other[0], seat, out[seat, k])

    @kernel(allocates=False)
    def suppose_all(params, records, other, hands, out):
        for i in range(len(records)):
            suppose(params, records[i], other, hands, out[i])

    return suppose, suppose_all


@functools.cache
def compile_views(game: Game) -> tuple[Callable[..., None], Callable[..., None]]:
    """Return the kernel `(params, record, out)` for one game, and the loop `(params, records, out)` over n.

    It writes what all seats see into `out`, (seats, size) or (n, seats, size): the learner first, then in turn order.
    """
    observe = game.observe

    @kernel(allocates=False)
    def see(params, record, out):
        for place in range(out.shape[0]):
            for j in range(out.shape[1]):
                out[place, j] = 0
            observe(params, record["state"], (record["learner"] + place) % out.shape[0], out[place])

    @kernel(allocates=False)
    def see_all(params, records, out):
        for i in range(len(records)):
            see(params, records[i], out[i])

    return see, see_all


@kernel(allocates=False)
def _earn(num_seats, game):
    """Add the rewards of the last move to what each seat has earned. Modified in place."""
    for seat in range(num_seats):
        game["earned"][seat] += game["state"]["rewards"][seat]


@functools.cache
def _compile_orders(game: Game) -> Callable[..., int]:
    """Return the kernel that writes orders into turns first … last - 1; it returns the first game with an illegal action."""
    may_play = compile_check(game)

    @kernel(allocates=False)
    def order(params, games, turns, actions, orders, masks, first, last):
        found = np.int64(NO_FAULT)
        for i in range(first, last):
            turns[i]["todo"] = orders[i]
            turns[i]["action"] = actions[i]
            if orders[i] == PLAYS and not may_play(params, games[i]["state"], actions[i], masks[i]):
                turns[i]["todo"] = FAILS
                turns[i]["fault"][1] = LEARNER
                turns[i]["fault"][2] = actions[i]
                found = i if found == NO_FAULT else found
        return found

    return order


@functools.cache
def compile_advance(game: Game, choosers: tuple[Chooser, ...]) -> Callable[..., int]:
    """Return the loop that takes the turns of games first … last - 1, against opponents with these choosers.

    It does what `orders` say, writes the results into `turns` and the views, and sets `todo` to DONE or what comes next. It
    returns NO_FAULT; ASKED, if agents are to be asked; or the number of a game with a fault. Called again with `goes_on`, it
    takes the turns that are not DONE. If a fault is the learner's, nothing has changed, and `todo` is FAILS in all such games;
    if it is an agent's, its game stands as before that action.

    Args:
        lasting: `(values, numbers, options, sample, table, weights, games)`: params as in `compile_kernels`, what Context has,
            TABLE, the probability of each agent of a pool or None, and (n,) of `game_record`.
        orders: `(actions, todo, most)`. `most`: turns after which games begin again, as they do at their end; 0: they do not.
        views: the arrays of `shown` and `finals` of a Step. They, games and `turns`, (n,) of TURN, are written in place.
    """
    choose_legal, decorate = compile_legal_chooser(game, choosers)
    deal, play, view, order = game.deal, game.play, compile_view(game), _compile_orders(game)
    params_of = type(game.params(game.options()))

    @decorate(short_loops=True)
    def advance(lasting, turns, orders, views, goes_on, first, last):
        values, numbers, options, sample, table, weights, games = lasting
        (actions, todos, most), (observations, masks, last_observations, last_masks) = orders, views
        params, num_seats = params_of(*values), table[0]["num_seats"]
        found = order(params, games, turns, actions, todos, masks, last if goes_on else first, last)
        if found != NO_FAULT:
            return found
        for i in range(first, last):
            game, turn, state, todo = games[i], turns[i], games[i]["state"], turns[i]["todo"]
            if todo == DONE:
                continue
            context = Context(params, numbers, options, sample, masks[i], turn["fault"])
            action = turn["action"] if todo in (PLAYS, ANSWERS) else np.int64(NO_ACTION)
            begins = todo in (BEGINS, ARRANGES)
            _open(num_seats, game, turn)
            while True:  # again where a game ends and begins anew
                if begins:
                    _begin(table[0], weights, game, turn)
                    deal(params, state)
                    if todo == ARRANGES:
                        turn["todo"] = ANSWERS
                        turn["action"] = NO_ACTION
                        break
                turn["todo"] = DONE
                while todo != SHOWS:  # the action, if there is one, and the agents' answers
                    if action != NO_ACTION:
                        play(params, state, action)
                        _earn(num_seats, game)
                    seat = np.int64(state["seat"])
                    if seat == OVER:
                        break
                    if game["shared"]:
                        game["learner"] = seat
                    if seat == game["learner"] or state["out"][game["learner"]] != 0:
                        break
                    action = choose_legal(context, game["players"][seat], state, game["stream"])
                    if action < 0:
                        turn["todo"] = ASKS if action == ASKED else FAILS
                        break
                if turn["todo"] == FAILS:
                    return i
                if turn["todo"] == ASKS:
                    found = ASKED
                    break
                over = state["seat"] == OVER or (state["out"][game["learner"]] != 0 and not game["shared"])
                is_new = game["length"] == 0
                stops = over or 0 < most <= game["length"]
                begins = stops and todo != SHOWS and (not turn["arranged"] if is_new else most > 0)
                if todo != SHOWS and not is_new:
                    _pay(num_seats, game, turn, over, stops)
                rows = Shown(last_observations, last_masks) if begins and not is_new else Shown(observations, masks)
                if i < len(rows.masks):
                    view(params, state, game["learner"], rows.observations[i], rows.masks[i])
                    if over:
                        rows.masks[i][:] = 1
                if not begins:
                    break
                action = np.int64(NO_ACTION)
        return found

    return advance
