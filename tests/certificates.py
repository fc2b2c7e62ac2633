"""Certificates of an authority of our own, for tests of TLS."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import NamedTuple

import pytest


class Certificates(NamedTuple):
    """PEM files: the authority's certificate, the server's and a client's with the keys beside them."""

    authority: Path
    server: Path
    server_key: Path
    client: Path
    client_key: Path

    def client_context(self, with_certificate: bool = False) -> ssl.SSLContext:
        """Return the context of a Python client: whom it believes, and what it shows if it is to."""
        context = ssl.create_default_context(cafile=self.authority)
        if with_certificate:
            context.load_cert_chain(self.client, self.client_key)
        return context


def make_certificates(folder: Path) -> Certificates:
    """For localhost and the loopback addresses."""
    trustme = pytest.importorskip("trustme", reason="makes certificates: pip install trustme")
    authority = trustme.CA()
    found = Certificates(*(folder / f"{name}.pem" for name in Certificates._fields))
    authority.cert_pem.write_to_path(found.authority)
    server = authority.issue_cert("localhost", "127.0.0.1", "127.0.0.2", "::1")
    client = authority.issue_cert("client@example.org")
    for issued, certificate, key in (
        (server, found.server, found.server_key),
        (client, found.client, found.client_key),
    ):
        for position, chained in enumerate(issued.cert_chain_pems):
            chained.write_to_path(certificate, append=position > 0)
        issued.private_key_pem.write_to_path(key)
    return found
