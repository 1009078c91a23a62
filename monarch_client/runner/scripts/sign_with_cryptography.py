"""Sign a client's request without the openssl command. Run as a script in a folder with ca.crt,
ca.key and request.

Arguments: seconds, then the subject's name. Writes leaf.crt.
"""

from __future__ import annotations

import datetime
import sys
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID


def main(seconds: int, subject: str) -> None:
    """Sign the request for its key alone: what else it contains is ignored."""
    authority = x509.load_pem_x509_certificate(Path("ca.crt").read_bytes())
    authority_key = serialization.load_pem_private_key(Path("ca.key").read_bytes(), None)
    request = x509.load_pem_x509_csr(Path("request").read_bytes())
    if not request.is_signature_valid:
        raise SystemExit("the request is not signed with its own key")
    now = datetime.datetime.now(datetime.timezone.utc)
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)]))
        .issuer_name(authority.subject)
        .public_key(request.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(seconds=seconds))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
    )
    leaf = builder.sign(authority_key, hashes.SHA256())  # type: ignore[arg-type]
    Path("leaf.crt").write_bytes(leaf.public_bytes(serialization.Encoding.PEM))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
