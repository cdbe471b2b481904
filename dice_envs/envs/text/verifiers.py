"""Games in words as an environment of verifiers, which evaluates and trains language models.

`load_environment` makes it in a program. The commands of verifiers and its trainers find an environment by the name of a
module. A file with these two lines makes one, for example `dice_words.py` for `vf-eval dice_words`.

    from dice_envs.envs.text.verifiers import DiceEnv, DiceHarness, DiceTaskset
    __all__ = ["DiceEnv", "DiceHarness", "DiceTaskset"]

Rewards
    The reward of a rollout is the sum of the rewards of its replies, which `trace.info["turn_rewards"]` lists; `scoring` is:
    "regret": each move costs its exact regret, the value of the best move less its own (`dice_envs.action_values`).
    "result": the last reply has the return of the game.
    "luck_adjusted": the return without luck, from `dice_envs.response_values` of the opponent. Each move costs what it gives
    away against that opponent; the last reply also has the return that a best response expects before the game.

Replies without a legal move
    One that was cut off has none. The seat is told why and may answer once more. A second such reply to the same position
    loses the game, and so does a game that verifiers ends, for example by a limit on turns. A lost game has the least possible
    return. Its regret is the value of the best move less the least possible result.

Metrics
    `illegal_replies`: share of the replies. `mean_regret`: of all moves, where it is known. `result`: return of the game.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import ssl
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np

from dice_envs.agent.mixture import resolve_opponents
from dice_envs.core.batch import Batch
from dice_envs.core.game import configure
from dice_envs.core.machine import needs
from dice_envs.core.options import check_choice, check_range, check_seed
from dice_envs.core.work import hinting
from dice_envs.envs.text import TextTable, seats_around
from dice_envs.envs.text.words import CUT_OFF, IllegalMove, Unreadable, ask_again
from dice_envs.exact import ResponseValues, action_values, response_values

__all__ = ["DiceEnv", "DiceHarness", "DiceTaskset", "load_environment"]  # verifiers looks for its classes here

with needs("verifiers", "dice_envs.envs.text.verifiers"):
    import openai
    import pydantic
    import verifiers.v1 as vf

SCORINGS = ("regret", "result", "luck_adjusted")
MOST_EXAMPLES = 10**7
_MOST_SEED = 2**53  # seeds that are drawn; JSON holds them exactly
_ID = "dice_envs"  # under which verifiers finds this module once it is imported


class DiceTasksetConfig(vf.TasksetConfig):
    """The games; see `load_environment`."""

    game: str = "liars_dice"
    opponents: str | list[str] = "random"
    options: dict[str, Any] = pydantic.Field(default_factory=dict)
    legal: bool = True
    num_examples: int = 1000
    seed: int = 0


class DiceData(vf.TaskData):
    """One game: its seed, and the seat that the model plays."""

    game: str
    seed: int
    seat: int


class DiceTask(vf.Task[DiceData]):
    """A game that the environment plays and scores."""


class DiceTaskset(vf.Taskset[DiceTask, DiceTasksetConfig]):
    """Games of one variant against the same opponents. The model's seat rotates.

    Raises:
        ValueError: an unknown game, wrong options, opponents, seed or number of games.
    """

    def __init__(self, config: DiceTasksetConfig) -> None:
        super().__init__(config)
        check_seed(config.seed)
        check_range("num_examples", config.num_examples, 1, MOST_EXAMPLES)
        self.variant = configure(config.game, **config.options)
        self.opponents = resolve_opponents(config.opponents, self.variant)

    def load(self) -> Iterable[DiceTask]:
        """Yield a task for each game."""
        seeds = np.random.default_rng(self.config.seed)
        for number in range(self.config.num_examples):
            seat = number % self.variant.facts.num_seats
            table = None
            while table is None or table.over:  # a game may end before the seat's first turn
                seed = int(seeds.integers(_MOST_SEED))
                table = self.table(seed, seat)
            data = DiceData(prompt=table.prompt(), game=self.config.game, seed=seed, seat=seat)
            yield DiceTask(data, self.config.task)

    def table(self, seed: int, seat: int) -> TextTable:
        """Return the game of a task at the model's first turn."""
        seats = seats_around(seat, self.opponents, self.variant.facts.num_seats)
        return TextTable(self.variant, seed, seats, legal=self.config.legal)


