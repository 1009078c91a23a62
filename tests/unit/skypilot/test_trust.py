"""An attempt's authority: signs, and is good for nothing else."""

from __future__ import annotations

import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from monarch_client.runner.base.certificates import mint_leaf
from monarch_client.runner.base.config import Authority as RunnerAuthority
from monarch_client.skypilot.trust import authority_of, new_authority


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


@pytest.mark.feature("S1.5")
def test_one_seed_gives_one_authority_whose_leaves_are_valid_under_each_of_its_certificates(
    tmp_path: Path,
) -> None:
    first, second, other = authority_of(b"one"), authority_of(b"one"), authority_of(b"two")
    assert (first.key == second.key, first.key == other.key) == (True, False)
    mint_leaf(
        RunnerAuthority(first.certificate, first.key), ["127.0.0.1"], tmp_path, sys.executable
    )
    leaf = x509.load_pem_x509_certificate((tmp_path / "leaf.crt").read_bytes())
    leaf.verify_directly_issued_by(x509.load_pem_x509_certificate(second.certificate.encode()))
    with pytest.raises(ValueError, match="Issuer"):
        leaf.verify_directly_issued_by(x509.load_pem_x509_certificate(other.certificate.encode()))
