"""Options from files, completion for shells, and how to cite."""

import os
import pty
import shutil
import subprocess

import pytest
from conftest import PROGRAM, SAMPLES

import nnkgraph


@pytest.fixture
def config(tmp_path, points):
    """Build a graph of the points with a configuration file."""

    def build(text, *args, run, env=()):
        path = tmp_path / "c.toml"
        path.write_text(text)
        words = ["build", points, "-o", tmp_path / "g.npz", "--config", path, *args]
        with pytest.MonkeyPatch.context() as patch:
            for name, value in dict(env).items():
                patch.setenv(name, value)
            return run(*words)

    return build


def said_k(result):
    assert result.code == 0, result.err
    return result.err.partition(", k ")[2].partition(",")[0]


def test_an_option_beats_a_variable_beats_the_file_beats_the_default(config, run):
    env = {"NNKGRAPH_BUILD_K": "7"}
    assert said_k(config("", run=run)) == "30"
    assert said_k(config("k = 5", run=run)) == "5"
    assert said_k(config("k = 5\n[build]\nk = 6", run=run)) == "6"
    assert said_k(config("k = 5", run=run, env=env)) == "7"
    assert said_k(config("k = 5", "-k", "8", run=run, env=env)) == "8"


def test_the_general_variable_for_workers_beats_the_file(config, run):
    many = {"NNKGRAPH_WORKERS": "zz"}
    assert "NNKGRAPH_WORKERS" in config("workers = 1", run=run, env=many).err
    own = {**many, "NNKGRAPH_BUILD_WORKERS": "1"}
    assert config("workers = 'auto'", run=run, env=own).code == 0
    refused = config("workers = 'zz'", run=run)
    assert refused.code == 2
    assert "c.toml" in refused.err


def test_keys_are_written_with_either_dash_and_flags_are_true_or_false(
    config, run, tmp_path
):
    text = "min-degree = 2\nmin_weight = 1e-3\n[build]\ndry-run = true\nquiet = true"
    result = config(text, run=run)
    assert result.code == 0
    assert not result.err
    assert not (tmp_path / "g.npz").exists()
    text = "[build]\nblock_timeout = 60.5\nno-clobber = false"
    assert config(text, run=run).code == 0


def test_a_list_repeats_an_option_and_shared_keys_pass_over_other_commands(
    run, points, tmp_path
):
    path = tmp_path / "c.toml"
    path.write_text(
        "k = '4,5'\nsymmetrize = 'max'\nmethod = ['knn', 'nnk']\n[build]\nk = 9\n"
    )
    result = run("compare", points, "--config", path, "--json", "-q")
    assert result.code == 0, result.err
    assert result.out.count('"method": "nnk"') == 2
    assert '"omp"' not in result.out


def test_a_variable_names_the_file_for_all_commands(inside, points, tmp_path):
    (tmp_path / "all.toml").write_text("k = 4")
    (tmp_path / "one.toml").write_text("k = 5")
    env = {"NNKGRAPH_CONFIG": "all.toml"}
    assert said_k(inside("build", points, "-o", "g.npz", env=env)) == "4"
    env["NNKGRAPH_BUILD_CONFIG"] = "one.toml"
    assert said_k(inside("build", points, "-o", "g.npz", env=env)) == "5"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("k = = 5", "is not TOML.*line 1"),
        ("k = 5\nk = 6", "is not TOML"),
        ("\ud800", "is not TOML"),
        ("x = " + "[" * 5000, "is not TOML"),
        ("neighbors = 5", "key 'neighbors' is the name of no option"),
        ("min_wieght = 5", "'min_wieght'.*did you mean 'min-weight'"),
        ("config = 'other.toml'", "'config'"),
        ("[biuld]\nk = 5", "table 'biuld'.*did you mean 'build'"),
        ("[info]\nk = 5", r"\[info\] key 'k'"),
        ("[build]\nfeatures = 'x.npy'", r"\[build\] key 'features'"),
        ("[build.k]\nx = 1", r"\[build\] key 'k' has to be text or a number"),
        ("k = true", "key 'k' has to be text or a number, not 'True' .bool"),
        ("k = [5]", "key 'k' has to be"),
        ("k = 2024-01-01", "key 'k' has to be"),
        ("dry-run = 1", "key 'dry-run' has to be true or false"),
        ("verbose = -1", "key 'verbose' has to be a number from 0"),
        ("workers = 2\nj = 2", "key 'j' sets an option for the second time"),
        ("k = 'many'", "'--k'.*'many'.*from .*c.toml"),
        ("k = 5.5", "'--k'.*'5.5'.*from .*c.toml"),
        ("block-timeout = -1", "'--block-timeout'.*from .*c.toml"),
        ("kernel = 'cubic'", "'--kernel'.*cubic.*from .*c.toml"),
    ],
)
def test_b11_a_bad_configuration_is_refused_and_named(case, text, words):
    (case.here / "c.toml").write_bytes(text.encode(errors="surrogatepass"))
    args = ("build", "x.npy", "-o", "g.npz", "--config", "c.toml")
    assert "c.toml" in case.fails(2, words, *args).err


