"""The fuzzer works: it reads, it runs, and it sees what it should see."""

import time

import pytest

from fuzz import cases, files, watch
from fuzz.commands import fuzz_commands
from fuzz.files import fuzz_files
from fuzz.readers import ROLES
from nnkgraph import formats
from nnkgraph.errors import InputError


def test_damaged_files_of_all_kinds_give_no_findings(tmp_path):
    tally = fuzz_files(7, files=300, found=tmp_path)
    assert tally.findings == []
    assert tally.count == 300
    assert set(tally.slowest) == set(ROLES)
    assert tally.accepted.total() > 30
    assert tally.refused.total() > 100


def test_random_command_lines_give_no_findings(tmp_path):
    runs = fuzz_commands(4, lines=1, found=tmp_path)
    assert runs.findings == []
    assert runs.codes.total() == runs.verified == runs.compared == 1


def test_a_case_depends_on_its_numbers_alone():
    assert cases.draw(3, 41).data == cases.draw(3, 41).data
    assert cases.draw(3, 41).data != cases.draw(4, 41).data


def test_every_seed_is_read_as_it_is(tmp_path):
    for seed in cases.seeds():
        if seed.name == "q.npz":
            continue  # answers are read by scipy alone
        case = cases.Case(seed, seed.data, cases.Random(0))
        path = cases.put(case, tmp_path)
        if seed.role != "values" or seed.name not in {"y.npy", "s.npy"}:
            assert cases.run(case, path) in {"", "InputError"}, seed.name


def test_the_watch_sees_other_files_and_pickles(tmp_path, monkeypatch):
    monkeypatch.setattr(watch.resource, "setrlimit", lambda *_: None)
    inside, outside = tmp_path / "case", tmp_path / "canary"
    inside.mkdir()
    for path in (inside / "x", outside):
        path.write_bytes(b"x")
    look = watch.Watch(inside, [outside])
    look.start()
    (inside / "x").read_bytes()
    look.stop()
    assert look.seen == []
    look.start()
    outside.read_bytes()
    end = time.process_time() + 0.05
    while time.process_time() < end:
        pass
    seconds, peak = look.stop()
    assert any("canary" in one for one in look.seen)
    assert any("library" in one for one in look.seen)
    assert seconds >= 0.05
    assert peak > 10


@pytest.mark.parametrize("error", [ValueError("odd"), RuntimeWarning("odd")])
def test_other_errors_are_raised_and_kept(tmp_path, monkeypatch, error):
    def wrong(*_args, **_options):
        raise error

    monkeypatch.setattr(formats, "read_features", wrong)
    case = cases.draw(0, 0)
    with pytest.raises(type(error)):
        cases.run(case, cases.put(case, tmp_path))
    files.keep(0, 0, "why", tmp_path / "found")
    kept = {path.suffix: path for path in (tmp_path / "found").iterdir()}
    assert "--seed 0 --only 0" in kept[".finding"].read_text()
    assert case.data in [path.read_bytes() for path in kept.values()]


def test_documented_errors_are_answers(tmp_path, monkeypatch):
    def refuse(*_args, **_options):
        raise InputError("no")

    monkeypatch.setattr(formats, "read_features", refuse)
    case = cases.draw(0, 0)
    assert cases.run(case, cases.put(case, tmp_path)) == "InputError"
