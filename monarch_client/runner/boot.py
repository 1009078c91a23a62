"""The shell script that a node runs first: it finds a Python and starts the runner with it."""

from __future__ import annotations

_SCRIPT = """\
# Started by SkyPilot on every node, in the work directory that it has filled.
mportal_host="$(hostname 2>/dev/null || echo this node)"
mportal_folder="$(pwd)/mp-{id}"
[ -f "$mportal_folder/runner.pyz" ] || mportal_folder="$HOME/sky_workdir/mp-{id}"
if [ ! -f "$mportal_folder/runner.pyz" ]; then
  echo "mportal: $mportal_folder/runner.pyz is not on $mportal_host: SkyPilot has not brought the\
 attempt's files here. Run the job again." >&2
  exit 1
fi
mportal_home="${{SKY_RUNTIME_DIR:-$HOME}}"
mportal_python=""
for mportal_try in python3 python "$(cat "$mportal_home/.sky/python_path" 2>/dev/null)" \\
    "$mportal_home/skypilot-runtime/bin/python" /usr/bin/python3 /usr/local/bin/python3 \\
    /opt/conda/bin/python3; do
  if [ -n "$mportal_try" ] && "$mportal_try" -I -S -c \\
      'import sys; sys.exit(sys.version_info < (3, 8))' >/dev/null 2>&1; then
    mportal_python="$mportal_try"
    break
  fi
done
if [ -z "$mportal_python" ]; then
  echo "mportal: no Python 3.8 or newer on $mportal_host: use an image that has one\
 (resources.image_id)." >&2
  exit 1
fi
exec "$mportal_python" -I -S "$mportal_folder/runner.pyz" --from-skypilot \\
  --config "$mportal_folder/attempt.json" --root "$HOME/.mportal/{id}"
"""


def boot_script(attempt_id: int) -> str:
    """Return the `run` of the attempt's SkyPilot task, for a POSIX shell.

    The files of the attempt are in `mp-<attempt id>` below the work directory.
    """
    return _SCRIPT.format(id=int(attempt_id))
