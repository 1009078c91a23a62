"""Scripts of jobs do what `bash -c` does with them, and are no argument of any process."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from monarch_client.runner.base.config import NodeFolder
from monarch_client.runner.base.process_tree import descendants, signal_all
from monarch_client.runner.base.processes import exit_code_of
from monarch_client.runner.programs import startup
from monarch_client.runner.programs.shell import RUN, SETUP, start_shell, write_scripts
from monarch_client.runner.programs.startup import after_bashrc
from tests.each_case import check_each

# Each ends the shell, or asks it for something, in a way of its own.
SCRIPTS = {
    "the last exit code": "true; (exit 3)",
    "an exit code beyond 255": "exit 300",
    "no -e": "false; echo on",
    "its own -e": "set -euo pipefail\nfalse | true\necho never",
    "its own -u": "set -u\necho $none\necho never",
    "ERR is trapped once": "trap 'echo failed at $LINENO' ERR\nfalse",
    "EXIT is trapped": "trap 'echo bye' EXIT\nexit 4",
    "a signal to the shell": "kill -TERM $$; echo never",
    "a program that is killed": "sh -c 'kill -KILL $$'",
    "a program in place of the shell": "exec sh -c 'exit 5'",
    "a program that is missing": "no-such-program",
    "a program that cannot be executed": "/etc/passwd",
    "half a line": "echo half\nif (",
    "a text without an end": "cat <<END\n$((1 + 1)) and 'more'",
    "aliases": "shopt -s expand_aliases\nalias hi='echo hello'\nhi",
    "functions and their lines": "f() {\n  echo $FUNCNAME $LINENO\n}\nf; echo $LINENO",
    "its own directory": 'cd "$(dirname "$0")"; pwd; echo "${BASH_SOURCE[0]}"',
    "no arguments": 'echo "$# $1"; shift; echo $?',
    "nothing to read": "read -r line || echo nothing; cat",
    "odd text": "echo 'caf\u00e9 \"$x\" `no` \\\\ %s'\n\n# the end",
    "no text": "",
    "its own options": "echo $-; set -o | grep -c on",
    "descriptors": "ls /proc/self/fd",
    "variables": "compgen -v | grep -i mportal; echo $SHLVL",
}
# Debian's begins so: what `conda init` appends counts in an interactive shell only.
GUARD = "case $- in *i*) ;; *) return;; esac\n"
BASHRC = f"""{GUARD}
export GIVEN=file EXPORTED=file
PLAIN='two  words' LIST=(1 2 '3 4')
greet() {{ echo "hello $1"; }}
alias wave='echo waving'
cd /
"""


class Node:
    """The parts of a node that running a script takes."""

    def __init__(self, root: Path, run: str, setup: str = "", bashrc: str = "") -> None:
        self.folder = NodeFolder(root)
        self.home = root / "home"
        self.folder.workdir.mkdir(parents=True, exist_ok=True)
        self.folder.state.mkdir(exist_ok=True)
        self.home.mkdir(exist_ok=True)
        if bashrc:
            (self.home / ".bashrc").write_text(bashrc)
        config: Any = SimpleNamespace(run=run, setup=setup)
        write_scripts(config, self.folder)

    def run(self, name: str = RUN, **envs: str) -> subprocess.CompletedProcess[str]:
        started: list[list[str]] = []
        children = SimpleNamespace(start=lambda argv, **_options: started.append(argv))
        config = SimpleNamespace(envs=envs, secrets=[])
        place: Any = SimpleNamespace(folder=self.folder, children=children, config=config)
        env = {**os.environ, **envs}
        start_shell(place, name, env, lambda *_: None, lambda _code: None)
        return run(started[0], self.folder.workdir, {"HOME": str(self.home), **envs})


def run(
    argv: list[str], cwd: Path, variables: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv,
        cwd=cwd,
        env={"PATH": os.defpath, "LC_ALL": "C.UTF-8", **(variables or {})},
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("bashrc", ["", GUARD + "true\n"], ids=["", "bashrc"])
def test_a_script_does_what_bash_does_with_the_same_text(tmp_path: Path, bashrc: str) -> None:
    def check(_what: str, script: str) -> None:
        node = Node(tmp_path, script, bashrc=bashrc)
        ours, plain = node.run(), run(["bash", "-c", script], node.folder.workdir)
        assert ours.stdout == plain.stdout
        assert exit_code_of(ours.returncode) == exit_code_of(plain.returncode)
        assert ours.stderr or not plain.stderr

    check_each(SCRIPTS.items(), check)


@pytest.mark.parametrize("name", [RUN, SETUP])
def test_messages_name_the_script_and_its_line(tmp_path: Path, name: str) -> None:
    script = "echo\nno-such-program\n"
    answer = Node(tmp_path, script, script).run(name)
    assert answer.stderr == f"{name}: line 2: no-such-program: command not found\n"


def test_a_script_may_be_longer_than_an_argument(tmp_path: Path) -> None:
    longer = ": " + "x" * 200_000 + "\necho done"
    assert Node(tmp_path, longer).run().stdout == "done\n"


def test_a_node_whose_path_needs_quotes_runs_scripts(tmp_path: Path) -> None:
    assert Node(tmp_path / "it's $HOME", "echo ran").run().stdout == "ran\n"


def test_a_script_that_cannot_be_read_is_no_success(tmp_path: Path) -> None:
    node = Node(tmp_path, "true")
    node.folder.script(RUN).unlink()
    answer = node.run()
    assert (answer.returncode, "No such file" in answer.stderr) == (127, True)


def test_only_the_jobs_user_can_read_scripts(tmp_path: Path) -> None:
    node = Node(tmp_path, "echo run", "echo setup")
    modes = [stat.S_IMODE(path.stat().st_mode) for path in node.folder.state.iterdir()]
    assert modes == [0o600] * 3


@pytest.mark.parametrize("name", [RUN, SETUP])
def test_what_the_users_file_defines_is_there(tmp_path: Path, name: str) -> None:
    script = """
