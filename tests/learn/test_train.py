"""Training: a run is saved whole, resumes after a kill with the same result, and refuses damaged files."""

import contextlib
import dataclasses
import errno
import functools
import json
import re
import signal

import numpy as np
import pytest
import torch

from dice_envs import TrainingCallback, configure, measure
from dice_envs.agent.compiled import ASKED, mixed_team
from dice_envs.agent.specs import make_agent
from dice_envs.core.work import TooLong, advance
from dice_envs.experiments import train as training
from dice_envs.experiments.train import TrainingResult, gap_label, measured, plot_points, run_sections
from dice_envs.experiments.ui.pages import saved_plot
from dice_envs.learn import run as runs
from dice_envs.learn.checkpoint import read_checkpoint
from dice_envs.learn.presets import GPU_GAMES, GPU_TIMES, MOST_STEPS, PRESETS, Preset, plan_of, preset_of
from tests.conftest import ROOT
from tests.experiments.ui.test_page import parsed, shown
from tests.support.commands import done, refusal, run, with_json
from tests.support.subsets import few

THIRTIES = PRESETS["thirties"]["quick"]
TINY = Preset(
    steps=4096, opponents=("random", "numbers"), num_envs=32, num_steps=16, minibatch=256, epochs=1, hidden=(16,),
    checkpoint_every=1, snapshot_every=2, past_selves=2, threads=1,
)  # fmt: skip
# Random opponents, past selves from the first iteration on, random minibatches.
DRAWING = dataclasses.replace(
    TINY, steps=6 * 512, opponents=("random", "numbers:bluff=0.5"), minibatch=128, epochs=2, snapshot_every=1
)
# Half of the games are self-play; reference and averaged policies; the best policy is kept.
REGULARISED = dataclasses.replace(
    DRAWING, self_play=0.5, kl=0.1, kl_end=1.0, entropy_end=0.001, reference_rate=0.2,
    average_rate=0.1, measure_every=2, keep="best", normalize=False, floor=0.01, input_scale=3.0,
    proximal=1.0, proximal_end=2.0, central_critic=True,
)  # fmt: skip


@pytest.fixture(autouse=True)
def tiny_preset(monkeypatch):
    monkeypatch.setitem(PRESETS, "liars_dice", {"quick": TINY})
    monkeypatch.setitem(PRESETS, "thirties", {"quick": TINY})


def train(*arguments, game="liars_dice", using=done):
    """Run `train`, by default with two dice, because the exact measures at its end take longer with five."""
    options = ["-o", "num_dice=2"] if game == "liars_dice" and "-o" not in arguments else []
    return using("train", game, "--evaluation-games", "50", *options, *arguments)


def refused(words, *arguments, **more):
    """Assert that `train` ends with one line that has these words."""
    line = train(*arguments, **more, using=refusal)
    assert re.search(words, line), line
    return line


def ending(folder):
    """Everything that a run leaves, except timings."""
    results = json.loads((folder / "results.json").read_text())
    del results["steps_per_second"], results["minutes"]
    for point in results["gaps"]:
        del point["minutes"]
    return results, *[(folder / name).read_bytes() for name in ("checkpoint.pt", "policy.npz", "config.json")]