def test_b11_a_configuration_that_cannot_be_read_is_refused(case):
    args = ("build", "x.npy", "-o", "g.npz", "--config")
    case.fails(2, "no.toml: cannot be read as --config: no such file", *args, "no.toml")
    case.fails(2, r"\.: cannot be read as --config: is a directory", *args, ".")
    case.fails(2, "/dev/zero: is too long", *args, "/dev/zero")
    env = {"NNKGRAPH_CONFIG": "gone.toml"}
    case.fails(2, "gone.toml", "info", "x.npy", env=env)


def test_b14_help_and_version_ignore_a_broken_configuration(inside):
    env = {"NNKGRAPH_CONFIG": "gone.toml", "NNKGRAPH_BUILD_K": "zz"}
    for args in (
        ["--help"],
        ["--version"],
        ["--citation"],
        ["build", "--help"],
        ["build", "--config", "gone.toml", "-h"],
        ["info", "x.npz", "--config=gone.toml", "--help"],
    ):
        result = inside(*args, env=env)
        assert result.code == 0, args
        assert not result.err
        assert result.out


def test_the_citation_says_what_the_citation_file_says(run):
    text = run("--citation").out
    cff = (SAMPLES.parent / "CITATION.cff").read_text()
    about = ("1.2", "If you use", "Turn a", "software", "article", "https")
    facts = [line.partition(": ")[2] for line in cff.splitlines() if ": " in line]
    for fact in facts:
        if not fact.startswith(about):
            assert fact in text, fact
    assert "1910.09383" in cff
    assert "arXiv:1910.09383" in text
    assert f"version = {{{nnkgraph.__version__}}}" in text


def test_completion_is_installed_once(inside, tmp_path):
    env = {"HOME": str(tmp_path), "SHELL": "/usr/bin/bash"}
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "ZDOTDIR"):
        env[name] = ""
    startup = tmp_path / ".bashrc"
    startup.write_text("export A=1")  # without a newline at its end
    first = inside("completion", "--install", env=env)
    assert first.code == 0
    assert first.err.count(": written") == 1
    assert ".bashrc: a line was added" in first.err
    text = startup.read_text()
    assert text.startswith("export A=1\n")
    again = inside("completion", "--install", env=env)
    assert "written" not in again.err
    assert "added" not in again.err
    assert startup.read_text() == text
    assert inside("completion", "fish", "--install", env=env).code == 0
    assert (tmp_path / ".config/fish/completions/nnkgraph.fish").stat().st_size > 100
    assert "compdef" in inside("completion", "zsh", env=env).out


@pytest.mark.parametrize(
    ("shell", "asked"),
    [
        ("bash", "complete -p nnkgraph"),
        ("zsh", "print $_comps[nnkgraph]"),
        ("fish", "complete -C 'nnkgraph sea'"),
    ],
)
def test_a_new_shell_completes_after_the_installation(program, tmp_path, shell, asked):
    if not shutil.which(shell):
        pytest.skip(f"there is no {shell} here")
    env = {**os.environ, "HOME": str(tmp_path), "TERM": "dumb"}
    env = {k: v for k, v in env.items() if not k.startswith("XDG_") and k != "ZDOTDIR"}
    assert program("completion", shell, "--install", env=env).code == 0
    done = subprocess.run(
        [shell, "-ic", asked],
        env={**env, "PATH": f"{PROGRAM.parent}:{env['PATH']}"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        start_new_session=True,
        check=False,
    )
    assert "_nnkgraph_completion" in done.stdout or "search" in done.stdout, done


def test_a_script_on_a_terminal_is_followed_by_its_use():
    terminal, other_end = pty.openpty()
    done = subprocess.run(
        [PROGRAM, "completion", "bash"],
        stdout=other_end,
        stderr=subprocess.PIPE,
        text=True,
        check=True,
    )
    os.close(terminal)
    os.close(other_end)
    here, new = done.stderr.splitlines()
    assert 'eval "$(nnkgraph completion bash)"' in here
    assert "nnkgraph completion bash --install" in new


def test_a_script_in_a_pipe_is_all_there_is(program):
    done = program("completion", "bash")
    assert "complete -o" in done.out
    assert not done.err


def test_completion_for_an_unknown_shell_or_a_closed_home_is_refused(case):
    case.fails(2, "say which one it is", "completion", env={"SHELL": "/bin/sh"})
    (case.here / "file").write_text("")
    env = {"HOME": str(case.here / "file"), "XDG_DATA_HOME": ""}
    case.fails(4, "cannot be written", "completion", "bash", "--install", env=env)
