"""Learning from words alone: a network of characters reads prompts, scores the words of moves, and becomes hard to exploit.

    make example NAME=learn_from_words ARGS="--seed 1"

Exploitability in Liar's Dice with one die each, by OpenSpiel's rules, falls from 0.7806 to 0.1093, 0.1380 and 0.1455 with seeds
1 to 3, exactly; random play has 0.7807. A run takes 4 to 6 minutes on one busy core.

The network starts from random weights and has no tokeniser. Its input is the prompt as a language model would get it, and the
words of each move: no observation, and no number of an action. It is taught by the regret of each move: how much less the
move is worth than the best one against the network's own play, which `dice_envs.response_values` computes exactly.

Each step lowers the chance of each move by its regret and fits the network to the result. The new policy stays near the old
one and near a slow average of past ones (magnetic mirror descent, Sokota et al., ICLR 2023). Play that only follows its regrets
goes round in circles. In the end the network is fitted to the average.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

import dice_envs
from dice_envs.agent import Drawing, Promises, Turn
from dice_envs.envs.text import prompt
from dice_envs.experiments.examples import CommandLine

GAME: dict[str, Any] = {"rules": "openspiel", "num_dice": 1}  # small enough for every position to be read in each step
VARIANT = dice_envs.configure("liars_dice", **GAME)

WIDTH = 256  # numbers by which the network knows a line, a position or a move
FITS = 24  # gradient steps in each step
LAST_FITS = 8  # gradient steps to the average policy in the end, for each step
BATCH = 1024  # positions in a gradient step
LEARNING_RATE = 5e-3  # falls to 0 in the end
MAX_GRADIENT = 1.0
NEAR = 1.0  # weight of the divergence from the policy before the step
STILL = 0.3  # weight of the divergence from the reference
REFERENCE_RATE = 0.05  # how far the reference moves towards the policy in each step
SECONDS = 10  # between two lines of progress


class WordPositions(Drawing):
    """An agent that notes each position with a choice that it is asked about, and plays there by its row of `chances`.

    Attributes:
        prompts, states, legal: of each position its prompt, state record and action mask.
        chances: of each position the probability of each action; at first all legal ones are equally likely.
    """

    promises = Promises(observes_only=True)

    def __init__(self) -> None:
        self.prompts: list[str] = []
        self.states: list[Any] = []
        self.legal: list[np.ndarray] = []
        self.chances: Any = []
        self._rows: dict[bytes, int] = {}  # by observation, so that no prompt is written twice

    def probabilities(self, turn: Turn) -> np.ndarray:
        found = turn.legal / turn.legal.sum(axis=1, keepdims=True)
        for row, (observation, state, legal) in enumerate(zip(turn.observations, turn.states, turn.legal, strict=True)):
            if legal.sum() == 1:  # no choice; some of these are met in games alone, when learning has begun
                continue
            key = observation.tobytes()
            if key not in self._rows:
                self._rows[key] = len(self._rows)
                self.prompts.append(prompt(turn.variant, int(state["seat"]), state=state, rules=False))
                self.states.append(state.copy())
                self.legal.append(legal != 0)
                self.chances.append(found[row])
            found[row] = self.chances[self._rows[key]]
        return np.asarray(found)

    def exploitability(self) -> float:
        """Return the exact mean winnings of a best response over both seats: 0 for optimal play."""
        return dice_envs.measure(VARIANT, self).measures[0].value

    def regrets(self) -> torch.Tensor:
        """Return how much less each legal move is worth than the best one, (positions, actions); 0 where it is illegal."""
        values = dice_envs.response_values(VARIANT, self).action_values(np.array(self.states))
        values = np.where(self.legal, values, -np.inf)
        return torch.from_numpy(np.where(self.legal, values.max(axis=1, keepdims=True) - values, 0)).float()


class Texts:
    """Texts as numbers. Lines recur in many prompts, so each different line is read once.

    `numbers` has the number of each pair of a column and a character; new ones are added.
    """

    def __init__(self, texts: Sequence[str], numbers: dict[tuple[int, str], int]) -> None:
        lines: dict[str, int] = {}
        self._texts = [torch.tensor([lines.setdefault(line, len(lines)) for line in text.splitlines()]) for text in texts]
        self._lines = [
            torch.tensor([numbers.setdefault(pair, len(numbers)) for pair in enumerate(line + "\n")]) for line in lines
        ]

    def __len__(self) -> int:
        return len(self._texts)

    def bags(self, chosen: torch.Tensor) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Yield the characters of the different lines of some texts, then the lines of each text, with where each begins."""
        texts = [self._texts[k] for k in chosen.tolist()]
        used, lines = torch.cat(texts).unique(return_inverse=True)
        characters = [self._lines[k] for k in used.tolist()]
        for parts, joined in ((characters, torch.cat(characters)), (texts, lines)):
            yield joined, torch.tensor([0, *map(len, parts)]).cumsum(0)[:-1]


