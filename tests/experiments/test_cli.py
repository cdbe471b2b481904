"""The command line: results, errors in one line, and options as they are typed, also lists in files."""

import contextlib
import itertools
import json
import re
import subprocess
import sys
from unittest.mock import Mock

import pytest
from typer.main import get_command

from dice_envs import __version__, configure, names
from dice_envs.agent.specs import for_game
from dice_envs.core.files import NOT_KEPT
from dice_envs.experiments.__main__ import app
from dice_envs.experiments.reproduce.liars_dice.habits import FACES_NAMED
from dice_envs.experiments.ui import console, game_options, whole_number
from dice_envs.games.liars_dice.exact import solver, store
from dice_envs.table.sitting import Sitting
from tests.conftest import ROOT, python
from tests.support.commands import done, refusal, run, with_json
from tests.support.policies import save_random_policy
from tests.support.sittings import save
from tests.support.subsets import few


def test_games_and_agents_explain_their_options():
    assert "raise_rule=quantity" in run("games").output
    one = run("games", "liars_dice").output
    assert all(each in one for each in ("dice_envs/LiarsDice-v0", "num_dice=5: dice each player starts with", "own_dice"))
    assert "threshold" in run("agents").output
    of_one = run("agents", "thirties").output
    assert "thirties:heuristic" in of_one
    assert "threshold" not in of_one
    for command in ("games", "agents"):
        assert "unknown game 'chess'" in run(command, "chess").output


def test_agents_are_listed_by_game():
    listed = re.split(r"\n\n(?=\S)", run("agents").output.strip())
    found = {part.split("  ")[0]: set(re.findall(r"^  (\S+)$", part, re.M)) for part in listed}
    anywhere = set(for_game(None))
    assert found == {"any game": anywhere, **{name: set(for_game(name)) - anywhere for name in names()}}


def test_commands_say_which_variant_they_took(tmp_path):
    chooses = "-o mode=... changes it (train and measure take physician, arena and play maesters)"
    result = run("arena", "shakes", "random", "random", "random", "--games", 10)
    assert result.output.startswith(f"shakes as maesters, 3 seats; {chooses}\n")
    result = run("play", "shakes", "--seed", 1, input="q\n")
    assert f"shakes as maesters, 3 seats; {chooses}\n" in result.output
    result = run("play", "shakes", "-o", "mode=physician", "--seed", 1, input="q\n")
    assert f"shakes as physician, 1 seat; {chooses}\n" in result.output
    assert " seats; " not in run("arena", "liars_dice", "random", "random", "--games", 10).output


@pytest.fixture
def physician(tmp_path):
    """The folder of a run of `train shakes`, which trains a physician."""
    folder = tmp_path / "run"
    folder.mkdir()
    save_random_policy(folder / "policy.npz", configure("shakes", mode="physician"))
    return folder


@pytest.mark.thorough
def test_a_policy_brings_its_variant(physician, tmp_path):
    policy = f"ppo:{physician}"
    result, data = with_json(tmp_path, "arena", "shakes", policy, "random", "bayes", "--games", 400, "--seed", 1)
    assert result.startswith(f"shakes (mode=physician), 1 seat: what {policy} was trained on\n")
    assert (data["options"], data["seats"]) == ({"mode": "physician"}, 1)
    assert data["win_rate"][2][0] > 0.6, "exact play saves more than a random network"
    assert "6." in result.split("bayes")[-1], "what it earns is shown"
    done("measure", "shakes", policy, "--seed", 1)
    refused = refusal("measure", "shakes", policy, "-o", "mode=maesters")
    assert "was trained on shakes with mode=physician; it cannot play mode=maesters" in refused


