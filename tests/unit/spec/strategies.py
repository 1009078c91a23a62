"""Specifications that the parser accepts, in all their variety."""

from __future__ import annotations

import keyword
from typing import Any

from hypothesis import strategies as st

from tests.unit.spec.specs import UPLOAD

WORDS = st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=1, max_size=12)
SLUGS = st.from_regex(r"[a-z][a-z0-9-]{0,10}", fullmatch=True)
TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=40)
SCRIPTS = TEXT.map(lambda text: f"echo {text}\n\ttrue")
MESH_NAMES = st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,10}", fullmatch=True).filter(
    lambda name: not keyword.iskeyword(name)
)
ENV_NAMES = st.from_regex(r"[A-Z_][A-Z0-9_]{0,10}", fullmatch=True).filter(
    lambda name: not name.startswith(("MPORTAL_", "SKYPILOT_"))
)
TARGETS = WORDS.map(lambda word: f"/mnt/{word}")
SOURCES = st.sampled_from([UPLOAD, "s3://bucket/path", "./data", "gs://other"])
DURATIONS = st.integers(1, 86_400) | st.sampled_from(["90m", "12h", "1h30m", "366d", "1W"])

RESOURCES: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "infra": st.sampled_from(["local", "aws/us-east-1", "slurm/main", "k8s/ctx/x", "*"]),
        "accelerators": st.sampled_from(["A100:8", {"H100": 8}, ["A100:1", "T4"], {"T4:1": None}]),
        "cpus": st.sampled_from([4, "4+", 0.5, "8"]),
        "memory": st.sampled_from([16, "16+", "64GB+", "3x"]),
        "use_spot": st.booleans(),
        "disk_tier": st.sampled_from(["low", "BEST", "none"]),
        "disk_size": st.sampled_from([100, "1TB"]),
        "ports": st.sampled_from([80, "8080-8090", [80, "90-95"], []]),
        "labels": st.dictionaries(WORDS, TEXT, max_size=3),
        "any_of": st.lists(
            st.sampled_from([{"infra": "aws"}, {"cpus": 2}]), min_size=1, max_size=3
        ),
    },
)
PORTAL: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "project": SLUGS,
        "meshes": st.dictionaries(MESH_NAMES, st.integers(1, 50), max_size=5),
        "port": st.integers(1024, 65_000),
        "queue": SLUGS,
        "priority": st.integers(0, 100),
        "max_duration": DURATIONS,
        "budget_usd": st.integers(1, 10**7) | st.floats(0.01, 10**7),
        "retry": st.fixed_dictionaries(
            {}, optional={"max_attempts": st.integers(1, 9), "max_recoveries": st.integers(0, 9)}
        ),
    },
)
# Of a form that no name of ENV_NAMES has, since no variable is set twice.
SECRET_NAMES = st.from_regex(r"[a-z_][a-z0-9]{0,10}_s", fullmatch=True).filter(
    lambda name: not name.startswith(("mportal_", "skypilot_"))
)
SECRETS: st.SearchStrategy[Any] = st.lists(SECRET_NAMES, max_size=3) | st.dictionaries(
    SECRET_NAMES, SECRET_NAMES | st.none(), max_size=3
)
SPECS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"run": SCRIPTS},
    optional={
        "name": WORDS,
        "setup": SCRIPTS,
        "workdir": SOURCES.filter(lambda source: "://" not in source)
        | st.just({"url": "https://host/repo.git", "ref": "main"}),
        "envs": st.dictionaries(ENV_NAMES, TEXT | st.integers() | st.booleans(), max_size=4),
        "secrets": SECRETS,
        "resources": RESOURCES,
        "file_mounts": st.dictionaries(
            TARGETS, SOURCES | st.just({"name": "new", "mode": "copy"}), max_size=3
        ),
        "volumes": st.dictionaries(TARGETS, WORDS, max_size=2),
        "config": st.just({"slurm": {"sbatch_options": {"qos": "high"}}}),
        "event_callback": SCRIPTS,
        "portal": PORTAL,
    },
)
