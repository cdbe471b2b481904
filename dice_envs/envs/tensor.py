"""Many games of a learner as PyTorch tensors on any device, for learners that are written in PyTorch."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import numba
import numpy as np

from dice_envs.core.batch import IllegalActionError
from dice_envs.core.dice import derived_seeds
from dice_envs.core.game import Game, Variant
from dice_envs.core.machine import check_extra, needs, torch_device
from dice_envs.core.options import check_choice, check_seed, shown
from dice_envs.envs.learner import Opponents, SeatGames, Shown, Step, seat_variant
from dice_envs.envs.learner.turn import RESULTS, TURN, compile_hands, fields_of, room_for

with needs("sb3", "dice_envs.TensorEnv"):
    import torch


def _check_room(name: str, room: Any, shape: tuple[int, ...], device: torch.device) -> None:
    """Raise ValueError unless kernels can write results of this shape into a tensor as it is."""
    found = shown(room)
    if isinstance(room, torch.Tensor):
        found = f"{room.dtype} of shape {tuple(room.shape)} on {room.device}"
        fits = (room.dtype, room.shape, room.device, room.layout) == (torch.float32, shape, device, torch.strided)
        if fits and room.is_contiguous() and not room.requires_grad:
            return
    raise ValueError(f"{name} must be a contiguous tensor without gradient, float32 of shape {shape} on {device}, not {found}")


class TensorEnv:
    """n games with one learner's seat each, or in self-play with every seat. An ended game is dealt again at once.

    Games are those of `dice_envs.envs.sb3.make_vec_env` with the same seed, on a GPU too, where each game is a thread and
    nothing is copied to the host. A CUDA graph can then hold `step` and `state` (`torch.cuda.graph`). A copy, also one by
    `pickle`, plays on by itself.

    Args:
        game: a Variant, or a name or Game, which then stands for the variant that `gymnasium.make` gives.
        num_envs: number of games.
        opponents, seat, self_play, expected_rewards: see `dice_envs.envs.learner.SeatGames`. On a GPU opponents must have
            kernels that make no arrays, as `random` and `numbers` do, or be policy networks, which are asked in batches.
        device: "cpu", "cuda" or "auto"; None: "cpu".
        options: the game's options.

    Attributes:
        variant: the game.
        device: where the tensors are.
        observations: (n, size) float32, in [0, 1], of the seat to move.
        masks: (n, actions) int8, the legal actions.
        seats: (n,) int64, the learner's seat; in self-play the seat to move.
        out: (n, seats) int8, 1 where the game is over for a seat though others play on.

    Raises:
        ValueError: wrong arguments, or an opponent that can't choose on the device.
        ImportError: numba-cuda is not installed.
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
        device: str | None = "cpu",
        **options: Any,
    ) -> None:
        self.variant, self.num_envs = seat_variant(game, options), num_envs
        self.device = torch.device(torch_device(device))
        check_choice("device", self.device.type, ("cpu", "cuda"))
        self._games = SeatGames(self.variant, num_envs, opponents, seat, self_play, "raise", expected_rewards)
        self._began = False
        self._bind()

    def _bind(self) -> None:
        """Make what is not copied: the tensors that share memory with the games' arrays, and the turns on a GPU."""
        count, num_seats, room = self.num_envs, self.variant.facts.num_seats, room_for(self.variant, self.num_envs)
        shown = Shown(*(torch.from_numpy(array).to(self.device).zero_() for array in room))
        self.observations, self.masks = shown
        self._turns: Any = None
        if self.device.type == "cpu" and not getattr(numba.config, "ENABLE_CUDASIM", False):
            turns = np.zeros(count, TURN)
            self._scratch = Step(turns, num_seats, Shown(*(tensor.numpy() for tensor in shown)), room_for(self.variant, 0))
            records = self._games.records
            games, written = (fields_of(torch.from_numpy(each.view(np.uint8)), each.dtype) for each in (records, turns))
        else:
            if self.device.type == "cuda":
                check_extra("cuda", "dice_envs.TensorEnv on the device 'cuda'", "numba_cuda")
            from dice_envs.envs.learner.device import DeviceTurns

            self._turns = DeviceTurns(self._games, shown)
            games, written = self._turns.games_there, self._turns.turns_there
        self.seats, self.out = games["learner"], games["state"]["out"][:, :num_seats]
        self._earned = written["earned"], written["earned"].float()
        none = Shown(*(tensor[:0] for tensor in shown))
        results = {name: written[name] for name in RESULTS} | {"earned": self._earned[1]}
        self._step: Step[torch.Tensor] = Step(results, num_seats, shown, none)
        self._state = torch.zeros(count, num_seats, self.variant.facts.observation_size, device=self.device)

    def __getstate__(self) -> dict[str, Any]:
        kept = {name: vars(self)[name] for name in ("variant", "num_envs", "device", "_games", "_began")}
        return {**kept, "turns": None if self._turns is None else self._turns.download()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        turns = state.pop("turns")
        vars(self).update(state)
        self._bind()
        if self._turns is not None:
            self._turns.upload(turns)
        if self._began:
            self._show(self._games.view())

    def __copy__(self) -> TensorEnv:
        return copy.deepcopy(self)

    @property
    def recording(self) -> Any:
        """A value that changes when opponents have: a CUDA graph that holds `step` goes on with those of before.

        None where no graph can: on a CPU, and with networks as opponents.
        """
        return None if self._turns is None else self._turns.follow()

    def reset(self, seed: int | None = None) -> None:
        """Deal all games, each with a seed of its own derived from `seed`; None: fresh ones.

        Raises:
            ValueError: a wrong seed; nothing has changed.
            AgentError: an opponent's action is malformed or not legal; on a CPU nothing has changed.
        """
        seeds, every = derived_seeds(check_seed(seed), "games", self.num_envs), np.arange(self.num_envs)
        if self._turns is not None:
            self._games.seed_games(every, seeds)
            self._turns.begin()
            self._turns.check()
        else:
            self._show(self._games.start(every, None, seeds))
        self._began = True

    def step(self, actions: torch.Tensor) -> Step[torch.Tensor]:
        """Play the learner's actions, (n,) int64, and the opponents' answers, up to the learner's next turns.

        On a GPU a game with an illegal action stands still until `check` raises its error.

        Returns:
            Tensors, with `earned` as float32 and `finals` of no rows. They are the same ones after each step, overwritten.

        Raises:
            RuntimeError: called before `reset`.
            IllegalActionError: an action is malformed or not legal; nothing has changed.
            AgentError: an opponent's action is; nothing has changed.
        """
        if not self._began:
            raise RuntimeError("call reset before step")
        if self._turns is not None:
            wanted = isinstance(actions, torch.Tensor) and actions.shape == (self.num_envs,)
            if not wanted or actions.dtype not in (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64):
                raise IllegalActionError(f"actions must be a tensor of {self.num_envs} whole numbers, not {shown(actions)}")
            self._turns.play(actions)
        else:
            try:
                self._games.advance(actions, np.zeros(self.num_envs, bool), restart=True, into=self._scratch)
            except BaseException:
                self._show(self._games.view())  # what the step has written until then
                raise
        self._earned[1].copy_(self._earned[0])
        return self._step

    def check(self) -> None:
        """On a GPU, raise the errors of the steps since the last check; call it once in a rollout.

        Raises:
            IllegalActionError: an action was not legal.
            AgentError: an opponent's was not; reset all games.
        """
        if self._turns is not None:
            self._turns.check()

    def _show(self, shown: Shown) -> None:
        """Write the games as they are into the tensors."""
        for tensor, array in zip((self.observations, self.masks), shown, strict=True):
            tensor.copy_(torch.from_numpy(array))

    def state(self) -> torch.Tensor:
        """Return all seats' observations, (n, seats, size) float32, for a critic that sees all: the seat to move first, then
        the others in turn order. The tensor is the same one at each call, overwritten."""
        if self._turns is not None:
            self._turns.view_all(self._state)
        else:
            self._games.view_all(self._state.numpy())
        return self._state

    def view_hands(self, out: torch.Tensor) -> None:
        """Write what each seat would see with each of the variant's hands into `out`, (n, seats, hands, size) float32.

        Raises:
            ValueError: the variant does not list its hands, or `out` is no such tensor, contiguous, on the device.
        """
        if self.variant.hands is None:
            raise ValueError(f"{self.variant} does not list the hands that a seat may hold")
        hands, _ = self.variant.hands
        n, seats, size = self._state.shape
        _check_room("out", out, (n, seats, len(hands), size), self._state.device)
        if self._turns is not None:
            self._turns.suppose(out)
        else:
            other = np.empty(1, self.variant.game.state)
            compile_hands(self.variant.game)[1](self.variant.params, self._games.records, other, hands, out.numpy())

    def snapshot(self) -> dict[str, np.ndarray]:
        """Return copies of everything that determines how the games continue, except the agents themselves."""
        if self._turns is not None:
            self._turns.download()
        return self._games.snapshot()

    def restore(self, snapshot: Mapping[str, np.ndarray]) -> None:
        """Go back to a snapshot of an environment made with the same arguments, on any device.

        Its checksum must fit; otherwise the values of the games' states are not checked.

        Raises:
            ValueError: it is not a snapshot of such an environment, or has been changed; nothing has changed.
        """
        shown = self._games.restore(snapshot)
        if self._turns is not None:
            self._turns.upload()
        self._show(shown)
        self._began = True