def test_play_against_a_policy_that_plays_alone(physician):
    result = done("play", "shakes", f"ppo:{physician}", "--seed", 1, input="treatment 0\n" * 13)
    assert f"shakes (mode=physician), 1 seat: what ppo:{physician} was trained on\n" in result
    after = result.partition(f"ppo:{physician} plays the same deal")[2]
    assert after
    own, its = (re.search(rf"^{who}: \+(\d+)$", result, re.M).group(1) for who in ("you", f"ppo:{physician}"))
    verdict = "you win" if int(own) > int(its) else "you lose" if int(own) < int(its) else "a tie"
    assert result.rstrip().endswith(verdict)
    alone = run("play", "shakes", "-o", "mode=physician", "--seed", 1, input="treatment 0\n" * 13)
    assert re.findall(r"^(\S+): \+\d+$", alone.output, re.M) == ["you"], "the same deal, and nobody to compare with"
    assert f"you: +{own}\n" in alone.output


def test_ties_are_told_by_pair():
    result = run("arena", "score_dice", "random", "random", "random", "--games", 2000, "--seed", 1, "-o", "pool_a=6,6", "-o",
                 "pool_b=6,6", "-o", "ties=none")  # fmt: skip
    assert re.search(r"^ties: A v B \d+\.\d\d %, A v C \d+\.\d\d %, B v C \d+\.\d\d %$", result.output, re.M), result.output


@pytest.mark.thorough
def test_reproduce_liars_dice(tmp_path, monkeypatch):
    monkeypatch.setattr(console, "width", 200)
    command = ["reproduce", "liars-dice", "--games", 3000, "--seed", 1, "--dice", 2, "--report", tmp_path]
    result, written = with_json(tmp_path, *command)
    rows = written["rows"]
    published = [row["published"] for row in rows if isinstance(row["published"], float)]
    assert published == [49.34, 50.66, 23.79, 24.65, 25.4, 26.16, 77]
    plots = "bluffing posterior faces_named faces_by_round openings quantities calls values losses"
    assert {path.stem.removeprefix("liars_dice_") for path in tmp_path.glob("*.png")} >= set(plots.split())
    ours = {row["figure"]: row["ours"] for row in rows}
    assert ours["2 v 2 dice: chance that the starter wins the game"] == pytest.approx(0.61996075, abs=1e-6)
    assert ours["numbers bluff 0: % of games won against the solution"] < 50
    named = [ours[f"whole game, raises, solution: {what}, %"] for what in FACES_NAMED]
    assert sum(named) == pytest.approx(100)
    assert "Being first with 2 dice each is worth +12.00 points" in " ".join(result.split())
    table = result.partition("When the solution calls in the first round")[2].partition("└")[0]
    called = [line.strip("│").split("│") for line in table.splitlines() if line.startswith("│")]
    for need, *shares in called:
        for who, share in zip(("starter", "other player"), shares, strict=True):
            figure = f"2 v 2 dice, {who}, {need.strip()} of the other's dice needed: % called"
            assert share.strip() == (f"{ours[figure]:.1f}" if figure in ours else "-")


@pytest.fixture(scope="module")
def games(tmp_path_factory):
    """Saved games: finished, unfinished, between agents alone, changed, damaged; an empty folder, and lists that are none."""
    folder = tmp_path_factory.mktemp("games")
    turn = configure("thirties", num_players=1)
    finished = save(folder / "finished.json", turn)
    begun = Sitting(configure("thirties"), 1, ["person", "random"])
    begun.play(0)
    begun.save_to(folder / "unfinished.json")
    save(folder / "agents.json", turn, ("random",))
    (folder / "damaged.json").write_bytes(finished.read_bytes()[:40])
    (folder / "changed.json").write_text(json.dumps(json.loads(finished.read_text()) | {"seed": 99}))
    (folder / "empty.html").mkdir()
    texts = {"empty": b"", "blank": b" \n,\n", "binary": b"\xff\xfe\x00", "long": b"123456 " * 2**18, "brackets": b"[1,2]"}
    for name, content in {**texts, "falling": b"1 2 2 4 6 6\n6 5 4 3 2 1"}.items():
        (folder / name).write_bytes(content)
    return folder


