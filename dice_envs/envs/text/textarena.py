"""Games in words as environments of TextArena, in which every seat is a player.

Importing this module registers every game with TextArena: `textarena.make("dice_envs/liars_dice-v0", num_dice=2)`. With `-raw`
at the end of its name it comes without `LLMObservationWrapper`, which makes one text of all that a player has read.

The option `rules` of Liar's Dice has the rules of TextArena's own `LiarsDice`: "textarena" those of release 0.7.4,
"textarena_1" those of version 1.0.0 of its repository.
"""

from __future__ import annotations

from typing import Any

from dice_envs.core.dice import fresh_seed
from dice_envs.core.game import Game, Variant, configure, names
from dice_envs.core.machine import needs
from dice_envs.core.options import check_range, check_seed
from dice_envs.envs.text import TextTable
from dice_envs.envs.text.words import IllegalMove, Unreadable, introduction, prompt

with needs("textarena", "dice_envs.envs.text.textarena"):
    import textarena
    from textarena.envs.registration import ENV_REGISTRY, register_with_versions


class GameEnv(textarena.Env):
    """A game whose players all read prompts and write replies.

    A player reads the rules before the game, and its position and the moves since its last one when it is to move. It does not
    read the others' replies, which may tell what they keep secret.

    Args:
        game: name, Game or Variant.
        error_allowance: replies without a legal move that a player is asked to correct at each of its moves. One more ends the
            game with the least possible return for this player, and with what they have earned so far for the others.
        legal: whether prompts list the legal moves.
        options: the game's options. `reset` sets `num_players` if the game has it and it is not given here.

    Attributes:
        table: the game itself, which knows everything; None before `reset`.
        state: the observations, rewards and `game_info` as TextArena keeps them.
    """

    def __init__(self, game: str | Game | Variant, *, error_allowance: int = 1, legal: bool = True, **options: Any) -> None:
        check_range("error_allowance", error_allowance, 0, 100)
        self._variant, self._options = configure(game, **options), options
        self._fixed = isinstance(game, Variant) or "num_players" in options or "num_players" not in vars(self._variant.options)
        self._error_allowance, self._legal = error_allowance, legal
        self.table: TextTable | None = None

    def reset(self, num_players: int, seed: int | None = None) -> None:
        """Deal a game. A seed fixes its dice; without one they are drawn anew.

        Raises:
            ValueError: a wrong seed, or a number of players that the game does not have.
        """
        seed = check_seed(seed)
        variant = self._variant
        if num_players != variant.facts.num_seats and not self._fixed:
            variant = configure(variant.game, **self._options, num_players=num_players)
        count = variant.facts.num_seats
        if num_players != count:
            raise ValueError(f"num_players must be {count} for {variant}, not {num_players}")
        self.table = TextTable(variant, fresh_seed() if seed is None else seed, legal=self._legal)
        self.state = textarena.MinimalMultiPlayerState(num_players, error_allowance=self._error_allowance)
        self.state.reset(role_mapping={seat: variant.seat_name(seat) for seat in range(count)})
        for seat in range(count):
            self.state.add_observation(introduction(variant, seat), textarena.ObservationType.PROMPT, to_id=seat)
        self._ask()

    def step(self, action: str) -> tuple[bool, dict[str, Any]]:
        """Play the move in a reply of the player to move. Return whether the game is over, and TextArena's `info`.

        Raises:
            RuntimeError: no game has begun, or it is over.
        """
        table = self.table
        if table is None or self.state.done:
            raise RuntimeError("call reset before step: no game has begun, or the last one has ended")
        mover, moves = table.seat, len(table.sitting)
        try:
            table.reply(action)
        except (Unreadable, IllegalMove) as problem:
            if self.state.set_invalid_move(f"{problem}."):
                returns = {**_returns(table), mover: table.variant.facts.min_return}
                self.state.set_game_outcome(returns, f"{table.variant.seat_name(mover)} made no legal move: {problem}")
        else:
            if table.over:
                self.state.set_game_outcome(_returns(table), "the game is over")
        result = self.state.step()
        if not self.state.done and len(table.sitting) > moves:
            self._ask()
        return result

    def _ask(self) -> None:
        """Let the player to move read its position."""
        table = self.table
        assert table is not None
        self.state.manually_set_current_player_id(table.seat)
        text = prompt(table.sitting, table.seat, legal=self._legal, rules=False)
        self.state.add_observation(text, textarena.ObservationType.GAME_BOARD, to_id=table.seat)


def _returns(table: TextTable) -> dict[int, float]:
    return dict(enumerate(table.returns.tolist()))


for _name in names():
    if f"dice_envs/{_name}-v0" not in ENV_REGISTRY:
        _wrappers = {"default": [textarena.wrappers.LLMObservationWrapper]}
        register_with_versions(f"dice_envs/{_name}-v0", f"{__name__}:{GameEnv.__name__}", _wrappers, game=_name)
