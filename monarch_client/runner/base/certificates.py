"""Certificates that the attempt's authority signs: of this node, and of programs on laptops.

The authority's key is written to a scratch folder and deleted with it.
"""

from __future__ import annotations

import ipaddress
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from monarch_client.runner import scripts
from monarch_client.runner.base.small_files import write_private

if TYPE_CHECKING:
    from monarch_client.runner.base.config import Authority

_DAYS = 90
# Clocks of nodes differ: a fresh certificate must not be "not yet valid" elsewhere.
_BACK_S = 3600
_TIMEOUT_S = 60.0
# `openssl ca` rather than `x509`: only it can date a certificate back.
_OPENSSL_CONFIG = """\
[req]
distinguished_name = name
prompt = no
[name]
CN = mportal node
[ca]
default_ca = attempt
[attempt]
database = index
new_certs_dir = .
rand_serial = yes
default_md = sha256
policy = any
x509_extensions = leaf
unique_subject = no
[any]
commonName = supplied
[leaf]
basicConstraints = CA:FALSE
keyUsage = digitalSignature
{purpose}
"""
_OF_NODE = "extendedKeyUsage = serverAuth, clientAuth\nsubjectAltName = {names}"
# No name and no server's purpose: it cannot pose as a worker.
_OF_CLIENT = "extendedKeyUsage = clientAuth"


class ClientLeaf(NamedTuple):
    """A client's certificate and the authority's, PEM; and its end, in seconds since 1970."""

    leaf: str
    ca: str
    not_after: int


class CertificateError(Exception):
    """A certificate that could not be made; the message contains the reason."""


class _KilledError(CertificateError):
    """A command that was ended by a signal and did not fail by itself."""


def mint_leaf(authority: Authority, names: list[str], folder: Path, python: str) -> None:
    """Write leaf.crt, leaf.key and ca.crt into `folder`, for a server and client called `names`.

    Uses the openssl command; without it, the `cryptography` package of interpreter `python` or
    of SkyPilot's.
    """
    try:
        _mint(authority, names, folder, python)
    except _KilledError:
        # A stop from outside signals all processes of the attempt, and may signal this child first.
        # Try again: the runner itself usually gets its own signal before that ends.
        _mint(authority, names, folder, python)


def _mint(authority: Authority, names: list[str], folder: Path, python: str) -> None:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.TemporaryDirectory(dir=str(folder)) as scratch:
        work = _with_authority(Path(scratch), authority)
        if shutil.which("openssl"):
            _mint_with_openssl(work, names)
        else:
            script = "mint_with_cryptography.py"
            _run_with_cryptography(work, script, [str(_DAYS), *names], python)
        for name in ("leaf.crt", "leaf.key", "ca.crt"):
            (work / name).replace(folder / name)


def sign_request(
    authority: Authority, request: str, subject: str, seconds: int, python: str
) -> ClientLeaf:
    """Sign a client's request (PEM), for its key alone: `subject` is the name in the leaf.

    Uses the same programs as `mint_leaf`.
    """
    not_after = int(time.time()) + seconds
    with tempfile.TemporaryDirectory() as scratch:
        work = _with_authority(Path(scratch), authority)
        write_private(work / "request", request)
        if shutil.which("openssl"):
            write_private(work / "config", _OPENSSL_CONFIG.format(purpose=_OF_CLIENT))
            _sign_with_openssl(work, seconds, ["-subj", f"/CN={subject}"])
        else:
            _run_with_cryptography(
                work, "sign_with_cryptography.py", [str(seconds), subject], python
            )
        return ClientLeaf((work / "leaf.crt").read_text(), authority.ca_cert, not_after)


def ensure_leaf(authority: Authority, address: str, folder: Path, python: str) -> None:
    """Mint the leaf of the node with this address, unless an earlier runner did."""
    if not (folder / "ca.crt").exists():  # it is written last
        mint_leaf(authority, [address, "127.0.0.1", "localhost"], folder, python)


def _with_authority(work: Path, authority: Authority) -> Path:
    write_private(work / "ca.crt", authority.ca_cert)
    write_private(work / "ca.key", authority.ca_key)
    return work


def _mint_with_openssl(work: Path, names: list[str]) -> None:
    alternatives = ", ".join(("IP:" if _is_ip(name) else "DNS:") + name for name in names)
    purpose = _OF_NODE.format(names=alternatives)
    write_private(work / "config", _OPENSSL_CONFIG.format(purpose=purpose))
    request = "openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -config config"
    _call([*request.split(), "-keyout", "leaf.key", "-out", "request"], work)
    _sign_with_openssl(work, _DAYS * 86400, [])


def _sign_with_openssl(work: Path, seconds: int, more: list[str]) -> None:
    """Sign the file `request`; write leaf.crt."""
    write_private(work / "index", "")
    sign = "openssl ca -batch -notext -config config -cert ca.crt -keyfile ca.key -in request"
    dates = ["-startdate", _moment(-_BACK_S), "-enddate", _moment(seconds)]
    _call([*sign.split(), "-out", "leaf.crt", *dates, *more], work)


def _moment(seconds_from_now: float) -> str:
    return time.strftime("%Y%m%d%H%M%SZ", time.gmtime(time.time() + seconds_from_now))


def _run_with_cryptography(work: Path, name: str, arguments: list[str], python: str) -> None:
    """Run a script in `work`, by the first interpreter that has the package."""
    script = work / name
    script.write_bytes(scripts.read(name))
    troubles = []
    for candidate in (python, *_other_pythons()):
        try:
            _call([candidate, script.name, *arguments], work)
        except CertificateError as error:  # noqa: PERF203 - the next one may have it
            troubles.append(str(error))
        else:
            return
    raise CertificateError(
        "no certificate can be made: install openssl, or the Python package "
        f"cryptography ({troubles[0]})"
    )


def _other_pythons() -> list[str]:
    """Return SkyPilot's own interpreter on this node, which has the `cryptography` package."""
    home = Path(os.environ.get("SKY_RUNTIME_DIR") or Path.home())
    own = home / "skypilot-runtime" / "bin" / "python"
    return [str(own)] if own.exists() else []


def _call(argv: list[str], cwd: Path) -> None:
    try:
        result = subprocess.run(
            argv,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CertificateError(f"{argv[0]} could not run: {error}") from error
    text = result.stdout.decode("utf-8", "replace").strip()[-500:]
    if result.returncode < 0:
        raise _KilledError(f"{argv[0]} was killed by signal {-result.returncode}: {text}")
    if result.returncode:
        raise CertificateError(f"{argv[0]} failed: {text}")


def _is_ip(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
