"""Many games of a learner as PyTorch tensors, for learners that are written in PyTorch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from dice_envs.core.dice import derived_seeds
from dice_envs.core.extras import needs
from dice_envs.core.game import Game, Variant
from dice_envs.core.options import check_choice, check_seed
from dice_envs.envs.learner import Opponents, SeatGames, check_arrays, seat_variant

with needs("sb3", "dice_envs.TensorEnv"):
    import torch

__all__ = ["TensorEnv", "TensorStep"]


class TensorStep(NamedTuple):
    """Result of a step. The tensors are the same ones after each step, overwritten.

    Attributes:
        earned: (n, seats) float32, what each seat earned by this step.
        ended: (n,) bool, whether the game ended; it has then been dealt again.
        players: (n, seats) int64, who had each seat in the game just stepped: `dice_envs.envs.learner.LEARNER`, or the number
            of the opponent.
        returns: (n, seats) float64, of the game just stepped, up to now; final where `ended`.
        lengths: (n,) int64, the learner's steps of that game.
    """

    earned: torch.Tensor
    ended: torch.Tensor
    players: torch.Tensor
    returns: torch.Tensor
    lengths: torch.Tensor


class TensorEnv:
    """n games with one learner's seat each, or in self-play with every seat. An ended game is dealt again at once.

    Games are those of `dice_envs.envs.sb3.make_vec_env` with the same seed.

    Args:
        game: a Variant, or a name or Game, which then stands for the variant that `gymnasium.make` gives.
        num_envs: number of games.
        opponents, seat, self_play, expected_rewards: see `dice_envs.envs.learner.SeatGames`.
        device: PyTorch's.
        options: the game's options.

    Attributes:
        variant: the game.
        observations: (n, size) float32, in [0, 1], of the seat to move.
        masks: (n, actions) int8, the legal actions.
        seats: (n,) int64, the learner's seat; in self-play the seat to move.
        out: (n, seats) int8, 1 where the game is over for a seat though others play on.

    Raises:
        ValueError: wrong arguments.
    """

    def __init__(
        self,
        game: str | Game | Variant,
        num_envs: int = 1,
        opponents: Opponents = "random",
        seat: int | str = "random",
        *,
        self_play: float = 0.0,
        expected_rewards: bool = False,
        device: str = "cpu",
        **options: Any,
    ) -> None:
        self.variant, self.num_envs = seat_variant(game, options), num_envs
        check_choice("device", device, ("cpu",))
        self.device = torch.device(device)
        self._games = SeatGames(self.variant, num_envs, opponents, seat, self_play, "raise", expected_rewards)
        facts = self.variant.facts
        self._all = np.arange(num_envs)
        self._began = False
        self.observations = torch.zeros(num_envs, facts.observation_size)
        self.masks = torch.zeros(num_envs, facts.num_actions, dtype=torch.int8)
        self.seats = torch.from_numpy(self._games.learners)
        self.out = torch.zeros(num_envs, facts.num_seats, dtype=torch.int8)
        self._state = torch.zeros(num_envs, facts.num_seats, facts.observation_size)
        self._lengths = np.zeros(num_envs, np.int64)
        self._step = TensorStep(
            torch.zeros(num_envs, facts.num_seats),
            torch.zeros(num_envs, dtype=torch.bool),
            torch.zeros(num_envs, facts.num_seats, dtype=torch.int64),
            torch.zeros(num_envs, facts.num_seats, dtype=torch.float64),
            torch.zeros(num_envs, dtype=torch.int64),
        )

    @property
    def capturable(self) -> bool:
        """Whether a CUDA graph can hold `step`."""
        return False

    def check(self) -> None:
        """On a GPU, raise the errors of the steps since the last check; call it once in a rollout."""

    @property
    def exploration(self) -> float:
        """The share of self-play games that start with random moves, see `dice_envs.envs.learner.SeatGames`."""
        return self._games.exploration

    @exploration.setter
    def exploration(self, share: float) -> None:
        self._games.exploration = share

    def reset(self, seed: int | None = None) -> None:
        """Deal all games, each with a seed of its own derived from `seed`; None: fresh ones.

        Raises:
            ValueError: a wrong seed; nothing has changed.
            AgentError: an opponent's action is malformed or not legal; nothing has changed.
        """
        seeds = derived_seeds(check_seed(seed), "games", self.num_envs)
        with self._games.unchanged_on_error:
            self._games.seed_games(self._all, seeds)
            self._games.start(self._all)
        self._lengths[:] = 0
        self._show(*self._games.view(self._all))

    def step(self, actions: torch.Tensor) -> TensorStep:
        """Play the learner's actions, (n,) int64, and the opponents' answers, up to the learner's next turns.

        Raises:
            RuntimeError: called before `reset`.
            IllegalActionError: an action is malformed or not legal; nothing has changed.
            AgentError: an opponent's action is; nothing has changed.
        """
        if not self._began:
            raise RuntimeError("call reset before step")
        done = self._games.advance(actions.numpy(), np.zeros(self.num_envs, bool), restart=True)
        self._lengths += 1
        earned, ended, players, returns, lengths = (tensor.numpy() for tensor in self._step)
        earned[:], ended[:], lengths[:] = done.earned, done.ended, self._lengths
        players[:], returns[:] = self._games.players, self._games.returns
        over = done.finals.games
        players[over], returns[over] = done.finals.players, done.finals.returns
        self._lengths[over] = 0
        self._show(*done.shown)
        return self._step

    def _show(self, observations: np.ndarray, masks: np.ndarray) -> None:
        self.observations.numpy()[:], self.masks.numpy()[:] = observations, masks
        self.out.numpy()[:] = self._games.states["out"][:, : self.variant.facts.num_seats]
        self._began = True

    def state(self) -> torch.Tensor:
        """Return all seats' observations, (n, seats, size) float32, for a critic that sees all: the seat to move first, then
        the others in turn order. The tensor is the same one at each call, overwritten."""
        num_seats, found = self.variant.facts.num_seats, self._state.numpy()
        for place in range(num_seats):
            seats = (self._games.learners + place) % num_seats
            self.variant.kernels.observe(self.variant.params, self._games.states, self._all, seats, found[:, place])
        return self._state

    def snapshot(self) -> dict[str, np.ndarray]:
        """Return copies of everything that determines how the games continue, except the agents themselves."""
        return {**self._games.snapshot(), "lengths": self._lengths.copy()}

    def restore(self, snapshot: Mapping[str, np.ndarray]) -> None:
        """Go back to a snapshot of an environment made with the same arguments.

        Raises:
            ValueError: it is not a snapshot of such an environment; nothing has changed.
        """
        check_arrays(snapshot, self.snapshot())
        self._games.restore(snapshot)
        self._lengths[:] = snapshot["lengths"]
        self._show(*self._games.view(self._all))
