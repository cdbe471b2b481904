"""The learner: gradients are those of the stated loss, and each decision is credited with its seat's rewards."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sb3_contrib import MaskablePPO

from dice_envs import configure, measure
from dice_envs.envs.learner import LEARNER, SeatGames
from dice_envs.envs.sb3 import make_vec_env
from dice_envs.learn.policy_gradient import (
    Decisions,
    Dense,
    Following,
    Minibatch,
    Weights,
    estimate_advantages,
    estimate_opposed_advantages,
    policy_gradient,
    sample_actions,
)
from dice_envs.learn.ppo import RegularisedPPO, SeatBuffer

NOTHING = np.empty((0, 9), np.float32)
ONE_DIE = {"rules": "openspiel", "num_dice": 1, "num_faces": 4}


def learner(seed=0, options=ONE_DIE, **arguments):
    own = {"n_steps": 16, "batch_size": 64, "n_epochs": 2, "seed": seed, "device": "cpu", "policy_kwargs": {"net_arch": [16]}}
    self_play = arguments.pop("self_play", 1.0)
    env = make_vec_env("liars_dice", 8, seed=seed, self_play=self_play, **options)
    return RegularisedPPO("MlpPolicy", env, **{**own, **arguments})


def random_rows(seed, rows=37, actions=9):
    random = np.random.default_rng(seed)
    masks = (random.random((rows, actions)) < 0.6).astype(np.int8)
    masks[np.arange(rows), random.integers(0, actions, rows)] = 1
    chosen = np.array([random.choice(np.flatnonzero(mask)) for mask in masks])
    logits, reference = random.normal(size=(2, rows, actions)).astype(np.float32) * 2
    old = random.normal(-2, 0.7, rows).astype(np.float32)
    return logits, masks, chosen, old, random.normal(size=rows).astype(np.float32), reference


def stated_loss(logits, masks, actions, old, advantages, reference, clip, entropy, pull, stakes=1.0):
    """Policy loss + stakes · (pull · KL(policy ‖ reference) − entropy · H), with PyTorch's own distributions."""
    legal = torch.from_numpy(masks) != 0
    policy = torch.distributions.Categorical(logits=logits.masked_fill(~legal, -1e8))
    anchor = torch.distributions.Categorical(logits=torch.from_numpy(reference).masked_fill(~legal, -1e8))
    ratio = (policy.log_prob(torch.from_numpy(actions)) - torch.from_numpy(old)).exp()
    gains = torch.from_numpy(advantages)
    loss = -torch.minimum(gains * ratio, gains * ratio.clamp(1 - clip, 1 + clip)).mean()
    regularisers = pull * torch.distributions.kl_divergence(policy, anchor) - entropy * policy.entropy()
    return loss + (stakes * regularisers).mean()


@pytest.mark.parametrize(("all_actions", "least_stake"), [(False, 0.0), (True, 0.0), (True, 1.5)])
@pytest.mark.parametrize("pull", [0.0, 0.7])
@pytest.mark.parametrize("clip", [0.025, 0.2])
def test_the_gradient_is_that_of_the_stated_loss(clip, pull, all_actions, least_stake):
    logits, masks, actions, old, advantages, reference = random_rows(3)
    worth = random_rows(4)[0] if all_actions else NOTHING
    stakes = np.ones(len(masks))
    if least_stake:
        ranges = [np.ptp(values[mask != 0]) for values, mask in zip(worth, masks, strict=True)]
        stakes = np.maximum(least_stake, np.array(ranges) / 2)
        assert 0 < (stakes == least_stake).sum() < len(stakes)
    free = torch.from_numpy(logits.copy()).requires_grad_()
    loss = stated_loss(free, masks, actions, old, advantages, reference, clip, 0.1, pull, torch.from_numpy(stakes))
    if all_actions:
        chances = free.masked_fill(torch.from_numpy(masks) == 0, -torch.inf).softmax(1)
        loss = loss - (chances * torch.from_numpy(worth)).sum(1).mean()
    loss.backward()
    gradient, sums = np.empty_like(logits), np.empty(5)
    batch = Minibatch(logits, masks, actions, old, advantages, worth, reference)
    policy_gradient(batch, Weights(clip, 0.1, pull, least_stake), gradient, sums)
    np.testing.assert_allclose(gradient, free.grad.numpy(), atol=2e-7)
    assert 0 < sums[4] < 1, "some ratios were clipped, and some were not"


