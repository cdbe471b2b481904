"""The games in PettingZoo's form, as `dice_envs` offers them. `make figures NAME=stubs` writes it."""

from collections.abc import Sequence
from typing import Any, Literal

from pettingzoo import AECEnv

from dice_envs.envs.aec import DiceAECEnv, DiceParallelEnv

class fatestones_v0:
    @staticmethod
    def env(
        *,
        dice: Literal["fair", "all"] | Sequence[int] = "fair",
        hand_size: int = 3,
        scratch: Literal["redraw", "draw"] = "redraw",
        render_mode: str | None = None,
        max_cycles: int | None = None,
        illegal_action: Literal["lose", "raise"] = "lose",
        observation: Literal["dict", "box"] = "dict",
    ) -> AECEnv[Any, Any, Any]: ...
    @staticmethod
    def raw_env(
        *,
        dice: Literal["fair", "all"] | Sequence[int] = "fair",
        hand_size: int = 3,
        scratch: Literal["redraw", "draw"] = "redraw",
        render_mode: str | None = None,
        max_cycles: int | None = None,
        illegal_action: Literal["lose", "raise"] = "raise",
        observation: Literal["dict", "box"] = "dict",
    ) -> DiceAECEnv: ...
    @staticmethod
    def parallel_env(
        *,
        dice: Literal["fair", "all"] | Sequence[int] = "fair",
        hand_size: int = 3,
        scratch: Literal["redraw", "draw"] = "redraw",
        render_mode: str | None = None,
        max_cycles: int | None = None,
        illegal_action: Literal["lose", "raise"] = "raise",
        observation: Literal["dict", "box"] = "dict",
    ) -> DiceParallelEnv: ...

class liars_dice_v0:
    @staticmethod
    def env(
        *,
        num_players: int = 2,
        num_dice: int | Sequence[int] = 5,
        num_faces: int = 6,
        raise_rule: Literal["quantity", "either", "perudo", "nondecreasing", "reset_quantity"] = "quantity",
        wild: Literal["ones", "highest"] | None = None,
        palifico: bool = False,
        exact_call: bool = False,
        rounds: Literal["elimination", "single"] = "elimination",
        starter: Literal["random", "first"] = "random",
        next_starter: Literal["loser", "after_caller"] = "loser",
        reward: Literal["win", "dice"] = "win",
        past_rounds: bool = True,
        rules: Literal["standard", "openspiel", "perudo", "textarena", "textarena_1"] = "standard",
        render_mode: str | None = None,
        max_cycles: int | None = None,
        illegal_action: Literal["lose", "raise"] = "lose",
        observation: Literal["dict", "box"] = "dict",
    ) -> AECEnv[Any, Any, Any]: ...
    @staticmethod
    def raw_env(
        *,
        num_players: int = 2,
        num_dice: int | Sequence[int] = 5,
        num_faces: int = 6,
        raise_rule: Literal["quantity", "either", "perudo", "nondecreasing", "reset_quantity"] = "quantity",
        wild: Literal["ones", "highest"] | None = None,
        palifico: bool = False,
        exact_call: bool = False,
        rounds: Literal["elimination", "single"] = "elimination",
        starter: Literal["random", "first"] = "random",
        next_starter: Literal["loser", "after_caller"] = "loser",
        reward: Literal["win", "dice"] = "win",
        past_rounds: bool = True,
        rules: Literal["standard", "openspiel", "perudo", "textarena", "textarena_1"] = "standard",
        render_mode: str | None = None,
        max_cycles: int | None = None,
        illegal_action: Literal["lose", "raise"] = "raise",
        observation: Literal["dict", "box"] = "dict",
    ) -> DiceAECEnv: ...

