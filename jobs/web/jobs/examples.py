"""The example jobs of the submit page. Each runs unchanged, without a folder."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Example:
    """A job specification with a name to choose it by."""

    slug: str
    title: str
    about: str
    source: str


HELLO_MESH = """\
# A Monarch job: two worker hosts; the driver runs once, on the first.
name: hello-mesh
num_nodes: 2

run: |
  cat > driver.py <<'PY'
  from monarch.actor import Actor, current_rank, endpoint
  from mportal_runtime import meshes

  class Greeter(Actor):
      @endpoint
      def hello(self) -> str:
          return f"hello from rank {current_rank().rank}"

  procs = meshes.trainers.spawn_procs(per_host={"procs": 2})
  greeters = procs.spawn("greeters", Greeter)
  for point, words in greeters.hello.call().get():
      print(point, words, flush=True)
  PY
  python driver.py

portal:
  meshes: {trainers: 2}
"""

PLAIN = """\
# A plain job: the same command on every node. Variables give each node its rank.
name: two-nodes
num_nodes: 2

setup: |
  echo "preparing node $SKYPILOT_NODE_RANK"

run: |
  echo "node $SKYPILOT_NODE_RANK of $SKYPILOT_NUM_NODES"
  echo "all addresses:" $SKYPILOT_NODE_IPS
  for i in 1 2 3 4 5; do echo "step $i"; sleep 1; done
"""

PYTHON = """\
# One node, plain Python, nothing to install.
name: count-primes

envs:
  LIMIT: "200000"

run: |
  python - <<'PY'
  import os
  limit = int(os.environ["LIMIT"])
  sieve = bytearray([1]) * (limit + 1)
  for n in range(2, int(limit**0.5) + 1):
      if sieve[n]:
          sieve[n * n :: n] = bytes(len(range(n * n, limit + 1, n)))
  print(f"{sum(sieve) - 2} primes up to {limit}")
  PY
"""

# The first one fills the editor: one node without meshes, as the form's fields have by default.
EXAMPLES = (
    Example("python", "One Python script", "No mesh, no torch", PYTHON),
    Example("plain", "Plain, two nodes", "A command on every node", PLAIN),
    Example("hello-mesh", "Hello mesh", "Monarch actors on two hosts", HELLO_MESH),
)


def example(slug: str) -> Example:
    """Return the example of that name, else the first."""
    return next((one for one in EXAMPLES if one.slug == slug), EXAMPLES[0])