def test_dense_layers_are_pytorchs():
    torch.manual_seed(0)
    linear = torch.nn.Linear(11, 5)
    inputs = torch.randn(64, 11, requires_grad=True)
    for tanh in (False, True):
        for reference, found in ((linear(inputs), Dense.apply(inputs, linear.weight, linear.bias, tanh)),):
            expected = reference.tanh() if tanh else reference
            torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)
            weights = torch.randn_like(expected)
            ours = torch.autograd.grad((found * weights).sum(), [inputs, linear.weight, linear.bias])
            theirs = torch.autograd.grad((expected * weights).sum(), [inputs, linear.weight, linear.bias], retain_graph=True)
            for a, b in zip(ours, theirs, strict=True):
                torch.testing.assert_close(a, b, atol=1e-4, rtol=1e-4)


def test_sampling_follows_the_policy():
    logits = np.tile(np.array([[0.0, 1.0, 5.0, -1.0]], np.float32), (20_000, 1))
    masks = np.tile(np.array([[1, 1, 0, 1]], np.int8), (20_000, 1))
    actions, log_probs = np.empty(20_000, np.int64), np.empty(20_000, np.float32)
    sample_actions(logits, masks, np.random.default_rng(1).random(20_000), actions, log_probs)
    chances = np.exp([0.0, 1.0, -np.inf, -1.0]) / np.exp([0.0, 1.0, -1.0]).sum()
    np.testing.assert_allclose(np.bincount(actions, minlength=4) / 20_000, chances, atol=4 * 0.5 / np.sqrt(20_000))
    np.testing.assert_allclose(np.exp(log_probs), chances[actions], rtol=1e-5)


def advantages_one_by_one(seats, earned, ended, values, taken, last_seat, last_value, out, gamma, decay):
    """Advantages of one game: walk from each decision to the same seat's next one."""
    steps = len(seats)
    nexts, deltas = {}, {}
    for t in range(steps):
        reward, u = 0.0, t
        while True:
            reward += earned[u, seats[t]]
            if ended[u]:
                deltas[t], nexts[t] = reward - taken[t], None
                break
            u += 1
            if u == steps:
                if last_seat == seats[t]:
                    deltas[t] = reward + gamma * last_value - taken[t]
                elif out[seats[t]]:
                    deltas[t] = reward - taken[t]
                else:
                    deltas[t] = None  # the value of the seat's next decision is unknown
                nexts[t] = None
                break
            if seats[u] == seats[t]:
                deltas[t], nexts[t] = reward + gamma * values[u] - taken[t], u
                break
    found = np.zeros(steps)
    for t in reversed(range(steps)):
        if deltas[t] is not None:
            found[t] = deltas[t] + (gamma * decay * found[nexts[t]] if nexts[t] is not None else 0)
    return found, np.array([deltas[t] is None for t in range(steps)])


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 12))
def test_each_seat_is_credited_with_what_it_earns(seed, num_seats, steps):
    random = np.random.default_rng(seed)
    games = 3
    seats = random.integers(0, num_seats, (steps, games))
    earned = random.normal(size=(steps, games, num_seats))
    ended = (random.random((steps, games)) < 0.3).astype(np.int8)
    values, taken = random.normal(size=(2, steps, games)).astype(np.float32)
    last_seats, last_values = random.integers(0, num_seats, games), random.normal(size=games).astype(np.float32)
    out = (random.random((games, num_seats)) < 0.3).astype(np.int8)
    out[np.arange(games), last_seats] = 0
    found, waits = np.empty((steps, games), np.float32), np.empty((steps, games), np.int8)
    following = Following(last_seats, last_values, out)
    estimate_advantages(Decisions(seats, earned, ended, values, taken), following, 0.9, 0.8, found, waits)
    for game in range(games):
        arguments = (array[:, game] for array in (seats, earned, ended, values, taken))
        expected, unknown = advantages_one_by_one(*arguments, last_seats[game], last_values[game], out[game], 0.9, 0.8)
        np.testing.assert_allclose(found[:, game], expected, atol=1e-5)
        np.testing.assert_array_equal(waits[:, game] == 1, unknown)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 12))
