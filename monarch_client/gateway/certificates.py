"""The key of a session, made on the laptop, and the request to have it signed by the job's head.

The key never leaves its folder. It stays the same when the certificate is renewed, so that
replacing one file renews it at once.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
from pathlib import Path

from monarch_client.attaching.errors import AttachError

KEY, LEAF, CA = "leaf.key", "leaf.crt", "ca.crt"
_REQUEST = "request"
_SUBJECT = "mportal laptop"
_TIMEOUT_S = 60.0
_OPENSSL = "openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -batch"


def make_request(folder: Path) -> str:
    """Return the signing request of the folder's key, in PEM; make both if there are none."""
    if not (folder / _REQUEST).exists():
        if importlib.util.find_spec("cryptography") is not None:
            key, request = _with_cryptography()
            _write_private(folder / KEY, key)
            _write_private(folder / _REQUEST, request)
        else:
            _with_openssl(folder)
    return (folder / _REQUEST).read_text()


def is_certified(folder: Path) -> bool:
    """Whether a certificate is in place."""
    return (folder / LEAF).exists()


def install(folder: Path, leaf: str, authority: str) -> None:
    """Replace the certificate and the authority's, each at once."""
    for name, text in ((CA, authority), (LEAF, leaf)):
        new = folder / f".{name}.new"
        _write_private(new, text.encode())
        new.replace(folder / name)


def _with_cryptography() -> tuple[bytes, bytes]:
    from cryptography import x509  # noqa: PLC0415 - may be missing, see make_request
    from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, _SUBJECT)])
    request = x509.CertificateSigningRequestBuilder().subject_name(name).sign(key, hashes.SHA256())
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return private, request.public_bytes(serialization.Encoding.PEM)


def _with_openssl(folder: Path) -> None:
    argv = [*_OPENSSL.split(), "-subj", f"/CN={_SUBJECT}", "-keyout", KEY, "-out", _REQUEST]
    # openssl creates the key's file by the umask of older versions.
    _write_private(folder / KEY, b"")
    try:
        done = subprocess.run(
            argv,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise AttachError(
            f"No key can be made: {error}. Run: pip install 'monarch-portal[gateway]'"
        ) from error
    if done.returncode:
        raise AttachError(f"openssl could not make a key: {done.stderr.strip()[-500:]}")


def _write_private(path: Path, content: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
        file.write(content)
