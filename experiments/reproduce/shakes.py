"""`reproduce shakes`: what the rules and the notebook of The Shakes say, and what is true."""

from __future__ import annotations

import time
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from experiments.output import (
    Z95,
    Row,
    check_folder,
    check_writable,
    console,
    figure,
    print_rows,
    progress,
    seed_or_fresh,
    wilson_half_width,
    write_json,
)

if TYPE_CHECKING:
    import numpy as np

    from agents.shakes_exact import Evaluation
    from dice_envs.game import Variant

RULES = "A. Downey, The Shakes, rules (2020)"
NOTEBOOK = "A. Downey, The Shakes, notebook (2020)"
CHECK = "independent computation"
DICE_IN_THE_BOX = 10  # the rules ask for about so many

# Figures computed independently of this program, to the digits given: (players, agent, column) → figure.
CHECKED = {
    (2, "argument", "saved"): "4.704392",
    (2, "argument", "win"): "0.534937",
    (3, "argument", "saved"): "5.461766",
    (3, "argument", "win"): "0.673374",
    (4, "argument", "saved"): "8.063758",
    (4, "argument", "win"): "0.716603",
    (2, "bayes:saved", "saved"): "5.060935",
    (2, "bayes:win", "win"): "0.602966",
    (3, "bayes:saved", "saved"): "6.361764",
    (3, "bayes:win", "win"): "0.775049",
    (4, "bayes:win", "win"): "0.8056",
    (2, "argument, ties at random", "win"): "0.5175",
    (3, "argument, ties at random", "win"): "0.6463",
    (4, "argument, ties at random", "win"): "0.6885",
}
NOTEBOOK_WIN = "0.688"  # 4 players, simulated, ties at random

POLICIES = {  # as the table names them: agent and the game's tie rule
    "random": ("random", "again"),
    "ucb": ("ucb", "again"),
    "greedy": ("greedy", "again"),
    "greedy:permutations": ("greedy:permutations", "again"),
    "thompson": ("thompson", "again"),
    "thompson:permutations": ("thompson:permutations", "again"),
    "argument": ("argument", "again"),
    "argument, ties at random": ("argument", "random"),
    "bayes:saved": ("bayes:saved", "again"),
    "bayes:win": ("bayes:win", "again"),
}
TALLIES_SHOWN = ((0, 0), (1, 0), (1, 1), (3, 2), (6, 2), (11, 4))  # (treated, saved); the fourth is the rules' example


def main(
    games: Annotated[int, typer.Option(help="Games played through each environment.")] = 1_000_000,
    seed: Annotated[int | None, typer.Option(help="Fixes every draw; a fresh one is drawn and printed if left out.")] = None,
    json: Annotated[Path | None, typer.Option("--json", help="Write the rows here as JSON.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write plots into this folder.")] = None,
) -> None:
    """The Shakes (A. Downey): the rules' claims, the notebook's simulation, and every agent's exact worth.

    Everything is exact except the last table, which plays games through both environments and compares.
    """
    if games < 1000:
        raise ValueError(f"games must be at least 1000, not {games}")
    check_writable(json)
    check_folder(report)
    seed = seed_or_fresh(seed)
    start = time.perf_counter()
    with progress("exact distributions", 5 * len(POLICIES)) as done:
        exact = {n: {name: _exact(n, *policy, done) for name, policy in POLICIES.items()} for n in range(2, 7)}
    seconds = time.perf_counter() - start

    sections = {
        "What the rules say": _claims(exact),
        "The kept die is a Beta(saved + 1, failed + 1) variable times 6, rounded up": _kept_die_rows(),
        "Every agent, 2 to 6 players": _agent_rows(exact),
    }
    for title, rows in sections.items():
        print_rows(title, rows, digits=6)
    console.print(f"exact, 2 to 6 players and {len(POLICIES)} policies: {seconds:.1f} s", highlight=False)
    with progress(f"2 × {games:,} games", 2 * games) as done:
        played = [
            ("Shakes-v0 (vector), argument", *_play_physician(4, games, seed, done), exact[4]["argument"]),
            ("table of maesters, dogmatic", *_play_maesters(4, games, seed, done), exact[4]["argument"]),
        ]
    sections[f"Played, 4 players, seed {seed}"] = _played_rows(played)
    print_rows(f"Played, 4 players, {games:,} games each, seed {seed}", sections[f"Played, 4 players, seed {seed}"], digits=6)
    write_json(json, {"rows": [row for rows in sections.values() for row in rows], "seed": seed})
    if report is not None:
        _draw_kept_die(report)
        _draw_agents(report, exact)
        _draw_distributions(report, exact[4], played)