def test_opposed_seats_are_credited_with_what_the_whole_game_brings(seed, steps):
    random = np.random.default_rng(seed)
    games = 3
    seats = random.integers(0, 2, (steps, games))
    first = random.normal(size=(steps, games))
    earned = np.stack([first, -first], axis=2)
    ended = (random.random((steps, games)) < 0.3).astype(np.int8)
    values, taken = random.normal(size=(2, steps, games)).astype(np.float32)
    last_seats, last_values = random.integers(0, 2, games), random.normal(size=games).astype(np.float32)
    found = np.empty((steps, games), np.float32)
    following = Following(last_seats, last_values, np.zeros((games, 2), np.int8))
    estimate_opposed_advantages(Decisions(seats, earned, ended, values, taken), following, 0.9, 0.8, found)
    movers, worth = np.vstack([seats, last_seats]), np.vstack([values, last_values])
    for game in range(games):
        for t in range(steps):
            expected, weight = 0.0, 1.0  # as seat `me` sees the rest of the game
            me = seats[t, game]
            for u in range(t, steps):
                sign = 1 if seats[u, game] == me else -1
                following = 0.0 if ended[u, game] else (1 if movers[u + 1, game] == me else -1) * worth[u + 1, game]
                expected += weight * (earned[u, game, me] + 0.9 * following - sign * taken[u, game])
                weight *= 0.9 * 0.8
                if ended[u, game]:
                    break
            assert found[t, game] == pytest.approx(expected, abs=1e-5)


def test_what_the_next_decision_is_worth_is_known_where_the_critic_sees_both_hands():
    waiting = [
        learner(options=options, central_critic=central, normalize_advantage=False).learn(128).rollout_buffer.waits.any()
        for central, options in ((False, ONE_DIE), (True, ONE_DIE), (True, {"num_players": 3}))
    ]
    assert waiting == [True, False, True]


def test_with_one_seat_an_update_is_maskable_ppos():
    """With the same rollout as one minibatch and plain gradient descent, both take the same step."""
    plain = {
        "n_steps": 16, "batch_size": 128, "n_epochs": 1, "gamma": 1.0, "gae_lambda": 0.9, "ent_coef": 0.05, "seed": 1,
        "device": "cpu", "normalize_advantage": False,
        "policy_kwargs": {"net_arch": [16], "optimizer_class": torch.optim.SGD},
    }  # fmt: skip
    env = make_vec_env("liars_dice", 8, seed=1, **ONE_DIE)
    ours = RegularisedPPO("MlpPolicy", env, **plain)
    theirs = MaskablePPO("MlpPolicy", make_vec_env("liars_dice", 8, seed=1, **ONE_DIE), **plain)
    theirs.policy.load_state_dict(ours.policy.state_dict())
    _, callback = ours._setup_learn(10**6, None)
    theirs._setup_learn(10**6, None)
    ours.collect_rollouts(env, callback, ours.rollout_buffer, 16)
    filled, ready = ours.rollout_buffer, theirs.rollout_buffer
    ready.reset()
    starts = np.ones(8, bool)
    for t in range(16):
        rewards = filled.earned[t][np.arange(8), filled.seats[t]]
        tensors = (torch.from_numpy(filled.values[t][:, None]), torch.from_numpy(filled.log_probs[t]))
        actions = filled.actions[t][:, None]
        ready.add(filled.observations[t].numpy(), actions, rewards, starts, *tensors, action_masks=filled.masks[t].numpy())
        starts = filled.ended[t].astype(bool)
    last = theirs.policy.predict_values(torch.from_numpy(ours._last_obs)).detach()
    ready.compute_returns_and_advantage(last, starts)
    np.testing.assert_allclose(ready.advantages, filled.advantages, atol=1e-5)
    ours.train()
    theirs.train()
    before = RegularisedPPO("MlpPolicy", env, **plain).policy.state_dict()
    for name, weights in theirs.policy.state_dict().items():
        torch.testing.assert_close(ours.policy.state_dict()[name], weights, atol=1e-6, rtol=1e-4)
    assert any(not torch.equal(weights, before[name]) for name, weights in theirs.policy.state_dict().items())


