"""A secret of a project reaches the job that names it, and is found nowhere else afterwards."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote_plus

import psycopg
import pytest
import zstandard
from psycopg import sql

from tests.portal_process import PortalProcess
from tests.waiting import eventually

TOKEN = 'hub_7Qx"w/9+Zk\\T4&é-planted'
KEY = "-----BEGIN KEY-----\nMIIEplantedAAKCAQ\nEAwJalrXUtnFEMI\n-----END KEY-----\n"
PROGRAM = """
import base64, json, os, sys, time
from urllib.parse import quote_plus
token, key = os.environ["TOKEN"], os.environ["DEPLOY_KEY"]
print("control: lengths", len(token), len(key))
print("plain", token, repr(token), json.dumps({"token": token}))
print("coded", base64.b64encode(token.encode()).decode(), token.encode().hex(), quote_plus(token))
print("basic", base64.b64encode(f"user:{token}".encode()).decode())
print(key)
print(repr(key), file=sys.stderr)
sys.stdout.write("slowly " + token[:9])
sys.stdout.flush()
time.sleep(2.2)
print(token[9:])
print("x" * 32760 + token + "y" * 40000)
raise ValueError(f"the hub refused {token}")
"""
JOB = f"""
name: keeps-secrets
setup: echo "setup has $TOKEN"; env
run: |
  cat > program.py <<'PROGRAM'
{"".join("  " + line for line in PROGRAM.splitlines(keepends=True))}
  PROGRAM
  python3 program.py
secrets:
  TOKEN: HUB_TOKEN
  DEPLOY_KEY:
"""


def planted() -> list[bytes]:
    """List the values that must appear nowhere, in every form that the job printed."""
    raw = TOKEN.encode()
    forms = [
        TOKEN,
        repr(TOKEN)[1:-1],
        quote_plus(TOKEN),
        raw.hex(),
        base64.b64encode(raw).decode()[:-4],
        base64.b64encode(b"user:" + raw).decode()[8:-4],
        '7Qx"w',
        "planted",
        *(line for line in KEY.splitlines() if "KEY" not in line),
    ]
    return [form.encode() for form in forms]


def rows(portal: PortalProcess) -> Iterator[bytes]:
    """Yield every row of every table as text, followed by its decompressed values."""
    paths = portal.home.postgres
    with psycopg.connect(
        host=str(paths.sockets), user="mportal", password=paths.password, dbname="mportal"
    ) as connection:
        tables = connection.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
        ).fetchall()
        assert len(tables) > 20
        for (table,) in tables:
            query = sql.SQL("SELECT * FROM {}").format(sql.Identifier(table))
            for row in connection.execute(query):
                yield b"\n".join(map(_plain, row))
        for (payload,) in connection.execute("SELECT payload FROM jobs_logblock"):
            yield zstandard.decompress(payload)


def _plain(value: object) -> bytes:
    """Convert a column's value to bytes, without any quoting."""
    if isinstance(value, dict | list):
        return (
            json.dumps(value, ensure_ascii=False).replace("\\\\", "\\").replace('\\"', '"').encode()
        )
    return bytes(value) if isinstance(value, bytes | memoryview) else str(value).encode()


def files(home: Path, *, but: set[Path]) -> Iterator[tuple[Path, bytes]]:
    """Yield every file with its content, decompressed where it is compressed."""
    for path in home.rglob("*"):
        if path.is_file() and not path.is_symlink() and path not in but:
            content = path.read_bytes()
            is_packed = content.startswith(zstandard.FRAME_HEADER[:4])
            yield path, zstandard.decompress(content) if is_packed else content


@pytest.mark.feature("P8.3")
def test_a_secret_printed_in_many_forms_is_in_no_row_no_file_and_no_answer(own_portal, tmp_path):
    portal = own_portal
    portal.start()
    for name, value in (("HUB_TOKEN", TOKEN), ("DEPLOY_KEY", KEY)):
        (tmp_path / name).write_text(value)
        done = portal.mportal("secret", "set", name, "--from-file", str(tmp_path / name))
        assert done.returncode == 0, done.stderr
    (tmp_path / "job.yaml").write_text(JOB)
    followed = portal.mportal("submit", "--follow", "-f", str(tmp_path / "job.yaml"))
    assert followed.returncode == 1, followed.stdout + followed.stderr
    with portal.client() as client:
        jobs = "/api/v1/projects/default/jobs"
        job = client.get(jobs, params={"name": "keeps-secrets"}).json()["results"][0]
        base = f"{jobs}/{job['id']}"
        assert job["message"].endswith("raised ValueError: the hub refused ***.") or (
            "returned exit code 1" in job["message"]
        )
        assert eventually(
            lambda: client.get(f"{base}/attempts").json()["results"][0]["stages"][-1]["ended_at"]
        )
        answers = [
            client.get(f"{base}{path}").content
            for path in ("", "/attempts", "/events", "/logs?limit=1000", "/logs/download")
        ]
        answers += [client.get("/api/v1/projects/default/secrets").content]
    answers.append((followed.stdout + followed.stderr).encode())
    log = answers[4].decode()
    lengths = f"control: lengths {len(TOKEN)} {len(KEY)}"
    assert lengths in log and "plain ***" in log and "refused ***" in log
    assert any(lengths.encode() in row for row in rows(portal))
    home = portal.home.path
    for form in planted():
        assert not [answer for answer in answers if form in answer], form
        assert not [row[:200] for row in rows(portal) if form in row], form
        found = [
            path for path, content in files(home, but={home / "sealing-keys"}) if form in content
        ]
        assert not found, form
