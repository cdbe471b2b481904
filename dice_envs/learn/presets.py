"""How much and how `train` trains: presets for each game."""

from __future__ import annotations

import dataclasses
from typing import Any

from dice_envs.core.options import check_choice, check_range

__all__ = ["MOST_SEED", "PRESETS", "Preset", "presets_of"]

MOST_STEPS = 10**12
MOST_SEED = 2**32 - 1  # of NumPy's global stream
MOST_AT_ONCE = 2**20  # steps between two updates: all of them are in memory


@dataclasses.dataclass(frozen=True)
class Preset:
    """How to train.

    Attributes:
        steps: learner steps in all.
        opponents: specs of the pool's fixed opponents.
        self_share: the share of opponents that are past selves, 0 to 1.
        past_selves: how many of them are kept; the oldest makes room.
        snapshot_every: iterations between two of them.
        self_play: the share of games in which the learner has every seat, 0 to 1; in the others it has one.
        exploration: the share of self-play games that start with random moves, in the beginning; it falls to 0.
        num_envs, num_steps: games at once, and steps in each between two updates.
        minibatch, epochs, learning_rate, clip, gae_lambda, value_weight, normalize, hidden: MaskablePPO's.
        learning_rate_end: what the learning rate falls to, linearly.
        input_scale: how much steeper than usual the first layers begin, 1 to 100. What they see lies between 0 and 1, and close
            values then differ for them: products of many inputs are learned which a flat layer misses.
        entropy, kl, proximal: weights of the entropy bonus, of the divergence from the reference policy, and of that from the
            policy that played the rollout, from the first step on.
        entropy_end, kl_end, proximal_end: the same at the last step, approached geometrically; None: as in the beginning.
        settle: let the learning rate fall to 0 in the course of each update (see `dice_envs.learn.ppo.RegularisedPPO`).
        least_stake: let the weights of entropy and divergences follow what is at stake at each decision, above 0 (see there).
        expected_rewards: pay what a roll brings in the mean (see `dice_envs.core.expected`); not all games tell it.
        central_critic: whether the critic sees what all seats see (see there).
        reference_rate, average_rate: how far the reference policy and the averaged policy move towards the learner's after
            each iteration, 0 to 1 (see there).
        floor: the saved policy never takes actions that are less likely than so many times the likeliest one, 0 to 0.99: it
            reaches fewer positions, so that it can be measured where there are many (see `dice_envs.agents.ppo.NetworkPolicy`).
        measure_every: iterations between two exact measurements where they are cheap; 0: none before the end.
        keep: "last": the run's policy is the last one; "best": the best of those measured, averaged policies included;
            the averaged one where none was measured.
        checkpoint_every: iterations between two checkpoints.
        threads: PyTorch's.
    """

    steps: int
    opponents: tuple[str, ...] = ("random",)
    self_play: float = 0.0
    exploration: float = 0.0
    self_share: float = 0.2
    past_selves: int = 8
    snapshot_every: int = 8
    num_envs: int = 512
    num_steps: int = 64
    minibatch: int = 4096
    epochs: int = 4
    learning_rate: float = 5e-4
    learning_rate_end: float = 0.0
    clip: float = 0.2
    normalize: bool = True
    value_weight: float = 0.5
    entropy: float = 0.01
    entropy_end: float | None = None
    kl: float = 0.0
    kl_end: float | None = None
    reference_rate: float = 0.0
    proximal: float = 0.0
    proximal_end: float | None = None
    settle: bool = False
    least_stake: float = 0.0
    expected_rewards: bool = False
    central_critic: bool = False
    average_rate: float = 0.0
    gae_lambda: float = 0.95
    hidden: tuple[int, ...] = (128, 128)
    input_scale: float = 1.0
    floor: float = 0.0
    measure_every: int = 32
    keep: str = "last"
    checkpoint_every: int = 8
    threads: int = 2

    def __post_init__(self) -> None:
        whole = {
            "steps": (1, MOST_STEPS),
            "past_selves": (0, 1000),
            "snapshot_every": (1, 10**9),
            "num_envs": (1, 2**16),
            "num_steps": (1, MOST_AT_ONCE),
            "minibatch": (2, MOST_AT_ONCE),
            "epochs": (1, 1000),
            "checkpoint_every": (1, 10**9),
            "measure_every": (0, 10**9),
            "threads": (1, 256),
        }
        for name, (low, high) in whole.items():
            check_range(name, getattr(self, name), low, high)
        shares = (
            "self_share",
            "self_play",
            "exploration",
            "learning_rate",
            "entropy",
            "gae_lambda",
            "clip",
            "value_weight",
            "reference_rate",
            "least_stake",
        )
        weights = ("kl", "proximal", "average_rate")
        ends = ("entropy_end", "kl_end", "learning_rate_end", "proximal_end")
        for name in (*shares, *weights, *ends):
            if getattr(self, name) is not None or name not in ends:
                most = {"kl": 10, "proximal": 1000}.get(name.removesuffix("_end"), 1)
                check_range(name, getattr(self, name), 0, most, whole=False)
        check_range("input_scale", self.input_scale, 1, 100, whole=False)
        check_range("floor", self.floor, 0, 0.99, whole=False)
        for name in ("normalize", "settle", "expected_rewards", "central_critic"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name} must be true or false, not {getattr(self, name)!r}")
        if self.central_critic and self.normalize:
            raise ValueError("normalize must be false with central_critic, whose values are in units of reward")
        if self.least_stake and not self.central_critic:
            raise ValueError(f"least_stake must be 0 without central_critic, which tells stakes, not {self.least_stake}")
        check_choice("keep", self.keep, ("last", "best"))
        if not isinstance(self.opponents, tuple) or not self.opponents or not all(isinstance(s, str) for s in self.opponents):
            raise ValueError(f"opponents must be one spec or more, not {self.opponents!r}")
        if not isinstance(self.hidden, tuple) or len(self.hidden) > 8:
            raise ValueError(f"hidden must be the sizes of 8 layers at most, not {self.hidden!r}")
        for size in self.hidden:
            check_range("a size of hidden", size, 1, 4096)
        at_once = self.num_envs * self.num_steps
        check_range("num_envs times num_steps", at_once, 2, MOST_AT_ONCE)
        if at_once % self.minibatch:
            raise ValueError(f"minibatch must divide num_envs times num_steps, {at_once}, which {self.minibatch} does not")


