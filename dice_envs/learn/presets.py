"""How much and how `train` trains: presets for each game."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from dice_envs.agent.specs import make_players
from dice_envs.core.game import Variant, with_expected_rewards
from dice_envs.core.machine import MOST_THREADS
from dice_envs.core.options import Range, check_choice, check_range, check_seed, check_types, is_list, options_text, shown

# Learners by name: where their class is.
LEARNERS = {"ppo": "dice_envs.learn.ppo:PPO", "sb3": "dice_envs.learn.sb3:StockPPO"}

MOST_STEPS = 10**12
GPU_TIMES, GPU_GAMES = 4, 16_384  # see `Preset.on_gpu`
MOST_AT_ONCE = 2**20  # steps between two updates: all of them are in memory

# Settings that MaskablePPO does not have. A preset's default leaves each of them out.
LACKS = (
    "self_play", "kl", "kl_end", "reference_rate", "proximal", "proximal_end", "settle", "least_stake",
    "central_critic", "average_rate", "input_scale", "every_hand",
)  # fmt: skip

_Often = Annotated[int, Range(1, 10**9)]
_Share = Annotated[float, Range(0, 1)]


@dataclasses.dataclass(frozen=True)
class Preset:
    """How to train.

    Attributes:
        steps: learner steps in all.
        opponents: specs of the pool's fixed opponents.
        self_play: the share of games in which the learner has every seat, 0 to 1; in the others it has one.
        self_share: the share of opponents that are past selves, 0 to 1.
        past_selves: the number of past selves in the pool; a new one replaces the oldest.
        snapshot_every: iterations between two past selves.
        num_envs, num_steps: games at once, and steps in each between two updates.
        minibatch, epochs, learning_rate, clip, gae_lambda, value_weight, hidden: PPO's.
        normalize: divide advantages by their standard deviation over the rollout. Without it, the weights of entropy and
            divergences are in units of reward.
        learning_rate_end: the learning rate at the last step, approached linearly.
        entropy, kl, proximal: weights of the entropy bonus, of the divergence from the reference policy, and of that from the
            policy that played the rollout, at the first step.
        entropy_end, kl_end, proximal_end: the same at the last step, approached geometrically, or linearly if one of both is 0;
            None: constant weights.
        reference_rate, average_rate: how far the reference policy and the averaged policy move towards the learner's after
            each iteration, 0 to 1. With a rate of 0 the reference stays the initial policy, which is almost uniform. In the
            averaged policy, a running mean of weights, iteration t has weight t in the first 2 / average_rate iterations.
        settle: decrease the learning rate to 0 during each update.
        least_stake: above 0, the weights of entropy and divergences are multiplied at each decision by its stake: half the
            difference between its best and its worst action by the central critic, but at least this.
        expected_rewards: pay the expected reward of a roll, see `with_expected_rewards` in `dice_envs.core.game`; not every
            game provides it.
        central_critic: whether the critic sees the observations of all seats and values every action; only training needs
            it. The policy's mean of these values is then maximised as well.
        every_hand: average the critic's values over all hands that the other player may hold, each weighted by the probability
            that it would have played like this, so that its luck is no noise. Needs `central_critic`, `self_play` 1, and one
            round of Liar's Dice for two with as many dice each.
        input_scale: multiplies the initial weights of the first layers, 1 to 100. Inputs lie between 0 and 1; steeper layers
            tell close values apart and learn products of many inputs that flat ones miss.
        floor: the saved policy never takes actions less likely than this share of the likeliest one's probability, 0 to 0.99.
            It then reaches fewer positions, so that games with many can be measured (see
            `dice_envs.agents.ppo.NetworkPolicy`).
        measure_every: iterations between two exact measurements, where these are cheap; until one was, they are tried ever
            more rarely. The more iterations, from 64 up to 512, the longer a cheap one may take. 0: only the final one.
        keep: "last": the run's policy is the last one; "best": the best of those measured, averaged policies included;
            the averaged one where none was measured.
        checkpoint_every: iterations between two checkpoints.
        threads: PyTorch's. With another number of them sums are rounded differently, so that a seed gives other weights: by
            about 2e-6 after the first update.
    """

    steps: Annotated[int, Range(1, MOST_STEPS)]
    opponents: tuple[str, ...] = ("random",)
    self_play: _Share = 0.0
    self_share: _Share = 0.2
    past_selves: Annotated[int, Range(0, 1000)] = 8
    snapshot_every: _Often = 8
    num_envs: Annotated[int, Range(1, 2**16)] = 512
    num_steps: Annotated[int, Range(1, MOST_AT_ONCE)] = 64
    minibatch: Annotated[int, Range(2, MOST_AT_ONCE)] = 4096
    epochs: Annotated[int, Range(1, 1000)] = 4
    learning_rate: _Share = 5e-4
    learning_rate_end: _Share = 0.0
    clip: _Share = 0.2
    normalize: bool = True
    value_weight: _Share = 0.5
    entropy: _Share = 0.01
    entropy_end: Annotated[float, Range(0, 1)] | None = None
    kl: Annotated[float, Range(0, 10)] = 0.0
    kl_end: Annotated[float, Range(0, 10)] | None = None
    reference_rate: _Share = 0.0
    proximal: Annotated[float, Range(0, 1000)] = 0.0
    proximal_end: Annotated[float, Range(0, 1000)] | None = None
    settle: bool = False
    least_stake: _Share = 0.0
    expected_rewards: bool = False
    central_critic: bool = False
    average_rate: _Share = 0.0
    gae_lambda: _Share = 0.95
    hidden: tuple[Annotated[int, Range(1, 4096)], ...] = (128, 128)
    input_scale: Annotated[float, Range(1, 100)] = 1.0
    every_hand: bool = False
    floor: Annotated[float, Range(0, 0.99)] = 0.0
    measure_every: Annotated[int, Range(0, 10**9)] = 32
    keep: Literal["last", "best"] = "last"
    checkpoint_every: _Often = 8
    threads: Annotated[int, Range(1, MOST_THREADS)] = 2

    def __post_init__(self) -> None:
        if not is_list(self.opponents) or not len(self.opponents) or not all(isinstance(spec, str) for spec in self.opponents):
            raise ValueError(f"opponents must be one spec or more, not {shown(self.opponents)}")
        if not is_list(self.hidden) or len(self.hidden) > 8:
            raise ValueError(f"hidden must be the sizes of 8 layers at most, not {shown(self.hidden)}")
        object.__setattr__(self, "opponents", tuple(self.opponents))
        check_types(self)
        if self.central_critic and self.normalize:
            raise ValueError("normalize must be false with central_critic, whose values are in units of reward")
        if self.least_stake and not self.central_critic:
            raise ValueError(f"least_stake must be 0 without central_critic, whose values give stakes, not {self.least_stake}")
        if self.every_hand and not (self.central_critic and self.self_play == 1):
            raise ValueError("every_hand must be false without central_critic and a self_play of 1")
        at_once = self.num_envs * self.num_steps
        check_range("num_envs times num_steps", at_once, 2, MOST_AT_ONCE)
        if at_once % self.minibatch:
            raise ValueError(f"minibatch must divide num_envs times num_steps, {at_once}, which {self.minibatch} does not")

    def scheduled(self, left: float) -> dict[str, float]:
        """Return the learning rate and the weights that have a schedule, where `left` is the share of training that remains."""
        found = {}
        for name in ("learning_rate", "entropy", "kl", "proximal"):
            start, end = getattr(self, name), getattr(self, f"{name}_end")
            found[name] = start if end is None else end + (start - end) * left
            if name != "learning_rate" and end and start:
                found[name] = end * (start / end) ** left
        return found

    def on_gpu(self) -> Preset:
        """Return this preset for a GPU: as many updates, each from GPU_TIMES as many decisions, which take a GPU little longer.

        Rollouts, minibatches and steps in all are GPU_TIMES as large. Games at once are doubled up to GPU_GAMES, because a GPU
        steps many games in the time of a few, as long as a rollout keeps 8 steps or more of each game.
        """
        games, steps = self.num_envs, self.num_steps * GPU_TIMES
        while games * 2 <= GPU_GAMES and steps % 2 == 0 and steps >= 16:
            games, steps = games * 2, steps // 2
        larger = {name: getattr(self, name) * GPU_TIMES for name in ("steps", "minibatch")}
        return dataclasses.replace(self, num_envs=games, num_steps=steps, **larger)


_NUMBERS = ("random", "numbers:bluff=0", "numbers:bluff=0.25", "numbers:bluff=0.75", "numbers:bluff=1")

# One pass over each rollout with larger steps learns as much from it as four, in a third of the time.
_ONE_EPOCH: dict[str, Any] = {"epochs": 1, "learning_rate": 2e-3, "minibatch": 2048}

# Settings of networks that gain nothing from a second thread, and nothing from past selves.
_SMALL: dict[str, Any] = {"epochs": 1, "checkpoint_every": 32, "threads": 1, "self_share": 0.0}
_ONE_SEAT: dict[str, Any] = {**_SMALL, "hidden": (64, 64), "keep": "best"}  # there optimal play is deterministic
_FATESTONES: dict[str, Any] = {**_SMALL, "expected_rewards": True, "measure_every": 0}

# Towards equilibrium: self-play by magnetic mirror descent, whose parts docs/ppo.md explains. The reference follows slowly
# enough that noise averages out in it. Play still circles a little around the equilibrium; the averaged policy comes closer.
_EQUILIBRIUM = Preset(
    steps=10_000_000, self_play=1.0, num_steps=32, minibatch=2048, learning_rate=2e-3, clip=1.0, normalize=False,
    central_critic=True, proximal=1.0, kl=0.3, reference_rate=0.05, average_rate=0.005, entropy=0.05, entropy_end=0.01,
    measure_every=64, checkpoint_every=64, keep="best",
)  # fmt: skip

_LIARS_DICE = dataclasses.replace(_EQUILIBRIUM, opponents=("random", "numbers", "numbers:bluff=1"), floor=0.005)

# Presets of games that need their own; "" is for all others.
PRESETS: dict[str, dict[str, Preset]] = {
    "": {"quick": Preset(steps=2_000_000), "full": Preset(steps=50_000_000), "equilibrium": _EQUILIBRIUM},
    "liars_dice": {
        # The learning rate falls to 0, so a short run beats a long one that is stopped early.
        "quick": Preset(steps=10_000_000, opponents=_NUMBERS, entropy_end=0.002, floor=0.01, **_ONE_EPOCH | _SMALL),
        "full": Preset(
            steps=300_000_000, opponents=_NUMBERS, hidden=(256, 256), checkpoint_every=32, snapshot_every=32, **_ONE_EPOCH
        ),
        "equilibrium": _LIARS_DICE,
        # For a match of many rounds, in which a die may be worth much or little: weights follow the stakes, and are larger in
        # their units. Credit fades sooner, because later rounds depend on luck.
        "match": dataclasses.replace(
            _LIARS_DICE, steps=60_000_000, gae_lambda=0.5,
            least_stake=0.05, proximal=2.0, kl=0.6, entropy=0.1, entropy_end=0.02,
        ),
    },
    # A choice wins or loses a few games in a hundred, so rewards are expectations over the roll. The best die depends on all
    # six dice: only steep first layers and large minibatches find more than dice that are good on average.
    "fatestones": {
        "quick": Preset(
            steps=20_000_000, num_envs=2048, num_steps=16, minibatch=8192, learning_rate=6e-3, gae_lambda=0.5,
            entropy=0.02, entropy_end=0.0, hidden=(64, 64), input_scale=8.0, **_FATESTONES,
        ),
        # Entropy stays high: where it falls further, play becomes easier to exploit, see docs/ppo_tried.md.
        "equilibrium": dataclasses.replace(
            _EQUILIBRIUM, steps=50_000_000, num_envs=1024, num_steps=16, minibatch=512, learning_rate=3e-3, settle=True,
            entropy=0.04, entropy_end=0.02, proximal=0.5, kl=0.2, average_rate=0.002, hidden=(128, 128, 128), **_FATESTONES,
        ),
    },
    "score_dice": {
        "quick": Preset(
            steps=12_000_000, opponents=("highest",), num_envs=1024, num_steps=16, minibatch=2048, learning_rate=3e-3,
            entropy=0.1,  # with half of it, some runs stay far below the others
            entropy_end=1e-5, input_scale=4.0, measure_every=0, **_SMALL,
        ),
    },
    # Games are short, so a return is mostly luck, which many games at once and one pass over each rollout average out. In The
    # Shakes, late patients after rare results are learnt last: rewards are expected ones, and the entropy bonus stays.
    "shakes": {
        "quick": Preset(
            steps=6_000_000, num_envs=2048, num_steps=18, minibatch=2048, learning_rate=5e-3, entropy=0.02, entropy_end=0.001,
            expected_rewards=True, average_rate=0.02, measure_every=4, **_ONE_SEAT,
        ),
    },
    # As in The Shakes, with an entropy bonus that falls almost to 0.
    "thirties": {
        "quick": Preset(
            steps=3_000_000, num_envs=1024, num_steps=8, minibatch=512, learning_rate=3e-3, entropy=0.03, entropy_end=1e-5,
            value_weight=0.1, gae_lambda=0.8, measure_every=16, **_ONE_SEAT,
        ),
    },
}  # fmt: skip


def presets_of(game: str) -> dict[str, Preset]:
    """The presets of a game by name: its own, and the general ones."""
    return {**PRESETS[""], **PRESETS.get(game, {})}


def preset_of(game: str, name: str, **changes: Any) -> Preset:
    """A game's preset with some fields changed. ValueError if there is none of this name, or for a wrong value."""
    choices = presets_of(game)
    if name not in choices:
        raise ValueError(f"unknown preset {shown(name)}; presets are: {', '.join(choices)}")
    return dataclasses.replace(choices[name], **changes)