@pytest.mark.parametrize(("game", "options"), [("liars_dice", {"num_players": 3, "num_dice": 2}), ("fatestones", {})])
def test_in_self_play_the_learner_sees_each_seat_at_its_turn(game, options):
    variant = configure(game, **options)
    games = SeatGames(variant, 64, self_play=1.0)
    games.seed_games(np.arange(64), range(64))
    everywhere = np.arange(64)
    games.start(everywhere)
    assert (games.players == LEARNER).all()
    returns = np.zeros((64, variant.facts.num_seats))
    finished = []
    random = np.random.default_rng(0)
    for _ in range(200):
        np.testing.assert_array_equal(games.learners, games.states["seat"])
        _, masks = games.view(everywhere)
        actions = np.array([random.choice(np.flatnonzero(mask)) for mask in masks])
        done = games.advance(actions, np.zeros(64, bool), restart=False)
        returns += done.earned
        over = everywhere[done.ended]
        assert (games.states["seat"][over] == -1).all(), "a game goes on while a seat of the learner's is in it"
        finished.append(returns[over].copy())
        returns[over] = 0
        games.start(over)
    sums = np.concatenate(finished)
    assert len(sums) > 50
    np.testing.assert_allclose(sums.sum(axis=1), 0, atol=1e-6)
    assert (sums.max(axis=1) >= 0).all()


def test_the_share_of_self_play_is_what_was_asked_for():
    games = SeatGames(configure("liars_dice", num_dice=1), 4000, "random", self_play=0.3)
    games.seed_games(np.arange(4000), range(4000))
    games.start(np.arange(4000))
    share = (games.players == LEARNER).all(axis=1).mean()
    assert abs(share - 0.3) < 4 * np.sqrt(0.3 * 0.7 / 4000)
    with pytest.raises(ValueError, match=r"self_play must be .* not 1.5"):
        SeatGames(configure("liars_dice"), 2, self_play=1.5)


def test_snapshots_of_self_play_go_on_alike():
    made = [make_vec_env("liars_dice", 16, "numbers:bluff=0.5", seed=s, self_play=0.5, num_dice=2) for s in (1, 2)]
    for env in made:
        env.reset()
    for _ in range(10):
        made[0].step(made[0].masks.argmax(axis=1))
    made[1].restore(made[0].snapshot())
    for _ in range(30):
        actions = made[0].masks.argmax(axis=1)
        first, second = (env.step(actions) for env in made)
        np.testing.assert_array_equal(first[0], second[0])
        np.testing.assert_array_equal(made[0].earned, made[1].earned)


