"""Provides nginx: the installed program, or Debian's package, unpacked here.

Installing the package would start a web server on port 80, now and at every boot.
"""

import os
import pathlib
import shutil
import subprocess
import sys

FOLDER = pathlib.Path(__file__).resolve().parent


def program():
    """Returns the path of the program, or None."""
    unpacked = FOLDER / "package/usr/sbin/nginx"
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin"])
    return shutil.which("nginx", path=path) or (str(unpacked) if unpacked.exists() else None)


def main():
    if not program():
        subprocess.run(["apt-get", "download", "nginx"], cwd=FOLDER, check=True)
        package = max(FOLDER.glob("nginx_*.deb"), key=lambda file: file.stat().st_mtime)
        subprocess.run(["dpkg-deb", "-x", package, FOLDER / "package"], check=True)
    return subprocess.run([program(), "-v"], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
