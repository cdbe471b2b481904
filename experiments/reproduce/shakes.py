"""`reproduce shakes`: the claims of the rules and the notebook of The Shakes beside exact figures."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from dice_envs import configure
from dice_envs.agent import ask
from dice_envs.agent.matches import MOST_GAMES
from dice_envs.agent.specs import make_agent
from dice_envs.core.dice import new_streams
from dice_envs.core.game import Variant
from dice_envs.core.options import check_range
from dice_envs.core.work import advance, clock
from dice_envs.exact.intervals import half_width, share_half_width
from dice_envs.experiments import ui
from dice_envs.experiments.arena import play_table
from dice_envs.experiments.jobs import HERE, Workers, resumable
from dice_envs.experiments.reproduce import INDEPENDENT, Chapter, Finding, across, chapter_of, draw_across, print_rows, printed
from dice_envs.experiments.ui.grids import Grid
from dice_envs.experiments.ui.pages import saved_plot
from dice_envs.games.shakes import EFFICACIES, Options
from dice_envs.games.shakes.exact.chances import Problem, kept_die
from dice_envs.games.shakes.exact.policies import Performance, evaluate_agent, shares_by_efficacy

RULES = "A. Downey, The Shakes, rules (2020)"
NOTEBOOK = "A. Downey, The Shakes, notebook (2020)"
EXACT = "exact distribution"
DICE_IN_THE_BOX = 10  # the rules ask for about ten
GAMES_AT_ONCE = 4096

RANDOM_TIES = "argument, ties at random"

# Figures computed independently of this program, to the digits given: (players, agent, column) → figure.
CHECKED = {
    (players, agent, column): figure
    for agent, column, figures in (  # figures of 2, 3 … players
        ("argument", "saved", "4.704392 5.461766 8.063758"),
        ("argument", "win", "0.534937 0.673374 0.716603"),
        ("bayes:saved", "saved", "5.060935 6.361764"),
        ("bayes:win", "win", "0.602966 0.775049 0.8056"),
        (RANDOM_TIES, "win", "0.5175 0.6463 0.6885"),
    )
    for players, figure in enumerate(figures.split(), 2)
}
# The notebook simulates 4 players with ties at random.
NOTEBOOK_GAMES = 1000
NOTEBOOK_WIN = 0.688
NOTEBOOK_MORE_THAN_TEN = 0.272  # games in which some treatment was given to more than ten patients

AGENTS = ("random", "ucb", "greedy", "greedy:permutations", "thompson", "thompson:permutations", "argument")
POLICIES = {  # as the table names them: agent and the game's tie rule
    **{name: (name, "again") for name in AGENTS},
    RANDOM_TIES: ("argument", "random"),
    **{name: (name, "again") for name in ("bayes:saved", "bayes:win")},
}
BY_PLAYERS, KEPT_DIE = "by_players", "kept_die"  # tables with a column for each number of players, and for each face
TALLIES_SHOWN = ((0, 0), (1, 0), (1, 1), (3, 2), (6, 2), (11, 4))  # (treated, saved); the fourth is the rules' example


def main(
    games: ui.GamesOption = 1_000_000,
    seed: ui.SeedOption = None,
    json: ui.JsonOption = None,
    report: ui.ReportOption = None,
    ray: ui.RayOption = None,
    resume: ui.ResumeOption = False,
) -> Chapter:
    """The Shakes (A. Downey): the rules' claims, the notebook's simulation, and every agent's exact worth.

    Everything is exact except the last table, which plays games through both environments and compares.
    """
    check_range("games", games, 1000, MOST_GAMES)
    with resumable(json, resume, {"source": "shakes", "games": games}, seed, ray) as (seed, workers):
        start = clock()
        players = range(2, 7)
        parts = [(n, *policy) for n in players for policy in POLICIES.values()]
        with ui.progress("exact distributions", len(parts)):
            found = iter(workers.run(_exact, (), parts))
        exact = {n: {name: _evaluation(next(found)) for name in POLICIES} for n in players}
        seconds = clock() - start

        claims, dice, all_agents = _claims(exact), _kept_die_rows(), _agent_rows(exact)
        notebook = _notebook_rows(exact[4][RANDOM_TIES])
        across("What the rules say", claims, BY_PLAYERS).show()
        for note in dict.fromkeys(row.note for row in claims if row.note):
            ui.console.print(f"  {note}")
        print_rows("What the notebook simulated", notebook, digits=6)
        across("The die that is kept", dice, KEPT_DIE, 4).show()
        agree = f"{sum(bool(row.agrees) for row in dice)} of {len(dice)} agree to 12 digits"
        ui.console.print(f"  {agree} with SciPy's Beta(saved + 1, failed + 1) × 6, rounded up")
        across("Every agent: patients saved and P(win), exact", all_agents, BY_PLAYERS).show()
        print_rows("Those computed independently", [row for row in all_agents if row.published is not None], digits=6)
        _print_choices(exact)
        ui.console.print(f"exact, 2 to 6 players and {len(POLICIES)} policies: {seconds:.1f} s")
        with ui.progress(f"2 × {games:,} games", 2 * games):
            played = [
                ("Shakes-v0 (vector), argument", play_physician(4, games, seed), exact[4]["argument"]),
                ("table of maesters, dogmatic", play_maesters(4, games, seed, workers), exact[4]["argument"]),
            ]
        simulated = _played_rows(played, _physician(4).options.to_win)
        print_rows(f"Played, 4 players, {games:,} games each, seed {seed}", simulated, digits=6)

        def draw(folder: Path) -> None:
            draw_across(folder, "shakes", KEPT_DIE, "The chances of the die that a maester keeps", dice, 4)
            _draw_distributions(folder, exact[4], played)

        rows = [*claims, *notebook, *dice, *all_agents, *simulated]
        title = "The Shakes: A. Downey's rules and notebook (2020)"
        return chapter_of(title, {"rows": rows, "seed": seed}, json, report, draw)


# --- exact ------------------------------------------------------------------------------------------------------


def _physician(num_players: int, ties: str = "again") -> Variant:
    return configure("shakes", mode="physician", num_players=num_players, ties=ties)


def _exact(num_players: int, spec: str, ties: str) -> dict[str, Any]:
    """Return the fields of a policy's evaluation, as JSON holds them."""
    result = evaluate_agent(_physician(num_players, ties), make_agent(spec))
    advance()
    return {name: np.asarray(value).tolist() for name, value in vars(result).items()}


def _evaluation(fields: dict[str, Any]) -> Performance:
    values: dict[str, Any] = {name: np.array(value) if isinstance(value, list) else value for name, value in fields.items()}
    return Performance(**values)


def _claims(exact: dict[int, dict[str, Performance]]) -> list[Finding]:
    rows = []

    def add(
        figure: str, published: float | str | None, ours: dict[int, float], tolerance: float | None, note: str = ""
    ) -> None:
        """Add a row for each number of players; it agrees within `tolerance` of what is published. None: no verdict."""
        for n, value in ours.items():
            agrees = None if tolerance is None or not isinstance(published, float) else abs(value - published) <= tolerance
            cell = BY_PLAYERS, figure, f"{n} players"
            rows.append(Finding(RULES, f"{figure}, {n} players", published, value, 0.0, agrees, note, cell))

    argument = {n: results["argument"] for n, results in exact.items()}
    add("average efficacy", 2.0, {n: sum(dealt) / n for n, dealt in EFFICACIES.items()}, 0.0)
    shares = {n: 6 * results["random"].saved / Options(num_players=n).patients for n, results in exact.items()}
    add("random treatments: saved of 6 patients", 2.0, shares, 1e-9)
    competitive = {n: float(Options(num_players=n, variation="competitive").efficacies[0]) for n in exact}
    contradiction = 'both "3 out of 6" and efficacies of 2; here 2, and the option efficacy sets another'
    add("competitive: pips of 6 that recover", "3 and 2", competitive, None, contradiction)
    add("the team wins", None, {n: result.win for n, result in argument.items()}, None)
    most = {n: float(max(k for k, chance in enumerate(result.most_dice) if chance > 0)) for n, result in argument.items()}
    add("most dice that one maester may need", "about 10", most, None)
    more = {n: float(result.most_dice[DICE_IN_THE_BOX + 1 :].sum()) for n, result in argument.items()}
    add(f"games in which one needs more than {DICE_IN_THE_BOX}", None, more, None)
    add(
        "choice v chance to be the best: distance",
        0.0,
        {n: result.matching_gap for n, result in argument.items()},
        1e-9,
        "a treatment is said to be chosen with the chance that it is the best; total variation, mean over patients",
    )
    for name in ("argument", "thompson:permutations"):
        for column, what in (("saved", "saved"), ("win", "P(win)")):
            short = {
                n: results[f"bayes:{column}"].reached(column) - results[name].reached(column) for n, results in exact.items()
            }
            add(f"{name}, short of optimal: {what}", 0.0, short, 1e-9, "Thompson sampling is said to be optimal")
    return rows


def _notebook_rows(result: Performance) -> list[Finding]:
    more = float(result.most_treated[DICE_IN_THE_BOX + 1 :].sum())
    number_of_dice = "; it takes that for the number of dice, which is one more"
    rows = []
    for what, published, ours, remark in (
        ("P(win)", NOTEBOOK_WIN, result.win, ""),
        (f"some treatment given to more than {DICE_IN_THE_BOX} patients", NOTEBOOK_MORE_THAN_TEN, more, number_of_dice),
    ):
        half = share_half_width(published, NOTEBOOK_GAMES)
        figure = f"4 players, ties at random: {what}"
        note = f"published from {NOTEBOOK_GAMES:,} games, ± {half:.3f}{remark}"
        rows.append(Finding(NOTEBOOK, figure, published, ours, 0.0, abs(published - ours) <= half, note))
    return rows


def _kept_die_rows() -> list[Finding]:
    """Compare with the chances that 6 times a Beta(saved + 1, failed + 1) variable rounds up to 1 … 6, by SciPy."""
    from scipy.stats import beta

    rows = []
    for treated, saved in TALLIES_SHOWN:
        dice: list[Fraction] = kept_die(treated, saved)
        masses = np.diff(beta.cdf(np.arange(7) / 6, saved + 1, treated - saved + 1))
        for face, (chance, mass) in enumerate(zip(dice, masses, strict=True), start=1):
            tally = f"treated {treated}, saved {saved}"
            figure, cell = f"{tally}: P(kept die = {face})", (KEPT_DIE, tally, str(face))
            note = f"{chance}" if chance.denominator < 10**6 else ""
            agrees = abs(mass - float(chance)) < 1e-12
            source = "SciPy's beta distribution"
            rows.append(Finding(source, figure, float(mass), float(chance), 0.0, bool(agrees), note, cell))
    return rows


def _agent_rows(exact: dict[int, dict[str, Performance]]) -> list[Finding]:
    rows = []
    for name in POLICIES:
        for column, what in (("saved", "saved"), ("win", "P(win)")):
            for n, results in exact.items():
                ours = results[name].reached(column)
                note = f"{100 * ours / results[f'bayes:{column}'].reached(column):.2f} % of optimal"
                if column == "saved":
                    note += f"; share of patients by efficacy {shares_by_efficacy(_physician(n), results[name])}"
                figure, checked = f"{name}: {what}, {n} players", CHECKED.get((n, name, column))
                row = (
                    printed(INDEPENDENT, figure, checked, ours, note) if checked else Finding("", figure, None, ours, note=note)
                )
                rows.append(dataclasses.replace(row, cell=(BY_PLAYERS, f"{name}: {what}", f"{n} players")))
    return rows


def _print_choices(exact: dict[int, dict[str, Performance]]) -> None:
    """Print the share of patients that get a treatment of each efficacy, all treatments of an efficacy together."""
    headings = ["policy"]
    for n in exact:
        kinds = Problem.of(_physician(n).options).kinds
        headings.append(f"{n} players\n{' / '.join(map(str, kinds))}")
    rows = [
        (name, *(" / ".join(f"{share:.3f}" for share in results[name].shares) for results in exact.values()))
        for name in POLICIES
    ]
    Grid("Share of patients by the efficacy of what they get (all treatments of it together)", headings, rows).show()


# --- played -----------------------------------------------------------------------------------------------------


def play_physician(num_players: int, games: int, seed: int) -> np.ndarray:
    """Count the games that save 0, 1, … patients: the argument as a policy, through the Gymnasium vector environment."""
    agent = make_agent("argument")
    at_once = min(games, GAMES_AT_ONCE)
    env: Any = gymnasium.make_vec("dice_envs/Shakes-v0", at_once, num_players=num_players, autoreset_mode="Disabled")
    patients = env.variant.options.patients
    streams = new_streams(np.random.SeedSequence(seed).spawn(1)[0], at_once)
    counts = np.zeros(patients + 1, np.int64)
    index = np.arange(at_once)
    env.reset(seed=seed)
    left = games
    while left > 0:
        saved = np.zeros(at_once)
        for _ in range(patients):  # every game has as many patients, so all end together
            _, rewards, ended, _, _ = env.step(ask(agent, env.variant, env.games.states, index, streams))
            saved += rewards
        if not ended.all():
            raise RuntimeError("a game goes on after its last patient")
        counts += np.bincount(saved[:left].astype(np.int64), minlength=patients + 1)
        advance(min(left, at_once))
        left -= at_once
        env.reset(options={"reset_mask": np.ones(at_once, bool)})
    env.close()
    return counts


def play_maesters(num_players: int, games: int, seed: int, workers: Workers = HERE) -> np.ndarray:
    """Count the same through the table of maesters, all of them dogmatic."""
    variant = configure("shakes", num_players=num_players)
    returns = play_table(variant, [make_agent("dogmatic")] * num_players, games, seed, workers=workers)
    counts: np.ndarray = np.bincount(returns[:, 0].astype(np.int64), minlength=variant.options.patients + 1)
    return counts


def _played_rows(played: list[tuple[str, np.ndarray, Performance]], goal: int) -> list[Finding]:
    from scipy.stats import chisquare

    rows = []
    for name, counts, result in played:
        games = int(counts.sum())
        saved = np.arange(len(counts))
        mean = float(counts @ saved / games)
        half = half_width(saved, 0, saved[-1], counts)
        win = float(counts[goal:].sum() / games)
        win_half = share_half_width(win, games)
        # The two tails are put together, so that the chi-square distribution is a fair approximation.
        low, high = np.flatnonzero(result.distribution * games >= 10)[[0, -1]]
        begins = [0, *range(low + 1, high + 1)]
        seen, expected = (np.add.reduceat(each, begins) for each in (counts, result.distribution * games))
        p = float(chisquare(seen, expected).pvalue)
        gap = float(np.abs(np.cumsum(counts) / games - np.cumsum(result.distribution)).max())
        bound = float(np.sqrt(np.log(2 / 0.05) / (2 * games)))  # Dvoretzky, Kiefer, Wolfowitz: exceeded in 5 % of samples
        fits = f"and chi-square p = {p:.4f}, which must be above 0.0001"
        # Two half-widths and not one: of many figures some miss a 95 % interval by chance.
        for figure, exact, ours, error, holds, note in (
            ("saved", result.saved, mean, half, True, "within two half-widths"),
            ("P(win)", result.win, win, win_half, True, "within two half-widths"),
            ("largest gap between distribution functions", 0.0, gap, bound, p > 1e-4, fits),
        ):
            agrees = abs(ours - exact) < 2 * error and holds
            rows.append(Finding(EXACT, f"{name}: {figure}", exact, ours, error, agrees, note))
    return rows


# --- plots ------------------------------------------------------------------------------------------------------


def _draw_distributions(report: Path, exact: dict[str, Performance], played: list[tuple[str, np.ndarray, Performance]]) -> None:
    caption = "How many of 18 patients are saved, 4 players: exact for five policies, and as played through both environments."
    with saved_plot(report, "shakes_distributions", caption, figsize=(10, 5.5)) as (_, axes):
        for name in ("random", "argument", "thompson:permutations", "bayes:saved", "bayes:win"):
            axes.plot(exact[name].distribution, label=f"{name}, exact")
        for (name, counts, _), marker in zip(played, "x+", strict=True):
            axes.plot(np.arange(len(counts)), counts / counts.sum(), f"k{marker}", label=f"{name}, {counts.sum():,} games")
        axes.set(xlabel="patients saved", ylabel="probability", title="Patients saved, 4 players, 18 patients")
        axes.locator_params(axis="x", integer=True)
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