PLAYERS = f"agents for liars_dice are: {', '.join(for_game('liars_dice'))}"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("arena liars_dice random random -o num_dice", "an option is written KEY=VALUE, not 'num_dice'"),
        ("arena liars_dice random wizard", f"unknown agent 'wizard'; {PLAYERS}"),
        ("arena liars_dice num_dice=3 random", f"unknown agent 'num_dice=3'; {PLAYERS}; game options are typed as -o KEY=VA"),
        ("arena shakes random random", "shakes (mode=maesters) has 3 seats, so name 3 agents, not 2"),
        ("play thirties numbers:bluff=1", "numbers plays liars_dice only, not thirties; agents for thirties are: "),
        ("train thirties --opponent random", "omitted for thirties (num_players=1), which has one seat (num_players=2 gives "),
        ("train shakes --opponent dogmatic", "dogmatic is a maester and plays mode=maesters only, not mode=physician"),
        ("arena thirties random -o num_players=1", "an arena needs at least 2 agents, not 1"),
        ("arena liars_dice random random --games 0", "games must be a whole number from 1 to 10000000, not 0"),
        ("arena liars_dice random random --log x.csv", "liars_dice has no log format"),
        ("arena liars_dice random random --exact --log x.csv", "--exact plays no games: leave out --log"),
        (
            "arena fatestones random nash --exact",
            "no exact result between agents is known in fatestones; games that have one: liars_dice",
        ),
        ("arena liars_dice random reader -o num_dice=3 --exact", "past rounds matter to Reader("),
        pytest.param(
            "arena liars_dice random mcts:2 -o num_dice=1 --exact",
            "are random: an exact result of two agents",
            marks=pytest.mark.thorough,  # search takes half a minute to compile
        ),
        ("arena liars_dice random random -o num_dice=6 -o wild=ones -o num_faces=8 --exact", "10,000,000,000 at most are al"),
        ("measure liars_dice random -o num_dice=3 -o rules=openspiel", "about 1,924,145,348,608 information sets; 10,000,000"),
        ("play", "name a game, fatestones, "),
        ("play thirties --replay", "--replay steps through a saved game"),
        ("play --web --no-browser --replay", "--replay steps through a saved game"),
        ("play --web --no-browser --from 3", "--from takes up a saved game: name it with --load FILE"),
        ("play --load unfinished.json --from 0", "--from must be the number of a move, 1 to 1 in "),
        ("play --load unfinished.json --from 2", "not 2"),
        ("play thirties --watch --people 1", "--people cannot be given with --watch"),
        ("play thirties random random random --watch", "name 1 agent, or 2, one for each seat; not 3"),
        ("play --load unfinished.json --seed 1", "--seed cannot be given with --load"),
        ("play thirties random random --load unfinished.json", "agents: the saved game has 1; name as many, or one for all"),
        ("play shakes --load unfinished.json", "holds a game of thirties, not shakes"),
        ("play --load none.json", "none.json"),
        ("play --load damaged.json", "damaged.json is no saved game"),
        ("play liars_dice --seat 5", "seat must be a whole number from 0 to 1, not 5"),
        ("play liars_dice random random", "name 1 opponent; not 2"),
        ("play liars_dice random random -o num_players=4", "name 1 opponent, or 3, one for each other seat; not 2"),
        ("play liars_dice random --people 2", "name no opponent, since people take all seats; not 1"),
        ("train liars_dice --preset huge", "unknown preset 'huge'; presets are: quick, full"),
        ("train liars_dice --steps 0", "steps must be a whole number from 1"),
        ("bench chess", "unknown part 'chess'; parts are: environments, fatestones, liars_dice"),
        ("reproduce liars-dice --games 0", "games must be a whole number from 1"),
        ("reproduce liars-dice --dice 6", "dice must be a whole number from 1 to 5, not 6"),
        ("reproduce liars-dice --precision 0", "precision must be a number from 1e-12 to 1, not 0"),
        ("reproduce shakes --games 111111111", "games must be a whole number from 1000 to 10000000, not 111111111"),
        ("reproduce fatestones --draws 111111111", "draws must be a whole number from 2 to 10000000, not 111111111"),
        ("reproduce fatestones --work nan", "work must be a number from 1e-06 to 1000000.0, not nan"),
        ("solve fatestones --draws 0 -o dice=all -o hand_size=5", "are 27,890,923,747,206,336,869,052 of this bag, 1,000,000"),
        ("arena liars_dice random random --match 3", "games must be a multiple of match=3, so that all"),
        ("arena liars_dice random random --match 0", "match must be a whole number from 1 to 100000, not 0"),
        ("arena liars_dice random numbers --match 2 --exact", "--exact plays no matches, so --match must be 1 with it, not 2"),
        ("arena liars_dice adaptive numbers -o num_dice=1 --exact", "remembers past games: an exact result of two agents is"),
        ("arena liars_dice random numbers:bluff=1e999", "bluff must be a number from 0 to 1, not inf"),
        ("solve liars-dice --precision 2", "precision must be a number from 1e-12 to 1, not 2"),
        ("review finished.json none.json", "none.json: No such file or directory"),
        ("review finished.json unfinished.json", "unfinished.json: the game is not over; `play --load "),
        ("review empty.html", "empty.html: no saved game (*.json) in this folder is over"),
        ("review damaged.json finished.json", "damaged.json is no saved game"),
        ("review changed.json", "changed.json: "),
        ("review agents.json", "agents.json: no person played; add --agents, or name a seat with --seat"),
        ("review finished.json --seat 1", "finished.json, must be a whole number from 0 to 0, not 1"),
        ("review finished.json --seat 0 --agents", "leave out one"),
        ("measure liars_dice random --seed -3", "seed must be a whole number from 0 to 2**128 - 1, not -3"),
        ("evaluate liars_dice random --games 0", "games must be a whole number from 2 to 1000000, not 0"),
        ("sheet shakes made/x.html -o num_players=99", "num_players must be a whole number from 2 to 6, not 99"),
        ("sheet liars_dice a.html", "liars_dice has no score sheet; those that have: shakes"),
        ("sheet shakes a.png", "a score sheet is written as .html, not 'a.png'"),
        ("sheet shakes a.html --paper a5", "paper must be one of 'a4', 'letter', not 'a5'"),
        ("sheet shakes a.html -o maesters=a,b", "maesters must be 3 names"),
        ("sheet shakes empty.html", "empty.html: this is a folder; a file is needed"),
        ("arena liars_dice random random --json agents.json/out.json", "agents.json: this is a file; a folder is needed"),
        ("arena liars_dice random random --report agents.json/report", "agents.json: this is a file; a folder is needed"),
        ("arena liars_dice random random --json empty.html", "empty.html: this is a folder; a file is needed"),
        ("train liars_dice --out agents.json/run", "agents.json/run: Not a directory"),
        ("reproduce liars-dice --json agents.json/x.json", "agents.json: this is a file; a folder is needed"),
        ("benchmark language --games 0", "games must be a whole number from 2 to 1000000, not 0"),
        ("benchmark language --task chess", "no task 'chess'; tasks are: "),
        ("benchmark language --positions 1", "positions must be"),
        ("benchmark language --task liars_dice_openspiel_1 champion", "champion plays liars_dice with"),
        ("benchmark language --task liars_dice_openspiel_1 wizard", "unknown agent 'wizard'"),
        ("solve shakes -o variation=competitive", 'variation must be "cooperative"'),
        ("solve shakes --policy dogmatic", "dogmatic is a maester"),
        *((f"solve liars-dice -o num_players=3 {each}", "are for two players") for each in ("--threads 2", "--ray local")),
        ("arena liars_dice random numbers --without-luck --exact", "leave out --without-luck or --exact"),
        ("arena liars_dice random numbers --without-luck --log games.log", "leave out --without-luck or --log"),
        ("arena liars_dice random numbers --without-luck --games 10 --match 10", "games must be"),
        ("arena liars_dice random numbers random --without-luck -o num_players=3", "--without-luck is for pairs"),
        ("arena fatestones random random -o dice=@none", "none: No such file or directory"),
        ("arena fatestones random random -o dice=@empty", "which holds no values"),
        ("arena fatestones random random -o dice=@blank", "which holds no values"),
        ("arena fatestones random random -o dice=@binary", "which is not a text file"),
        ("arena fatestones random random -o dice=@long", "which must hold at most 1,048,576 bytes"),
        ("arena fatestones random random -o dice=@falling", "654321 is no such code"),
        ("arena fatestones random random -o dice=@brackets", "dice must be a number, a word, true, false, none, or a list of"),
        ("arena fatestones random random -o dice=@", "dice=@ must be followed by the name of a file"),
        ("arena fatestones random random -o =@bag", "KEY=VALUE"),
        ("train liars_dice --set speed=3", "--set 'speed': no such setting; settings are: steps, "),
        ("train liars_dice --set learning_rates=1", "; did you mean 'learning_rate'?"),
        ("train liars_dice --set opponents=random", "--set 'opponents': no such setting"),
        ("train liars_dice --set epochs", "--set must be NAME=VALUE or NAME=VALUE,VALUE,..., not 'epochs'"),
        ("train liars_dice --set epochs=1.5", "epochs must be a whole number from 1 to 1000, not 1.5"),
        ("train liars_dice --set normalize=maybe", "normalize must be true or false, not 'maybe'"),
        ("train liars_dice --set hidden=64x", "hidden must be the sizes of layers such as 128x128, not '64x'"),
        ("train liars_dice --set epochs=1,1", "--set epochs has a value twice: 1,1"),
        ("train liars_dice -o num_dice=1 --device abacus", "device must be one that PyTorch has here, say auto"),
        ("train liars_dice --ray local", "--jobs and --ray share out several runs: add --seeds or --recipe, or --set"),
        ("distill liars_dice -o num_dice=1 --device abacus", "device must be one that PyTorch has here, say auto, cpu or cuda"),
        ("distill thirties", "distill takes liars_dice, not thirties"),
        ("distill liars_dice -o num_players=3", "num_players must be 2 for distilling"),
        ("distill liars_dice -o num_dice=6", "information sets"),
        ("distill liars_dice --hidden 12,x", "hidden must be the sizes of layers such as 128,128, not '12,x'"),
        ("distill liars_dice --hidden 0", "hidden must be a whole number from 1 to 4096, not 0"),
        ("distill liars_dice --steps 0", "steps must be a whole number from 1 to 1000000000, not 0"),
        ("distill liars_dice --minutes 0", "minutes must be above 0, not 0"),
        ("distill liars_dice --rate 2", "rate must be a number from 1e-06 to 1, not 2"),
        ("distill liars_dice --precision 0", "precision must be a number from"),
        ("arena liars_dice random random --ray nowhere", "address (auto, HOST:PORT, ray://HOST:PORT), not 'nowhere'"),
        ("solve liars_dice --minutes 1 --ray local", "--minutes divides the time between rounds solved one after"),
        ("solve thirties --goal best", "goal must be one of 'maximize'"),
        ("solve thirties -o goal=optimal", "option goal cannot be set with -o"),
        ("solve thirties -o num_players=3", "option num_players cannot be set with -o: the turn of one player is solved"),
        ("solve thirties -o num_dice=9", "num_dice must be a whole number from 1 to 8, not 9"),
        ("solve thirties --strategy fives", "strategy must be one of sixes"),
        ("solve thirties --strategy mixed:", "unknown agent 'mixed'"),
        ("solve thirties --goal optimal -o num_faces=2 -o target=3", "infinite"),
        ("arena liar_dice random random", "; did you mean 'liars_dice'?"),
        ("arena liars_dice randm random", "; did you mean 'random'?"),
        ("measure liars_dice numbers:blff=0.25", "; did you mean 'bluff'?"),
        ("measure liars_dice random -o num_dic=2", "; did you mean 'num_dice'?"),
        ("measure liars_dice random -o raise_rule=qantity", "; did you mean 'quantity'?"),
        ("train liars_dice --set hidden=64,64", "value twice: 64,64; the layers of one network are written 128x128"),
    ],
)
def test_wrong_input_gets_one_line(arguments, words, games, monkeypatch):
    """It is refused before anything is made, folders of results included."""
    monkeypatch.chdir(games)
    there = sorted(games.rglob("*"))
    command = get_command(app)
    for word in arguments.split():
        command = getattr(command, "commands", {}).get(word, command)
    options = {option for parameter in command.params for option in parameter.opts} - set(arguments.split())
    files = {"--json": "made/x.json", "--report": "made/report", "--out": "made/out"}
    assert words in refusal(*arguments.split(), *(part for pair in files.items() if pair[0] in options for part in pair))
    assert sorted(games.rglob("*")) == there, "nothing was written"