def test_reference_and_average_follow_the_learner_and_are_saved(tmp_path):
    model = learner(kl_coef=0.1, reference_rate=0.5, average_rate=0.45)
    weights = [[parameter.clone() for parameter in model.policy.parameters()]]
    for _ in range(4):
        model.learn(128, reset_num_timesteps=False)
        weights.append([parameter.clone() for parameter in model.policy.parameters()])
    # Half of the reference is new each time. In the average, iterations 1 to 3 have weights 1, 2, 3; then the rate is constant.
    for policy, shares in (
        (model.reference_policy, (1 / 16, 1 / 16, 1 / 8, 1 / 4, 1 / 2)),
        (model.average_policy, (0, 0.55 / 6, 0.55 / 3, 0.55 / 2, 0.45)),
    ):
        for parts, found in zip(zip(*weights, strict=True), policy.parameters(), strict=True):
            expected = sum(share * part for share, part in zip(shares, parts, strict=True))
            torch.testing.assert_close(found.detach(), expected.detach())
    model.save(tmp_path / "model")
    loaded = RegularisedPPO.load(tmp_path / "model", env=model.env, device="cpu")
    for name in ("policy", "reference_policy", "average_policy"):
        for a, b in zip(getattr(model, name).parameters(), getattr(loaded, name).parameters(), strict=True):
            assert torch.equal(a, b)
    loaded.learn(128)


def test_two_divergences_are_one_from_the_mean_of_their_policies():
    """The gradient of pull · KL(· ‖ reference) + near · KL(· ‖ played) is that of (pull + near) · KL(· ‖ geometric mean)."""
    logits, masks, actions, old, advantages, reference = random_rows(5)
    played = random_rows(6)[0]
    free = torch.from_numpy(logits.copy()).requires_grad_()
    zeros = np.zeros_like(advantages)
    both = stated_loss(free, masks, actions, old, advantages, reference, 0.2, 0.1, 0.7)
    (both + stated_loss(free, masks, actions, old, zeros, played, 0.2, 0.0, 1.9)).backward()
    gradient, sums = np.empty_like(logits), np.empty(5)
    mean = ((0.7 * reference + 1.9 * played) / 2.6).astype(np.float32)
    batch = Minibatch(logits, masks, actions, old, advantages, NOTHING, mean)
    policy_gradient(batch, Weights(0.2, 0.1, 2.6, 0.0), gradient, sums)
    np.testing.assert_allclose(gradient, free.grad.numpy(), atol=3e-7)


def test_a_proximal_term_keeps_an_update_near_the_policy_that_played():
    free, held = (learner(n_epochs=8, learning_rate=3e-3, proximal_coef=weight).learn(128) for weight in (0.0, 30.0))
    buffer = free.rollout_buffer
    assert torch.equal(buffer.logits, held.rollout_buffer.logits)
    observations, legal = buffer.observations.flatten(0, 1), buffer.masks.flatten(0, 1) != 0
    moved = []
    for model in (free, held):
        with torch.no_grad():
            now = model._network.logits(observations).masked_fill(~legal, -torch.inf).softmax(1)
            before = buffer.logits.flatten(0, 1).masked_fill(~legal, -torch.inf).softmax(1)
        moved.append((now - before).abs().max().item())
    assert moved[1] < moved[0] / 3


def test_an_update_settles(monkeypatch):
    rates = []

    def step(self, closure=None):
        rates.append(self.param_groups[0]["lr"])

    monkeypatch.setattr(torch.optim.Adam, "step", step)
    learner(settle=True, learning_rate=0.08).learn(256)  # two rollouts of 128 decisions, each in two passes of two minibatches
    assert rates == pytest.approx([0.08, 0.06, 0.04, 0.02] * 2)
    rates.clear()
    learner(learning_rate=0.08).learn(128)
    assert rates == [0.08] * 4


def test_stakes_are_a_central_critics():
    with pytest.raises(ValueError, match=r"least_stake must be 0 without a central critic and 0 or more with one, not 0\.1"):
        learner(least_stake=0.1)
    for wrong in (-1, np.nan, np.inf):
        with pytest.raises(ValueError, match=f"0 or more with one, not {wrong}"):
            learner(least_stake=wrong, central_critic=True, normalize_advantage=False)


