"""Makes the certificates of the measured TLS servers. They are never committed."""

import functools
import subprocess

from serving import Failure

KEYS = {
    "ecdsa": ("ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
    "rsa": ("rsa:2048",),
}
DAYS = "30"


@functools.cache
def made(folder, key, name="bench"):
    """Makes a certificate in `folder` once in a run. Returns the paths of its chain and key."""
    folder.mkdir(parents=True, exist_ok=True)
    chain, secret = folder / f"{name}-{key}.pem", folder / f"{name}-{key}.key"
    command = ["openssl", "req", "-x509", "-newkey", *KEYS[key], "-nodes", "-days", DAYS,
               "-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}",
               "-keyout", str(secret), "-out", str(chain)]
    try:
        ran = subprocess.run(command, capture_output=True, text=True)
    except OSError as reason:
        raise Failure(f"openssl makes no certificate: {reason}") from None
    if ran.returncode != 0:
        raise Failure(f"openssl makes no certificate: {ran.stderr.strip()}")
    return chain, secret


def folder_of(build):
    return build.resolve().parent / "bench/certificates"


def options(build, key):
    """Returns the options of a server for a certificate with this kind of key."""
    chain, secret = made(folder_of(build), key)
    return ["--tls-cert", str(chain), "--tls-key", str(secret)]
