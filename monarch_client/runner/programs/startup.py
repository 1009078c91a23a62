"""The user's ~/.bashrc before a script, as SkyPilot sources it before `setup` and `run`.

`setup` may change the file (`conda init`, `export ... >> ~/.bashrc`), and `run` then finds what it
defines: variables, functions, aliases, shell options, umask and limits. Most such files do nothing
in a shell that is not interactive, so SkyPilot runs scripts by `bash -i`, which ignores SIGTERM and
goes on after some errors. Here an interactive shell, a child of the script's own, reads the file
and prints commands that define the same. The script's shell runs these commands, then the script.
So a file that ends its shell, replaces it (`exec fish`) or never ends costs a warning only.

As in SkyPilot, variables of the job win over those of the file, conda's functions are exported, and
the virtual environment of the node comes before other directories unless conda is active.
"""

from __future__ import annotations

import os
import re
import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Iterator, Mapping

_PATHS = ("PATH", "PYTHONPATH")
_NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_LIMIT_S = 30
# What a shell keeps about itself.
_OF_THE_SHELL = ("_", "BASHOPTS", "OLDPWD", "PWD", "SHELLOPTS", "SHLVL")
# One line, since bash counts the script's lines from here. 7 and 8 are the script's output.
_COMMAND = 'if [ -f ~/.bashrc ]; then {{ eval "$(eval {reading})"; }} 7>&1 8>&2; true; fi; {script}'
# Prints the commands that define what the file has defined. They end with a NUL: a process that the
# file leaves behind may hold the pipe open. Pipes in place of files: the disk may be full. What
# bash says about a missing terminal or a killed shell goes nowhere.
_READING = """\
exec 2>/dev/null
SECONDS=0
IFS= read -r -d '' answer < <(
  timeout -s KILL {limit} bash --rcfile /dev/fd/6 -i </dev/null 6< <(printf %s {startup}) 9>&1 1>&7
  printf '%s\\0' $?
)
if [[ $answer = *[!0-9]* ]]; then
  printf %s "$answer"
  exit
fi
what="left the shell (exit code $answer)"
((SECONDS < {limit})) || what="did not end within {limit} s"
echo "~/.bashrc $what; the script runs without it." >&8
"""
# What the file itself says is shown. In braces, so that the file's aliases do not change the rest.
# `extglob`: functions may need it to be parsed. The trap: an interactive shell ignores SIGTERM.
_STARTUP = """\
{{
exec 6<&- 7>&-
trap 'exit 143' TERM
mportal_variables=$(compgen -v) mportal_exported=$(compgen -e)
mportal_options=$(shopt -p) mportal_limits=$(ulimit -Sa)
. ~/.bashrc 2>&8 8>&- 9>&- || true
{{ set +aefuvx; trap - DEBUG ERR EXIT RETURN; IFS=$' \\t\\n'; }} >/dev/null
mportal_conda=${{CONDA_EXE:-$(type -P conda)}}
mportal_conda=${{mportal_conda%/*/conda}}/etc/profile.d/conda.sh
if [ -f "$mportal_conda" ]; then set -a; . "$mportal_conda" >/dev/null; set +a; fi
if [ -z "${{CONDA_PREFIX:-}}" ] && [ -f "${{VIRTUAL_ENV:-}}/bin/activate" ]; then
  . "$VIRTUAL_ENV/bin/activate"
fi
{paths}
unset -f command_not_found_handle
mportal_kept='mportal_.*|{kept}'
mportal_unset=$(echo "$mportal_exported" | command grep -vxF "$(compgen -e)" |
  command grep -vxE "$mportal_kept")
mportal_set=$({{
  compgen -e
  compgen -v | command grep -vxF "$mportal_variables" | command grep -v ^BASH
}} | command grep -vxE "$mportal_kept")
mportal_answer=$(
  echo unset -v $mportal_unset
  [ -z "$mportal_set" ] || declare -p $mportal_set
  umask -p
  ulimit -Sa | command grep -vxF "$mportal_limits" |
    command sed 's/.*-\\(.\\)) *\\(.*\\)/ulimit -S\\1 \\2 || ulimit -\\1 \\2/'
  alias -p
  echo shopt -s extglob
  declare -f
  declare -Fx
  [ -z "$(alias)" ] || echo shopt -s expand_aliases
  shopt -p extglob
  shopt -p | command grep -vxF "$mportal_options"
)
printf '%s\\0' "$mportal_answer" >&9
exit
}}
"""


def after_bashrc(script: str, env: Mapping[str, str], own: frozenset[str]) -> str:
    """Return a command for `bash -c` that runs `script`, a command, after the user's ~/.bashrc.

    `own` are the names of variables that the job itself sets in `env`, its whole environment.
    """
    given = [each for each in sorted(_set_by_us(env, own)) if _NAME.fullmatch(each)]
    startup = _STARTUP.format(kept="|".join([*_OF_THE_SHELL, *given]), paths="\n".join(_paths(env)))
    reading = _READING.format(limit=_LIMIT_S, startup=shlex.quote(startup))
    return _COMMAND.format(reading=_in_one_line(reading), script=script)


def _in_one_line(text: str) -> str:
    """Quote a text for bash without line ends."""
    quoted = text.replace("\\", r"\\").replace("'", r"\'").replace("\n", r"\n")
    return f"$'{quoted}'"


def _set_by_us(env: Mapping[str, str], own: frozenset[str]) -> Iterator[str]:
    """Yield the variables of the job, and those that the runner sets for it."""
    for name, value in env.items():
        if name in own or (name not in _PATHS and os.environ.get(name) != value):
            yield name


def _paths(env: Mapping[str, str]) -> Iterator[str]:
    """Yield commands that put in front what the runner has put in front of search paths."""
    for name in _PATHS:
        value, inherited = env.get(name, ""), os.environ.get(name, "")
        if value != inherited and value.endswith(inherited):
            added = value[: len(value) - len(inherited)].rstrip(os.pathsep)
            yield f'export {name}={shlex.quote(added)}"${{{name}:+:${name}}}"'
