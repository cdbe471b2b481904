"""The learner: gradients are those of the stated loss, and each decision is credited with its seat's rewards."""

import dataclasses
import types

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sb3_contrib import MaskablePPO

from dice_envs import configure, measure
from dice_envs.envs.learner import LEARNER, SeatGames
from dice_envs.envs.sb3 import make_vec_env
from dice_envs.envs.tensor import TensorEnv
from dice_envs.learn import ppo
from dice_envs.learn.networks import Tanh, layers_of
from dice_envs.learn.ppo import ILLEGAL, PPO, estimate_advantages
from dice_envs.learn.presets import Preset
from tests.support.subsets import covering
from tests.support.turns import begun

ONE_DIE = {"rules": "openspiel", "num_dice": 1, "num_faces": 4}
PRESET = Preset(
    steps=10**9, self_play=1.0, num_envs=8, num_steps=16, minibatch=64, epochs=2, learning_rate=3e-4, entropy=0.0, hidden=(16,),
    threads=1,
)  # fmt: skip
CENTRAL = {"central_critic": True, "normalize": False}


def learner(seed=0, options=ONE_DIE, iterations=0, **changes):
    made = PPO(configure("liars_dice", **options), dataclasses.replace(PRESET, **changes), "random", seed)
    for _ in range(iterations):
        made.iterate()
    return made


def legal(rollout):
    return rollout.bias == 0


def stated_loss(model, rows):
    """The loss of some rows with PyTorch's own distributions, term by term."""
    columns = {name: column.flatten(0, 1)[rows] for name, column in vars(model.rollout).items()}
    p, r = model.preset, types.SimpleNamespace(**columns)
    observations = r.inputs[:, : model.variant.facts.observation_size]

    def policy(logits):
        return torch.distributions.Categorical(logits=logits.masked_fill(~legal(r), -1e8))

    now, played = policy(model.networks["actor"](observations)), policy(r.played)
    ratio = (now.log_prob(r.actions) - played.log_prob(r.actions)).exp()
    worth = model.networks["critic"](r.inputs)
    values = worth.gather(1, r.actions[:, None])[:, 0] if p.central_critic else worth[:, 0]
    gains = ((r.returns - values) * r.known).detach() if p.central_critic else r.advantages
    policy_loss = -torch.minimum(gains * ratio, gains * ratio.clamp(1 - p.clip, 1 + p.clip)).mean()
    known = r.known if p.central_critic else 1.0
    value_loss = ((values - r.returns) * known).square().mean()
    stakes = torch.ones(len(rows))
    if p.central_critic:
        policy_loss = policy_loss - (now.probs * (r.expected if p.every_hand else worth.detach())).sum(1).mean()
    if p.least_stake:
        ranges = [np.ptp(values[mask]) for values, mask in zip(worth.detach().numpy(), legal(r).numpy(), strict=True)]
        stakes = torch.tensor(ranges).div(2).clamp(min=p.least_stake)
        assert 0 < (stakes == p.least_stake).sum() < len(stakes)
    kl = torch.distributions.kl_divergence
    terms = p.proximal * kl(now, played) - p.entropy * now.entropy()
    if p.kl:
        terms = terms + p.kl * kl(now, policy(model.networks["reference"](observations).detach()))
    return policy_loss + (stakes * terms).mean() + p.value_weight * value_loss, (ratio - 1).abs() > p.clip