class DiceEnvConfig(vf.EnvConfig):
    """The player, by default a chat without tools in this process, and how its moves are rewarded."""

    taskset: DiceTasksetConfig = DiceTasksetConfig()
    player: vf.AgentConfig = vf.AgentConfig(runtime=vf.SubprocessConfig())
    scoring: Literal["regret", "result", "luck_adjusted"] = "regret"


class DiceEnv(vf.Env[DiceEnvConfig]):
    """One seat of a game, played by a model: prompts are its user's messages, replies its moves.

    Raises:
        ValueError: what the scoring needs is not known of this game or these opponents.
    """

    taskset: DiceTaskset

    def __init__(self, config: DiceEnvConfig) -> None:
        super().__init__(config)
        self._judge = _Judge(self.taskset, config.scoring)

    async def run(self, task: DiceTask, agents: vf.Agents) -> None:
        """Play the game of a task, and score it."""
        seat = _SeatGame(self.taskset.table(task.data.seed, task.data.seat), self._judge)
        async with agents.player.interaction(task) as interaction:
            turn = await interaction.turn()
            while not turn.terminated and (answer := seat.reply(turn.last_reply, interaction.trace.is_truncated)) is not None:
                turn = await interaction.turn(answer)
        seat.close()
        trace = interaction.trace
        trace.record_reward(self.config.scoring, sum(seat.rewards), 1.0)
        trace.record_metrics(seat.metrics())
        trace.info["turn_rewards"] = seat.rewards


class DiceHarness(vf.Harness[vf.HarnessConfig]):
    """A chat in this process: each turn is one request with the conversation so far."""

    APPENDS_SYSTEM_PROMPT = True
    SUPPORTS_RESUME = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self,
        ctx: vf.ModelContext,
        trace: vf.Trace,
        runtime: vf.Runtime,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: vf.TaskData,
    ) -> vf.ProgramResult:
        system, prompt = self.resolve_prompt(data)
        messages = [vf.SystemMessage(content=system)] if system else []
        messages += [vf.UserMessage(content=prompt)] if isinstance(prompt, str) else prompt or []
        chat: list[Any] = [{"role": message.role, "content": message.content or ""} for message in messages]
        http = openai.DefaultAsyncHttpxClient(verify=_trusted(), timeout=None)
        async with openai.AsyncOpenAI(base_url=endpoint, api_key=secret, http_client=http, timeout=None) as client:
            await client.chat.completions.create(model=ctx.model, messages=chat)
        return vf.ProgramResult(0, "", "")


@functools.cache
def _trusted() -> ssl.SSLContext:
    """Return the certificates of this machine, which take longer to read than a request."""
    return ssl.create_default_context()


def load_environment(
    game: str = "liars_dice",
    opponents: str | Sequence[str] = "random",
    scoring: str = "regret",
    *,
    num_examples: int = 1000,
    seed: int = 0,
    legal: bool = True,
    **options: Any,
) -> DiceEnv:
    """Return the environment of one seat of a game. The first call may have to solve the game.

    Args:
        game: its name.
        opponents: the spec of an agent for all other seats, or a list with one for each other seat in turn order.
        scoring: "regret", "result" or "luck_adjusted"; see above.
        num_examples: number of games, which are the rows of the data.
        seed: fixes all games.
        legal: whether prompts list the legal moves.
        options: the game's options.

    Raises:
        ValueError: wrong arguments, or what the scoring needs is not known of this game or these opponents.
    """
    check_choice("scoring", scoring, SCORINGS)
    listed = opponents if isinstance(opponents, str) else list(opponents)
    taskset: dict[str, Any] = {"id": _ID, "game": game, "opponents": listed, "options": options, "legal": legal}
    taskset |= {"num_examples": num_examples, "seed": check_seed(seed)}
    return DiceEnv(DiceEnvConfig.model_validate({"taskset": taskset, "scoring": scoring}))