def test_a_central_critic_sees_all_hands_and_only_the_critic_does(tmp_path):
    model = learner(central_critic=True, normalize_advantage=False, self_play=0.5)
    actor = [parameter.clone() for parameter in model.policy.mlp_extractor.policy_net.parameters()]
    model.learn(256)
    env = model.env
    state = env.state()
    seats = env.variant.facts.num_seats
    assert state.shape == (8, seats, env.variant.facts.observation_size)
    np.testing.assert_array_equal(state[:, 0], model._last_obs)
    assert any(not np.array_equal(state[i, 0], state[i, 1]) for i in range(8))
    assert model.rollout_buffer.states.shape == (16, 8, state[0].size)
    shapes = [tuple(layer.weight.shape) for layer in model.policy.central_critic[::2]]
    assert shapes == [(16, state[0].size), (env.action_space.n, 16)]
    with torch.no_grad():
        values = model.policy.central_critic(torch.from_numpy(state).flatten(1))
        torch.testing.assert_close(model._network.action_values(torch.from_numpy(state).flatten(1)), values)
    assert any(not torch.equal(a, b) for a, b in zip(actor, model.policy.mlp_extractor.policy_net.parameters(), strict=True))
    model.save(tmp_path / "model")
    loaded = RegularisedPPO.load(tmp_path / "model", device="cpu")
    for name, weights in model.policy.state_dict().items():
        assert torch.equal(loaded.policy.state_dict()[name], weights), name
    loaded.set_env(env)
    loaded.learn(128)


def test_a_strong_pull_holds_the_policy_at_its_reference():
    near, far = learner(kl_coef=100.0, n_epochs=8), learner(n_epochs=8)
    for model in (near, far):
        model.learn(512)
    observations = torch.from_numpy(near._last_obs)
    with torch.no_grad():
        moved = [
            (model._network.logits(observations).softmax(1) - 1 / near.action_space.n).abs().max().item()
            for model in (near, far)
        ]
    assert moved[0] < moved[1] / 3


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("more", "most"),
    [
        ({"learning_rate": 2e-3, "kl_coef": 0.1, "reference_rate": 0.1}, 1 / 2),
        (
            {"learning_rate": 5e-3, "kl_coef": 0.3, "reference_rate": 0.15, "central_critic": True, "proximal_coef": 1.0,
             "clip_range": 1.0},
            1 / 4,
        ),
    ],
)  # fmt: skip
def test_self_play_learns_to_play(more, most):
    """Within seconds exploitability falls far below that of uniformly random play."""
    variant = configure("liars_dice", **ONE_DIE)
    env = make_vec_env(variant, 128, seed=3, self_play=1.0)
    model = RegularisedPPO(
        "MlpPolicy", env, n_steps=32, batch_size=1024, n_epochs=4, ent_coef=0.02, normalize_advantage=False,
        policy_kwargs={"net_arch": [64, 64]}, seed=3, device="cpu", **more,
    )  # fmt: skip
    model.learn(160_000)

    def policy(observations, masks):
        with torch.no_grad():
            logits = model._network.logits(torch.from_numpy(observations)).masked_fill(torch.from_numpy(masks) == 0, -torch.inf)
        return logits.softmax(1)

    assert measure(variant, policy).measures[0].value < most * measure(variant, "random").measures[0].value


def test_what_the_learner_refuses():
    with pytest.raises(ValueError, match=r"average_rate must be 0 to 1, not 2"):
        learner(average_rate=2)
    with pytest.raises(ValueError, match=r"normalize_advantage must be false with central_critic"):
        learner(central_critic=True)
    import gymnasium

    with pytest.raises(TypeError, match=r"env must be a dice_envs.envs.sb3.SeatVecEnv, not DummyVecEnv"):
        RegularisedPPO("MlpPolicy", gymnasium.make("CartPole-v1"), device="cpu")


def test_the_buffer_knows_its_sizes():
    env = make_vec_env("liars_dice", 3, seed=0, **ONE_DIE)
    buffer = SeatBuffer(5, env.observation_space, env.action_space, "cpu", n_envs=3)
    assert buffer.observations.shape == (5, 3, *env.observation_space.shape)
    assert buffer.masks.shape == (5, 3, env.action_space.n)
