"""A learner's turn in one game as one kernel: its action, the opponents' answers, pay, a new game, and what it sees then.

A CPU drives it by a loop over games (`compile_advance`), a GPU by a thread for each game (`device`). Where an agent without a
kernel is to move, the turn stops; it goes on once Python has given the answer.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from dice_envs.agent.compiled import ASKED, NO_ACTION, NO_FAULT, compile_legal_chooser
from dice_envs.agent.kernel import Chooser
from dice_envs.core.dice import below, choose_weighted, uniform
from dice_envs.core.game import OVER, Game, compile_check, compile_view
from dice_envs.core.kernel import kernel
from dice_envs.envs.learner.records import LEARNER

# What there is to do in a game, `Orders.todo`.
DONE = 0  # nothing: the learner's turn has come, or its game has ended
PLAYS = 1  # the learner's action
FORFEITS = 2  # nothing but pay: the learner has acted against the rules, and Python has ended its game
BEGINS = 3  # a new game
ASKS = 4  # Python asks the agent to move, writes its action into `Orders.actions`, and sets
ANSWERS = 5  # the agent's action; without one the game goes on from where it is
FAILS = 6  # nothing more: an action is illegal


@kernel(allocates=False)
def _seat(state, start, seats, i):
    """Draw the players of game i; where a pool puts another agent at a place, its match begins. Modified in place."""
    num_seats = seats.players.shape[1]
    remembers = seats.memories.shape[2] > 0 and len(start.weights) > 0
    for place in range(num_seats if remembers else 0):
        start.before[place] = seats.players[i, (seats.learners[i] + place) % num_seats]
    learner = below(state, num_seats) if start.fixed_seat < 0 else np.int64(start.fixed_seat)
    seats.learners[i] = learner
    for seat in range(num_seats):
        seats.players[i, seat] = start.places[(seat - learner) % num_seats]
        if seat != learner and len(start.weights) > 0:
            seats.players[i, seat] = choose_weighted(state, start.weights, len(start.weights))
    if start.self_play > 0.0:
        seats.shared[i] = uniform(state) < start.self_play
        for seat in range(num_seats if seats.shared[i] else 0):
            seats.players[i, seat] = LEARNER
    for place in range(num_seats if remembers else 0):
        if start.before[place] != seats.players[i, (learner + place) % num_seats]:
            for byte in range(seats.memories.shape[2]):
                seats.memories[i, place, byte] = 0


@kernel(allocates=False)
def _pay(seats, i, step, over, stops):
    """Move each seat's rewards to its returns. Write row i of the step, what game i gave; who played, if it stops here."""
    num_seats = seats.players.shape[1]
    step.ended[i] = over
    step.lengths[i] = seats.lengths[i]
    for each in range(num_seats):
        earned = seats.earned[i, each]
        seats.returns[i, each] += earned
        seats.earned[i, each] = 0.0
        step.earned[i, each] = earned
    if stops:
        step.learners[i] = seats.learners[i]
        for each in range(num_seats):
            step.returns[i, each] = seats.returns[i, each]
            step.players[i, each] = seats.players[i, each]


@functools.cache
def compile_may_act(game: Game) -> Callable[..., bool]:
    """Return the kernel `(context, seats, moves, i) → bool`: whether row i of `moves` is no illegal action of the learner's.

    It writes one that is to `context.fault`.
    """
    may_play = compile_check(game)

    @kernel(allocates=False, merge=True)
    def may_act(context, seats, moves, i):
        if moves.todo[i] != PLAYS:
            return True
        if may_play(context.params, seats.states[i], moves.actions[i], context.mask):
            return True
        context.fault[1] = LEARNER
        context.fault[2] = moves.actions[i]
        return False

    return may_act


@functools.cache
def compile_hands(game: Game) -> Callable[..., None]:
    """Return the kernel `(params, states, begin, end, other, hands, out)`, for states begin … end - 1. `other` (1,) is room.

    It writes what each seat would see with each of the hands into `out`, (n, seats, hands, size).
    """
    hold, observe = game.hold, game.observe

    @kernel(allocates=False)
    def suppose(params, states, begin, end, other, hands, out):
        for i in range(begin, end):
            for seat in range(out.shape[1]):
                other[0] = states[i]
                for k in range(len(hands)):
                    hold(params, other[0], seat, hands[k])
                    for j in range(out.shape[3]):
                        out[i, seat, k, j] = 0
                    observe(params, other[0], seat, out[i, seat, k])

    return suppose


