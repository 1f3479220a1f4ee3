"""The judging of the audit: its own counting, and that it runs and goes on."""

import csv

import numpy as np
import pytest

from paper import audit
from paper.setting import Setting


def read(path):
    with path.open() as file:
        return list(csv.DictReader(file))


def test_rankings_are_judged_as_by_hand():
    flips = np.array([1, 0, 1, 0, 0], bool)
    found = audit._judged(np.array([5, 4, 3, 2, 1]), flips, flips, 0)
    assert found["precision"] == 0.5
    assert found["average_precision"] == pytest.approx((1 + 2 / 3) / 2)
    assert found["flagged"] == 2
    # Equal scores tell nothing, whatever the order of the rows.
    many = np.arange(4000) < 400
    found = audit._judged(np.zeros(4000), many, many, 0)
    assert found["precision"] == pytest.approx(0.1, abs=0.05)


def test_flips_change_labels_of_a_share_of_the_rows():
    y = np.arange(1000) % 7
    flips, other = audit._flipped(y, 3)
    assert flips.sum() == 20
    assert np.array_equal(flips, y != other)
    assert set(other) <= set(range(7))


@pytest.mark.slow
def test_the_judging_runs_and_finds_what_was_planted(tmp_path):
    home = tmp_path / "data"
    home.mkdir()
    draw = np.random.default_rng(0)
    for name in ("letter", "deb_minilm", "optdigits"):
        n = 2000 if name == "deb_minilm" else 600
        y = np.arange(n) % 6
        x = 9.0 * np.eye(6, 12)[y] + draw.normal(size=(n, 12))
        np.savez(home / f"{name}.npz", X=x, y=y)
    setting = Setting(tmp_path / "out", home, quick=True)
    audit.run(setting)
    rows = read(setting.out / "audit_labels.csv")
    own = [row for row in rows if row["method"] == "audit"]
    assert all(float(row["precision"]) > 0.9 for row in own)
    rows = read(setting.out / "audit_duplicates.csv")
    assert all(row["beside_brute_force"] == "0" for row in rows)
    assert all(row["found"] == "500" for row in rows[:3])
    rows = read(setting.out / "audit_outliers.csv")
    assert all(0.5 < float(row["audit"]) <= 1 for row in rows)
    text = (setting.out / "audit.md").read_text()
    audit.run(setting)
    assert (setting.out / "audit.md").read_text() == text