class WordNetwork(nn.Module):
    """Log-probabilities of moves from the characters of prompts and of moves.

    A line is the sum of its characters' vectors, each of which depends on the column; a text is the sum of its lines' codes. A
    move scores by how well its text agrees with the position's.
    """

    def __init__(self, prompts: Sequence[str], moves: Sequence[str]) -> None:
        super().__init__()
        numbers: dict[tuple[int, str], int] = {}
        self.prompts, self.moves = Texts(prompts, numbers), Texts(moves, numbers)
        self.characters = nn.EmbeddingBag(len(numbers), WIDTH, mode="sum")
        nn.init.normal_(self.characters.weight, std=0.2)
        self.line = nn.Sequential(nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH))
        hidden = [layer for _ in range(2) for layer in (nn.ReLU(), nn.Linear(WIDTH, WIDTH))]
        self.position = nn.Sequential(nn.LayerNorm(WIDTH), *hidden, nn.ReLU(), nn.Linear(WIDTH, WIDTH))

    def read(self, texts: Texts, chosen: torch.Tensor) -> torch.Tensor:
        characters, lines = texts.bags(chosen)
        return nn.functional.embedding_bag(lines[0], self.line(self.characters(*characters)), lines[1], mode="sum")

    def forward(self, chosen: torch.Tensor, legal: torch.Tensor) -> torch.Tensor:
        moves = self.read(self.moves, torch.arange(len(self.moves)))
        scores = self.position(self.read(self.prompts, chosen)) @ moves.T / WIDTH**0.5
        return scores.masked_fill(~legal, -1e9).log_softmax(1)


def fit(network: WordNetwork, optimizer: Any, legal: torch.Tensor, wanted: torch.Tensor, rates: np.ndarray) -> None:
    """Fit the network to log-probabilities at all positions, with a gradient step for each learning rate."""
    choices = legal.sum(1)
    weights = 1 / choices.bincount()[choices]  # few positions are met early in a game, and often
    for rate, chosen in zip(rates, torch.multinomial(weights, len(rates) * BATCH, replacement=True).split(BATCH), strict=True):
        optimizer.param_groups[0]["lr"] = float(rate)
        loss = nn.functional.kl_div(network(chosen, legal[chosen]), wanted[chosen], reduction="batchmean", log_target=True)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), MAX_GRADIENT)
        optimizer.step()


def train(positions: WordPositions, network: WordNetwork, steps: int) -> None:
    """Train the network by the regrets of its own play, then to play as on average; `positions` plays as the network does."""
    legal = torch.from_numpy(np.array(positions.legal))
    optimizer = torch.optim.Adam(network.parameters())

    def played() -> torch.Tensor:
        with torch.no_grad():
            logs = network(torch.arange(len(legal)), legal)
        positions.chances = logs.exp().numpy()
        return logs

    policy = reference = played()
    began = told = time.perf_counter()
    print(f"exploitability {positions.exploitability():.4f} before learning", flush=True)
    for step in range(steps):
        wanted = (NEAR * policy + STILL * reference - positions.regrets()) / (NEAR + STILL)
        fit(network, optimizer, legal, wanted.log_softmax(1), np.full(FITS, LEARNING_RATE))
        reference = reference.lerp(policy, REFERENCE_RATE)
        policy = played()
        if (now := time.perf_counter()) > told + SECONDS:
            told = now
            print(f"step {step + 1}, {now - began:.0f} s: exploitability {positions.exploitability():.4f}", flush=True)
    fit(network, optimizer, legal, reference.log_softmax(1), np.linspace(LEARNING_RATE, 0, LAST_FITS * steps, endpoint=False))
    played()


def main() -> None:
    """Read the options, train, measure."""
    options = CommandLine(__name__, steps=108, of="steps of the policy").read()
    torch.manual_seed(options.seed)
    positions = WordPositions()
    print(f"exploitability {positions.exploitability():.4f} of random play", flush=True)  # asks at every position
    print(f"{len(positions.prompts):,} positions, one of them:\n\n{positions.prompts[-1]}\n")
    network = WordNetwork(positions.prompts, [VARIANT.describe_action(action) for action in range(VARIANT.facts.num_actions)])
    train(positions, network, options.steps)
    print(f"exploitability {positions.exploitability():.4f} after learning (0: optimal play)")


if __name__ == "__main__":
    main()
