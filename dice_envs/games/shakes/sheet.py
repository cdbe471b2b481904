"""A score sheet for The Shakes with real dice: what stands on it, and its page as a template of Jinja."""

from __future__ import annotations

import dataclasses
from typing import Any

from dice_envs.core.game import Variant
from dice_envs.games.shakes import TREATMENTS, Options
from dice_envs.games.shakes.pictures import rules_in_short

MOST_BOXES = 24  # in a line; more patients are counted by tally marks
MOST_NUMBERED = 40  # patients of a team that have a box each
MOST_COUNTED = 30  # patients of a team for which there are numbers to cross off when one is saved


def values(variant: Variant) -> dict[str, Any]:
    """Return the values that `TEMPLATE` takes besides `paper`, a page's width and height."""
    return {
        "options": variant.options,
        "physician": variant.options.mode == "physician",
        "rules": _how_to_play(variant),
        "treatments": TREATMENTS,
        "most_boxes": MOST_BOXES,
        "most_numbered": MOST_NUMBERED,
        "most_counted": MOST_COUNTED,
    }


def _how_to_play(variant: Variant) -> list[str]:
    """Return the rules in force, as the game tells them of a team that wins or loses, and what real dice take beyond that."""
    options: Options = variant.options
    dealt = ", ".join(map(str, options.efficacies))
    rules = list(rules_in_short(dataclasses.replace(options, reward="win")))
    if options.treatments is None:
        rules.append("Name the treatments, no two alike. A name changes nothing but the talk.")
    if options.open_efficacies:
        rules.append(
            f"Throw two dice for each treatment; from the highest total to the lowest they get efficacies {dealt}, and equal "
            "totals are thrown again. Write them into the column for all to see."
        )
    elif not options.competitive:
        rules.append(
            f"Somebody who does not play deals the efficacies {dealt} in secret, throws a die for each patient out of sight, "
            "and tells only whether the patient recovers. The column is filled in at the end."
        )
    return [*rules, "A patient recovers if a die shows the efficacy or less. Tick a box beside treated, and one beside saved."]


TEMPLATE = """\
{% set players = options.num_players ~ ' maesters' %}
{% set team = 'the team' %}
{% if physician %}
{% set players = 'a physician with ' ~ options.num_players ~ ' treatments' %}
{% set team = 'the physician' %}
{% endif %}
{% set aim = options.patients ~ ' patients, ' ~ team ~ ' wins with ' ~ options.to_win ~ ' saved or more' %}
{% if options.competitive %}{% set aim = 'the first to save ' ~ options.to_win ~ ' wins' %}{% endif %}
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>The Shakes: score sheet for {{ players }}; {{ aim }}</title>
<style>
@page { size: {{ paper[0] }} {{ paper[1] }}; margin: 14mm }
body { margin: 0 auto; max-width: 182mm; color: #1d2733; font: 9.5pt/1.35 sans-serif; overflow-wrap: anywhere }
h1 { margin: 0; font-size: 24pt }
h2 { margin: 5mm 0 1mm; font-size: 12pt }
p { margin: 0 0 3mm }
ol { margin: 0; padding-left: 1.5em }
small, th { color: #5f6b7a; font-size: 9pt }
table { width: 100%; border-spacing: 0 1.5mm }
th { text-align: left }
td { border: solid #d5dae1; border-width: 1px 0; padding: 1.5mm 2mm }
td:last-child { width: 100% }
.name { font-weight: bold }
.name div { width: 32mm }
.line { border-bottom: 1px solid #5f6b7a }
.boxes { display: flex; gap: 0.5mm; align-items: center; height: 6mm }
.boxes small { flex: none; width: 14mm }
.boxes i { flex: 0 1 4.6mm; aspect-ratio: 1; border: 1px solid #5f6b7a; border-radius: 1px }
.boxes i:nth-of-type(5n) { margin-right: 1mm }
.boxes .tally { flex: 1; height: 5mm; aspect-ratio: auto }
.efficacy { width: 9mm; height: 9mm; border: 1px solid; border-radius: 1mm; font-size: 14pt; text-align: center }
.track { display: grid; grid-template-columns: repeat(20, 1fr); gap: 1mm; margin-bottom: 2mm }
.track b { height: 8mm; border: 1px solid #5f6b7a; padding: 0 1mm; color: #5f6b7a; font: 6pt sans-serif }
.saved { display: flex; gap: 1mm; align-items: center }
.saved b { width: 4.4mm; height: 4.4mm; border: 1px solid #5f6b7a; border-radius: 50% }
.saved b { text-align: center; font: 6pt/4.4mm sans-serif }
.saved .goal { border-color: #c98a00; background: #ffe9a8; print-color-adjust: exact }
</style>
</head>
<body>
{% macro boxes(label, count) %}
<div class="boxes"><small>{{ label }}</small>
{%- if count > most_boxes %}<i class="tally"></i>{% else %}{{ '<i></i>'|safe * count }}{% endif %}</div>
{% endmacro %}
{% macro name(given) %}
<td class="name"><div{% if not given %} class="line"{% endif %}>{{ given or '&nbsp;'|safe }}</div></td>
{% endmacro %}
{% set most_saved = options.to_win if options.competitive else options.patients %}
{% set held = not physician or options.maesters is not none %}
<h1>The Shakes</h1>
<p>{{ players }}: {{ aim }} <span style="float: right">date ________________</span></p>
<table>
<tr>{% if held %}<th>maester</th>{% endif %}<th>treatment</th><th>efficacy</th><th>patients</th></tr>
{% for seat in range(options.num_players) %}
<tr>
{% if held %}{{ name(options.maesters[seat] if options.maesters else '') }}{% endif %}
{{ name(options.treatment_names[seat] if options.treatments is not none else '') }}
<td><div class="efficacy">{{ options.efficacy if options.competitive }}</div></td>
<td>{{ boxes('treated', options.patients) }}{{ boxes('saved', most_saved) }}</td>
</tr>
{% endfor %}
</table>
{% if not options.competitive %}
<h2>All patients</h2>
{% if options.patients > most_numbered %}
{{ boxes('', options.patients) }}
{% else %}
<p>Write down {{ 'the treatment that each got' if physician else 'who treated each' }}, and cross out those who died;
{{ options.to_win }} survivors win.</p>
<div class="track">{% for number in range(1, options.patients + 1) %}<b>{{ number }}</b>{% endfor %}</div>
{% if options.patients <= most_counted %}
<div class="saved"><small>saved</small>
{% for number in range(1, options.patients + 1) %}
<b{% if number == options.to_win %} class="goal"{% endif %}>{{ number }}</b>
{% endfor %}
</div>
{% endif %}
{% endif %}
{% endif %}
<h2>How to play</h2>
<ol>
{% for rule in rules %}
<li>{{ rule }}</li>
{% endfor %}
</ol>
{% if options.treatments is none %}
<small>Treatments to choose from: {{ treatments|join(', ') }}, or your own.</small><br>
{% endif %}
<small>After The Shakes by Allen Downey (2020), AllenDowney/TheShakes on GitHub, Creative Commons BY-NC-SA 4.0.</small>
</body>
</html>"""
