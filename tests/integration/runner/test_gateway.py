"""The head of a Monarch job connects to the portal's gateway, and laptops reach its workers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from websockets.exceptions import ConnectionClosed

from tests.fake_ca import make_authority
from tests.runner_harness import RunnerRig, wait_until
from tests.stand_in_gateway import StandInGateway
from tests.unit.runner.test_bundle import pythons

MakeRig = Callable[..., RunnerRig]
WAITING: dict[str, Any] = {"run": "", "meshes": {"trainers": 1}, "gateway": True}


@pytest.fixture
def gateway() -> Iterator[StandInGateway]:
    made = StandInGateway("secret-token")
    yield made
    made.close()


@pytest.fixture
def make_waiting_rig(make_rig: MakeRig, gateway: StandInGateway) -> MakeRig:
    """Make a job without a driver whose head reaches the gateway."""

    def make(nodes: int = 1, interpreter: str = sys.executable, **settings: Any) -> RunnerRig:
        rig = make_rig(nodes, **{**WAITING, **settings})
        rig.ingest.gateway_port = gateway.port
        rig.start(python=interpreter)
        return rig

    return make


def head_pid(rig: RunnerRig) -> int:
    """Return the process id of the gateway's process, once there is one."""

    def found() -> list[int]:
        return [pid for pid in rig.processes(0) if b"head_process" in command_line(pid)]

    wait_until(found)
    return found()[0]


def has_status(rig: RunnerRig, status: str) -> bool:
    return any(frame["status"] == status for frame in rig.ingest.of_kind("worker"))


def command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def test_a_job_without_a_driver_waits_for_laptops_and_ends_when_it_is_stopped(
    make_waiting_rig: MakeRig, gateway: StandInGateway
) -> None:
    rig = make_waiting_rig(nodes=2, meshes={"trainers": 1, "generators": 1}, tls=make_authority())
    hello = gateway.wait_for_message("hello")
    addresses = [node["address"] for node in rig.config["nodes"]]
    assert [(each["rank"], each["host"]) for each in hello["workers"]] == list(enumerate(addresses))
    assert hello["workers"][1]["address"].endswith(f"@tls://{addresses[1]}:22222")
    assert hello["meshes"] == {"trainers": [0], "generators": [1]}
    assert (hello["attempt"], hello["torchmonarch"]) == (17, "0.7.0")
    assert hello["python"] == "{}.{}".format(*sys.version_info[:2])
    rig.ingest.wait_for(lambda: has_status(rig, "RUNNING"))
    rig.stop_rank(0)
    rig.wait()
    assert rig.ingest.end["reason"] == "CANCELLED_BY_USER"
    assert rig.processes() == []
    assert [rig.log(rank) for rank in rig.runners] == ["", ""]


@pytest.mark.parametrize("interpreter", sorted(pythons()))
def test_a_link_reaches_the_worker_and_a_newer_generation_closes_the_older_one_first(
    make_waiting_rig: MakeRig, gateway: StandInGateway, interpreter: str
) -> None:
    make_waiting_rig(interpreter=interpreter, tls=make_authority())
    gateway.wait_for_message("hello")
    first = gateway.link(gateway.dial(generation=1))
    # TLS's answer to bytes that are no handshake: the worker reads and writes.
    first.send(b"GET / HTTP/1.0\r\n\r\n")
    assert first.recv(timeout=10)[:2] == b"\x15\x03"
    second = gateway.link(gateway.dial(generation=2))
    with pytest.raises(ConnectionClosed):
        first.recv(timeout=10)
    second.send(b"GET / HTTP/1.0\r\n\r\n")
    assert second.recv(timeout=10)[:2] == b"\x15\x03"


def test_the_end_of_a_session_closes_its_links_and_no_others(
    make_waiting_rig: MakeRig, gateway: StandInGateway
) -> None:
    make_waiting_rig(tls=make_authority())
    mine, other = (gateway.link(gateway.dial(session=number)) for number in (1, 2))
    gateway.order("close", session=1)
    with pytest.raises(ConnectionClosed):
        mine.recv(timeout=10)
    other.send(b"GET / HTTP/1.0\r\n\r\n")
    assert other.recv(timeout=10)


def test_the_hosts_of_a_job_without_a_driver_are_watched(
    make_waiting_rig: MakeRig, gateway: StandInGateway
) -> None:
    rig = make_waiting_rig(nodes=2, meshes={"trainers": 2}, tls=make_authority())
    wait_until(lambda: rig.ingest.trees, 120)
    hosts = rig.ingest.trees[-1]["hosts"]
    assert [(host["rank"], host["state"]) for host in hosts] == [(0, "up"), (1, "up")]
    assert gateway.heads == 1