class _Judge:
    """Prices moves for a way of scoring."""

    def __init__(self, taskset: DiceTaskset, scoring: str) -> None:
        variant = taskset.variant
        self.variant, self.scoring = variant, scoring
        self.values: ResponseValues | None = None
        if scoring == "luck_adjusted":
            seats = variant.facts.num_seats
            if variant.facts.cooperative and seats > 1:
                raise ValueError(f"scoring must be regret or result for {variant}: luck is known for all seats together only")
            self.values = response_values(variant, taskset.opponents[0] if seats > 1 else None)
        self._is_priced = True
        try:
            with contextlib.nullcontext() if scoring == "regret" else hinting():
                action_values(variant, Batch(variant, 1, seed=0).states[0])
        except ValueError:
            if scoring == "regret":
                raise
            self._is_priced = False  # the metric is left out

    def price(self, state: Any, action: int | None, earned: float) -> tuple[float, float | None]:
        """Return the reward of a move and its regret, None where that is not known.

        Where `action` is None, the game is lost in this position. The seat had `earned` something before.
        """
        least, regret = self.variant.facts.min_return, None
        if self._is_priced:
            found = action_values(self.variant, state)
            worst = min(0.0 if found.unit.is_share else least, float(np.nanmin(found.values)))
            regret = _cost(found.values, action, worst)
        if self.values is not None:
            (values,) = self.values.action_values(np.array([state], self.variant.game.state))
            return -_cost(values, action, least - earned), regret
        return -regret if regret is not None and self.scoring == "regret" else 0.0, regret


def _cost(values: np.ndarray, action: int | None, lost: float) -> float:
    """Return what an action gives away, or the loss of the game, which is worth `lost`, where it is None."""
    return float(max(0.0, np.nanmax(values) - (lost if action is None else values[action])))


@dataclasses.dataclass
class _SeatGame:
    """A seat's game: reads replies, and adds up what they cost and earn.

    Attributes:
        rewards: of each reply.
    """

    table: TextTable
    judge: _Judge
    rewards: list[float] = dataclasses.field(default_factory=list)
    regrets: list[float] = dataclasses.field(default_factory=list)
    illegal: int = 0
    asked_again: bool = False
    lost: bool = False

    def __post_init__(self) -> None:
        self.seat = self.table.seat

    def reply(self, text: str, cut_off: bool) -> str | None:
        """Play the move in a reply. Return the next prompt, or None when the game is over."""
        state, earned = self.table.sitting.state, self.table.returns[self.seat]
        try:
            if cut_off:
                raise Unreadable(CUT_OFF)
            action = self.table.reply(text)
        except (Unreadable, IllegalMove) as problem:
            self.illegal += 1
            if self.asked_again:
                self._lose()
                return None
            self.asked_again = True
            self.rewards.append(0.0)
            return ask_again(problem)
        self.asked_again = False
        self._pay(state, action, earned)
        return None if self.table.over else self.table.prompt()

    def close(self) -> None:
        """End the game: one that is not over is lost. Pay what its end is worth."""
        if not self.table.over and not self.lost:
            self._lose()
        if self.judge.scoring == "result":
            self.rewards[-1] += self.result
        elif self.judge.values is not None:
            self.rewards[-1] += self.judge.values.start(self.seat)

    @property
    def result(self) -> float:
        """Return of the game."""
        return self.judge.variant.facts.min_return if self.lost else float(self.table.returns[self.seat])

    def metrics(self) -> dict[str, float]:
        """Return the metrics by name."""
        found = {"illegal_replies": self.illegal / len(self.rewards), "result": self.result}
        return {**found, "mean_regret": float(np.mean(self.regrets))} if self.regrets else found

    def _lose(self) -> None:
        self.lost = True
        self._pay(self.table.sitting.state, None, self.table.returns[self.seat])

    def _pay(self, state: Any, action: int | None, earned: float) -> None:
        reward, regret = self.judge.price(state, action, earned)
        self.rewards.append(reward)
        self.regrets += [] if regret is None else [regret]


# verifiers imports an environment by its name, from its own packages first. Here it is, with its harness.
for _kind in ("tasksets", "harnesses"):
    sys.modules.setdefault(f"verifiers.v1.{_kind}.{_ID}", sys.modules[__name__])