_NUMBERS = ("random", "numbers:bluff=0", "numbers:bluff=0.25", "numbers:bluff=0.75", "numbers:bluff=1")

# One pass over each rollout with larger steps learns as much from it as four, in a third of the time.
_ONE_EPOCH: dict[str, Any] = {"epochs": 1, "learning_rate": 2e-3, "minibatch": 2048}

# The same for games whose networks are too small for a second thread.
_SMALL: dict[str, Any] = {"epochs": 1, "checkpoint_every": 32, "threads": 1}

# Towards equilibrium: the learner plays itself by magnetic mirror descent. Several epochs take each rollout to the optimum of
# its regularised loss, so steps have one size everywhere, clipping has nothing to do, and a critic that sees all hands takes
# out most of the noise. Advantages keep the unit of the reward, so that the weights of entropy and divergences mean the same
# at all times. The reference follows slowly enough that noise does not add up in it. Play keeps circling a little around the
# equilibrium: what comes close is the averaged policy.
_EQUILIBRIUM = Preset(
    steps=10_000_000,
    self_play=1.0,
    num_steps=32,
    minibatch=2048,
    epochs=4,
    learning_rate=2e-3,
    clip=1.0,
    normalize=False,
    central_critic=True,
    proximal=1.0,
    kl=0.3,
    reference_rate=0.05,
    average_rate=0.005,
    entropy=0.05,
    entropy_end=0.01,
    measure_every=64,
    checkpoint_every=64,
    keep="best",
)