@covering(
    ("clip", "changes"),
    [0.01, 0.2],
    [
        {"entropy": 0.1},
        {"normalize": False, "kl": 0.7, "options": {"num_players": 3, "num_dice": 1}},
        {**CENTRAL, "entropy": 0.1, "proximal": 1.9},
        {**CENTRAL, "proximal": 1.0, "every_hand": True},
        {**CENTRAL, "entropy": 0.1, "proximal": 1.9, "kl": 0.7},
        {**CENTRAL, "entropy": 0.1, "kl": 0.7, "least_stake": 0.08},
    ],
)
def test_the_gradient_is_that_of_the_stated_loss(clip, changes, monkeypatch):
    model = learner(iterations=2, clip=clip, learning_rate=0.02, learning_rate_end=0.02, **changes)
    rows = torch.arange(0, 128, 2)
    wanted, clipped = stated_loss(model, rows)
    expected = torch.autograd.grad(wanted, model._parameters)
    monkeypatch.setattr(torch.optim.Adam, "step", lambda self: None)
    monkeypatch.setattr(ppo, "MAX_GRAD_NORM", 1e9)
    model._rows = rows
    model._step()
    for parameter, gradient in zip(model._parameters, expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, atol=2e-6, rtol=1e-4)
    assert clipped.any() or clip > 0.01
    assert not clipped.all()


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_sampling_follows_the_policy(device):
    model = learner()
    model.device = types.SimpleNamespace(type=device)  # a CPU can draw as a GPU does, too
    logits = torch.tensor([[0.0, 1.0, 5.0 + ILLEGAL, -1.0, ILLEGAL]]).expand(20_000, 5)
    model._draws.manual_seed(1)
    actions = model._draw(torch.log_softmax(logits, 1))
    chances = np.exp([0.0, 1.0, -np.inf, -1.0, -np.inf]) / np.exp([0.0, 1.0, -1.0]).sum()
    np.testing.assert_allclose(np.bincount(actions, minlength=5) / 20_000, chances, atol=4 * 0.5 / np.sqrt(20_000))


def rollout_of(seats, earned, ended, values, taken):
    arrays = {"seats": seats, "earned": earned, "ended": ended, "values": values, "taken": taken}
    empty = {name: torch.zeros(seats.shape) for name in ("advantages", "returns")}
    given = {name: torch.from_numpy(array) for name, array in arrays.items()} | empty
    return types.SimpleNamespace(**given, known=torch.zeros(seats.shape, dtype=bool))


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


def random_decisions(seed, num_seats, steps, games=3):
    random = np.random.default_rng(seed)
    seats = random.integers(0, num_seats, (steps + 1, games))
    earned = random.normal(size=(steps, games, num_seats)).astype(np.float32)
    ended = random.random((steps, games)) < 0.3
    values, taken = random.normal(size=(2, steps + 1, games)).astype(np.float32)
    out = random.random((games, num_seats)) < 0.3
    out[np.arange(games), seats[-1]] = False
    return seats[:-1], earned, ended, values[:-1], taken[:-1], seats[-1], values[-1], out


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 12))
def test_each_seat_is_credited_with_what_it_earns(seed, num_seats, steps):
    *decisions, last_seats, last_values, out = random_decisions(seed, num_seats, steps)
    r = rollout_of(*decisions)
    ahead, known = np.zeros(out.shape, np.float32), out.copy()
    ahead[np.arange(3), last_seats], known[np.arange(3), last_seats] = last_values, True
    estimate_advantages(r, torch.from_numpy(ahead), torch.from_numpy(known), 0.8, opposed=False)
    for game in range(3):
        arguments = (array[:, game] for array in decisions)
        expected, unknown = advantages_one_by_one(*arguments, last_seats[game], last_values[game], out[game], 1.0, 0.8)
        np.testing.assert_allclose(r.advantages[:, game], expected, atol=1e-5)
        np.testing.assert_array_equal(~r.known[:, game].numpy(), unknown)
    torch.testing.assert_close(r.returns, r.advantages + r.taken)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 12))
