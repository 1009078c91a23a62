"""The user's ~/.bashrc before a script, as SkyPilot sources it before `setup` and `run`.

`setup` may change the file (`conda init`, `export ... >> ~/.bashrc`), and `run` then finds what it
defines: variables, functions and aliases. Most such files do nothing in a shell that is not
interactive, so SkyPilot runs scripts by `bash -i`, which ignores SIGTERM and goes on after some
errors. Here an interactive shell reads the file only, and the script's own shell is an ordinary
one that takes over what the file has defined.

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
# One line, since bash counts the script's lines from here. Descriptors in place of files: the disk
# may be full.
_COMMAND = (
    "if [ -f ~/.bashrc ]; then exec 7< <(printf %s {startup}) 8>&2 2>/dev/null; "
    "exec bash --rcfile /dev/fd/7 -i; fi; {script}"
)
# What bash says about a missing terminal goes nowhere, what the file says is shown.
_STARTUP = """\
exec 2>&8 7<&- 8>&-
mportal_given=$(declare -p {given} 2>/dev/null) mportal_folder=$PWD mportal_known=$(compgen -v)
. ~/.bashrc
mportal_conda=${{CONDA_EXE:-$(type -P conda)}}
mportal_conda=${{mportal_conda%/*/conda}}/etc/profile.d/conda.sh
if [ -f "$mportal_conda" ]; then set -a; . "$mportal_conda" >/dev/null 2>&1; set +a; fi
if [ -z "${{CONDA_PREFIX:-}}" ] && [ -f "${{VIRTUAL_ENV:-}}/bin/activate" ]; then
  . "$VIRTUAL_ENV/bin/activate"
fi
{paths}
eval "$mportal_given"
[ "$PWD" = "$mportal_folder" ] || builtin cd "$mportal_folder"
unset -f command_not_found_handle
mportal_new=$(compgen -v | command grep -vxF "$mportal_known" | command grep -v '^BASH\\|^mportal_')
exec 9< <(
  declare -f
  [ -z "$(alias)" ] || {{ echo shopt -s expand_aliases; alias -p; }}
  [ -z "$mportal_new" ] || declare -p $mportal_new
)
exec bash -c {script} {name}
"""
_TAKE_OVER = 'eval "$(</dev/fd/9)"; exec 9<&-; '


def after_bashrc(script: str, name: str, env: Mapping[str, str], own: frozenset[str]) -> str:
    """Return a command for `bash -c` that runs `script`, a command, after the user's ~/.bashrc.

    `own` are the names of variables that the job itself sets in `env`, its whole environment.
    """
    given = [each for each in sorted(_set_by_us(env, own)) if _NAME.fullmatch(each)]
    startup = _STARTUP.format(
        given=" ".join(given) or "mportal_none",
        paths="\n".join(_paths(env)),
        script=shlex.quote(_TAKE_OVER + script),
        name=shlex.quote(name),
    )
    return _COMMAND.format(startup=_in_one_line(startup), script=script)


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
