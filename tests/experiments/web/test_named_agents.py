"""Agents that a page, a saved game or an assistant names: no code run, no file read, nothing that takes too long."""

import pytest

from dice_envs import configure, names
from dice_envs.agent.specs import NotHarmless, for_game, required
from dice_envs.agents.ppo import POLICIES
from dice_envs.experiments.web import make_agent
from dice_envs.table.sitting import PERSON, Sitting
from tests.support.subsets import few

HARMFUL = str(NotHarmless())


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with files that the page must not reveal, and runs with policies."""
    policy = next(path for path in POLICIES.glob("*.npz") if "liars" in path.name).read_bytes()
    for name in ("secret.npz", "runs/mine.npz", "runs/run/policy.npz", "word/policy.npz"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(policy)
    (tmp_path / "runs/text.npz").write_text("no policy")
    (tmp_path / "runs/out.npz").symlink_to(tmp_path / "secret.npz")
    (tmp_path / "runs/outside").symlink_to(tmp_path)
    (tmp_path / "runs/empty").mkdir()
    (tmp_path / "runs/linked").mkdir()
    (tmp_path / "runs/linked/policy.npz").symlink_to(tmp_path / "secret.npz")
    (tmp_path / "runs/loop").symlink_to(tmp_path / "runs/loop")
    (tmp_path / "code.py").write_text("raise SystemExit('code was run')\ndef choose(throw): return 0\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def refused(variant, spec):
    with pytest.raises(ValueError) as problem:  # noqa: PT011
        make_agent(variant, spec)
    return str(problem.value)


def test_a_page_names_policies_below_runs_only_and_learns_nothing_of_other_files(folder):
    from dice_envs.agents.ppo import load_policy

    variant = load_policy(folder / "runs/mine.npz").variant
    for spec in ("ppo:runs/mine.npz", "ppo:runs/run", "ppo:path=runs/run,greedy=true", "random", "numbers:bluff=0.25"):
        make_agent(variant, spec)
    paths = [
        "secret.npz", "./secret.npz", "runs/../secret.npz", "runs/out.npz", "runs/outside/secret.npz", "runs/linked", "word",
        "runs/none.npz", "runs/text.npz", "runs/empty", "runs/loop", "/etc/passwd", "/none", str(folder / "secret.npz"),
        str(folder / "runs/mine.npz"), "~/x", "runs/" + "x" * 300, "none", "runs/a\0b", ".", "runs",
    ]  # fmt: skip
    assert {refused(variant, f"ppo:{path}") for path in paths} == {HARMFUL}
    make_agent(variant, "heuristic:bluff=0.25")
    assert refused(variant, "heuristic:preset=/etc/passwd") == HARMFUL, "another name for the same agent opens no door"
    other = configure("thirties")
    assert refused(other, "ppo:runs/mine.npz") == HARMFUL, "it does not play that"
    assert {refused(other, spec) for spec in ("thirties:code.here:choose", "heuristic:strategy=code.py:choose")} == {HARMFUL}
    stones = configure("fatestones")
    make_agent(stones, "best_response:nash")
    make_agent(stones, "best_response:best_response:random")
    for path in ("secret.npz", "/etc/passwd", "runs/mine.npz", "runs/none"):
        assert refused(stones, f"best_response:ppo:{path}") == HARMFUL
        assert refused(stones, f"best_response:opponent=best_response:ppo:{path}") == HARMFUL
    assert "unknown agent" in refused(stones, "/etc/passwd")
    assert "plays liars_dice only" in refused(stones, "numbers")


LONG = {"thirties": {"num_players": 6, "rounds": 1000}, "shakes": {"num_players": 6, "num_patients": 200}}
TOO_MUCH = [  # game, options, spec, what the error names
    ("fatestones", {}, "mcts:10000000", "simulations must be at most 50,000 where people wait for a move, not 10000000"),
    ("liars_dice", {}, "mcts:100001", "simulations must be at most 100,000"),
    ("liars_dice", {}, "mcts:seconds=3", "seconds must be at most 2"),
    ("liars_dice", {}, "mcts:10,memory=2.5", "memory must be at most 2 where people wait for a move, not 2.5"),
    ("liars_dice", {}, "mcts:10,threads=2", "threads must be at most 1"),
    ("thirties", LONG["thirties"], "mcts:1000", "simulations must be at most"),
    ("fatestones", {}, "best_response:mcts:1000", "in about 500 positions: simulations must be at most 100 "),
    ("fatestones", {}, "best_response:opponent=best_response:mcts", "about 250,000 positions: simulations must be at most 1 "),
    ("fatestones", {"hand_size": 5}, "best_response:" * 4 + "random", "at most 2 times"),
    ("liars_dice", {}, "nash:precision=1e-5", "precision must be at least 0.001"),
    ("liars_dice", {}, "adaptive:precision=1e-5", "precision must be at least 0.001"),
    ("liars_dice", {"num_dice": 6}, "nash", "which takes about 32 min; up to 60 s are waited for"),
    ("shakes", LONG["shakes"], "bayes", "are waited for"),
    ("score_dice", {"pool_a": (6,) * 8, "pool_b": (6,) * 8}, "score_response", "are too large"),
]  # fmt: skip


@pytest.mark.parametrize(("game", "options", "spec", "names_it"), TOO_MUCH, ids=[case[2][:30] for case in TOO_MUCH])
def test_agents_that_take_too_long_are_refused_before_they_are_asked(game, options, spec, names_it):
    variant = configure(game, **options)
    assert names_it in refused(variant, spec)
    seats = [PERSON, *[spec] * (variant.facts.num_seats - 1)]
    saved = Sitting(variant, 1, [PERSON] * len(seats)).save()
    with pytest.raises(ValueError, match="^seats: ") as problem:
        Sitting.load({**saved, "seats": seats}, make_agent)
    assert names_it in str(problem.value)


@few(2, "game", ["liars_dice", *(name for name in names() if name != "liars_dice")])
def test_agents_as_they_are_usually_are_let_in(game):
    """No agent needs a parameter to be allowed on the page, and search is allowed in the longest games."""
    variants = [configure(game), *([configure(game, **LONG[game])] if game in LONG else [])]
    for variant in variants:
        make_agent(variant, "mcts")
    for name, factory in for_game(game).items():
        assert name in ("ppo", "dogmatic") or required(factory) or make_agent(variants[0], name), factory