def test_opposed_seats_are_credited_with_what_the_whole_game_brings(seed, steps):
    seats, earned, ended, values, taken, last_seats, last_values, _ = random_decisions(seed, 2, steps)
    earned[:, :, 1] = -earned[:, :, 0]
    r = rollout_of(seats, earned, ended, values, taken)
    ahead = np.where(np.arange(2) == last_seats[:, None], last_values[:, None], -last_values[:, None])
    estimate_advantages(r, torch.from_numpy(ahead), torch.ones(3, 2, dtype=bool), 0.8, opposed=True)
    movers, worth = np.vstack([seats, last_seats]), np.vstack([values, last_values])
    assert r.known.all()
    for game in range(3):
        for t in range(steps):
            expected, weight = 0.0, 1.0  # as seat `me` sees the rest of the game
            me = seats[t, game]
            for u in range(t, steps):
                sign = 1 if seats[u, game] == me else -1
                following = 0.0 if ended[u, game] else (1 if movers[u + 1, game] == me else -1) * worth[u + 1, game]
                expected += weight * (earned[u, game, me] + following - sign * taken[u, game])
                weight *= 0.8
                if ended[u, game]:
                    break
            assert r.advantages[t, game].item() == pytest.approx(expected, abs=1e-5)


def test_what_the_next_decision_is_worth_is_known_where_the_critic_sees_both_hands():
    known = [
        learner(options=options, iterations=1, central_critic=central, normalize=False).rollout.known.all()
        for central, options in ((False, ONE_DIE), (True, ONE_DIE), (True, {"num_players": 3}))
    ]
    assert known == [False, True, False]


@pytest.mark.thorough
def test_with_one_seat_an_update_is_maskable_ppos():
    """With the same rollout as one minibatch, both take the same step."""
    ours = learner(
        1, self_play=0.0, minibatch=128, epochs=1, gae_lambda=0.9, entropy=0.05, normalize=False, learning_rate_end=3e-4
    )
    theirs = MaskablePPO(
        "MlpPolicy", make_vec_env("liars_dice", 8, seed=1, **ONE_DIE), n_steps=16, batch_size=128, n_epochs=1, gamma=1.0,
        gae_lambda=0.9, ent_coef=0.05, device="cpu", normalize_advantage=False, policy_kwargs={"net_arch": [16]},
    )  # fmt: skip
    names = {
        "actor.0": "mlp_extractor.policy_net.0", "actor.2": "action_net", "critic.0": "mlp_extractor.value_net.0",
        "critic.2": "value_net",
    }  # fmt: skip

    def renamed():
        parts = {name: name.rpartition(".") for name in ours.networks.state_dict()}
        return {f"{names[parts[name][0]]}.{parts[name][2]}": w.clone() for name, w in ours.networks.state_dict().items()}

    theirs.policy.load_state_dict(renamed())
    theirs._setup_learn(10**6, None)
    before = renamed()
    ours.iterate()
    filled, ready = ours.rollout, theirs.rollout_buffer
    starts = np.ones(8, bool)
    for t in range(16):
        rewards = filled.earned[t].numpy()[np.arange(8), filled.seats[t]]
        tensors = (filled.values[t][:, None], filled.log_probs[t])
        masks = legal(filled)[t].numpy()
        ready.add(filled.inputs[t].numpy(), filled.actions[t].numpy()[:, None], rewards, starts, *tensors, action_masks=masks)
        starts = filled.ended[t].numpy()
    last = theirs.policy.predict_values(ours.env.observations).detach()
    ready.compute_returns_and_advantage(last, starts)
    np.testing.assert_allclose(ready.advantages, filled.advantages, atol=1e-5)
    theirs.train()
    for name, weights in renamed().items():
        torch.testing.assert_close(theirs.policy.state_dict()[name], weights, atol=1e-6, rtol=1e-4)
    assert any(not torch.equal(weights, before[name]) for name, weights in renamed().items())


def test_the_share_of_self_play_is_what_was_asked_for():
    games = begun(configure("liars_dice", num_dice=1), "random", 4000, self_play=0.3)
    share = (games.players == LEARNER).all(axis=1).mean()
    assert abs(share - 0.3) < 4 * np.sqrt(0.3 * 0.7 / 4000)
    with pytest.raises(ValueError, match=r"self_play must be .* not 1.5"):
        SeatGames(configure("liars_dice"), 2, self_play=1.5)


