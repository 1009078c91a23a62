"""Keys of sessions and their signing requests, made by `cryptography` or by openssl."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from monarch_client.gateway import certificates


@pytest.mark.parametrize("has_package", [True, False])
def test_a_key_is_private_pkcs8_and_the_same_for_every_renewal(
    has_package: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_package:
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    request = certificates.make_request(tmp_path)
    key_file = tmp_path / certificates.KEY
    assert key_file.stat().st_mode & 0o777 == 0o600
    assert key_file.read_text().startswith("-----BEGIN PRIVATE KEY-----")
    key = serialization.load_pem_private_key(key_file.read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey) and key.curve.name == "secp256r1"
    csr = x509.load_pem_x509_csr(request.encode())
    assert csr.is_signature_valid and csr.public_key() == key.public_key()
    assert certificates.make_request(tmp_path) == request
