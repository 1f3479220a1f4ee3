"""Breaking the package on purpose: what is drawn, and what is explained."""

import ast
from collections import Counter

import pytest

from mutants import equivalent
from mutants.sites import TARGETS, drawn, every, mutants_of

SOURCE = '''"""Words > words."""
from a import b
LEAST = 3
@compiled
def small(x: int = 2 - 1) -> bool | None:
    """1 + 1"""
    if x < LEAST and not done(x):
        raise ValueError(f"{x + 1} is too small" + "!")
    log(x)
    x[0] += (  # a + here is none
        1.5
    )
    return max(x)
'''


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    path = tmp_path_factory.mktemp("sample") / "sample.py"
    path.write_text(SOURCE)
    return mutants_of("sample", path, path.parent)


def test_code_is_broken_and_words_are_not(found):
    assert {(one.was, one.now) for one in found if "\n" not in one.was} >= {
        ("LEAST = 3", "LEAST = 4"),
        ("LEAST = 3", "LEAST = 2"),
        ("if x < LEAST and not done(x):", "if x <= LEAST and not done(x):"),
        ("if x < LEAST and not done(x):", "if x < LEAST or not done(x):"),
        ("if x < LEAST and not done(x):", "if x < LEAST and (done(x)):"),
        ('raise ValueError(f"{x + 1} is too small" + "!")', "pass"),
        ("log(x)", "pass"),
        ("x[0] += ( # a + here is none 1.5 )", "pass"),
        ("return max(x)", "return min(x)"),
    }
    changed = Counter(one.line for one in found)
    assert not {1, 2, 4, 6} & set(changed)
    assert changed[8] == 1  # the statement, not what it says


def test_every_change_is_a_program_and_another_one(found):
    for one in found:
        broken = one.applied(SOURCE.encode())
        assert ast.dump(ast.parse(broken)) != ast.dump(ast.parse(SOURCE))


def test_what_may_concern_the_compiler_is_told_apart(found):
    assert {one.compiled for one in found} == {True}
    assert {one.names for one in found if one.line == 3} == {("LEAST",)}


def test_a_seed_draws_the_same_again():
    once = drawn(100, 3)
    assert once == drawn(100, 3)
    assert len({*once}) == 100
    assert {*once} != {*drawn(100, 4)}
    targets = Counter(one.target for one in once)
    assert set(targets) == set(TARGETS)
    assert {one.target for one in drawn(9, 3, ["grow", "update"])} == {"grow", "update"}


def test_what_is_explained_is_there():
    """A line that has changed needs another look."""
    known = {
        key
        for some in every().values()
        for one in some
        for key in equivalent.reasons(one)
    }
    reasons = equivalent.read()
    assert not set(reasons) - known
    assert min(map(len, reasons.values())) > 10