def test_reference_and_average_follow_the_learner():
    model = learner(kl=0.1, reference_rate=0.5, average_rate=0.45)
    weights = [[parameter.clone() for parameter in model.networks["actor"].parameters()]]
    for _ in range(4):
        model.iterate()
        weights.append([parameter.clone() for parameter in model.networks["actor"].parameters()])
    # Half of the reference is new each time. In the average, iterations 1 to 3 have weights 1, 2, 3; then the rate is constant.
    for name, shares in (
        ("reference", (1 / 16, 1 / 16, 1 / 8, 1 / 4, 1 / 2)),
        ("average", (0, 0.55 / 6, 0.55 / 3, 0.55 / 2, 0.45)),
    ):
        for parts, found in zip(zip(*weights, strict=True), model.networks[name].parameters(), strict=True):
            expected = sum(share * part for share, part in zip(shares, parts, strict=True))
            torch.testing.assert_close(found, expected.detach())


def test_an_update_settles(monkeypatch):
    rates = []
    settling, constant = (learner(settle=settle, learning_rate=0.08, learning_rate_end=0.08) for settle in (True, False))
    monkeypatch.setattr(torch.optim.Adam, "step", lambda self: rates.append(self.param_groups[0]["lr"].item()))
    for _ in range(2):  # rollouts of 128 decisions, each in two passes of two minibatches
        settling.iterate()
    assert rates == pytest.approx([0.08, 0.06, 0.04, 0.02] * 2)
    rates.clear()
    constant.iterate()
    assert rates == pytest.approx([0.08] * 4)


def test_a_central_critic_sees_all_hands_and_only_the_critic_does():
    model = learner(**CENTRAL, self_play=0.5)
    before = [parameter.clone() for parameter in model.networks["actor"].parameters()]
    model.iterate()
    facts, state = model.variant.facts, model.env.state()
    assert torch.equal(state[:, 0], model.env.observations)
    assert any(not torch.equal(state[i, 0], state[i, 1]) for i in range(8))
    assert model.rollout.inputs.shape == (16, 8, state[0].numel())
    shapes = [weights.shape for weights, _ in layers_of(model.networks["critic"])]
    assert shapes == [(16, state[0].numel()), (facts.num_actions, 16)]
    assert model.policy().layers[0][0].shape == (16, facts.observation_size)
    assert any(not torch.equal(a, b) for a, b in zip(before, model.networks["actor"].parameters(), strict=True))


@pytest.mark.thorough
@pytest.mark.parametrize("changes", [{}, {**CENTRAL, "kl": 0.1, "average_rate": 0.1, "every_hand": True}])
def test_recording_for_a_gpu_changes_nothing_that_is_learned(changes, monkeypatch):
    """Without a GPU: work that is done for the recording is undone in place, and replaying it is doing it."""
    plain, recorded = learner(**changes), learner(**changes)
    places = [parameter.data_ptr() for parameter in recorded.networks.parameters()]
    recordings = []
    monkeypatch.setattr(ppo, "captured", lambda work, draws: recordings.append(work) or work() or work)
    monkeypatch.setattr(recorded, "_on_gpu", True)
    for recording, count in ((1, 2), (1, 2), (2, 3), (None, 3), (None, 3)):
        monkeypatch.setattr(TensorEnv, "recording", recording, raising=False)
        assert plain.iterate() == recorded.iterate()
        assert len(recordings) == count, "rollout and update; the rollout anew with other opponents, and only where it can be"
    for name, weights in plain.networks.state_dict().items():
        assert torch.equal(recorded.networks.state_dict()[name], weights), name
    assert [parameter.data_ptr() for parameter in recorded.networks.parameters()] == places