def test_train_saves_and_measures(tmp_path):
    folder, using = tmp_path / "run", functools.partial(with_json, tmp_path)
    output, data = train("--out", folder, "--seed", 3, "-o", "num_dice=1", "--verbose", using=using)
    written = {path.name for path in folder.iterdir()}
    assert {"config.json", "checkpoint.pt", "policy.npz", "results.json", "cross_table.png", "learning_curve.png"} <= written
    assert not [name for name in written if name.endswith(".tmp")]
    assert not (folder / ".owner.json").exists()
    assert data["table"]["agents"] == ["ppo", "ppo greedy", "random", "numbers"]
    assert data["table"]["games"] == 50
    assert data["table"]["without_luck"]
    assert "% won, without luck," in output
    for row in (0, 1):
        assert data["table"]["plain_win_rate"][row][1 - row] is None, "no values against the policy: this pair is as played"
        assert data["table"]["ci95"][row][3] < data["table"]["plain_ci95"][row][3]
    edges = {(edge["agent"], edge["opponent"]): edge for edge in data["table"]["edges"]}
    assert set(edges) == {(ours, theirs) for ours in ("ppo", "ppo greedy") for theirs in ("random", "numbers")}
    for (ours, theirs), edge in edges.items():
        best = measure("liars_dice", theirs, num_dice=1).measures[1].value
        row, column = (data["table"]["agents"].index(name) for name in (ours, theirs))
        assert edge["best_response_wins"] == pytest.approx(best)
        assert edge["share"] == pytest.approx((data["table"]["win_rate"][row][column] - 0.5) / (best - 0.5))
        share = "none" if edge["share"] < -edge["ci95"] else f"{100 * edge['share']:.1f} ± "
        shown = rf"│ {theirs} +│ +{100 * edge['wins']:.1f} │ +{100 * best:.1f} │ +{share}"
        assert (ours == "ppo") == bool(re.search(shown, output)), "the verdict is the policy's"
    assert f"Games won, % of {data['table']['games']} against each" in output
    (wins,) = (each["value"] for each in data["measures"][0]["measures"] if each["name"] == "best response wins")
    said = f"A best response wins {100 * wins:.1f} % of the games against this policy: "
    beats = all(edge["share"] > edge["ci95"] for (ours, _), edge in edges.items() if ours == "ppo")
    learned = "it has learned to beat these opponents" if beats else "it does not beat all of these opponents yet"
    assert said + learned in " ".join(output.split())
    assert f"play against it: dice-envs play liars_dice ppo:{folder}\n" in output
    assert data["steps"] >= 4096
    assert data["curve"]
    assert (folder / "policy.npz").stat().st_size < 2**20
    done("arena", "liars_dice", f"ppo:{folder / 'policy.npz'}", "random", "-o", "num_dice=1", "--games", "100")
    again = train("--out", folder, "-o", "num_dice=1", "--resume", "--evaluation-games", 1)
    assert f"already trained on liars_dice (num_dice=1): {data['steps']:,} steps" in " ".join(again.split())
    assert "% won, without luck," not in again, "only with --verbose"


def test_a_table_is_shown_the_pool_that_it_trained_on(tmp_path):
    report, using = tmp_path / "report", functools.partial(with_json, tmp_path)
    options = ["-o", "num_players=3", "-o", "num_dice=1", "--report", report]
    output, data = train("--out", tmp_path / "run", "--seed", 3, *options, using=using)
    pool = data["pool"]
    assert [row["agents"] for row in pool.values()] == [["ppo", name, name] for name in ("random", "numbers", "past selves")]
    for row in pool.values():
        assert 0 <= row["win_rate"][0][0] <= 1
        assert 0 < row["ci95"][0][0] < 0.5
    assert "2 × past selves" in output
    page = parsed((report / "index.html").read_text())
    assert len(list(page.iter("img"))) == len(list(report.glob("*.png"))) == 3, "curve, table and gain"
    text = shown(page)
    assert "past selves" in text
    assert "train liars_dice --preset quick -o num_players=3 -o num_dice=1 --seed 3" in text
    assert "deviation gain" in text


def test_the_learning_rate_never_falls_below_0(tmp_path):
    """The last rollout is a whole one, so training takes more steps than asked for."""
    run = runs.TrainingRun(configure("liars_dice", num_dice=1), dataclasses.replace(TINY, steps=3 * 512 + 1), 1, tmp_path)
    callback, rates = TrainingCallback(), []
    callback.learned = lambda steps, values: rates.append(values["train/learning_rate"])
    run.learn(callback)
    assert run.steps == 4 * 512
    *falling, last = dict.fromkeys(rates)
    assert falling == sorted(falling, reverse=True)
    assert min(falling) > 0
    assert last == 0


@pytest.mark.thorough
def test_training_does_not_end_with_what_takes_long(tmp_path, monkeypatch):
    monkeypatch.setattr("dice_envs.experiments.train.MOST_POSITIONS", 10)
    using = functools.partial(with_json, tmp_path)
    output, data = train("--out", tmp_path / "run", "--seed", 3, "-o", "num_dice=1", using=using)
    assert [each["agent"] for each in data["measures"]] == ["ppo greedy"]
    assert "ppo is not measured here: there are " in output
    assert "left out" not in output, "it is as long as its preset's"