# --- exact ------------------------------------------------------------------------------------------------------


def _physician(num_players: int, ties: str = "again") -> Variant:
    from dice_envs import configure

    return configure("shakes", mode="physician", num_players=num_players, ties=ties)


def _exact(num_players: int, spec: str, ties: str, done: Any) -> Evaluation:
    import agents
    from agents.shakes import TallyPolicy
    from agents.shakes_exact import Problem, as_policy, evaluate

    variant = _physician(num_players, ties)
    agent = agents.make(spec)
    problem = Problem.of(variant.options)
    if isinstance(agent, TallyPolicy):
        result = evaluate(problem, lambda treated, saved: agent.chances(variant.options, treated, saved))
    else:
        result = evaluate(problem, as_policy(agent, variant))
    done(1)
    return result


def _rounds_to(published: str, ours: float) -> bool:
    """Whether ours, rounded to the digits published, is what was published, give or take half of the last digit."""
    half = 0.5 * 10.0 ** -len(published.partition(".")[2])
    return abs(float(published) - ours) <= half * (1 + 1e-6)


def _claims(exact: dict[int, dict[str, Evaluation]]) -> list[Row]:
    from dice_envs.games.shakes import EFFICACIES, Options

    rows = []
    for n, dealt in EFFICACIES.items():
        mean = sum(dealt) / n
        rows.append(Row(RULES, f"average efficacy, {n} players", 2.0, mean, agrees=mean == 2))
    for n in EFFICACIES:
        share = 6 * exact[n]["random"].saved / Options(num_players=n).patients
        agrees = abs(share - 2) < 1e-9
        rows.append(Row(RULES, f"random treatments: saved of 6 patients, {n} players", 2.0, share, agrees=agrees))
    competitive = float(Options(variation="competitive").efficacies[0])
    rows.append(
        Row(
            RULES,
            "competitive: pips of 6 that recover",
            "3, and 2",
            competitive,
            note='the text says 3 out of 6 and "set all efficacies to 2"; here 2, and the option efficacy sets another',
        )
    )
    for n in EFFICACIES:
        result = exact[n]["argument"]
        rows.append(Row(RULES, f"the team wins, {n} players", None, result.win, note="the rules do not say how often"))
    for n in EFFICACIES:
        dice = exact[n]["argument"].most_dice
        most = max(k for k, chance in enumerate(dice) if chance > 0)
        rows.append(Row(RULES, f"dice: the most one maester may need, {n} players", "about 10", most, note="for one maester"))
        more = float(dice[DICE_IN_THE_BOX + 1 :].sum())
        rows.append(Row(RULES, f"dice: games that need more than {DICE_IN_THE_BOX}, {n} players", None, more))
    for n in EFFICACIES:
        gap = exact[n]["argument"].matching_gap
        rows.append(
            Row(
                RULES,
                f"a treatment is chosen with the chance that it is the best, {n} players: distance",
                0.0,
                gap,
                agrees=gap < 1e-9,
                note="total variation, mean over patients; the best by the known list of efficacies",
            )
        )
    for n in EFFICACIES:
        for column, best in (("saved", "bayes:saved"), ("win", "bayes:win")):
            short = getattr(exact[n][best], column) - getattr(exact[n]["argument"], column)
            what = "patients saved" if column == "saved" else "P(win)"
            rows.append(
                Row(RULES, f"the argument is optimal, {n} players: {what} short of it", 0.0, short, agrees=abs(short) < 1e-9)
            )
    win = exact[4]["argument, ties at random"].win
    rows.append(
        Row(NOTEBOOK, "P(win), 4 players, ties at random", float(NOTEBOOK_WIN), win, agrees=_rounds_to(NOTEBOOK_WIN, win))
    )
    return rows


def _beta_masses(treated: int, saved: int) -> np.ndarray:
    """The chance that 6 times a Beta(saved + 1, failed + 1) variable rounds up to 1 … 6, by SciPy's beta distribution."""
    import numpy as np
    from scipy.stats import beta

    masses: np.ndarray = np.diff(beta.cdf(np.arange(7) / 6, saved + 1, treated - saved + 1))
    return masses


def _kept_die_rows() -> list[Row]:
    from agents.shakes_exact import kept_die

    rows = []
    for treated, saved in TALLIES_SHOWN:
        dice: list[Fraction] = kept_die(treated, saved)
        for face, (chance, mass) in enumerate(zip(dice, _beta_masses(treated, saved), strict=True), start=1):
            rows.append(
                Row(
                    "SciPy's beta distribution",
                    f"treated {treated}, saved {saved}: P(kept die = {face})",
                    float(mass),
                    float(chance),
                    agrees=abs(mass - float(chance)) < 1e-12,
                    note=f"{chance}" if chance.denominator < 10**6 else "",
                )
            )
    return rows


def _agent_rows(exact: dict[int, dict[str, Evaluation]]) -> list[Row]:
    from agents.shakes_exact import Problem

    rows = []
    for n, results in exact.items():
        kinds = Problem.of(_physician(n).options).kinds
        for name, result in results.items():
            for column, what in (("saved", "saved"), ("win", "P(win)")):
                ours = getattr(result, column)
                checked = CHECKED.get((n, name, column))
                optimum = getattr(results[f"bayes:{column}"], column)
                note = f"{100 * ours / optimum:.2f} % of optimal"
                if column == "saved":
                    shares = ", ".join(f"{pips}: {share:.3f}" for pips, share in zip(kinds, result.shares, strict=True))
                    note += f"; patients by efficacy {shares}"
                published = None if checked is None else float(checked)
                agrees = None if checked is None else _rounds_to(checked, ours)
                rows.append(Row(CHECK if checked else "", f"{n} players, {name}: {what}", published, ours, 0.0, agrees, note))
    return rows


# --- played -----------------------------------------------------------------------------------------------------

GAMES_AT_ONCE = 4096


def _play_physician(num_players: int, games: int, seed: int, done: Any) -> tuple[np.ndarray]:
    """How many games saved 0, 1, … patients: the argument as a policy, through the Gymnasium vector environment."""
    import gymnasium
    import numpy as np

    import agents
    import dice_envs  # noqa: F401 - registers Shakes-v0
    from dice_envs.agent import ask
    from dice_envs.dice import new_streams

    agent = agents.make("argument")
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
        done(min(left, at_once))
        left -= at_once
        env.reset(options={"reset_mask": np.ones(at_once, bool)})
    env.close()
    return (counts,)


def _play_maesters(num_players: int, games: int, seed: int, done: Any) -> tuple[np.ndarray]:
    """The same, through the table of maesters, all of them dogmatic."""
    import numpy as np

    import agents
    from dice_envs import configure
    from experiments.arena import play_table

    variant = configure("shakes", num_players=num_players)
    returns = play_table(variant, [agents.make("dogmatic")] * num_players, games, seed, done)
    return (np.bincount(returns[:, 0].astype(np.int64), minlength=variant.options.patients + 1),)


