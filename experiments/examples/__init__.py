"""Programs that read top to bottom: other people's learners on these games, one file each, and the options that they share.

The figures in their texts, but for those of `cleanrl_ppo`, were made when game i of a run had the run's seed + i. The same
seeds give other games now.
"""

from __future__ import annotations

import argparse
import secrets

from dice_envs.core.options import check_range

__all__ = ["CommandLine"]


class CommandLine(argparse.ArgumentParser):
    """The options of an example: --steps, --seed, and those that it adds."""

    def __init__(self, doc: str, steps: int, of: str = "decisions of the learner") -> None:
        super().__init__(usage=argparse.SUPPRESS, description=doc.splitlines()[0])
        self._limits: dict[str, tuple[int, int]] = {}
        self.number("--steps", steps, 1, 10**10, f"{of}, in all")
        self.number("--seed", secrets.randbits(31), 0, 2**32 - 1, "fixes all that is random; fresh if left out")

    def number(self, name: str, default: int, least: int, most: int, meaning: str) -> None:
        """Add an option that is a whole number within limits."""
        self.add_argument(name, type=int, default=default, help=meaning)
        self._limits[name] = least, most

    def read(self) -> argparse.Namespace:
        """Return the options given and print the seed; bad ones end the program with one line."""
        options = self.parse_args()
        try:
            for name, (least, most) in self._limits.items():
                check_range(name, vars(options)[name[2:].replace("-", "_")], least, most)
        except ValueError as problem:
            self.error(str(problem))
        print(f"seed {options.seed}", flush=True)
        return options
