"""The certificate authority of one attempt: holders of its key belong to the attempt.

Each runner makes its own certificate from it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

# Longer than any attempt should last; clocks of nodes may be behind.
VALID_FOR = timedelta(days=90)
_P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
CLOCK_SKEW = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Authority:
    """A certificate and its key, both in PEM."""

    certificate: str
    key: str


def new_authority(name: str) -> Authority:
    """Make a new authority; `name` shows up in error messages of TLS, nothing depends on it."""
    return _authority(name, ec.generate_private_key(ec.SECP256R1()))


def authority_of(seed: bytes) -> Authority:
    """Compute an authority from a seed: the same seed gives the same name and key, on any machine.

    The certificates differ in their dates only, so a leaf under one of them is valid under all.
    """
    digest = hashlib.sha512(b"mportal authority\0" + seed).digest()
    # Far more bits than the order of the curve has, so that every key is as likely.
    number = int.from_bytes(digest, "big") % (_P256_ORDER - 1) + 1
    name = "mportal " + hashlib.sha256(digest).hexdigest()[:16]
    return _authority(name, ec.derive_private_key(number, ec.SECP256R1()))


def _authority(name: str, key: ec.EllipticCurvePrivateKey) -> Authority:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(timezone.utc)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + VALID_FOR)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_may_only_sign(), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return Authority(
        certificate.public_bytes(serialization.Encoding.PEM).decode(),
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ).decode(),
    )


def _may_only_sign() -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )
