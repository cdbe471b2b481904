"""Work in parts gives the same results wherever it runs, whichever workers die, and however often it is stopped."""

import contextlib
import json
import pickle
import re
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from dice_envs import configure, measure
from dice_envs.agent.matches import GAMES_ASKED, GAMES_AT_ONCE
from dice_envs.agent.specs import make_agent
from dice_envs.core.own import FILES, load_own, module_of_file
from dice_envs.core.work import advance, work
from dice_envs.experiments import jobs
from dice_envs.experiments.arena import play_table
from dice_envs.experiments.jobs import HERE, Processes, Workers, kept_beside, on_ray
from dice_envs.experiments.sweep import parse_settings
from dice_envs.games.liars_dice.exact.solver import solve
from dice_envs.learn.presets import PRESETS
from tests.support.commands import done, refusal, run
from tests.support.policies import ActsOnly
from tests.support.subsets import few

ARENA = ["arena", "liars_dice", "numbers", "mcts:20", "-o", "num_dice=2", "--games", "1500", "--seed", "3"]


class Shuffled(Workers):
    """Imitates a cluster: parts in another order, with copies of their arguments and read-only arrays."""

    def _each(self, work, parts, sizes):
        for number, part in reversed(parts.items()):
            given, own = pickle.loads(pickle.dumps((work, tuple(part))))
            result = given(*own)
            for array in result if isinstance(result, tuple) else (result,):
                if isinstance(array, np.ndarray):
                    array.setflags(write=False)
            yield number, result


@few(
    2,
    ("game", "specs", "options", "games", "match"),
    [
        ("liars_dice", ["random", "numbers"], {}, 2 * GAMES_AT_ONCE + 100, 1),
        ("liars_dice", ["numbers", "ppo"], {}, GAMES_ASKED + 50, 1),
        ("liars_dice", ["reader", "numbers:bluff=1", "random"], {"num_players": 3, "num_dice": 2}, 3 * GAMES_ASKED, 3),
        ("thirties", ["random", "thirties"], {"num_players": 2}, GAMES_AT_ONCE + 30, 1),
    ],
)
def test_games_are_the_same_wherever_their_parts_are_played(game, specs, options, games, match, monkeypatch):
    monkeypatch.setattr("dice_envs.experiments.arena.PIECES_IN_PART", 1)
    variant, told = configure(game, **options), []
    tables = []
    for each in (HERE, Shuffled()):
        with work(lambda amount, of: told.append(amount)):
            tables.append(play_table(variant, [make_agent(spec) for spec in specs], games, 5, match=match, workers=each))
        assert sum(told) == games * len(tables)
    np.testing.assert_array_equal(tables[0], tables[1])


def test_every_agent_can_be_sent_elsewhere():
    variant = configure("liars_dice", num_dice=1)
    for spec in ("random", "numbers:bluff=0.5", "reader", "mcts:5", "nash", "ppo"):
        agent = make_agent(spec)
        play_table(configure("liars_dice") if spec == "ppo" else variant, [agent, make_agent("random")], 2, 1)
        assert type(pickle.loads(pickle.dumps(agent))) is type(agent)  # also after it has played


@pytest.mark.thorough
def test_a_measurement_is_the_same_wherever_its_repeats_are_made():
    variant = configure("liars_dice", rules="openspiel", num_dice=1, num_faces=3)
    here, elsewhere = (measure(variant, ActsOnly("random"), seed=4, apply=apply) for apply in (map, Shuffled().map))
    assert here == elsewhere
    assert "mean of 10 runs" in here.measures[0].note


@pytest.mark.slow
def test_a_solution_is_the_same_wherever_its_rounds_are_solved(tmp_path):
    """The precision is chosen so that some rounds are solved again."""
    variant = configure("liars_dice", num_dice=3)
    told = []
    here, elsewhere = (
        solve(variant, 1e-3, folder=tmp_path / str(number), done=told.append, elsewhere=each)
        for number, each in enumerate((None, Shuffled().as_done))
    )
    assert sum(progress.finished for progress in told) > 2 * len(here.rounds)
    assert np.array_equal(here.responds, elsewhere.responds)
    for dice, found in here.rounds.items():
        np.testing.assert_array_equal(found.numbers, elsewhere.rounds[dice].numbers)
    files = [{path.relative_to(tmp_path / number) for path in (tmp_path / number).rglob("*.npz")} for number in "01"]
    assert files[0] == files[1]
    assert len(files[0]) == len(here.rounds)
    kept = solve(variant, 1e-3, folder=tmp_path / "1", resume=True, elsewhere=lambda function, parts: iter(()))
    assert np.array_equal(kept.responds, here.responds)