def test_a_real_process_prints_no_traceback():
    done = python("-m", "experiments", "arena", "liars_dice", "random", "random", "-o", "wild=2", cwd=ROOT)
    assert done.returncode == 2
    assert done.stderr == "error: wild must be one of None, 'ones', 'highest', not 2\n"


def test_each_measured_figure_stands_below_its_heading(tmp_path, monkeypatch):
    monkeypatch.setattr(console, "width", 200)
    small = ("-o", "rules=openspiel", "-o", "num_dice=1", "-o", "num_faces=3")
    output, written = with_json(tmp_path, "measure", "liars_dice", "random", *small)
    for measured in written["measures"]:
        (row,) = re.findall(rf"│ {measured['name']} .*", output)
        figures = [float(figure) for figure in re.findall(r"\d\.\d{5}", row)[:3]]
        assert figures == pytest.approx([measured["value"], measured["optimum"], measured["gap"]], abs=5.1e-6)


@few(1, "columns", [80, 60])
def test_help_breaks_a_line_only_where_the_next_word_does_not_fit(columns):
    commands = [[name] for name, each in get_command(app).commands.items() if not hasattr(each, "commands")]
    assert len(commands) > 10
    for words in [*commands, ["solve", "liars-dice"], ["reproduce", "shakes"], ["benchmark", "language"]]:
        shown = run(*words, "--help", env={"COLUMNS": str(columns)}).output
        about = re.split(r"\n\s*\n", shown.partition("╭")[0].strip())[1:]  # after the usage
        assert about, words
        for lines in (paragraph.splitlines() for paragraph in about):
            for line, following in itertools.pairwise(lines):
                assert len(line.rstrip()) + 1 + len(following.split()[0]) > columns - 1, (words, line)


