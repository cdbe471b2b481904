"""A learner's turn in many games as one compiled loop, for opponents that choose by kernels."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dice_envs.agent.compiled import NO_ACTION, NO_FAULT, compile_legal_chooser
from dice_envs.agent.kernel import Chooser
from dice_envs.core.game import OVER, Game, Variant
from dice_envs.core.kernel import kernel
from dice_envs.core.loops import compile_check, compile_view
from dice_envs.envs.learner.records import LEARNER, Finals, Step, room_for, seat_players

__all__ = ["Moves", "compile_advance", "empty_step"]


class Moves(NamedTuple):
    """The learner's moves in m games.

    Attributes:
        games: (m,) int64, their numbers.
        actions: (m,) int64; ignored where a game begins.
        begins: (m,) bool, the games that begin; the learner plays in the others.
        restart: whether games that end begin again at once.
    """

    games: np.ndarray
    actions: np.ndarray
    begins: np.ndarray
    restart: bool


def empty_step(variant: Variant, count: int, show: bool, restart: bool) -> Step:
    """Return arrays for `compile_advance` to write the step of `count` games into.

    Args:
        variant: the game.
        count: number of games.
        show: whether the learners' views are needed.
        restart: whether games that end begin again at once; only then are there finals.
    """
    seats, ends = variant.facts.num_seats, count if restart else 0
    return Step(
        earned=np.empty((count, seats)),
        ended=np.empty(count, bool),
        shown=room_for(variant, count if show else 0),
        finals=Finals(
            games=np.empty(ends, np.int64),
            learners=np.empty(ends, np.int64),
            players=np.empty((ends, seats), np.int64),
            returns=np.empty((ends, seats)),
            shown=room_for(variant, ends),
        ),
    )


@kernel(allocates=False)
def _pay(seats, i, earned):
    """Move each seat's rewards to `earned`, and add them to its returns."""
    for each in range(seats.earned.shape[1]):
        earned[each] = seats.earned[i, each]
        seats.returns[i, each] += earned[each]
        seats.earned[i, each] = 0.0


@kernel(allocates=False)
def _keep_final(seats, i, finals, row):
    """Write a row of `finals`: a game that has ended."""
    finals.games[row] = i
    finals.learners[row] = seats.learners[i]
    for each in range(seats.players.shape[1]):
        finals.players[row, each] = seats.players[i, each]
        finals.returns[row, each] = seats.returns[i, each]


@functools.cache
def _compile_answers(game: Game, choosers: tuple[Chooser, ...]) -> tuple[Callable[..., bool], Any]:
    """Return the kernel `play_on` below, and the decorator for kernels that call it."""
    choose_legal, decorate = compile_legal_chooser(game, choosers)
    play = game.play

    @decorate(merge=True)
    def play_on(context, state, stream, seats, i, action):
        """Play the action, if there is one, and the agents' answers; False where one of these is illegal."""
        while True:
            if action != NO_ACTION:
                play(context.params, state, action)
                for each in range(seats.earned.shape[1]):
                    seats.earned[i, each] += state["rewards"][each]
            seat = np.int64(state["seat"])
            if seat == OVER:
                return True
            if seats.shared[i]:
                seats.learners[i] = seat
            if seat == seats.learners[i] or state["out"][seats.learners[i]] != 0:
                return True
            action = choose_legal(context, seats.players[i, seat], state, stream)
            if action == NO_ACTION:
                return False

    return play_on, decorate


@functools.cache
def compile_advance(game: Game, choosers: tuple[Chooser, ...]) -> Callable[..., int]:
    """Return the loop `(context, states, streams, start, seats, moves, again, step) → number of finals`.

    It plays the learner's `moves` and the opponents' answers up to the learner's next turn, and writes `step`: row k belongs
    to game `moves.games[k]`. `again` (m,) bool marks new games that ended before the learner's first turn.

    A fault is written to `context.fault`. An illegal action of the learner's is found before anything has changed; an
    agent's leaves the game as it stood before that action.
    """
    play_on, decorate = _compile_answers(game, choosers)
    may_play, view, deal = compile_check(game), compile_view(game), game.deal

    @decorate(merge=True)
    def all_legal(context, states, moves):
        """Whether all of the learner's actions are legal."""
        for k in range(len(moves.games)):
            if not moves.begins[k] and not may_play(context.params, states[moves.games[k]], moves.actions[k], context.mask):
                context.fault[0] = k
                context.fault[1] = LEARNER
                context.fault[2] = moves.actions[k]
                return False
        return True

    @decorate(merge=True)
    def begin(context, state, start, seats, i):
        seat_players(state, start, seats, i)
        deal(context.params, state)
        for each in range(seats.earned.shape[1]):
            seats.earned[i, each] = 0.0
            seats.returns[i, each] = 0.0

    @decorate
    def advance(context, states, streams, start, seats, moves, again, step):
        context.fault[0] = NO_FAULT
        finals = 0
        if not all_legal(context, states, moves):
            return finals
        for k in range(len(moves.games)):
            i = moves.games[k]
            state = states[i]
            step.ended[k] = False
            again[k] = False
            for each in range(seats.earned.shape[1]):
                step.earned[k, each] = 0.0
            starts = moves.begins[k]
            while True:  # twice where a game ends and begins again
                action = np.int64(NO_ACTION)
                if starts:
                    begin(context, state, start, seats, i)
                else:
                    action = moves.actions[k]
                if not play_on(context, state, streams[i], seats, i, action):
                    context.fault[0] = k
                    return finals
                learner = seats.learners[i]
                over = state["seat"] == OVER or (state["out"][learner] != 0 and not seats.shared[i])
                if starts:
                    again[k] = over
                else:
                    step.ended[k] = over
                    _pay(seats, i, step.earned[k])
                is_final = moves.restart and over and not starts
                shown = step.finals.shown if is_final else step.shown
                row = finals if is_final else k
                if len(shown.masks) > 0:
                    view(context.params, state, learner, shown.observations[row], shown.masks[row])
                    if over:
                        shown.masks[row][:] = 1
                if not is_final:
                    break
                _keep_final(seats, i, step.finals, row)
                finals += 1
                starts = True
        return finals

    loop: Callable[..., int] = advance
    return loop