@dataclasses.dataclass(frozen=True)
class Plan:
    """What is trained, and how.

    Attributes:
        variant: the game.
        preset: all settings.
        asked: names of those that were asked for.
        seed, learner: None: those of the run that is resumed, or a fresh seed and "ppo".
        device: PyTorch's.
    """

    variant: Variant
    preset: Preset
    asked: frozenset[str] = frozenset()
    seed: int | None = None
    learner: str | None = None
    device: str = "cpu"


def plan_of(
    variant: Variant,
    preset: str,
    given: Mapping[str, Any],
    seed: int | None = None,
    learner: str | None = None,
    device: str = "cpu",
) -> Plan:
    """Return the plan for a preset with some fields given. ValueError if the game, the learner or this machine cannot carry it
    out."""
    if learner is not None:
        check_choice("learner", learner, list(LEARNERS))
    stock: dict[str, Any] = {each.name: each.default for each in dataclasses.fields(Preset) if each.name in LACKS}
    for name, default in stock.items() if learner == "sb3" else ():
        if given.get(name, default) != default:
            raise ValueError(f"{name} must be {default} for the learner sb3, which lacks it, not {shown(given[name])}")
    chosen = preset_of(variant.game.name, preset, **given)
    if learner == "sb3":
        if chosen.self_play:
            raise ValueError(
                "the learner sb3 has no self-play: choose a preset against opponents, such as quick, or learner ppo"
            )
        chosen = dataclasses.replace(chosen, **stock)
    elif device.startswith("cuda") and not given.keys() & {"num_envs", "num_steps", "minibatch"}:
        chosen = dataclasses.replace(preset_of(variant.game.name, preset).on_gpu(), **given)
    if variant.facts.num_seats > 1:
        make_players(variant, chosen.opponents)
    elif "opponents" in given:
        usual = {name: getattr(variant.game.options(), name) for name in variant.game.gym_options}
        more = f" ({options_text(usual)} gives it more)" if usual else ""
        raise ValueError(f"opponents must be omitted for {variant}, which has one seat{more}, not {shown(chosen.opponents[0])}")
    if chosen.every_hand and (variant.facts.num_seats != 2 or variant.hands is None):
        raise ValueError(f"every_hand must be false for {variant}; it takes one round of liars_dice, as many dice for both")
    if chosen.self_play and variant.facts.num_seats == 1:
        raise ValueError(f"self_play must be 0: {variant} has one seat")
    if chosen.expected_rewards:
        with_expected_rewards(variant.game)  # raises where the game does not provide them
    return Plan(variant, chosen, frozenset(given), check_seed(seed), learner, device)


def setting_text(value: Any) -> str:
    """Return a setting's value as `--set` takes it: layers are written 128x128."""
    return "x".join(map(str, value)) if isinstance(value, tuple) else str(value)
