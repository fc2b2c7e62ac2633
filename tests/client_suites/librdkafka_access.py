"""The way of a client of librdkafka past a listener: its configuration, and the variables of trivup.

trivup starts the brokers of librdkafka's own test runs. 0097_ssl_verify loads certificates in all encodings
from the files that trivup's SslApp makes, and SslApp names them in variables.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.certificates import Certificates
from tests.client_libraries.secured import Access

#: Of the PKCS#12 file, as in SslApp; the key in PEM has none there, either.
_PKCS12_PASSWORD = "12345678"


def options_of(access: Access) -> Mapping[str, str]:
    """The client's configuration, beside bootstrap.servers."""
    options = {"security.protocol": access.protocol}
    if access.certificates is not None:
        options |= {
            "ssl.ca.location": str(access.certificates.authority),
            "ssl.certificate.location": str(access.certificates.client),
            "ssl.key.location": str(access.certificates.client_key),
            "ssl.key.password": _PKCS12_PASSWORD,
        }
    if access.mechanism:
        options |= {
            "sasl.mechanism": access.mechanism,
            "sasl.username": access.username,
            "sasl.password": access.password,
        }
    return options


def variables_of(access: Access, folder: Path) -> Mapping[str, str]:
    """The variables that name the client's certificates; ``folder`` receives those in other encodings."""
    if access.certificates is None:
        return {}
    files = _encoded(access.certificates, folder)
    return {name: str(file) for name, file in files.items()} | {"SSL_password": _PKCS12_PASSWORD}


def _encoded(certificates: Certificates, folder: Path) -> Mapping[str, Path]:
    """As SslApp does it, another authority that has signed nothing stands before the real one."""
    import trustme
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.serialization import pkcs12

    other = trustme.CA().cert_pem.bytes()
    real = certificates.authority.read_bytes()
    authorities = [x509.load_pem_x509_certificate(one) for one in (other, real)]
    client = x509.load_pem_x509_certificate(certificates.client.read_bytes())
    key = serialization.load_pem_private_key(certificates.client_key.read_bytes(), None)
    der = serialization.Encoding.DER
    contents = {
        "SSL_all_cas_pem": other + real,
        "SSL_ca_der": authorities[1].public_bytes(der),
        "SSL_pub_der": client.public_bytes(der),
        "SSL_pkcs": pkcs12.serialize_key_and_certificates(
            b"client",
            key,
            client,
            authorities,
            serialization.BestAvailableEncryption(_PKCS12_PASSWORD.encode()),
        ),
    }
    files = {"SSL_pub_pem": certificates.client, "SSL_priv_pem": certificates.client_key}
    folder.mkdir(exist_ok=True)
    for name, content in contents.items():
        files[name] = folder / name
        files[name].write_bytes(content)
    return files
