"""Which cluster a run may be given to. Dask's wire format carries code, so only trusted addresses are taken.

These are ``tls://`` (both ends show certificates), and ``tcp://`` on this machine.
"""

from __future__ import annotations

import ipaddress
import os
from typing import Any
from urllib.parse import urlsplit

from ...errors import RunError

ADDRESS = "HEADVIZ_DASK"
INSECURE = "HEADVIZ_DASK_INSECURE"
CERTIFICATES = {
    "tls_ca_file": "HEADVIZ_DASK_CA",
    "tls_client_cert": "HEADVIZ_DASK_CERT",
    "tls_client_key": "HEADVIZ_DASK_KEY",
}

_FORM = "Write tls://HOST:PORT, or tcp://127.0.0.1:PORT for a scheduler on this machine."


def cluster_address(given: str | None = None) -> str:
    """The scheduler's address, ``$HEADVIZ_DASK`` by default; a ``RunError`` if it is not a trusted one."""
    text = (os.environ.get(ADDRESS, "") if given is None else given).strip()
    if not text:
        raise RunError(f"No cluster is set. Put its scheduler's address into {ADDRESS}. {_FORM}")
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host or not port or parts.path not in ("", "/") or parts.username:
        raise RunError(f"'{text}' is not the address of a Dask scheduler. {_FORM}")
    if parts.scheme == "tls":
        return text.rstrip("/")
    if parts.scheme != "tcp":
        raise RunError(f"'{parts.scheme}://' is not supported. {_FORM}")
    if not is_loopback(host) and os.environ.get(INSECURE) != "1":
        raise RunError(
            f"'{text}' is neither encrypted nor on this machine: anybody who reaches it could run code. {_FORM} "
            f"In a network where you trust everyone, {INSECURE}=1 allows it."
        )
    return text.rstrip("/")


def is_loopback(host: str) -> bool:
    """Whether a name or number means this machine and cannot mean another one."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def security(address: str) -> Any:
    """Certificates for a ``tls://`` address, from ``$HEADVIZ_DASK_CA``, ``_CERT``, ``_KEY`` or Dask's own settings."""
    if not address.startswith("tls://"):
        return None
    from distributed.security import Security

    given = {name: os.environ[variable] for name, variable in CERTIFICATES.items() if os.environ.get(variable)}
    found: Any = Security(require_encryption=True, **given)
    if not found.tls_ca_file or not found.tls_client_cert:
        raise RunError(
            f"{address} needs certificates: set {', '.join(CERTIFICATES.values())}, or distributed.comm.tls in Dask's "
            "configuration."
        )
    for path in (found.tls_ca_file, found.tls_client_cert, found.tls_client_key):
        if path and "\n" not in path and not os.path.isfile(path):
            raise RunError(f"The certificate file '{path}' does not exist.")
    return found
