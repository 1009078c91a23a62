"""The login node: an sshd on the rig's own side of the bridge, and the files of its shells."""

from __future__ import annotations

import configparser
import os
import sys
from pathlib import Path

from tests.cluster.rig import daemons, places
from tests.cluster.rig.spaces import run

SSHD = """\
Port {port}
ListenAddress {here}
ListenAddress 127.0.0.1
HostKey {run}/host_key
AuthorizedKeysFile {run}/authorized_keys .ssh/authorized_keys
PermitRootLogin yes
PasswordAuthentication no
UsePAM no
StrictModes no
PidFile {run}/sshd.pid
Subsystem sftp internal-sftp
MaxSessions 200
MaxStartups 200
"""
UV_SETTINGS = """\
system-certs = true
https-proxy = "http://{here}:{port}"
"""
# SkyPilot installs uv with a script of the network's; this is the same uv without that.
CURL = """\
#!/bin/sh
for word in "$@"; do
    if [ "$word" = https://astral.sh/uv/install.sh ]; then
        echo 'mkdir -p "$UV_INSTALL_DIR" && ln -sf /usr/local/bin/uv "$UV_INSTALL_DIR/uv"'
        exit 0
    fi
done
exec /usr/bin/curl "$@"
"""
UV = """\
#!/bin/sh
UV='{uv}' UV_CACHE_DIR='{cache}' WHEELS='{wheels}' PYTHON='{python}'
. '{script}'
"""
PYTHON = """\
#!/bin/sh
exec '{python}' "$@"
"""


def write_accounts(nodes: tuple[str, ...]) -> None:
    """Make root's home the rig's, and every node known by name."""
    home = str(places.HOME)
    lines = Path("/etc/passwd").read_text().splitlines()
    others = [line for line in lines if not line.startswith("root:")]
    root = f"root:x:0:0:root:{home}:/bin/bash"
    Path("/etc/passwd").write_text("\n".join([root, *others]) + "\n")
    shadow = Path("/etc/shadow")
    kept = [line for line in shadow.read_text().splitlines() if not line.startswith("root:")]
    # No password, and not locked, which sshd would refuse even with a key.
    shadow.write_text("\n".join(["root:*:19000:0:99999:7:::", *kept]) + "\n")
    names = [f"{places.address_of(node)} {node}" for node in nodes]
    hosts = ["127.0.0.1 localhost", f"{places.HERE} rig-login", *names]
    Path("/etc/hosts").write_text("\n".join(hosts) + "\n")
    (places.HOME / ".bashrc").touch()


def write_programs() -> None:
    """Write the settings and programs that nodes have besides the machine's own."""
    Path("/etc/uv").mkdir(exist_ok=True)
    Path("/etc/uv/uv.toml").write_text(UV_SETTINGS.format(here=places.HERE, port=places.PROXY_PORT))
    # SkyPilot's server builds the package that it brings to nodes, for which pip needs others.
    settings = configparser.RawConfigParser()
    settings.read("/etc/pip.conf")
    settings.read_dict({"global": {"proxy": f"http://{places.HERE}:{places.PROXY_PORT}"}})
    with Path("/etc/pip.conf").open("w") as file:
        settings.write(file)
    base = os.path.realpath(sys.executable)
    _program("/usr/local/sbin/curl", CURL)
    known = {"uv": places.UV, "cache": places.UV_CACHE, "wheels": places.WHEELS}
    script = Path(__file__).with_name("uv_on_nodes")
    _program("/usr/local/bin/uv", UV.format(**known, python=base, script=script))
    for name in ("python", "python3"):
        _program(f"/usr/local/bin/{name}", PYTHON.format(python=base))


def start_sshd() -> None:
    """Start the login node, which one key opens: places.LOGIN_KEY."""
    for key in (places.LOGIN_KEY, places.RUN / "host_key"):
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key))
    public = places.LOGIN_KEY.with_suffix(".pub").read_text()
    (places.RUN / "authorized_keys").write_text(public)
    configuration = places.RUN / "sshd_config"
    configuration.write_text(SSHD.format(port=places.SSH_PORT, here=places.HERE, run=places.RUN))
    Path("/run/sshd").mkdir()
    daemons.start("/usr/sbin/sshd", "-D", "-e", "-f", str(configuration), log="sshd")
    daemons.await_condition("sshd", (places.RUN / "sshd.pid").exists)


def _program(path: str, text: str) -> None:
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    file.write_text(text)
    file.chmod(0o755)