def _played_rows(played: list[tuple[str, np.ndarray, Evaluation]]) -> list[Row]:
    import numpy as np
    from scipy.stats import chisquare

    rows = []
    for name, counts, result in played:
        games = int(counts.sum())
        saved = np.arange(len(counts))
        mean = float(counts @ saved / games)
        half = Z95 * float(np.sqrt(counts @ (saved - mean) ** 2 / games / games))
        goal = len(result.distribution) - 1
        while result.distribution[goal:].sum() < result.win - 1e-12:
            goal -= 1
        win = float(counts[goal:].sum() / games)
        win_half = wilson_half_width(win, games)
        # The two tails are put together, so that the chi-square distribution is a fair approximation.
        low, high = np.flatnonzero(result.distribution * games >= 10)[[0, -1]]
        expected = result.distribution[low : high + 1] * games
        expected[0] += result.distribution[:low].sum() * games
        expected[-1] += result.distribution[high + 1 :].sum() * games
        seen = counts[low : high + 1].astype(float)
        seen[0] += counts[:low].sum()
        seen[-1] += counts[high + 1 :].sum()
        p = float(chisquare(seen, expected * seen.sum() / expected.sum()).pvalue)
        # Three intervals and not one: of many figures some miss a 95 % interval by chance.
        rows += [
            Row(CHECK, f"{name}: saved", result.saved, mean, half, abs(mean - result.saved) < 2 * half, "within two half-widths"),
            Row(CHECK, f"{name}: P(win)", result.win, win, win_half, abs(win - result.win) < 2 * win_half, "likewise"),
            Row(CHECK, f"{name}: whole distribution, chi-square p", None, p, 0.0, p > 1e-4, "agrees if above 0.0001"),
        ]
    return rows


# --- plots ------------------------------------------------------------------------------------------------------


def _draw_kept_die(report: Path) -> None:
    import numpy as np
    from scipy.stats import beta

    from agents.shakes_exact import kept_die

    with figure(report, "shakes_kept_die", nrows=2, ncols=3, figsize=(11, 6), sharex=True) as (drawn, axes):
        x = np.linspace(0, 6, 301)
        for place, (treated, saved) in zip(axes.flat, TALLIES_SHOWN, strict=True):
            faces = np.arange(1, 7)
            dice = [float(chance) for chance in kept_die(treated, saved)]
            place.bar(faces - 0.7, dice, 0.36, label="kept die")
            place.bar(faces - 0.3, _beta_masses(treated, saved), 0.36, label="Beta × 6, rounded up")
            place.plot(x, beta.pdf(x / 6, saved + 1, treated - saved + 1) / 6, "k-", label="Beta × 6, density")
            place.set_title(f"treated {treated}, saved {saved}", fontsize=10)
            place.set_xticks(faces - 0.5, faces)
        axes[0, 0].legend(fontsize=8)
        drawn.suptitle("The kept die is a Beta(saved + 1, failed + 1) variable times 6, rounded up")


def _draw_agents(report: Path, exact: dict[int, dict[str, Evaluation]]) -> None:
    import numpy as np

    with figure(report, "shakes_agents", ncols=2, figsize=(12, 5), sharey=True) as (_, axes):
        players = list(exact)
        width = 0.8 / len(players)
        for place, (column, title) in zip(axes, (("saved", "expected patients saved"), ("win", "P(win)")), strict=True):
            for i, n in enumerate(players):
                optimum = getattr(exact[n][f"bayes:{column}"], column)
                shares = [100 * getattr(result, column) / optimum for result in exact[n].values()]
                place.barh(np.arange(len(shares)) + i * width, shares, width, label=f"{n} players")
            place.set_yticks(np.arange(len(POLICIES)) + 0.4, list(POLICIES))
            place.set_xlabel(f"{title}, % of Bayes-optimal")
        axes[1].legend(fontsize=8, loc="lower right")


def _draw_distributions(report: Path, exact: dict[str, Evaluation], played: list[tuple[str, np.ndarray, Evaluation]]) -> None:
    import numpy as np

    with figure(report, "shakes_distributions") as (_, axes):
        for name in ("random", "argument", "thompson:permutations", "bayes:saved", "bayes:win"):
            axes.plot(exact[name].distribution, "o-", markersize=3, label=f"{name}, exact")
        for (name, counts, _), marker in zip(played, "x+", strict=True):
            axes.plot(np.arange(len(counts)), counts / counts.sum(), f"k{marker}", label=f"{name}, {counts.sum():,} games")
        axes.set_xlabel("patients saved")
        axes.set_ylabel("probability")
        axes.set_title("Patients saved, 4 players, 18 patients")
        axes.legend(fontsize=8)
