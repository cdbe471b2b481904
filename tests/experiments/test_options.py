"""Game options on the command line, including lists in files."""

import pytest

from dice_envs.experiments.ui import game_options, whole_number
from tests.support.commands import refusal
from tests.support.subsets import few

ARENA = ("arena", "fatestones", "random", "random")
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


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "No such file or directory"),
        (b"", "which holds no values"),
        (b" \n,\n", "which holds no values"),
        (b"\xff\xfe\x00", "which is not a text file"),
        (b"123456 " * 2**18, "which must hold at most 1,048,576 bytes"),
        (b"1 2 2 4 6 6\n6 5 4 3 2 1", "654321 is no such code"),
        (b"[1,2]", "dice must be a number, a word, true, false, none, or a list of these"),
    ],
)
def test_a_file_that_will_not_do_gets_one_line(content, words, tmp_path):
    path = tmp_path / "bag.txt"
    if content is not None:
        path.write_bytes(content)
    assert words in refusal(*ARENA, "-o", f"dice=@{path}")


def test_the_command_line_starts_without_heavy_libraries(run_python):
    heavy = ("torch", "stable_baselines3", "sb3_contrib", "matplotlib", "scipy.optimize", "icepool", "pyspiel", "tensorboard")
    code = f"import sys, dice_envs.experiments.__main__; print([name for name in {heavy} if name in sys.modules])"
    assert run_python(code) == "[]\n"


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("missing", "command", "what", "extra"),
    [("mcp", ["mcp"], "the server for assistants", "mcp"), ("nicegui", ["play", "--web"], "the page", "web")],
)
def test_a_command_names_the_extra_that_it_lacks(missing, command, what, extra, run_python):
    code = (
        f"import sys; sys.modules[{missing!r}] = None; from tests.support.commands import refusal; print(refusal(*{command}))"
    )
    assert run_python(code) == f'error: {what} needs {missing}: pip install "dice-envs[{extra}]"\n'


@few(1, "given", [{}, {"OMP_WAIT_POLICY": "ACTIVE"}, {"GOMP_SPINCOUNT": "7"}])
def test_threads_wait_briefly_unless_the_user_says_otherwise(run_python, given):
    names = "OMP_WAIT_POLICY", "GOMP_SPINCOUNT"
    code = f"import os\nfor name in {names}: os.environ.pop(name, None)\nos.environ.update({given})\nimport experiments\n"
    found = run_python(f"{code}print({{name: os.environ[name] for name in {names} if name in os.environ}})")
    assert found == f"{given or {'OMP_WAIT_POLICY': 'PASSIVE', 'GOMP_SPINCOUNT': '1000'}}\n"


@pytest.mark.parametrize(
    ("typed", "number"),
    [("1000", 1000), ("1_000", 1000), ("1e5", 100_000), ("2.5E3", 2500), ("99999999999999999999", 10**20 - 1)],
)
def test_large_numbers_as_people_type_them(typed, number):
    assert whole_number(typed) == number


@pytest.mark.parametrize("typed", ["", "x", "1.5", "1e-3", "1e999", "inf", "nan", "1,000"])
def test_what_is_no_whole_number(typed):
    with pytest.raises(ValueError, match="is no whole number; 20000, 20_000 and 2e4 are$"):
        whole_number(typed)