echo $EXPORTED $GIVEN "$PLAIN" "${LIST[2]}"
greet you; wave
bash -c 'echo $EXPORTED'
[ $PWD = $MPORTAL_TEST ] && echo here"""
    node = Node(tmp_path, script, script, BASHRC)
    answer = node.run(name, GIVEN="job's", MPORTAL_TEST=str(node.folder.workdir))
    assert answer.stdout.splitlines() == [
        "file job's two  words 3 4",
        "hello you",
        "waving",
        "file",
        "here",
    ], answer.stderr


def test_conda_is_found_after_setup_has_initialized_it(tmp_path: Path) -> None:
    conda = tmp_path / "conda/etc/profile.d/conda.sh"
    conda.parent.mkdir(parents=True)
    conda.write_text("conda() { echo conda $*; }\n")
    setup = f"echo 'export CONDA_EXE={tmp_path}/conda/bin/conda' >> ~/.bashrc"
    node = Node(tmp_path, "conda activate x; bash -c 'conda info'", setup, GUARD)
    assert node.run(SETUP).returncode == 0
    answer = node.run()
    assert answer.stdout == "conda activate x\nconda info\n", answer.stderr


def test_the_files_own_output_is_shown_and_bashs_words_about_it_are_not(tmp_path: Path) -> None:
    node = Node(tmp_path, "echo ran", bashrc=GUARD + "echo shown; echo too >&2\n")
    answer = node.run()
    assert (answer.stdout, answer.stderr) == ("shown\nran\n", "too\n")


def test_a_search_path_keeps_what_the_runner_put_in_front(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    command = after_bashrc("echo $PATH", {"PATH": "/venv/bin:/usr/bin:/bin"}, frozenset())
    node = Node(tmp_path, "", bashrc="export PATH=/conda/bin:$PATH\n")
    answer = run(
        ["bash", "-c", command],
        tmp_path,
        {"HOME": str(node.home), "PATH": "/venv/bin:/usr/bin:/bin"},
    )
    assert answer.stdout == "/venv/bin:/conda/bin:/venv/bin:/usr/bin:/bin\n"


@pytest.mark.parametrize(
    ("bashrc", "what"),
    [
        ("exit 0", "left the shell (exit code 0)"),
        ("exec sh -c 'exit 7'", "left the shell (exit code 7)"),
        ("while :; do :; done", "did not end within 1 s"),
    ],
)
def test_a_file_that_does_not_come_back_costs_a_warning_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bashrc: str, what: str
) -> None:
    if "within" in what:
        monkeypatch.setattr(startup, "_LIMIT_S", 1)
    answer = Node(tmp_path, "echo ran; exit 3", bashrc=bashrc).run()
    warning = f"~/.bashrc {what}; the script runs without it.\n"
    assert (answer.returncode, answer.stdout, answer.stderr) == (3, "ran\n", warning)


def test_a_file_with_a_command_that_fails_counts(tmp_path: Path) -> None:
    answer = Node(tmp_path, "echo $A", bashrc="set -eu; false; A=1").run()
    assert answer.stdout == "1\n", answer.stderr


def test_a_job_ends_by_sigterm_while_it_reads_the_file(tmp_path: Path) -> None:
    node = Node(tmp_path, "", bashrc="echo reads; while :; do :; done")
    with subprocess.Popen(
        ["bash", "-c", after_bashrc("true", {}, frozenset())],
        env={"PATH": os.defpath, "HOME": str(node.home)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as shell:
        assert shell.stdout
        shell.stdout.readline()
        started = [shell.pid, *descendants(shell.pid)]
        signal_all(started, signal.SIGTERM)
        try:
            # The end of the output is the end of all of them.
            assert shell.communicate(timeout=10)[0] == b""
        except subprocess.TimeoutExpired:
            signal_all(started, signal.SIGKILL)
            raise
    assert shell.returncode == -signal.SIGTERM


def test_what_the_file_sets_for_the_whole_shell_is_there(tmp_path: Path) -> None:
    bashrc = """
shopt -s extglob nullglob
either() { case $1 in @(a|b)) echo yes;; esac; }
alias wave='echo waving'
umask 027; ulimit -n 99; unset DROPPED
"""
    script = "either b; wave; echo no-file*; umask; ulimit -n; echo ${DROPPED-none}"
    node = Node(tmp_path, "", bashrc=bashrc)
    variables = {"HOME": str(node.home), "DROPPED": "x"}
    command = after_bashrc(f"eval {script!r}", {}, frozenset())
    answer = run(["bash", "-c", command], tmp_path, variables)
    assert answer.stdout.split("\n") == ["yes", "waving", "", "0027", "99", "none", ""]
    assert not answer.stderr


def test_a_file_that_traces_shows_nothing_of_the_job(tmp_path: Path) -> None:
    answer = Node(tmp_path, "echo ran", bashrc="set -xv\nA=1\n").run(TOKEN="secret-value")
    assert (answer.stdout, "A=1" in answer.stderr) == ("ran\n", True)
    assert "secret-value" not in answer.stderr
    assert "mportal" not in answer.stderr
