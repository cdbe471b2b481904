"""Policy files and players for tests."""

from pathlib import Path

import numpy as np

from dice_envs import Variant, make_agent
from dice_envs.agent import Promises, Uniform
from dice_envs.agents.ppo import NetworkPolicy, save_policy


def random_policy(variant, about=None, floor=0.0, seed=0, blind=(), hidden=(16,), steepness=None):
    """Random layers for the variant, with zeros for the inputs of `blind`; `steepness` is about the spread of each logit."""
    rng = np.random.default_rng(seed)
    sizes, layers = [variant.facts.observation_size, *hidden, variant.facts.num_actions], []
    for a, b in zip(sizes, sizes[1:]):
        weights, biases = (1.0, 1.0) if steepness is None else (steepness / a**0.5, 0.3)
        layers.append((rng.normal(0, weights, (b, a)).astype(np.float32), rng.normal(0, biases, b).astype(np.float32)))
    layers[0][0][:, list(blind)] = 0
    return NetworkPolicy(variant.game.name, variant.changed_options(), layers, about, floor)


def save_random_policy(path: Path, variant: Variant) -> Path:
    """Save a policy file for the variant, with random weights."""
    save_policy(path, random_policy(variant))
    return path


def uniform(observations, masks):
    """Uniformly random legal actions, as a function from observations and masks to probabilities."""
    return masks / masks.sum(axis=1, keepdims=True)


def uneven(observations, masks):
    """Probabilities above 0 of all legal actions, which depend on all that is observed."""
    waves = np.sin(np.arange(observations.shape[1] * masks.shape[1])).reshape(-1, masks.shape[1])
    weights = np.exp(observations @ waves) * masks
    return weights / weights.sum(axis=1, keepdims=True)


class Plays:
    """Plays as another agent does, with other promises and without its kernel."""

    def __init__(self, agent, **promises):
        self.agent = make_agent(agent) if isinstance(agent, str) else agent
        self.promises = Promises(**promises)

    def act(self, turn):
        return self.agent.act(turn)

    def probabilities(self, turn):
        return self.agent.probabilities(turn)


class Counted(Plays):
    """The same, which counts the positions that it is asked at."""

    count = 0

    def probabilities(self, turn):
        self.count += len(turn)
        return super().probabilities(turn)


class ActsOnly(Plays):
    """The same without probabilities."""

    probabilities = property()  # none


class Faulty:
    """Plays at random until `wrong` is set; then one of its actions is illegal."""

    def __init__(self):
        self.wrong = None

    def act(self, turn):
        actions = Uniform().act(turn)
        if self.wrong is None:
            return actions
        if callable(self.wrong):
            return self.wrong(actions)
        actions[-1] = self.wrong
        return actions