def test_a_link_that_cannot_be_opened_is_reported_with_the_reason(
    make_waiting_rig: MakeRig, gateway: StandInGateway
) -> None:
    make_waiting_rig()
    gateway.dial(link=1, kind="teleport")
    assert "teleport" in gateway.wait_for_message("dial_failed", link=1)["detail"]
    gateway.dial(link=2, rank=7)
    assert "rank 7" in gateway.wait_for_message("dial_failed", link=2)["detail"]


def test_the_head_signs_requests_of_laptops_and_refuses_what_is_none(
    make_waiting_rig: MakeRig, gateway: StandInGateway
) -> None:
    authority = make_authority()
    make_waiting_rig(tls=authority)
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "mine")])
    request = x509.CertificateSigningRequestBuilder().subject_name(name).sign(key, hashes.SHA256())
    csr = request.public_bytes(serialization.Encoding.PEM).decode()
    gateway.order("sign", id=5, session=9, csr=csr)
    signed = gateway.wait_for_message("signed", id=5, session=9)
    leaf = x509.load_pem_x509_certificate(signed["leaf"].encode())
    leaf.verify_directly_issued_by(x509.load_pem_x509_certificate(signed["ca"].encode()))
    assert signed["ca"] == authority["ca_cert"]
    assert leaf.subject.rfc4514_string() == "CN=laptop 9"
    gateway.order("sign", id=6, session=9, csr="nonsense")
    assert "could not sign" in gateway.wait_for_message("refused", id=6)["detail"]


def test_a_head_that_is_cut_off_or_killed_connects_again_and_the_job_goes_on(
    make_waiting_rig: MakeRig, gateway: StandInGateway
) -> None:
    rig = make_waiting_rig()
    gateway.wait_for_message("hello")
    link = gateway.link(gateway.dial())
    gateway.cut_head()
    gateway.wait_for_heads(2)
    # A link outlives the control stream.
    link.ping().wait(10)
    os.kill(head_pid(rig), signal.SIGKILL)
    gateway.wait_for_heads(3)
    with pytest.raises(ConnectionClosed):
        link.recv(timeout=10)
    remarks = [text for text in rig.ingest.texts("portal") if "laptops" in text]
    assert remarks == [
        "The process that connects laptops is started again: it was ended by SIGKILL"
    ]
    assert not rig.ingest.of_kind("end")


def test_the_portal_requests_the_gateway_for_a_job_that_did_not(
    make_rig: MakeRig, gateway: StandInGateway
) -> None:
    rig = make_rig(run="sleep 100", meshes={"trainers": 1})
    rig.ingest.gateway_port = gateway.port
    rig.ingest.wants_gateway = True
    rig.start()
    assert gateway.wait_for_message("hello")["meshes"] == {"trainers": [0]}


def test_laptops_are_notified_of_the_host_that_is_lost(
    make_waiting_rig: MakeRig, gateway: StandInGateway
) -> None:
    rig = make_waiting_rig(nodes=2, meshes={"trainers": 2})
    gateway.wait_for_message("hello")
    workers = [pid for pid in rig.processes(1) if b"worker.py" in command_line(pid)]
    os.kill(workers[0], signal.SIGKILL)
    assert gateway.wait_for_message("lost_hosts")["ranks"] == [1]
    assert rig.ingest.end["reason"] == "WORKER_LOST"


def test_a_job_whose_hosts_a_program_shuts_down_has_completed(
    make_waiting_rig: MakeRig, gateway: StandInGateway
) -> None:
    rig = make_waiting_rig()
    worker = gateway.wait_for_message("hello")["workers"][0]["address"]
    shut_down = """
from monarch.actor import attach_to_workers, enable_transport
import sys
enable_transport("tcp://127.0.0.1:0")
attach_to_workers(ca="trust_all_connections", workers=sys.argv[1:]).shutdown().get(timeout=60)
"""
    subprocess.run([sys.executable, "-c", shut_down, worker], check=True, timeout=60)
    assert (rig.ingest.end["reason"], rig.ingest.end["exit_code"]) == ("COMPLETED", 0)


def test_the_settings_are_readable_by_the_jobs_user_alone(
    make_waiting_rig: MakeRig, gateway: StandInGateway
) -> None:
    rig = make_waiting_rig()
    gateway.wait_for_message("hello")
    file = rig.root() / "state" / "gateway.json"
    assert file.stat().st_mode & 0o777 == 0o600
    assert json.loads(file.read_text())["token"] == "secret-token"
