"""A player of Liar's Dice that learns during a match how its opponent opens, raises and calls, and responds to that.

It begins with optimal play, from which no opponent wins more than the game's value. After each round whose dice are shown, it
computes how likely each known kind of player would have decided as the opponent did with those dice. Bayes' rule accumulates
this over the match, separately for the three parts of play: opening, raising and calling. The opponent may be a known player as
a whole, or play each part in another style. Once the agent is sure enough of the styles, it plays the exact best response to an
opponent composed of the likeliest ones.

A best response is chosen before a round and played to the round's end, because nothing is shown before that. The opponent may
not be what it seems. So the rounds won by best responses are compared with the rounds that optimal play would win at least;
after too many losses the agent plays optimally for the rest of the match. Nobody is shown the result of a round with one die
each, which ends the game. Best responses play such rounds only after winning enough in others to pay for losing them all.

Modules:
    agent      the agent `adaptive` and its parameters
    players    simple players, and opponents composed of several
    styles     the styles of each part of play that are distinguished
    rounds     the agent's memory, and the opponent's decisions in rounds that have been shown
    beliefs    Bayes' rule: how likely the opponent is of each kind
    responses  best responses to the likeliest opponent
"""

from __future__ import annotations

from .agent import AGENTS, Adaptive

__all__ = ["AGENTS", "Adaptive"]