# --- kept parts -------------------------------------------------------------------------------------------------------


def numbered(base, number):
    advance()
    return np.arange(number) + base if number % 2 else {"number": number + base}


def test_parts_in_several_processes_give_the_same_and_raise_their_errors_here():
    told, parts = [], [(number,) for number in range(4)]
    here = HERE.run(numbered, (10,), parts)
    with work(lambda amount, of: told.append(amount)):
        there = Processes(2).run(numbered, (10,), parts)
    assert all(np.array_equal(a, b) for a, b in zip(here, there, strict=True))
    assert sum(told) == len(parts)
    with pytest.raises(ValueError, match="invalid literal"):
        Processes(1).map(int, ["1", "x"])


@pytest.fixture
def at_once(monkeypatch):
    """Keep parts from the first second on."""
    monkeypatch.setattr(jobs, "KEEP_AFTER", 0.0)


def stopped(json_file, parts=5, after=3, seed=7):
    """Stop a run after `after` parts."""

    def fails(base, number):
        if number >= after:
            raise KeyboardInterrupt
        return numbered(base, number)

    with pytest.raises(KeyboardInterrupt), kept_beside(json_file, False, {"of": "numbers"}, seed) as kept:
        Workers(kept).run(fails, (10,), [(number,) for number in range(parts)])


def test_what_was_finished_is_not_done_again(tmp_path, at_once):
    file, told, done = tmp_path / "out.json", [], []
    stopped(file)

    def noting(base, number):
        done.append(number)
        return numbered(base, number)

    with kept_beside(file, True, {"of": "numbers"}, None) as kept, work(lambda amount, of: told.append(amount)):
        assert kept.seed == 7
        results = Workers(kept).run(noting, (10,), [(number,) for number in range(5)])
    assert done == [3, 4]
    assert sum(told) == 5
    for number, result in enumerate(results):
        expected = numbered(10, number)
        assert np.array_equal(result, expected) if number % 2 else result == expected
    assert not list(tmp_path.iterdir())  # the run is finished


def test_parts_that_are_damaged_or_of_other_work_are_done_again_and_named(tmp_path, at_once, capsys):
    file = tmp_path / "out.json"
    stopped(file)
    parts = [tmp_path / "out.json.parts" / f"000_{number:06}.npz" for number in range(3)]
    contents = [part.read_bytes() for part in parts]
    for wrong, redone in (
        ({1: contents[1][:30]}, [1]),
        ({0: contents[2], 2: contents[0]}, [0, 2]),
        ({1: b"", 2: contents[2].replace(b"json.npy", b"jsom.npy")}, [1, 2]),
    ):
        for number, part in enumerate(parts):
            part.write_bytes(wrong.get(number, contents[number]))
        with contextlib.suppress(KeyboardInterrupt), kept_beside(file, True, {"of": "numbers"}, None) as kept:
            found = kept.of_next_run(5)[0]
            raise KeyboardInterrupt
        assert sorted(found) == [number for number in range(3) if number not in redone]
        assert capsys.readouterr().out.count("that work is done again") == len(redone)


NO_PLANS = {"": "Expecting", "[1,2,3]": "it is no JSON object", "{}": "its checksum is wrong", "3": "it is no JSON object"}
NO_PLANS |= {'{"seed": NaN}': "NaN is no finite", "[" * 100_000: "it is nested too deeply", '{"seed": null}': "its checksum"}


