"""An attempt's authority: signs, and is good for nothing else."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from monarch_client.skypilot.trust import new_authority


def test_an_authority_signs_leaves_and_no_further_authorities() -> None:
    authority = new_authority("mp1-1")
    certificate = x509.load_pem_x509_certificate(authority.certificate.encode())
    key = serialization.load_pem_private_key(authority.key.encode(), password=None)
    constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
    usage = certificate.extensions.get_extension_for_class(x509.KeyUsage).value
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    assert certificate.public_key() == key.public_key()
    assert (constraints.ca, constraints.path_length) == (True, 0)
    assert (usage.key_cert_sign, usage.digital_signature) == (True, False)


def test_an_authority_is_valid_now_and_not_for_long() -> None:
    certificate = x509.load_pem_x509_certificate(new_authority("mp1-1").certificate.encode())
    now = datetime.now(timezone.utc)
    assert certificate.not_valid_before_utc < now - timedelta(minutes=30)
    assert now < certificate.not_valid_after_utc < now + timedelta(days=100)


def test_no_two_attempts_share_an_authority() -> None:
    assert new_authority("mp1-1").key != new_authority("mp1-1").key
