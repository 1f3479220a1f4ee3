"""The claims page: what it lists is what the program measures, and pages say it."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from claims import __main__ as claims
from claims import page
from claims.claim import (
    ALL,
    FAILS,
    HOLDS,
    NEEDS_DATA,
    NOT_RUN,
    Claim,
    Figure,
    NotRunError,
    Place,
    holds,
    judged,
    register,
)
from claims.parts import PARTS

pytestmark = pytest.mark.quick
HOME = Path(__file__).parents[2]


def plain(text):
    """Return the words without what Markdown and line breaks add."""
    return " ".join(text.replace("**", "").split())


@pytest.mark.parametrize("key", ALL)
def test_a_claim_stands_on_the_pages_that_it_names(key):
    assert ALL[key].said
    for name, words in ALL[key].said:
        assert plain(words) in plain((HOME / name).read_text()), name


@pytest.mark.parametrize("key", ALL)
def test_a_claim_is_measured_or_says_why_not(key):
    one = ALL[key]
    assert re.fullmatch(r"[a-z0-9-]+", key)
    assert key not in PARTS
    assert one.part in PARTS
    assert one.line()
    if one.measure is None:
        assert one.why
        assert one.command
        assert not one.limit
    else:
        assert not one.why
        assert one.unit
        holds(one.limit, 0.0)


def test_the_page_is_what_the_program_lists():
    text = page.PAGE.read_text()  # make reference writes it
    assert text.startswith(page.listing())
    _, lines = page.recorded()
    assert {verdict for _, verdict in lines.values()} <= {HOLDS, NEEDS_DATA, NOT_RUN}
    for key, (_, verdict) in lines.items():
        assert (verdict == HOLDS) <= (ALL[key].measure is not None)


def test_every_part_has_claims_and_keys_are_unique():
    assert {one.part for one in ALL.values()} == {*PARTS}
    with pytest.raises(ValueError, match="two claims called certificate"):
        register(ALL["certificate"])


def made(measure, limit="<= 1", **options):
    return Claim("k", "exact", "t", (), limit, "units", measure, **options)


def broken(_):
    raise ZeroDivisionError("no")


def absent(_):
    raise NotRunError("no browser")


@pytest.mark.parametrize(
    ("measure", "limit", "verdict"),
    [
        (lambda _: Figure(1.0), "<= 1", HOLDS),
        (lambda _: Figure(1.1), "<= 1", FAILS),
        (lambda _: Figure(0.9), ">= 1", FAILS),
        (lambda _: Figure(2), "== 0", FAILS),
        (lambda _: Figure(float("nan")), "<= 1", FAILS),
        (lambda _: Figure(float("nan")), ">= 1", FAILS),
        (broken, "<= 1", FAILS),
        (absent, "<= 1", NOT_RUN),
        (lambda place: place.file("x.npz"), "<= 1", NEEDS_DATA),
    ],
)
def test_a_false_figure_fails_and_what_is_absent_proves_nothing(
    tmp_path, measure, limit, verdict
):
    assert judged(made(measure, limit), Place(tmp_path)).verdict == verdict


def test_data_is_asked_for_before_anything_is_measured(tmp_path):
    one = made(broken, data=("a.npz",))
    assert judged(one, Place(tmp_path)).verdict == NEEDS_DATA
    assert judged(one, Place(tmp_path, tmp_path)).verdict == NEEDS_DATA
    (tmp_path / "a.npz").touch()
    assert judged(one, Place(tmp_path, tmp_path)).verdict == FAILS


def test_what_takes_long_runs_only_by_its_name(tmp_path):
    one = made(lambda _: Figure(0), long="an hour")
    (found,) = claims.verdicts([one], None, ["exact"])
    assert found.verdict == NOT_RUN
    assert "an hour" in found.figure
    (found,) = claims.verdicts([one], None, ["k"])
    assert found.verdict == HOLDS


CHEAP = ("k-levels-off", "pruning-misses", "sparse-bits")


def test_cheap_claims_really_run(capsys):
    claims.main([*CHEAP, "--json"])
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {one["key"]: one["verdict"] for one in found} == dict.fromkeys(CHEAP, HOLDS)
    assert all(re.match(r"[\d.]+ ", one["figure"]) for one in found)


def test_a_claim_that_fails_ends_with_1_and_others_go_on(monkeypatch, capsys):
    wrong = made(lambda _: Figure(7.0, "seven"))
    after = made(lambda _: Figure(1.0))
    monkeypatch.setattr(claims, "chosen", lambda _: [wrong, after])
    with pytest.raises(SystemExit) as end:
        claims.main([])
    assert end.value.code == "1 claims do not hold"
    _, _, first, second, last = capsys.readouterr().out.splitlines()
    assert first.split(" | ")[0].strip() == FAILS
    assert "7 units (seven)" in first
    assert second.startswith(HOLDS)
    assert last == "1 hold; 1 FAILS"


def test_parts_and_keys_choose():
    assert {one.part for one in claims.chosen(["memory", "kills"])} == {
        "memory",
        "kills",
    }
    assert [one.key for one in claims.chosen(["verify"])] == ["verify"]
    assert len(claims.chosen([])) == len(ALL)
    line = [sys.executable, "-m", "claims", "nothing"]
    wrong = subprocess.run(line, cwd=HOME, capture_output=True, check=False)
    assert wrong.returncode == 2
    assert b"no such part or claim: nothing" in wrong.stderr


def test_figures_of_a_run_are_kept_on_the_page(tmp_path, monkeypatch):
    monkeypatch.setattr(page, "PAGE", tmp_path / "claims.md")
    one, two = ALL["certificate"], ALL["verify"]
    page.write([claims.Verdict(one, HOLDS, "a | b", 2.0)])
    page.write([claims.Verdict(two, HOLDS, "c", 2.0)])
    page.write()
    assert page.recorded()[1] == {
        "certificate": ("a / b", HOLDS),
        "verify": ("c", HOLDS),
    }
    assert (tmp_path / "claims.md").read_text().startswith(page.listing())