@pytest.mark.parametrize(
    ("changed", "given", "message"),
    [
        *((lambda plan, text=text: text, {}, rf"damaged .*\({why}.*; remove it") for text, why in NO_PLANS.items()),
        (lambda plan: plan.replace('"seed": 7', '"seed": 8'), {}, "its checksum is wrong"),
        (lambda plan: re.sub(r'"checksum": "\w+"', '"checksum": null', plan), {}, "its checksum is wrong"),
        (str, {"resume": False}, "add --resume to go on with it, or remove it"),
        (str, {"what": {"of": "letters"}}, r"other of \('numbers', not 'letters'\)"),
        (str, {"seed": 8}, "a run with seed 7, not 8"),
    ],
)
def test_parts_of_another_run_or_with_a_damaged_plan_are_refused_and_stay(tmp_path, at_once, changed, given, message):
    file, plan = tmp_path / "out.json", tmp_path / "out.json.parts" / jobs.PLAN
    stopped(file)
    plan.write_text(changed(plan.read_text()))
    there = {path: path.read_bytes() for path in plan.parent.iterdir()}
    with pytest.raises(ValueError, match=message):
        kept_beside(file, **{"resume": True, "what": {"of": "numbers"}, "seed": None, **given}).__enter__()
    assert {path: path.read_bytes() for path in plan.parent.iterdir()} == there


def test_parts_without_a_plan_are_of_the_same_work_alone(tmp_path, at_once):
    """A process that is killed while it removes them leaves such parts."""
    file = tmp_path / "out.json"
    stopped(file)
    (tmp_path / "out.json.parts" / jobs.PLAN).unlink()
    with kept_beside(file, False, {"of": "other numbers"}, 8) as kept:
        assert kept.of_next_run(5)[0] == {}
    stopped(file, after=1)
    with kept_beside(file, True, {"of": "numbers"}, None) as kept:
        assert sorted(kept.of_next_run(5)[0]) == [0, 1, 2]


@pytest.mark.parametrize("changed", [False, True])
def test_parts_by_own_code_that_has_changed_are_refused(tmp_path, at_once, monkeypatch, changed):
    """A file of the user's own imports another one, of which it has a rule."""
    FILES.clear()  # other tests have files of their own
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "the_rule.py").write_text("BONUS = 1")
    (tmp_path / "the_game.py").write_text("import the_rule\nimport numpy.linalg\nBONUS = the_rule.BONUS")
    monkeypatch.setattr(jobs, "BEGUN", time.time() + 1)  # as in a process that begins now
    assert load_own(str(tmp_path / "the_game.py"), "BONUS", "game") == 1
    assert {Path(file).name for file in FILES if Path(file).is_relative_to(tmp_path)} == {"the_game.py", "the_rule.py"}
    stopped(tmp_path / "out.json")
    if changed:
        (tmp_path / "the_rule.py").write_text("BONUS = 2")
    FILES.clear()  # as in a process that resumes the run
    for name in [name for name in sys.modules if name.startswith(("the_rule", "own_the_game"))]:
        del sys.modules[name]
    module_of_file.cache_clear()
    load_own(str(tmp_path / "the_game.py"), "BONUS", "game")
    refused = pytest.raises(ValueError, match="a run with other own_code") if changed else contextlib.nullcontext()
    with refused, kept_beside(tmp_path / "out.json", True, {"of": "numbers"}, None):
        pass
    FILES.clear()
    del sys.modules["the_rule"]


def test_sources_that_change_while_a_process_runs_are_not_taken_for_what_it_runs(monkeypatch):
    stamps = []
    for begun in (time.time(), time.time(), 0.0):
        monkeypatch.setattr(jobs, "BEGUN", begun)
        jobs.stamp.cache_clear()
        stamps.append(jobs.stamp())
    jobs.stamp.cache_clear()
    assert stamps[0] == stamps[1] != stamps[2]


def test_where_nothing_can_be_kept_the_work_goes_on(tmp_path, at_once, capsys):
    (tmp_path / "out.json.parts").write_text("a file where the folder would be")
    with kept_beside(tmp_path / "out.json", False, {}, 1) as kept:
        assert Workers(kept).run(numbered, (0,), [(2,), (4,)]) == [{"number": 2}, {"number": 4}]
    assert capsys.readouterr().out.count("finished parts are not kept") == 1


# --- on Ray -----------------------------------------------------------------------------------------------------------


def slow_square(folder, number):
    """Return the square after a delay; every call leaves a file."""
    (folder / f"{number}_{time.time_ns()}").touch()
    time.sleep(0.5)
    return {"square": number * number}


@pytest.fixture
def cluster():
    cluster_utils = pytest.importorskip("ray.cluster_utils")
    made = cluster_utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    made.add_node(num_cpus=1)
    yield made
    made.shutdown()


