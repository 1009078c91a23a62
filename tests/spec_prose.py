"""The sentences of docs/reference/spec.md that the parser's tables cannot know."""

from __future__ import annotations

from monarch_client.spec import SpecCode

INTRODUCTION = """\
# Job specification

Written by `python -m tests.spec_documents` from the tables that the parser reads by; do not edit.
For editors the same as JSON Schema: [job-spec.schema.json](job-spec.schema.json), and
`GET /api/v1/schema/job` on a portal.

A specification is SkyPilot's task YAML plus the block `portal`. Page, REST, command line and Python
read it with one parser, which names every error at once, each with its path and line.

```yaml
name: ppo
workdir: .                      # `mportal submit` uploads it
resources: {accelerators: H100:8, infra: slurm/main}
setup: pip install -r requirements.txt
run: python train.py
envs: {LEARNING_RATE: 3e-4}
portal:
  meshes: {trainers: 2, generators: 1}
  max_duration: 12h
  retry: {max_attempts: 3}
```

- **With `portal.meshes`** it is a Monarch job: nodes are dealt to the meshes in order, and `run` is
  the driver, once, on rank 0. There `from mportal_runtime import meshes` gives `meshes.trainers`.
  `num_nodes` is the sum; if it is given, it must agree.
- **Without** it is a plain job: `run` runs on every one of the `num_nodes` nodes.
- **Folders** (`workdir`, `file_mounts`) reach the portal as uploads, `upload:<sha256>`. A path is a
  path of your own machine: the command line packs the folder and puts the upload in its place; the
  portal itself refuses paths (`local_path`). `.gitignore` (or `.skyignore`) and `.mportalignore`
  say [what stays behind](files-that-travel.md); `.git`, virtual environments and caches do. A link
  may not lead out of the folder. An upload holds at most 20,000 files and folders and 1 GiB, packed
  at most 512 MiB.
- **Git.** `workdir: {url, ref}` is fetched by every node, before `setup`, with the program `git` of
  the node. `ref` is a branch, tag or commit; of a branch each node gets what it holds at that
  moment, so name a commit where all must have the same. For a private repository give the job a
  [secret](../howto/give-secrets-to-jobs.md): `GIT_TOKEN` for https, `GIT_SSH_KEY` (the private key)
  for ssh. A URL with a password in it is refused.
- **Numbers and words.** Only plain decimals are numbers: `010`, `0x1F` and `12:30` are text. In
  `envs` everything is text as it was written, so `1.10` stays `1.10`. Elsewhere a text that
  YAML takes for a number or a flag (`123`, `on`, `no`) is written in quotes: `name: "on"`. A key
  without a value counts as not given.
- **Variables without a value** (`envs: {TOKEN: null}`) are for the submitter to give:
  `mportal submit -e TOKEN=...`.
- **Accelerators** (`gpus` is another name of the key) are counted for quotas, pools and shares as
  SkyPilot makes them, however they are spelled: `H100:8`, `{H100: 8}`, `[H100:8]` and
  the YAML set `{H100:8}` are eight of a node.
  What an entry of `any_of` or `ordered` says stands in place of what is said beside them. Of
  several choices the one with most accelerators counts, of equal ones the first. A count has at
  most six digits, and all nodes together have at most 2,147,483,647. `instance_type` alone counts
  as none, since only its cloud knows what it has: where a quota or a pool counts GPUs it is
  refused (`missing`) unless `accelerators` stand beside it. SkyPilot compares the two.
- **Documents.** Several documents of one file
  [run in order](../howto/run-jobs-in-order-and-sweeps.md).
- **Bounds.** One YAML document of at most 256 KiB, 10,000 values (those that aliases repeat
  included) and 24 levels; no tags, no merge keys. `setup` and `run` hold at most 100 KiB each.
- **Backends** may refuse more, with the reason, when the job is submitted: the local one has no
  buckets, ports or images.

Whatever SkyPilot's task reference knows and this page does not accept is listed under
[refused keys](#refused-keys) with the reason.
"""

SECTIONS = (
    ("Top level", "", ""),
    ("resources", "What each node must be.", "resources"),
    (
        "file_mounts",
        "Each key is a path on the nodes; its value an upload, a bucket's URL, or a mapping with:",
        "file_mounts",
    ),
    ("portal", "What the portal itself does for the job.", "portal"),
    (
        "config",
        "SkyPilot's settings for one task. All of it is for administrators of the installation.",
        "config",
    ),
)

CODES = {
    SpecCode.TOO_LARGE: "More text, values or entries than the bounds allow.",
    SpecCode.TOO_DEEP: "Nested too deeply.",
    SpecCode.YAML_SYNTAX: "Not YAML.",
    SpecCode.YAML_FEATURE: "YAML that is not read: tags, merge keys, a second document.",
    SpecCode.BAD_CHARACTER: "A control character, or half of one.",
    SpecCode.DUPLICATE_KEY: "The same key twice in one mapping.",
    SpecCode.UNKNOWN_KEY: "No such key; `suggestion` is the nearest one.",
    SpecCode.MISSING: "A key that must be there is not.",
    SpecCode.WRONG_TYPE: "A value of another kind, such as text for a number.",
    SpecCode.BAD_VALUE: "The right kind, but none of the allowed values.",
    SpecCode.CONFLICT: "Two keys that do not go together.",
    SpecCode.ADMIN_ONLY: "A key for administrators of the installation.",
    SpecCode.SET_BY_PORTAL: "A key that the portal sets itself, or does in another way.",
    SpecCode.NOT_ENFORCED: "A key that this version would ignore; it refuses it instead.",
    SpecCode.LOCAL_PATH: "A path of the submitter's machine, where the portal takes uploads only.",
    SpecCode.WRONG_PROJECT: "`portal.project` is not the project that the job was sent to.",
    SpecCode.UNKNOWN_UPLOAD: "The project has no such upload.",
    SpecCode.UNKNOWN_SECRET: "The project has no secret of that name.",
    SpecCode.UNKNOWN_CLUSTER: "The project keeps no cluster of that name that could take the job.",
    SpecCode.UNKNOWN_JOB: "The project has no job, and no array, of that name or number.",
    SpecCode.DEPENDENCY_CYCLE: "Jobs that were submitted together wait for one another, or a "
    "child job for its parent.",
    SpecCode.DEPENDENCY_FAILED: "A job that has to succeed before has ended otherwise already.",
    SpecCode.UNKNOWN_QUEUE: "There is no queue of that name that could take the job.",
    SpecCode.OVER_LIMIT: "More than an administrator of the installation allows.",
    SpecCode.UNSUPPORTED_BY_BACKEND: "The backend that `resources.infra` leads to cannot do it.",
}