@functools.cache
def _compile_moves(game: Game, choosers: tuple[Chooser, ...]) -> tuple[Callable[..., int], Any]:
    """Return the kernel `play_on` below, and the decorator for kernels that call it."""
    choose_legal, decorate = compile_legal_chooser(game, choosers)
    play = game.play

    @decorate(merge=True)
    def play_on(context, seats, i, action):
        """Play the action, if there is one, and the agents' answers."""
        state = seats.states[i]
        while True:
            if action != NO_ACTION:
                play(context.params, state, action)
                for each in range(seats.earned.shape[1]):
                    seats.earned[i, each] += state["rewards"][each]
            seat = np.int64(state["seat"])
            if seat == OVER:
                return DONE
            if seats.shared[i]:
                seats.learners[i] = seat
            if seat == seats.learners[i] or state["out"][seats.learners[i]] != 0:
                return DONE
            action = choose_legal(context, seats.players[i, seat], state, seats.streams[i])
            if action < 0:
                return ASKS if action == ASKED else FAILS

    return play_on, decorate


@functools.cache
def compile_turn(game: Game, choosers: tuple[Chooser, ...]) -> Callable[..., None]:
    """Return the kernel of one game's turn against opponents with these choosers, to be compiled into its caller.

    `turn(context, seats, start, moves, step, i)` does what row i of `moves` says, once `compile_may_act` allows it. It writes
    row i of `step`, and of its finals if the game ends and begins again, and sets `moves.todo[i]` to DONE or what comes next.
    FAILS: the agent's action is in `context.fault`, and the game stands as before that action.
    """
    play_on, decorate = _compile_moves(game, choosers)
    deal, view = game.deal, compile_view(game)

    @decorate(merge=True)
    def turn(context, seats, start, moves, step, i):
        state, todo = seats.states[i], moves.todo[i]
        action = np.int64(NO_ACTION) if FORFEITS <= todo <= BEGINS else moves.actions[i]
        begins = todo == BEGINS
        if begins:
            step.ended[i] = False
            step.lengths[i] = 0
            for each in range(step.earned.shape[1]):
                step.earned[i, each] = 0.0
        if PLAYS <= todo <= FORFEITS:
            seats.lengths[i] += 1
        while True:  # again where a game ends and begins anew
            if begins:
                _seat(state, start, seats, i)
                deal(context.params, state)
                seats.lengths[i] = 0
                for each in range(seats.earned.shape[1]):
                    seats.earned[i, each] = 0.0
                    seats.returns[i, each] = 0.0
                if moves.arranged:
                    moves.todo[i] = ANSWERS
                    return
            moves.todo[i] = play_on(context, seats, i, action)
            if moves.todo[i] != DONE:
                return
            over = state["seat"] == OVER or (state["out"][seats.learners[i]] != 0 and not seats.shared[i])
            is_new = seats.lengths[i] == 0
            stops = over or (moves.restart and seats.lengths[i] >= moves.most)
            if not is_new:
                _pay(seats, i, step, over, stops)
            begins = stops and (not moves.arranged if is_new else moves.restart)
            shown = step.finals if begins and not is_new else step.shown
            if i < len(shown.masks):
                view(context.params, state, seats.learners[i], shown.observations[i], shown.masks[i])
                if over:
                    shown.masks[i][:] = 1
            if not begins:
                for each in range(step.out.shape[1]):
                    step.out[i, each] = state["out"][each]
                return
            action = np.int64(NO_ACTION)

    return turn


@functools.cache
def compile_advance(game: Game, choosers: tuple[Chooser, ...]) -> Callable[..., None]:
    """Return the loop `(context, seats, start, moves, step)`.

    It takes the turns of all games whose `moves.todo` is not DONE. A fault is written to `context.fault`. If it is the
    learner's, nothing has changed, and `moves.todo` is FAILS in each such game.
    """
    turn, may_act = compile_turn(game, choosers), compile_may_act(game)
    _, decorate = compile_legal_chooser(game, choosers)

    @decorate
    def advance(context, seats, start, moves, step):
        context.fault[0] = NO_FAULT
        for i in range(len(moves.todo)):
            if not may_act(context, seats, moves, i):
                moves.todo[i] = FAILS
                context.fault[0] = i
        if context.fault[0] != NO_FAULT:
            return
        for i in range(len(moves.todo)):
            if moves.todo[i] != DONE:
                turn(context, seats, start, moves, step, i)
                if moves.todo[i] == FAILS:
                    context.fault[0] = i
                    return

    return advance