@pytest.mark.slow
def test_a_part_whose_node_is_killed_is_done_again_and_the_others_are_kept(cluster, tmp_path, capsys):
    victim = cluster.add_node(num_cpus=1)
    killed = []

    def kill(amount, of):
        if not killed:
            killed.append(cluster.remove_node(victim, allow_graceful=False))

    parts = [(number,) for number in range(24)]
    with on_ray(cluster.address) as there, work(kill):
        results = there.run(slow_square, (tmp_path,), parts)
    assert killed
    told = " ".join(capsys.readouterr().out.split())
    assert re.search(rf"the node \S+ \(\S+, {victim.node_id[:8]}\) is lost; its parts are done again on other nodes", told)
    assert told.count("is lost") == 1
    assert results == [{"square": number * number} for (number,) in parts]
    begun = [path.name.partition("_")[0] for path in tmp_path.iterdir()]
    assert set(begun) == {str(number) for (number,) in parts}
    assert len(begun) - len(parts) <= 3  # only parts that the node was working on, or had finished and not returned


@pytest.mark.slow
def test_commands_end_the_same_on_a_cluster(cluster, tmp_path):
    one_die = ["liars_dice", "-o", "rules=openspiel", "-o", "num_dice=1"]
    small = ["--steps", "4096", "--evaluation-games", "200", "--set", "num_envs=32", "--set", "minibatch=256,512"]
    sweep = ["train", *one_die, "-o", "num_faces=2", *small, "--seeds", "2"]
    measured = ["measure", one_die[0], "mcts:4", *one_die[1:], "-o", "num_faces=3", "--seed", "2"]
    figures = ["reproduce", "fatestones", "--games", "300", "--draws", "50", "--work", "0.001", "--most", "10", "--seed", "1"]
    ends = []
    for name, more in (("here", []), ("there", ["--ray", cluster.address])):
        folder = tmp_path / name
        for number, command in enumerate((ARENA, measured, figures)):
            done(*command, "--json", str(folder / f"{number}.json"), *more)
        done(*sweep, "--out", str(folder / "runs"), *more)
        files = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.suffix in (".npz", ".json"))
        rows = json.loads((folder / "runs" / "sweep.json").read_text())["rows"]
        contents = [(folder / path).read_bytes() for path in files if path.suffix == ".npz" or path.parent.name == ""]
        runs = [{key: value for key, value in row.items() if key != "minutes"} for row in rows]
        ends.append(([path for path in files if path.name != "times.json"], contents, runs))
    assert ends[0] == ends[1]
    assert len(ends[0][2]) == 4


@pytest.mark.parametrize("command", [[*ARENA, "--resume"], ["benchmark", "language", "--resume"]])
def test_what_is_not_kept_cannot_be_resumed(command):
    assert "--resume needs --json: finished parts are kept beside its file" in refusal(*command)


def test_settings_are_read_as_what_they_are():
    found = parse_settings(["learning_rate=3e-4,1e-3", "hidden=64x32,8", "normalize=false", "epochs=2"], PRESETS[""]["quick"])
    assert found == {"learning_rate": [3e-4, 1e-3], "hidden": [(64, 32), (8,)], "normalize": [False], "epochs": [2]}


@pytest.mark.parametrize(
    "given", [["central_critic=true", "normalize=false"], ["minibatch=3000", "num_envs=30", "num_steps=100"]]
)
def test_settings_that_only_go_together_are_taken_together(given):
    preset = PRESETS[""]["quick"]
    assert set(parse_settings(given, preset)) == {pair.partition("=")[0] for pair in given}
    with pytest.raises(ValueError, match="must be false with central_critic|must divide"):
        parse_settings(given[:1], preset)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("ON_NODES", "dice_envs.experiments.nowhere", "no sources of dice-envs"),
        ("stamp", lambda: "another", "other sources of dice-envs than this machine"),
    ],
)
def test_a_node_without_the_same_sources_is_named_with_the_cure(cluster, monkeypatch, name, value, words):
    monkeypatch.setattr(jobs, name, value)
    result = run(*ARENA, "--ray", cluster.address)
    assert result.exit_code == 2
    assert re.fullmatch(
        rf"error: the node \S+ \(\S+, \w{{8}}\) has {words}: install the same checkout there, with the same extras\n",
        result.stderr,
    )
