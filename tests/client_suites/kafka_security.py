"""Settings with which the listeners of Kafka's brokers demand a certificate or a user."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.certificates import Certificates
from tests.client_libraries.secured import Access

#: All that `groupstorm serve` has.
_SCRAM_MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
_MECHANISMS = ("PLAIN", *_SCRAM_MECHANISMS)
_MODULES = "org.apache.kafka.common.security"
#: As whom the brokers connect to each other.
_BROKER, _BROKER_PASSWORD = "broker", "broker-secret"


def listener_settings(access: Access, folder: Path) -> Mapping[str, str]:
    """The settings of a broker whose listener is named by its protocol; ``folder`` receives its key store."""
    settings: dict[str, str] = {}
    if access.certificates is not None:
        settings |= {
            "ssl.client.auth": "required",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(_key_store(access.certificates, folder)),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(access.certificates.authority),
        }
    if access.mechanism:
        passwords = {_BROKER: _BROKER_PASSWORD, access.username: access.password}
        own = f'username="{_BROKER}" password="{_BROKER_PASSWORD}"'
        known = " ".join(f'user_{name}="{password}"' for name, password in passwords.items())
        settings |= {
            "sasl.enabled.mechanisms": ",".join(_MECHANISMS),
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            _jaas(access, "PLAIN"): f"{_MODULES}.plain.PlainLoginModule required {own} {known};",
        }
        for mechanism in _SCRAM_MECHANISMS:
            settings[_jaas(access, mechanism)] = f"{_MODULES}.scram.ScramLoginModule required;"
    return settings


def scram_options(access: Access) -> list[str]:
    """Arguments of `kafka-storage format` that give the user a credential of both mechanisms."""
    if not access.mechanism:
        return []
    credential = f"[name={access.username},password={access.password}]"
    return [
        argument
        for mechanism in _SCRAM_MECHANISMS
        for argument in ("--add-scram", f"{mechanism}={credential}")
    ]


def _jaas(access: Access, mechanism: str) -> str:
    return f"listener.name.{access.protocol.lower()}.{mechanism.lower()}.sasl.jaas.config"


def _key_store(certificates: Certificates, folder: Path) -> Path:
    """The server's key and certificate in one file; Kafka reads keys in PKCS#8 alone."""
    from cryptography.hazmat.primitives import serialization

    key = serialization.load_pem_private_key(certificates.server_key.read_bytes(), None)
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    store = folder / "keystore.pem"
    store.write_bytes(pem + certificates.server.read_bytes())
    return store
