from __future__ import annotations

import datetime
import ipaddress
import os
import shutil
import sys
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from monarch_client.runner.base import certificates
from monarch_client.runner.base.certificates import CertificateError, mint_leaf, sign_request
from monarch_client.runner.base.config import Authority
from tests.fake_ca import make_authority

NAMES = ["10.0.0.7", "127.0.0.1", "localhost"]
AUTHORITY = Authority(**make_authority())


@pytest.fixture(params=["openssl", "cryptography"])
def leaf(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> x509.Certificate:
    if request.param == "cryptography":
        monkeypatch.setattr(certificates.shutil, "which", lambda _name: None)
    elif not shutil.which("openssl"):
        pytest.skip("there is no openssl here")
    mint_leaf(AUTHORITY, NAMES, tmp_path / "tls", sys.executable)
    return x509.load_pem_x509_certificate((tmp_path / "tls" / "leaf.crt").read_bytes())


def test_the_leaf_is_the_authoritys_and_names_the_node(leaf: x509.Certificate) -> None:
    authority = x509.load_pem_x509_certificate(AUTHORITY.ca_cert.encode())
    leaf.verify_directly_issued_by(authority)
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.IPAddress) == [
        ipaddress.ip_address(name) for name in NAMES[:2]
    ]
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]
    purposes = leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert {purpose._name for purpose in purposes} == {"serverAuth", "clientAuth"}
    assert isinstance(leaf.public_key(), ec.EllipticCurvePublicKey)


def test_the_leaf_is_valid_already_for_clocks_that_are_behind(leaf: x509.Certificate) -> None:
    now = datetime.datetime.now(datetime.UTC)
    assert leaf.not_valid_before_utc < now - datetime.timedelta(minutes=30)
    assert leaf.not_valid_after_utc > now + datetime.timedelta(days=30)


def test_only_the_leaf_stays_on_the_node_and_only_its_owner_reads_it(
    leaf: x509.Certificate, tmp_path: Path
) -> None:
    assert leaf is not None
    files = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "tls").iterdir()}
    assert files.keys() == {"leaf.crt", "leaf.key", "ca.crt"}
    assert files["leaf.key"] == 0o600


def test_minting_again_replaces_the_leaf(leaf: x509.Certificate, tmp_path: Path) -> None:
    mint_leaf(AUTHORITY, NAMES, tmp_path / "tls", sys.executable)
    again = x509.load_pem_x509_certificate((tmp_path / "tls" / "leaf.crt").read_bytes())
    assert again.serial_number != leaf.serial_number


def test_without_any_tool_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certificates.shutil, "which", lambda _name: None)
    with pytest.raises(CertificateError, match="install openssl"):
        mint_leaf(AUTHORITY, NAMES, tmp_path / "tls", "/no/such/python")
    assert list((tmp_path / "tls").iterdir()) == []


def test_skypilots_own_interpreter_mints_where_the_nodes_cannot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certificates.shutil, "which", lambda _name: None)
    monkeypatch.setenv("SKY_RUNTIME_DIR", str(tmp_path))
    own = tmp_path / "skypilot-runtime" / "bin" / "python"
    own.parent.mkdir(parents=True)
    own.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    own.chmod(0o755)
    mint_leaf(AUTHORITY, NAMES, tmp_path / "tls", "/no/such/python")
    assert (tmp_path / "tls" / "leaf.crt").exists()


def test_an_invalid_authority_is_reported_with_openssls_message(tmp_path: Path) -> None:
    with pytest.raises(CertificateError):
        mint_leaf(Authority("no", "key"), NAMES, tmp_path / "tls", sys.executable)


@pytest.mark.parametrize(("deaths", "is_minted"), [(1, True), (9, False)])
def test_a_command_that_a_signal_ends_is_run_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deaths: int, is_minted: bool
) -> None:
    real = shutil.which("openssl")
    if real is None:
        pytest.skip("there is no openssl here")
    # The stand-in dies when its work is done, before it can report success.
    own = tmp_path / "bin" / "openssl"
    own.parent.mkdir()
    own.write_text(
        f'#!/bin/sh\n"{real}" "$@" || exit\n'
        f'[ "$1" = req ] && exit\necho death >> "{tmp_path}/deaths"\n'
        f'[ "$(wc -l < "{tmp_path}/deaths")" -gt {deaths} ] || kill -KILL $$\n'
    )
    own.chmod(0o755)
    monkeypatch.setenv("PATH", str(own.parent), prepend=os.pathsep)
    if is_minted:
        mint_leaf(AUTHORITY, NAMES, tmp_path / "tls", sys.executable)
    else:
        with pytest.raises(CertificateError, match="killed by signal 9"):
            mint_leaf(AUTHORITY, NAMES, tmp_path / "tls", sys.executable)
    assert (tmp_path / "tls" / "leaf.crt").exists() is is_minted


@pytest.mark.parametrize("tool", ["openssl", "cryptography"])
def test_a_clients_leaf_is_for_its_key_alone_whatever_the_request_wants(
    tool: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if tool == "cryptography":
        monkeypatch.setattr(certificates.shutil, "which", lambda _name: None)
    key = ec.generate_private_key(ec.SECP256R1())
    request = (
        x509.CertificateSigningRequestBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "root of all")]))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    csr = request.public_bytes(serialization.Encoding.PEM).decode()
    signed = sign_request(AUTHORITY, csr, "laptop 9", 3600, sys.executable)
    leaf = x509.load_pem_x509_certificate(signed.leaf.encode())
    leaf.verify_directly_issued_by(x509.load_pem_x509_certificate(signed.ca.encode()))
    assert leaf.subject.rfc4514_string() == "CN=laptop 9"
    assert leaf.public_key() == key.public_key()
    purposes = leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(purposes) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    assert not leaf.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    with pytest.raises(x509.ExtensionNotFound):
        leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    assert abs(leaf.not_valid_after_utc.timestamp() - signed.not_after) < 30
    with pytest.raises(CertificateError):
        sign_request(AUTHORITY, "nonsense", "laptop 9", 3600, sys.executable)
