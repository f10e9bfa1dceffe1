"""An authority of our own, and the certificate of a server on the loopback address.

Made anew for every server, valid for a month, and gone with the server's folder. The
same certificate serves for the connections that the members of a set make to each
other, so it stands for a client too. Needs ``cryptography``, of the ``embedded`` extra.
"""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from tailrace.embedded.ports import LOOPBACK
from tailrace.errors import MissingServer

try:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import rsa
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    INSTALLED = True
except ImportError:
    INSTALLED = False

KEY_BITS = 2048
"""The least that servers take."""
VALID = datetime.timedelta(days=30)
CLOCK_SKEW = datetime.timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Certificates:
    """The files of one server's certificate."""

    authority: Path
    """What a client must trust."""
    certificate: Path
    key: Path
    certificate_and_key: Path
    """Both in one file, as mongod wants them."""


def make_certificates(folder: Path) -> Certificates:
    """Make an authority and a server's certificate, as files in this folder."""
    if not INSTALLED:
        hint = "pip install 'tailrace[embedded]'"
        raise MissingServer(f"no cryptography here: {hint}", extra="embedded", hint=hint)
    made = Certificates(
        authority=folder / "authority.pem",
        certificate=folder / "server.crt",
        key=folder / "server.key",
        certificate_and_key=folder / "server.pem",
    )
    authority_key, key = _new_key(), _new_key()
    authority = _authority(authority_key)
    certificate = _pem(_server(key, authority, authority_key))
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    made.authority.write_bytes(_pem(authority))
    made.certificate.write_bytes(certificate)
    for path, content in ((made.key, private), (made.certificate_and_key, certificate + private)):
        path.touch(mode=0o600)
        path.write_bytes(content)
    return made


def _new_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=KEY_BITS)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _authority(key: rsa.RSAPrivateKey) -> x509.Certificate:
    name = _name("tailrace embedded authority")
    return (
        _builder(name, name, key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(key_cert_sign=True, crl_sign=True), critical=True)
        .sign(key, hashes.SHA256())
    )


def _server(
    key: rsa.RSAPrivateKey, authority: x509.Certificate, authority_key: rsa.RSAPrivateKey
) -> x509.Certificate:
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address(LOOPBACK))]
    purposes = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    return (
        _builder(_name(LOOPBACK), authority.subject, key)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(digital_signature=True, key_encipherment=True), critical=True)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        .add_extension(issuer, critical=False)
        .sign(authority_key, hashes.SHA256())
    )


def _builder(
    subject: x509.Name, issuer: x509.Name, key: rsa.RSAPrivateKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.timezone.utc)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + VALID)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _usage(**wanted: bool) -> x509.KeyUsage:
    usages: dict[str, bool] = dict.fromkeys(
        (
            "digital_signature",
            "content_commitment",
            "key_encipherment",
            "data_encipherment",
            "key_agreement",
            "key_cert_sign",
            "crl_sign",
            "encipher_only",
            "decipher_only",
        ),
        False,
    )
    return x509.KeyUsage(**{**usages, **wanted})