def test_a_short_training_is_measured_quickly_and_says_what_was_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(training, "QUICK_POSITIONS", 10)
    monkeypatch.setattr(training, "QUICK_PLAYED", 60)
    monkeypatch.setattr(training, "MOST_PLAYED", 70)
    folder = tmp_path / "run"
    arguments = ("train", "liars_dice", "--out", folder, "--steps", 1024, "--seed", 3, "-o", "num_dice=1")

    def left(*more):
        output, data = with_json(tmp_path, *arguments, *more)
        line = next((line for line in output.splitlines() if line.startswith("left out to be quick: ")), "")
        assert line in [*data["notes"], ""]
        return line, data, output

    line, data, output = left()
    assert "quick: the distance of ppo from optimal play (" in line
    assert ", 10 of 70 games of each pair or table. This command adds it: " in line
    assert [each["agent"] for each in data["measures"]] == ["ppo greedy"]
    assert data["table"]["games"] == 60
    assert re.search(r"A best response wins \d+\.\d % of the games against its likeliest actions", " ".join(output.split()))
    again = line.partition("adds it: dice-envs ")[2]
    assert again.endswith(f" --steps 1024 --seed 3 --out {folder} --resume --measure full")
    done(*again.split())
    data = json.loads((folder / "results.json").read_text())
    assert ([each["agent"] for each in data["measures"]], data["table"]["games"]) == (["ppo", "ppo greedy"], 70)
    line, data, _ = left("--resume", "--measure", "none")
    assert line.startswith("left out to be quick: all measures and games. This command adds it: dice-envs train liars_dice ")
    assert (data["measures"], "table" in data) == ([], False)
    assert not left("--resume", "--measure", "full")[0]
    monkeypatch.setattr(training, "SHORT", 0.0)
    assert not left("--resume")[0], "who trains for minutes waits for all measures"
    refused("--measure must be one of 'none', 'quick', 'full', not 'ful'; did you mean 'full'", "--measure", "ful")


@pytest.mark.parametrize(("changes", "kept"), [({"self_share": 0.0}, 0), ({}, 2), ({"self_play": 1.0}, 0)])
def test_past_selves_are_in_the_pool_where_somebody_meets_them(changes, kept, tmp_path):
    preset = dataclasses.replace(TINY, snapshot_every=1, **changes)
    begun = runs.TrainingRun(configure("liars_dice", num_dice=2), preset, 1, tmp_path)
    begun.learn(TrainingCallback())
    asked = mixed_team(begun.opponents.pool.agents, begun.variant).numbers[:, 0] == ASKED
    assert len(begun.opponents.selves) == asked.sum() == kept
    np.testing.assert_allclose(begun.opponents.pool.shares(), [0.4, 0.4, 0.1, 0.1] if kept else [0.5, 0.5])
    begun.write()
    again = runs.TrainingRun(configure("liars_dice", num_dice=2), preset, 1, tmp_path)
    again.restore(read_checkpoint(tmp_path / "checkpoint.pt"))
    assert again.opponents.num_selves == begun.opponents.num_selves


@pytest.mark.thorough
def test_expected_rewards_are_counted_as_shares_of_a_win():
    for expected, share in ((True, 0.7), (False, 1.0)):  # a game that pays 0.4 of -1 to 1
        preset = dataclasses.replace(TINY, opponents=("random",), expected_rewards=expected)
        begun = runs.TrainingRun(configure("fatestones"), preset, 1)
        begun.opponents.add_games(np.array([0.4]), np.array([[-1, 0]]))
        assert begun.add_point() == {"random": pytest.approx(share)}


@pytest.mark.thorough
@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_full_disk_under_tensorboard_ends_in_one_line(tmp_path, monkeypatch):
    from tensorboard.summary.writer.record_writer import RecordWriter

    written = []
    write = RecordWriter.write

    def full(self, data):
        written.append(data)
        if len(written) > 20:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(self, data)

    monkeypatch.setattr(RecordWriter, "write", full)
    refused("/tensorboard: No space left on device", "--out", tmp_path, "--seed", 3, "--steps", 99999)
    assert read_checkpoint(tmp_path / "checkpoint.pt")["num_timesteps"] > 0