class score_dice_v0:
    @staticmethod
    def env(
        *,
        pool_a: Sequence[int] | int = (6, 6, 6, 6, 6),
        pool_b: Sequence[int] | int = (6, 6, 6, 6, 6),
        ties: Literal["none", "a", "reroll"] = "none",
        open_hands: bool = False,
        reward: Literal["win", "score"] = "win",
        render_mode: str | None = None,
        max_cycles: int | None = None,
        illegal_action: Literal["lose", "raise"] = "lose",
        observation: Literal["dict", "box"] = "dict",
    ) -> AECEnv[Any, Any, Any]: ...
    @staticmethod
    def raw_env(
        *,
        pool_a: Sequence[int] | int = (6, 6, 6, 6, 6),
        pool_b: Sequence[int] | int = (6, 6, 6, 6, 6),
        ties: Literal["none", "a", "reroll"] = "none",
        open_hands: bool = False,
        reward: Literal["win", "score"] = "win",
        render_mode: str | None = None,
        max_cycles: int | None = None,
        illegal_action: Literal["lose", "raise"] = "raise",
        observation: Literal["dict", "box"] = "dict",
    ) -> DiceAECEnv: ...
    @staticmethod
    def parallel_env(
        *,
        pool_a: Sequence[int] | int = (6, 6, 6, 6, 6),
        pool_b: Sequence[int] | int = (6, 6, 6, 6, 6),
        ties: Literal["none", "a", "reroll"] = "none",
        open_hands: bool = False,
        reward: Literal["win", "score"] = "win",
        render_mode: str | None = None,
        max_cycles: int | None = None,
        illegal_action: Literal["lose", "raise"] = "raise",
        observation: Literal["dict", "box"] = "dict",
    ) -> DiceParallelEnv: ...

class shakes_v0:
    @staticmethod
    def env(
        *,
        num_players: int = 3,
        mode: Literal["maesters", "physician"] = "maesters",
        variation: Literal["cooperative", "competitive"] = "cooperative",
        reward: Literal["saved", "win"] | None = None,
        ties: Literal["again", "random"] = "again",
        efficacy: int = 2,
        num_patients: int | None = None,
        goal: int | None = None,
        open_efficacies: bool = False,
        treatments: Sequence[str] | Literal["rules"] | None = None,
        maesters: Sequence[str] | None = None,
        render_mode: str | None = None,
        max_cycles: int | None = None,
        illegal_action: Literal["lose", "raise"] = "lose",
        observation: Literal["dict", "box"] = "dict",
    ) -> AECEnv[Any, Any, Any]: ...
    @staticmethod
    def raw_env(
        *,
        num_players: int = 3,
        mode: Literal["maesters", "physician"] = "maesters",
        variation: Literal["cooperative", "competitive"] = "cooperative",
        reward: Literal["saved", "win"] | None = None,
        ties: Literal["again", "random"] = "again",
        efficacy: int = 2,
        num_patients: int | None = None,
        goal: int | None = None,
        open_efficacies: bool = False,
        treatments: Sequence[str] | Literal["rules"] | None = None,
        maesters: Sequence[str] | None = None,
        render_mode: str | None = None,
        max_cycles: int | None = None,
        illegal_action: Literal["lose", "raise"] = "raise",
        observation: Literal["dict", "box"] = "dict",
    ) -> DiceAECEnv: ...

class thirties_v0:
    @staticmethod
    def env(
        *,
        num_players: int = 2,
        rounds: int = 3,
        num_dice: int = 6,
        num_faces: int = 6,
        target: int = 30,
        goal: Literal["maximize", "minimize_loss", "thirty_or_over", "optimal"] = "maximize",
        render_mode: str | None = None,
        max_cycles: int | None = None,
        illegal_action: Literal["lose", "raise"] = "lose",
        observation: Literal["dict", "box"] = "dict",
    ) -> AECEnv[Any, Any, Any]: ...
    @staticmethod
    def raw_env(
        *,
        num_players: int = 2,
        rounds: int = 3,
        num_dice: int = 6,
        num_faces: int = 6,
        target: int = 30,
        goal: Literal["maximize", "minimize_loss", "thirty_or_over", "optimal"] = "maximize",
        render_mode: str | None = None,
        max_cycles: int | None = None,
        illegal_action: Literal["lose", "raise"] = "raise",
        observation: Literal["dict", "box"] = "dict",
    ) -> DiceAECEnv: ...