@pytest.mark.thorough
def test_the_package_runs_the_command_line():
    done = subprocess.run([sys.executable, "-m", "dice_envs", "--version"], capture_output=True, text=True)
    assert done.stdout == f"dice-envs {__version__}\n"


ONE_DIE = ("-o", "num_dice=1", "-o", "num_faces=3")


@pytest.mark.thorough
@pytest.mark.parametrize("folder", ["a file", "no home"])
@pytest.mark.parametrize(
    "command",
    [
        ("solve", "liars_dice", *ONE_DIE),
        ("solve", "liars_dice", *ONE_DIE, "-o", "num_players=3", "--precision", 0.1),
        ("measure", "liars_dice", "nash", *ONE_DIE),
        ("evaluate", "liars_dice", "nash", "--against", "random", *ONE_DIE, "--games", 20, "--seed", 1),
        ("play", "liars_dice", "nash", *ONE_DIE, "--seed", 3, "--seat", 0),
    ],
)
def test_nothing_kept_is_a_reason_to_fail(command, folder, tmp_path, monkeypatch):
    """A file where the folder of solutions would be, and a user without a home."""
    if folder == "a file":
        (tmp_path / "file").write_text("")
        monkeypatch.setenv("DICE_ENVS_CACHE", str(tmp_path / "file"))
    else:
        monkeypatch.delenv("DICE_ENVS_CACHE")
        monkeypatch.setattr(store.platformdirs, "user_cache_dir", Mock(side_effect=RuntimeError("there is no home")))
    solver.solution_of.cache_clear()
    NOT_KEPT.clear()
    with pytest.warns(RuntimeWarning, match="DICE_ENVS_CACHE can name another folder") as seen:
        result = run(*command, input="hint\n" + "call\n1 x 1\n" * 9)
    NOT_KEPT.clear()
    assert result.exit_code == 0, result.output
    assert len([each for each in seen if "DICE_ENVS_CACHE" in str(each.message)]) == 1
    assert "kept in" not in result.output
    assert not list(tmp_path.rglob("*.npz"))


