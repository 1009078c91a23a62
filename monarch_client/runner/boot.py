"""How a node of SkyPilot's gets from a shell to our runner: a script that any image can run."""

from __future__ import annotations

# SkyPilot's own interpreter comes last: an image may have no other one.
_SCRIPT = """\
folder="$HOME/sky_workdir/mp-{attempt_id}"
for python in python3 python "$HOME/skypilot-runtime/bin/python" \
"$HOME/.sky/skypilot-runtime/bin/python"; do
  if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 8))' 2>/dev/null; then
    exec "$python" "$folder/runner.pyz" --from-skypilot \
--config "$folder/attempt.json" --root "$HOME/.mportal/{attempt_id}"
  fi
done
echo "This node has no Python 3.8 or newer, which the portal's runner needs; use an image \
that has one." >&2
exit 1
"""


def boot_script(attempt_id: int) -> str:
    """The `run` section of the attempt's task."""
    return _SCRIPT.format(attempt_id=attempt_id)
