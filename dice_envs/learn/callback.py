"""Progress reports of a training run."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["TrainingCallback"]


class TrainingCallback:
    """Progress reports of a training run, for subclasses to override. No method changes what is learned."""

    def started(self, steps: int, until: int, seed: int) -> None:
        """All arguments are checked, and the run is open: it goes on after `steps` learner steps, and ends at `until`.

        Also called for a run that has ended. What it raises ends the call before anything is trained or written.
        """

    def advanced(self, steps: int) -> None:
        """`steps` learner steps have been played since the last call."""

    def learned(self, steps: int, values: Mapping[str, float]) -> None:
        """The policy has learned from a rollout: losses and the like by name, for a log."""

    def measured(self, steps: int, minutes: float, name: str, gaps: Mapping[str, float]) -> None:
        """Exact gaps from optimal play after `steps` learner steps and `minutes` of training.

        `name` is the measure's; `gaps` those of the "last" and, where there is one, of the "averaged" policy.
        """

    def saved(self, steps: int, speed: float, scores: Mapping[str, float]) -> None:
        """A checkpoint has been reached, and is written if the run has a folder.

        `speed` is in learner steps per second; `scores` is the last point of the learning curve.
        """

    def stop(self) -> bool:
        """Return True to end training, with everything saved. Called before each rollout."""
        return False