FAIR_AS_PUBLISHED = "3 3 3 4 4 4\n2 3 4 4 4 4\n3 3 3 3 4 5\n2 3 3 4 4 5\n1 4 4 4 4 4\n1 1 1 6 6 6"  # no newline at its end


@pytest.mark.parametrize(
    ("text", "values"),
    [
        (FAIR_AS_PUBLISHED, (333444, 234444, 333345, 233445, 144444, 111666)),
        ("333444\n234444\n", (333444, 234444)),
        ("333444 234444,333345\r\n\r\n  233445 \n", (333444, 234444, 333345, 233445)),
        ("\ufeff5,4", (5, 4)),
        ("6\n", (6,)),
        ("0.5 none ones", (0.5, None, "ones")),
    ],
)
def test_a_list_is_read_from_a_file(text, values, tmp_path):
    path = tmp_path / "values.txt"
    path.write_text(text, encoding="utf-8", newline="")
    assert game_options([f"dice=@{path}", "hand-size=2"]) == {"dice": values, "hand_size": 2}


def test_without_a_file_options_are_as_they_were():
    assert game_options(None) == {}
    assert game_options(["num_dice=5,4", "wild=none", "strategy=a@b"]) == {"num_dice": (5, 4), "wild": None, "strategy": "a@b"}


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("missing", "command", "what", "extra"),
    [("mcp", ["mcp"], "the server for assistants", "mcp"), ("nicegui", ["play", "--web"], "the page", "web")],
)
def test_a_command_names_the_extra_that_it_lacks(missing, command, what, extra, run_python):
    code = f"import sys; sys.modules[{missing!r}] = None; from tests.support.commands import *; print(refusal(*{command}))"
    assert run_python(code) == f'error: {what} needs {missing}: pip install "dice-envs[{extra}]"\n'


