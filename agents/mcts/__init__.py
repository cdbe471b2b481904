"""Monte Carlo tree search for every game of the suite, in compiled code.

One engine serves turns and simultaneous choices, chance and hidden information. It knows a game by its kernels only:

- Every simulation starts from the searched state with all that is hidden from the searcher drawn again, future dice
  included: information set MCTS (Cowling, Powley, Whitehouse, "Information Set Monte Carlo Tree Search", IEEE
  TCIAIG 4(2), 2012, section IV; each seat has its own tree here, their MO-ISMCTS).
- A node is the information state of the seat to move, found by a hash of its observation. So there are no chance
  nodes: a throw leads to the node of whatever the mover sees next. Seats that choose at the same time cannot see each
  other's choice, so they select independently: decoupled selection (Tak, Lanctot, Winands, "Monte Carlo Tree Search
  Variants for Simultaneous Move Games", IEEE CIG 2014).
- A simulation adds one leaf. From there a rollout policy plays to the end.
- The arrays of the tree grow as needed, up to a memory limit. Once it is full, simulations add no nodes: in positions
  without a node the rollout policy chooses.
- If a game provides `Game.expect`, a simulation can add the roll's expected reward, continue in the non-terminal outcome
  and be weighted by its probability (the agent's parameter `expect`). This removes dice noise.

Three kinds of kernels are put together into one search: a rollout policy, a selection rule and how a turn is played.

Modules:
    agent      the agent `mcts` and its parameters
    search     the engine: simulations, their turns, and the policy that they make; rollout policies
    selection  how simulations choose in the tree, and learn: UCB1, regret matching
    tree       the arrays of the tree, and its nodes
    room       how large the arrays are, and how they grow
"""

from __future__ import annotations

from .agent import AGENTS, MCTS

__all__ = ["AGENTS", "MCTS"]