def test_fast_functions_are_those_of_pytorch():
    x = torch.linspace(-20, 20, 1001, requires_grad=True)
    (own, gradient), (theirs, expected) = ((y, torch.autograd.grad(y.sum(), x)[0]) for y in (Tanh()(x), x.tanh()))
    torch.testing.assert_close(own, theirs, atol=3e-7, rtol=0)
    torch.testing.assert_close(gradient, expected, atol=1e-6, rtol=0)
    torch.testing.assert_close(ppo.exp(x), x.exp(), atol=0, rtol=3e-6)
    assert ppo.exp(torch.tensor([ILLEGAL])) == 0


@pytest.mark.parametrize("options", [ONE_DIE, {"rounds": "single", "num_dice": 2, "num_faces": 2, "num_players": 2}])
def test_values_are_means_over_the_posterior_of_the_other_hand(options, monkeypatch):
    """By Bayes' rule, from the states themselves. The rollout begins in the middle of games."""
    model, seen = learner(4, options, **CENTRAL, every_hand=True), []
    with torch.no_grad():
        model.networks["actor"][-1].weight.mul_(1000)  # so that moves tell something about hands
    step, games, (hands, chances) = model.env.step, model.env._games, model.variant.hands
    monkeypatch.setattr(model.env, "step", lambda played: seen.append((games.states.copy(), played.clone())) or step(played))
    for _ in range(2):
        model._play()

    def views(state, seat):
        held = np.repeat(state, len(hands))
        held["counts"][:, seat] = hands
        out = np.zeros((len(hands), model.variant.facts.observation_size), np.float32)
        model.variant.kernels.observe(held, np.arange(len(hands)), np.full(len(hands), seat), out)
        return torch.from_numpy(out)

    r, actor, critic = model.rollout, model.networks["actor"], model.networks["critic"]
    compared = told = 0.0
    for i in range(len(games.states)):
        known = None  # until a game begins
        for t, (states, actions) in enumerate(seen, -len(r.seats)):
            state = states[i : i + 1]
            seat = int(state["seat"][0])
            if state["num_bids"][0] == 0:
                known = torch.tensor(chances).log().repeat(2, 1)
            if known is None:
                continue
            if t >= 0:
                weights = known[1 - seat].softmax(0)
                own = model.rollout.inputs[t, i, : model.variant.facts.observation_size].expand(len(hands), -1)
                values = weights.float() @ critic(torch.cat([own, views(state, 1 - seat)], 1))
                torch.testing.assert_close(r.expected[t, i], values, rtol=1e-3, atol=1e-5)
                compared, told = compared + 1, max(told, float((weights - torch.tensor(chances)).abs().max()))
            mask = torch.tensor([action in model.variant.legal_actions(state[0]) for action in range(r.bias.shape[2])])
            logits = actor(views(state, seat)).masked_fill(~mask, -torch.inf)
            known[seat] += torch.log_softmax(logits, 1)[:, actions[i]].detach()
    assert compared > 100
    assert told > 0.2


def test_finished_games_are_told_with_their_players():
    seen = []
    model = learner(self_play=0.5)
    for _ in range(20):
        model.iterate(lambda returns, players: seen.append((returns, players)))
    returns, players = (np.concatenate(parts) for parts in zip(*seen, strict=True))
    shared = (players == LEARNER).all(axis=1)
    assert 0.3 < shared.mean() < 0.7
    assert set(np.unique(returns)) == {-1.0, 1.0}
    assert (np.sort(players[~shared], axis=1) == [LEARNER, 0]).all()


@pytest.mark.thorough
def test_self_play_learns_to_play():
    """Exploitability falls below half of that of random play; `tests/cuda/test_training.py` has a critic of both hands."""
    model = learner(
        3, iterations=40, num_envs=128, num_steps=32, minibatch=1024, epochs=4, entropy=0.02, normalize=False, hidden=(64, 64),
        learning_rate=2e-3, learning_rate_end=2e-3, kl=0.1, reference_rate=0.1,
    )  # fmt: skip
    gap = measure(model.variant, model.policy()).measures[0].value
    assert gap < 0.5 * measure(model.variant, "random").measures[0].value
