"""The catalogue of faults is covered, and counted right."""

import re
from pathlib import Path

import faults


def test_every_row_has_a_test_or_a_reason():
    named = set()
    for path in Path(__file__).parents[1].rglob("test_*.py"):
        for name in re.findall(r"^ *def (test_\w+)", path.read_text(), re.MULTILINE):
            named.update(faults.rows_of(name))
    known = set(faults.ROWS)
    assert len(known) == 139 + 83
    assert named <= known
    assert set(faults.WAITING) | set(faults.IMPOSSIBLE) <= known
    missing = known - named - set(faults.WAITING) - set(faults.IMPOSSIBLE)
    assert not missing, sorted(missing)
    assert not set(faults.WAITING) & set(faults.IMPOSSIBLE)


def test_the_page_has_the_rows_of_the_second_catalogue_and_their_cases():
    page = (Path(__file__).parents[2] / "docs" / "faults.md").read_text("utf-8")
    rows = re.findall(r"^\| ([A-Z]\d+) \| (.+) \| (.+) \|$", page, re.MULTILINE)
    second = [row.upper() for row in faults.ROWS if row[0] > "i"]
    assert [row for row, _, _ in rows] == second
    assert len({case for _, case, _ in rows}) == len(rows)


def test_names_are_read_with_and_without_zeros():
    assert faults.rows_of("test_a07_b15_words_c3_more") == ["a7", "b15"]
    assert faults.rows_of("test_a7_words[a1_b]") == ["a7"]
    assert faults.rows_of("test_add_7") == []


def test_a_row_with_one_failure_has_failed():
    outcomes = {row: {"passed"} for row in faults.ROWS}
    outcomes["a1"] = {"passed", "failed"}
    outcomes["a2"] = {"skipped"}
    del outcomes["a3"]
    lines = faults.table(outcomes)
    assert lines[1].split() == ["A", "36", "35", "33", "2", "1", "0", "0"]
    assert lines[len(faults.LENGTHS) + 1].split()[:2] == ["all", str(len(faults.ROWS))]
    assert "failed: A1, A3" in lines