_LIARS_DICE = dataclasses.replace(_EQUILIBRIUM, opponents=("random", "numbers", "numbers:bluff=1"), floor=0.005)

# Presets of games that need their own; "" is for all others.
PRESETS: dict[str, dict[str, Preset]] = {
    "": {"quick": Preset(steps=2_000_000), "full": Preset(steps=50_000_000), "equilibrium": _EQUILIBRIUM},
    "liars_dice": {
        "quick": Preset(
            steps=30_000_000,
            opponents=_NUMBERS,
            self_share=0.0,
            entropy_end=0.002,
            floor=0.01,
            checkpoint_every=32,
            **_ONE_EPOCH,
        ),
        "full": Preset(
            steps=300_000_000, opponents=_NUMBERS, hidden=(256, 256), checkpoint_every=32, snapshot_every=32, **_ONE_EPOCH
        ),
        "equilibrium": _LIARS_DICE,
        # The same for a match of many rounds, in which a die may be worth much or little: weights follow what is at stake, and
        # are larger in its units. Credit fades sooner, as what comes after a round is luck.
        "match": dataclasses.replace(
            _LIARS_DICE,
            steps=60_000_000,
            least_stake=0.05,
            proximal=2.0,
            kl=0.6,
            entropy=0.1,
            entropy_end=0.02,
            gae_lambda=0.5,
        ),
    },
    # A choice is worth a few games in a hundred, so it is paid in the mean over the roll; and which die is best depends on all
    # six dice: only steep first layers and large minibatches find more than dice that are good on average.
    "fatestones": {
        "quick": Preset(
            steps=20_000_000,
            self_share=0.0,
            num_envs=2048,
            num_steps=16,
            minibatch=8192,
            learning_rate=6e-3,
            entropy=0.02,
            entropy_end=0.0,
            gae_lambda=0.5,
            hidden=(64, 64),
            input_scale=8.0,
            expected_rewards=True,
            measure_every=0,
            **_SMALL,
        ),
    },
    "score_dice": {
        "quick": Preset(
            steps=12_000_000,
            opponents=("highest",),
            self_share=0.0,
            num_envs=1024,
            num_steps=16,
            minibatch=2048,
            learning_rate=3e-3,
            entropy=0.1,  # with half of it, some runs stay far below the others
            entropy_end=1e-5,
            input_scale=4.0,
            measure_every=0,
            **_SMALL,
        ),
    },
    # One seat, and play that needs no chance. Games are short, so luck is most of a return, which many games at once and one
    # pass over each rollout even out. What is learnt last in The Shakes are late patients after rare results: patients are
    # paid in the mean, and the pull to explore stays.
    "shakes": {
        "quick": Preset(
            steps=6_000_000,
            num_envs=2048,
            num_steps=18,
            minibatch=2048,
            learning_rate=5e-3,
            entropy=0.02,
            entropy_end=0.001,
            expected_rewards=True,
            average_rate=0.02,
            hidden=(64, 64),
            measure_every=4,
            keep="best",
            **_SMALL,
        ),
    },
    # The same, with a pull to explore that falls to next to nothing.
    "thirties": {
        "quick": Preset(
            steps=3_000_000,
            num_envs=1024,
            num_steps=8,
            minibatch=512,
            learning_rate=3e-3,
            entropy=0.03,
            entropy_end=1e-5,
            value_weight=0.1,
            gae_lambda=0.8,
            hidden=(64, 64),
            measure_every=16,
            keep="best",
            **_SMALL,
        ),
    },
}


def presets_of(game: str) -> dict[str, Preset]:
    """The presets of a game: its own, and those of all games where it has none of that name."""
    return {**PRESETS[""], **PRESETS.get(game, {})}
