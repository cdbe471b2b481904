"""The Shakes for people: the rules in short, actions and seats in words, and pictures."""

from __future__ import annotations

from typing import Any

from dice_envs.core.dice import faces_of
from dice_envs.core.options import Label
from dice_envs.core.state import OVER
from dice_envs.core.view import Bar, Die, Group, Picture, Row, Tone, seat_name, with_verb


def rules_in_short(options: Any) -> list[str]:
    """Return the rules in force, a few sentences for people who have never played."""
    pips = options.efficacies
    if options.competitive:
        cures = f"Each of {options.num_players} maesters has a treatment that saves {options.efficacy} patients in 6."
    else:
        order = "and all see which is which" if options.open_efficacies else "but nobody knows which is which"
        cures = f"Of {len(pips)} treatments, the chances to save a patient are {', '.join(map(str, pips))} in 6, {order}."
    if options.mode == "physician":
        acts = [f"You choose the treatment of each of {options.patients} patients, and see who recovers."]
    else:
        ties = "tied maesters throw again" if options.ties == "again" else "a tie is broken at random"
        acts = [
            f"Up to {options.patients} patients come. At your turn you argue for your treatment of the next one, or yield.",
            "To argue, throw one die, and one more for each patient that you have treated. Remove one, the lowest first, for "
            "each patient that you have saved, and keep the lowest left.",
            f"The highest kept die treats the patient; {ties}.",
        ]
    if options.competitive:
        ends = f"Who first saves {options.to_win} wins."
    elif options.pays == "win":
        who = "You win" if options.mode == "physician" else "All win together"
        ends = f"{who} if {options.to_win} patients are saved."
    else:
        ends = "Save as many as you can" + ("." if options.mode == "physician" else ", all together.")
    if options.competitive and options.pays == "saved":
        ends += " What counts is how many you save."
    return [cures, *acts, ends]


LABELS = {  # the options as players read them
    "num_players": Label("maesters, each with a treatment, 2 to 6"),
    "mode": Label(
        meanings={"maesters": "a seat for each, who argues or yields", "physician": "one seat that picks treatments"}
    ),
    "variation": Label('"cooperative" or "competitive"'),
    "reward": Label(
        meanings={
            "saved": "1 for each patient saved",
            "win": "at the end, cooperative 1 to every seat if the team has won, competitive 1 to the winner",
        }
    ),
    "ties": Label(meanings={"again": "tied maesters throw again", "random": "a tie is broken at random"}),
    "efficacy": Label("every treatment's efficacy in the competitive variation, 1 to 5"),
    "num_patients": Label("patients that come, 1 to 200", one="patient"),
    "goal": Label("saved patients that win, at most as many as come"),
    "open_efficacies": Label("yes: everybody sees the efficacies, as on the rules' score sheet"),
    "treatments": Label(
        "names of the treatments in seat order, all different, of at most 24 characters each",
        meanings={"rules": "the first of the rules' ten"},
    ),
    "maesters": Label("names of the players, in the same form"),
}


def describe_action(options: Any, action: int) -> str:
    """Return an action in words."""
    if options.mode == "physician":
        return options.treatment_names[action]
    return ("yield", "argue")[action]


def seat_names(options: Any) -> tuple[str, ...]:
    """Return the players' names; none for a physician, who is alone."""
    return tuple(maester(options, seat) for seat in range(options.num_players)) if options.mode == "maesters" else ()


def maester(options: Any, seat: int, viewer: int | None = None) -> str:
    """Return the name of a maester, as the viewer says it."""
    return options.maesters[seat] if options.maesters and seat != viewer else seat_name(seat, viewer, "maester")


def detail_of(options: Any, state: Any, seat: int, viewer: int | None, saved: int, treated: int) -> str:
    """A picture's words beside the name of a maester or a treatment."""
    parts: list[str] = []
    if options.mode == "physician":
        parts += [f"held by {options.maesters[seat]}"] if options.maesters else []
    elif options.treatments is not None:
        parts.append(options.treatment_names[seat])
    parts.append(f"saved {saved} of {treated}")
    if viewer is None or options.known:
        parts.append(f"efficacy {state['efficacy'][seat]}")
    return ", ".join(parts)


def explain_illegal(options: Any, state: Any, action: int) -> str:
    """Return why an action is not legal now, in words."""
    return "all others have yielded, so the last maester must argue"  # no other action is ever illegal


def picture(options: Any, state: Any, viewer: int | None) -> Picture:
    """Return what a seat sees of a state; None sees everything."""
    physician = options.mode == "physician"
    over = state["seat"] == OVER
    rows = []
    for seat in range(options.num_players):
        who = options.treatment_names[seat] if physician else maester(options, seat, viewer)
        saved, treated = int(state["saved"][seat]), int(state["treated"][seat])
        detail = detail_of(options, state, seat, viewer, saved, treated)
        mark = "to speak" if not physician and seat == state["seat"] else ""
        outcomes = (True,) * saved + (False,) * (treated - saved)
        argument = (_argument_shown(state, seat),) if state["argued"][seat] else ()
        rows.append(Row(who, detail=detail, mark=mark, outcomes=outcomes, groups=argument))
    notes = []
    if state["last_seat"] >= 0:
        last = int(state["last_seat"])
        fate = "recovered" if state["last_recovered"] else "died"
        by = options.treatment_names[last]
        if not physician:
            treatment = f" for {by}" if options.treatments is not None else ""
            by = f"{maester(options, last)} won with a {state['last_strength']}{treatment}"
        notes.append(f"patient {state['patients']}: {by}, {fate}")
    if options.competitive:
        notes.append(f"patients so far: {state['patients']}; the first to save {options.to_win} wins")
    else:
        saved = int(state["saved"].sum())
        detail = f"saved {saved}, {options.to_win} to win"
        rows.append(Row("the team", detail=detail, bar=Bar(saved, options.to_win, options.patients)))
        notes.append(f"patients left: {options.patients - int(state['patients'])}")
    if over:
        notes.append(f"the game is over: {_outcome(options, state, viewer)}")
    return Picture("The Shakes", tuple(rows), tuple(notes))


def _outcome(options: Any, state: Any, viewer: int | None) -> str:
    """The result in words."""
    if not options.competitive:
        return with_verb("the team", "win" if state["saved"].sum() >= options.to_win else "lose")
    best = int(state["saved"].argmax())
    winner = maester(options, best, viewer) if state["saved"][best] >= options.to_win else "nobody"
    return with_verb(winner, "win")


def _argument_shown(state: Any, seat: int) -> Group:
    """The dice a maester has thrown: those taken away, the one kept, the others."""
    kept = int(state["strength"][seat])
    taken = int(state["saved"][seat])
    if state["seat"] == OVER and state["last_seat"] == seat:
        taken -= int(state["last_recovered"])  # that patient was saved after the argument
    dice = [
        Die(face, Tone.FADED if kept == 0 or i < taken else Tone.BRIGHT if i == taken else Tone.PLAIN)
        for i, face in enumerate(faces_of(state["dice"][seat]))
    ]
    return Group("beaten" if kept == 0 else f"kept {kept}", tuple(dice))