@few(1, "given", [{}, {"OMP_WAIT_POLICY": "ACTIVE"}, {"GOMP_SPINCOUNT": "7"}])
def test_threads_wait_briefly_unless_the_user_says_otherwise(run_python, given):
    names = "OMP_WAIT_POLICY", "GOMP_SPINCOUNT"
    code = f"import os\nfor name in {names}: os.environ.pop(name, None)\nos.environ.update({given})\nimport experiments\n"
    found = run_python(f"{code}print({{name: os.environ[name] for name in {names} if name in os.environ}})")
    assert found == f"{given or {'OMP_WAIT_POLICY': 'PASSIVE', 'GOMP_SPINCOUNT': '1000'}}\n"


@pytest.mark.parametrize(
    ("typed", "number"),
    [
        *(("1000", 1000), ("1_000", 1000), ("1e5", 100_000), ("2.5E3", 2500), ("99999999999999999999", 10**20 - 1)),
        *((typed, None) for typed in ("", "x", "1.5", "1e-3", "1e999", "inf", "nan", "1,000")),
    ],
)
def test_whole_numbers_as_people_type_them(typed, number):
    no_number = pytest.raises(ValueError, match="is no whole number; 20000, 20_000 and 2e4 are$")
    with no_number if number is None else contextlib.nullcontext():
        assert whole_number(typed) == number