def test_training_that_diverges_ends_in_one_line(tmp_path, monkeypatch):
    def ruin(self):
        with torch.no_grad():
            self.model.networks["actor"][-1].bias[0] = torch.inf
        return {}

    monkeypatch.setattr(runs.TrainingRun, "add_point", ruin)  # after four rollouts
    words = "the network's weights are not finite any more after 2,048 steps"
    refused(words, "--out", tmp_path, "--seed", 3, "--set", "snapshot_every=100")
    state = torch.load(tmp_path / "checkpoint.pt", weights_only=True)
    assert state["num_timesteps"] == 3 * 512, "the last checkpoint is from before"


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A folder with a short finished run, and the contents of its checkpoint."""
    folder = tmp_path_factory.mktemp("finished")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PRESETS, "liars_dice", {"quick": dataclasses.replace(DRAWING, steps=1024, hidden=(4,))})
        train("--out", folder, "--seed", 3)
    return folder, read_checkpoint(folder / "checkpoint.pt")


NAN, LACKING = float("nan"), "lacking"
# What stands in a damaged checkpoint: values of its fields, of fields of its configuration and of its preset, what is made of a
# whole one's contents, and of its bytes.
FIELDS = {
    "policy": ({}, LACKING),
    "num_timesteps": (LACKING, None, "1024", 1024.0, True, NAN, torch.inf, -512, 1000, 10**40, torch.tensor(512), 0),
    "num_selves": (None, "2", 1, -1, NAN, []),
    "selves": (LACKING, [], [[], []]),
    "optimizer": (LACKING, {}),
    "env": (LACKING, {}),
    "format": (None,),
    "curve": (LACKING, None, "", "{}", "[1]", "[{}]", '[{"steps": "x"}]', '[{"steps": NaN}]', "[" * 10**5),
    "score": (LACKING, None, "", "[]", '{"random": 1}', '{"random": [0, 0]}', '{"random": [1]}', '{"random": [1, Infinity]}'),
    "config": (LACKING, None, "", "{", "[]", "{}", "1", '{"preset": {}}', '{"preset": 1, "seed": 1}', "[" * 10**5),
}
CONFIGS = [
    {"game": "chess"}, {"game": None}, {"game": [1]}, {"options": None}, {"options": {"chess": 1}}, {"preset": {}},
    {"options": {"num_dice": {}}}, {"seed": None}, {"seed": -1}, {"seed": 1.5}, {"seed": 2**128}, {"learner": "chess"},
    {"learner": None},
]  # fmt: skip
PRESET_FIELDS = [{"chess": 1}, {"opponents": []}, {"num_envs": 64}, {"hidden": [5]}, {"steps": NAN}]
CHANGES = {
    "a self that is not finite": lambda state: {"selves": [[(w * NAN, b) for w, b in own] for own in state["selves"]]},
    "policy not finite": lambda state: {"policy": {name: weights / 0 for name, weights in state["policy"].items()}},
    "negative squares": lambda state: {
        "optimizer": {i: {**part, "exp_avg_sq": part["exp_avg_sq"] - 1} for i, part in state["optimizer"].items()}
    },
    "games of another version": lambda state: {"env": {name: ("<i8", data) for name, (_, data) in state["env"].items()}},
    "players that are not there": lambda state: {
        "env": {**state["env"], "players": (state["env"]["players"][0], state["env"]["players"][1] + 1)}
    },
}


def changed_config(state, changes, preset):
    config = json.loads(state["config"])
    return {"config": json.dumps(config | ({"preset": config["preset"] | changes} if preset else changes))}


DAMAGES = {
    **{f"{name} {each!r:.40}": lambda _, name=name, each=each: {name: each} for name in FIELDS for each in FIELDS[name]},
    **{f"config {each}": lambda state, each=each: changed_config(state, each, False) for each in CONFIGS},
    **{f"preset {each}": lambda state, each=each: changed_config(state, each, True) for each in PRESET_FIELDS},
    **CHANGES,
}
CUTS = {"empty": lambda content: b"", "no archive": lambda content: b"garbage", "cut off": lambda content: content[:-500]}


@few(8, "name", [*CUTS, *DAMAGES])
def test_a_wrong_checkpoint_gets_one_line(finished, name):
    folder, state = finished
    path = folder / "checkpoint.pt"
    kept = path.read_bytes()
    others = {other.name: other.read_bytes() for other in folder.iterdir() if other.is_file() and other != path}
    try:
        if name in CUTS:
            path.write_bytes(CUTS[name](kept))
        else:
            changed = {**state, **DAMAGES[name](state)}
            torch.save({part: value for part, value in changed.items() if value is not LACKING}, path)
        told = refused("is damaged or of another run", "--out", folder, "--resume", "--steps", 99999)
    finally:
        path.write_bytes(kept)
    if name in DAMAGES:
        assert re.search(r" \('\w+' is missing\)" if LACKING in name else r" \(.+\); remove it", told), told
    assert len(told) < 600
    assert {other.name: other.read_bytes() for other in folder.iterdir() if other.is_file() and other != path} == others


def test_a_resumed_run_is_not_another_one(finished):
    folder, _ = finished
    before = ending(folder)
    refused("holds a run already; add --resume", "--out", folder)
    refused("holds a run of liars_dice", "--out", folder, "--resume", "-o", "num_dice=3")
    refused("holds a run against random, numbers:.*, not against random", "--out", folder, "--resume", "--opponent", "random")
    assert ending(folder) == before


def test_presets_name_known_opponents():
    for spec in {spec for presets in PRESETS.values() for preset in presets.values() for spec in preset.opponents}:
        make_agent(spec)


def test_on_a_gpu_as_many_updates_are_made_of_more_decisions():
    for presets in PRESETS.values():
        for preset in presets.values():
            moved = preset.on_gpu()
            size, larger = (each.num_envs * each.num_steps for each in (preset, moved))
            assert larger == GPU_TIMES * size
            assert larger // moved.minibatch == size // preset.minibatch
            assert moved.steps // larger == preset.steps // size
            assert preset.num_envs < moved.num_envs <= GPU_GAMES
            assert moved.num_steps >= 8
    assert dataclasses.replace(TINY, num_envs=2**14).on_gpu().num_envs == 2**14


def test_what_is_given_holds_on_a_gpu_too():
    variant = configure("liars_dice")
    moved = preset_of("liars_dice", "full").on_gpu()
    assert plan_of(variant, "full", {}, device="cuda").preset == moved
    for steps in (10**6, MOST_STEPS):
        assert plan_of(variant, "full", {"steps": steps}, device="cuda").preset == dataclasses.replace(moved, steps=steps)
    for given in ({"num_envs": 128}, {"num_steps": 128}, {"minibatch": 512}):
        assert plan_of(variant, "full", given, device="cuda:0").preset == preset_of("liars_dice", "full", **given)


@pytest.mark.thorough
def test_where_nothing_was_measured_the_averaged_policy_is_offered():
    preset = dataclasses.replace(TINY, self_play=1.0, average_rate=0.5, measure_every=0, keep="best")
    made = runs.TrainingRun(configure("liars_dice", rules="openspiel", num_dice=1), preset, seed=1)
    made.learn(TrainingCallback())
    policies = (made.model.policy(), made.model.policy("averaged"), made.policy)
    last, averaged, offered = (policy.layers[0][0] for policy in policies)
    assert np.array_equal(offered, averaged)
    assert not np.array_equal(offered, last)


def test_gaps_are_called_exact_only_where_they_are():
    exact = measure(configure("liars_dice", rules="openspiel", num_dice=1, num_faces=2), "random")
    sampled = measure(configure("fatestones"), "random", sample=2)
    assert gap_label([exact]).endswith("exact")
    assert sampled.measures[0].error > 0
    assert gap_label([sampled]).endswith(f"± {sampled.measures[0].error:.2g}")
    assert gap_label([]) == "gap from optimal play"


def test_a_learning_curve_shows_what_is_near_the_best_response(tmp_path, monkeypatch):
    """It begins at 0 and ends just below lines that are close to each other."""
    best, drawn = {"a": 0.95, "b": 0.97}, []

    @contextlib.contextmanager
    def kept(*arguments):
        with saved_plot(*arguments) as (canvas, axes):
            drawn.append(axes)
            yield canvas, axes

    monkeypatch.setattr("dice_envs.experiments.train.saved_plot", kept)
    curve = [{"steps": step, **{name: min(share - 0.02, step / 10) for name, share in best.items()}} for step in range(100)]
    trained = dataclasses.replace(runs.TrainingRun(configure("liars_dice"), TINY, 1), curve=curve)
    plot_points(tmp_path, "learning_curve", trained, "share won", "share won", "PPO", best)
    (axes,) = drawn
    assert axes.get_ylim() == pytest.approx((0.926, 0.972), abs=0.001)
    assert [line.get_marker() for line in axes.lines] == ["o", "o", "s", "s"], "a curve, and what is best"


@pytest.mark.thorough
def test_thirties_is_learned_in_half_a_minute(tmp_path, monkeypatch):
    monkeypatch.setitem(PRESETS, "thirties", {"quick": THIRTIES})
    train("--out", tmp_path / "run", "--seed", 1, game="thirties")
    for found in json.loads((tmp_path / "run" / "results.json").read_text())["measures"]:
        value = found["measures"][0]
        assert value["value"] > 0.995 * value["optimum"]


def test_what_is_not_cheap_to_measure_is_tried_ever_more_rarely(monkeypatch):
    tried = []

    def too_long(*arguments, **options):
        tried.append(run.iterations)
        if len(tried) < 4:
            raise TooLong("2,000,000 positions")
        return measure("liars_dice", "random", num_dice=1, num_faces=2)

    monkeypatch.setattr(runs, "measure", too_long)
    run = runs.TrainingRun(
        configure("liars_dice", num_dice=1, num_faces=2), dataclasses.replace(TINY, steps=12 * 512, measure_every=1), 1
    )
    run.learn(TrainingCallback())
    assert tried == [1, 2, 4, 8, 9, 10, 11, 12]


def test_a_measure_that_is_rarer_may_ask_at_more_positions(monkeypatch):
    def measured(variant, policy, seed):
        advance(0, positions)
        return measure("liars_dice", "random", num_dice=1, num_faces=2)

    monkeypatch.setattr(runs, "measure", measured)
    game, preset = configure("liars_dice", num_dice=1, num_faces=2), dataclasses.replace(TINY, steps=512)
    for every, most in ((1, 2_000_000), (64, 2_000_000), (256, 8_000_000), (10**6, 16_000_000)):
        for positions in (most, most + 1):
            run = runs.TrainingRun(game, dataclasses.replace(preset, measure_every=every), 1)
            run.learn(TrainingCallback())
            assert len(run.gaps) == (positions <= most)


def test_terms_of_the_loss_may_end_with_none():
    ends = dict.fromkeys(("entropy_end", "kl_end", "proximal_end", "learning_rate_end"), 0.0)
    assert dataclasses.replace(REGULARISED, **ends).proximal_end == 0


@few(24,
    "changes",
    [
        {"steps": 0}, {"steps": 1.5}, {"steps": True}, {"steps": 10**13}, {"opponents": ()}, {"opponents": "random"},
        {"opponents": (1,)}, {"self_share": 1.1}, {"self_share": NAN}, {"past_selves": -1}, {"snapshot_every": 0},
        {"num_envs": 0}, {"num_envs": 10**6}, {"num_steps": 0}, {"num_steps": 10**6}, {"minibatch": 1}, {"minibatch": 1000},
        {"epochs": 0}, {"learning_rate": -1}, {"learning_rate": "1"}, {"entropy": None}, {"gae_lambda": 2},
        {"hidden": 64}, {"hidden": "64"}, {"hidden": (0,)}, {"hidden": (64.0,)}, {"hidden": (64,) * 9},
        {"self_play": 1.5}, {"kl": -1}, {"kl": None}, {"clip": 2}, {"normalize": 1.0}, {"keep": "first"},
        {"central_critic": 1, "normalize": False}, {"central_critic": True}, {"proximal": -1}, {"proximal_end": 2000},
        {"learning_rate_end": 2}, {"every_hand": True}, {"least_stake": 0.1},
        {"least_stake": 2, "central_critic": True, "normalize": False},
        {"reference_rate": 2}, {"average_rate": -1}, {"entropy_end": -1}, {"measure_every": -1}, {"value_weight": -1},
        {"input_scale": 0.5}, {"input_scale": NAN}, {"input_scale": "8"},
        {"floor": 1}, {"checkpoint_every": 0}, {"threads": 0}, {"threads": 10**6},
    ],
)  # fmt: skip
def test_a_preset_checks_every_field(changes):
    with pytest.raises(ValueError, match=f"{next(iter(changes))}"):
        Preset(**{"steps": 1000, **changes})


def test_a_preset_takes_lists():
    assert Preset(steps=1, opponents=["random"], hidden=[64]) == Preset(steps=1, opponents=("random",), hidden=(64,))


@pytest.mark.thorough
def test_a_run_goes_into_the_package_with_what_it_is_worth(tmp_path, monkeypatch):
    package = tmp_path / "package"
    package.mkdir()
    monkeypatch.setattr("dice_envs.agents.ppo.POLICIES", package)
    folder, results = tmp_path / "one_die", tmp_path / "one_die" / "results.json"
    train("--out", folder, "--seed", 3, "-o", "num_dice=1")
    results.write_text(re.sub(r'"minutes": [\d.e-]+', '"minutes": null', results.read_text()))  # times.json may be lost
    done("agents", "--add", folder)
    policy = make_agent(f"ppo:{package / 'one_die.npz'}")._policy
    about = policy.about
    assert about["command"] == "dice-envs train liars_dice --preset quick -o num_dice=1 --seed 3"
    assert about["measures"][0]["value"] == measure("liars_dice", policy, num_dice=1).measures[0].value
    greedy = make_agent(f"ppo:{package / 'one_die.npz'},greedy=true")
    assert about["greedy_measures"][0]["value"] == measure("liars_dice", greedy, num_dice=1).measures[0].value
    assert about["table"]["agents"][0] == "ppo"
    assert len(about["table"]["win_rate"]) == len(about["table"]["agents"])
    for wrong, words in ((package, "is a folder without a policy.npz"), (tmp_path / "a-b", "name")):
        assert words in refusal("agents", "--add", wrong)
    results.unlink()
    assert "holds no finished run of `train`" in refusal("agents", "--add", folder)


def test_a_report_says_why_a_policy_was_not_measured():
    """Dice lost are no zero-sum reward."""
    variant = configure("liars_dice", num_players=3, num_dice=1, reward="dice")
    trained = runs.TrainingRun(variant, TINY, 1)
    result = TrainingResult(trained, ROOT, "train", None, *measured(variant, trained.policy, "ppo:none", 1))
    section = next(section for section in run_sections(result, ()) if section.title == "How far from optimal play")
    (why,) = section.text
    assert why.startswith("not measured against optimal play: reward must be 'win' for an exact result at a table, not 'dice'")
    assert result.as_dict()["notes"] == result.notes == [why]


@pytest.mark.thorough
def test_a_run_goes_on_from_its_checkpoint_alone(tmp_path, monkeypatch):
    folder = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(training, "first_signal_waits", lambda: contextlib.nullcontext(lambda: signal.SIGTERM))
        stopped = train("--out", folder, "--seed", 3, using=run)
    assert (stopped.exit_code, stopped.stderr.splitlines()[-1]) == (
        143, f"stopped after 0 steps, which are saved in {folder}; the same command with --resume goes on"
    )  # fmt: skip
    train("--out", folder, "--resume")
    first = read_checkpoint(folder / "checkpoint.pt")
    for name in ("config.json", "policy.npz", "results.json", "times.json"):
        (folder / name).write_bytes(b"damaged")
    train("--out", folder, "--resume", "--steps", 8192, "--threads", 2)
    assert json.loads((folder / "config.json").read_text())["preset"]["threads"] == 2
    assert json.loads((folder / "results.json").read_text())["command"].endswith("--seed 3 --threads 2")
    second = read_checkpoint(folder / "checkpoint.pt")
    assert second["num_timesteps"] >= 8192 > first["num_timesteps"]
    assert second["num_selves"] > first["num_selves"] >= 2, "past selves came along"
    assert len(json.loads(second["curve"])) > len(json.loads(first["curve"]))
