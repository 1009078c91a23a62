"""Instructions for newcomers in the documents work exactly as they are written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.portal_process import CHECKOUT

BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)


def first_block(document: str, language: str) -> str:
    """Return the first block of code in a language."""
    blocks = BLOCK.findall((CHECKOUT / document).read_text())
    return next(code for found, code in blocks if found == language)


@pytest.mark.monarch
@pytest.mark.parametrize(
    ("document", "example", "expected"),
    [
        ("README.md", "examples/hello", "hello from this process"),
        ("docs/tutorial/first-job.md", "examples/squares", "sum: 14"),
    ],
)
def test_the_job_in_a_document_runs_as_it_is_printed(
    portal, tmp_path: Path, document, example, expected
):
    for name, language in (("hello.py", "python"), ("job.yaml", "yaml")):
        block = first_block(document, language)
        assert block == (CHECKOUT / example / name).read_text()
        (tmp_path / name).write_text(block)
    done = portal.mportal("submit", "-F", "-f", str(tmp_path / "job.yaml"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert expected in done.stdout


def test_the_plain_job_of_the_guide_is_accepted(portal):
    # The command line replaces the folder by its upload.
    spec = first_block("docs/howto/plain-job.md", "yaml").replace("workdir: .\n", "")
    with portal.client() as client:
        answer = client.post("/api/v1/projects/default/jobs/validate", json={"spec": spec})
    assert answer.json()["errors"] == []
