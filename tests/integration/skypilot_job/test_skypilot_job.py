"""Results of a SkyPilotJob for its program, and the error when it can't have one."""

from __future__ import annotations

import socket
import ssl
import subprocess
import sys
import time
from pathlib import Path

from tests.integration.skypilot_job.conftest import RunClient, nothing_remains, remains
from tests.sky_stub.process import StubProcess

TWO = """
with SkyPilotJob({"trainers": 1, "generators": 1}, cluster_name="two", **options) as job:
    state = job.state()
    say(ranks(state.trainers), ranks(state.generators))
    say("sky" in sys.modules)
    wait()
say("over")
"""
WAIT = """
def wait():
    while not os.path.exists("go"):
        time.sleep(0.05)
options = {}
"""


def test_importing_the_package_needs_neither_sky_nor_monarch() -> None:
    program = (
        "import sys, monarch_client.skypilot\n"
        "assert not {'sky', 'monarch', 'cryptography'} & sys.modules.keys()\n"
        "monarch_client.skypilot.SkyPilotJob\n"
        "assert 'sky' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_meshes_live_on_their_own_hosts_and_strangers_get_nowhere(
    stub: StubProcess, run: RunClient
) -> None:
    program = WAIT + "options['setup_commands'] = ['echo one', 'echo two']" + TWO
    client = run(program)
    client.wait_for("said: False")
    assert client.said == ["['0'] ['1']", "False"]
    row = stub.cloud.get("two")
    assert (row["num_nodes"], row["autostop"], row["to_down"]) == (2, 5, True)
    for address in row["addresses"]:
        assert is_refused(address, 22222)
    log = next(stub.cloud.folder("two").rglob("run.log")).read_text()
    assert "rank 1 setup| two" in log and "mportal: rank 1 is READY at" in log
    (stub.state.parent / "project" / "go").touch()
    assert client.wait() == 0, client.text
    assert client.said[-1] == "over"
    assert remains(stub) == []


def is_refused(address: str, port: int) -> bool:
    """Whether a client without a certificate is disconnected without an answer."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with (
            socket.create_connection((address, port), 5) as plain,
            context.wrap_socket(plain) as stranger,
        ):
            # With TLS 1.3 the refusal comes after the handshake.
            return stranger.recv(1) == b""
    except (ssl.SSLError, ConnectionResetError):
        return True


def test_the_work_directory_and_variables_are_on_every_host(
    stub: StubProcess, run: RunClient, tmp_path: Path
) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "mine.py").write_text("import os\nWORD = os.environ['WORD']\n")
    client = run(f"""
class Reader(Actor):
    @endpoint
    def word(self):
        import mine
        return mine.WORD + os.environ["KEY"]

with SkyPilotJob({{"hosts": 2}}, workdir={str(tmp_path / "code")!r}, envs={{"WORD": "yes"}},
                 secrets={{"KEY": "hush"}}) as job:
    actors = job.state().hosts.spawn_procs(per_host={{"p": 1}}).spawn("reader", Reader)
    say([value for _, value in actors.word.call().get(timeout=30).items()])
""")
    assert client.wait() == 0, client.text
    assert client.said == ["['yeshush', 'yeshush']"]
    assert remains(stub) == []


def test_a_failing_setup_is_reported_at_once_with_its_last_lines(
    stub: StubProcess, run: RunClient
) -> None:
    begin = time.monotonic()
    client = run("""
job = SkyPilotJob({"hosts": 2}, setup_commands="echo no such wheel; exit 3")
try:
    job.state()
except job_errors.WorkersError as error:
    say(error.reason, "returned exit code 3" in str(error), "no such wheel" in str(error))
    say(job.active)
""")
    assert client.wait() == 0, client.text
    assert client.said == ["SETUP True True", "False"]
    assert remains(stub) == []
    assert time.monotonic() - begin < 45


def test_a_program_that_cannot_start_on_the_nodes_is_reported_at_once(
    stub: StubProcess, run: RunClient
) -> None:
    client = run("""
try:
    SkyPilotJob({"hosts": 1}, python_exe="no-such-python").state()
except job_errors.WorkersError as error:
    say(error.reason, "no-such-python" in str(error))
""")
    assert client.wait() == 0, client.text
    assert client.said == ["SETUP True"]
    assert remains(stub) == []


def test_no_capacity_names_every_place_that_was_tried(stub: StubProcess, run: RunClient) -> None:
    stub.plan(places=[{"infra": "slurm/stub/all", "capacity": 1}])
    client = run("""
try:
    SkyPilotJob({"hosts": 2}).state()
except job_errors.ClusterError as error:
    say(error.kind, error.reasons)
""")
    assert client.wait() == 0, client.text
    assert client.said == [
        "no_capacity ['Failed to acquire resources in slurm/stub/all: 2 nodes wanted, 1 free']"
    ]
    assert remains(stub) == []


def test_a_server_that_is_nowhere_is_named_at_once(run: RunClient) -> None:
    client = run(
        """
try:
    SkyPilotJob({"a": 1}).state()
except job_errors.ClusterError as error:
    say(error.kind, error)
""",
        SKYPILOT_API_SERVER_ENDPOINT="http://mia:secret@nowhere.invalid:46580",
    )
    client.wait_for("said: server_away")
    assert "server at http://nowhere.invalid:46580 does not answer" in client.text
    assert "sky api info" in client.text


def test_a_cluster_that_exists_is_refused_and_not_touched(
    stub: StubProcess, run: RunClient
) -> None:
    wanted = {"num_nodes": 1, "infra": "slurm/stub/all", "use_spot": False, "job_name": "-"}
    stub.cloud.begin("taken", {**wanted, "resources": {"instance_type": "x"}, "usd_per_hour": 0.0})
    stub.cloud.come_up("taken")
    client = run("""
try:
    SkyPilotJob({"hosts": 1}, cluster_name="taken").state()
except job_errors.ClusterExistsError as error:
    say("sky down taken" in str(error))
""")
    assert client.wait() == 0, client.text
    assert client.said == ["True"]
    assert stub.cloud.get("taken")["status"] == "UP"


def test_a_process_that_has_used_monarch_is_reported_and_leaves_nothing(
    stub: StubProcess, run: RunClient
) -> None:
    client = run("""
from monarch.actor import this_host
this_host().spawn_procs(per_host={"p": 1}).spawn("host", Host).parent.call().get()
try:
    SkyPilotJob({"hosts": 1}).state()
except job_errors.MonarchInUseError as error:
    say("before anything else" in str(error))
""")
    assert client.wait() == 0, client.text
    assert client.said == ["True"]
    assert nothing_remains(stub)


def test_a_cloud_that_takes_nothing_down_by_itself_is_no_obstacle(
    stub: StubProcess, run: RunClient
) -> None:
    stub.strike("error", "launch", type="NotSupportedError", message="autostop: not supported")
    client = run("""
with SkyPilotJob({"hosts": 1}, cluster_name="plain") as job:
    say(ranks(job.state().hosts))
""")
    client.wait_for("said: ")
    assert client.wait() == 0, client.text
    assert client.said == ["['0']"]
    assert "cannot take it down when idle" in client.text
    assert remains(stub) == []


def test_where_nodes_are_not_reached_ssh_leads_to_the_head(
    stub: StubProcess, run: RunClient, tmp_path: Path
) -> None:
    (tmp_path / "bin").mkdir()
    ssh = tmp_path / "bin" / "ssh"
    ssh.write_text(FAKE_SSH.format(python=sys.executable))
    ssh.chmod(0o755)
    path = f"{tmp_path / 'bin'}:{sys.executable.rpartition('/')[0]}:/usr/bin:/bin"
    client = run(
        """
with SkyPilotJob({"hosts": 2}, reach="tunnel") as job:
    say(ranks(job.state().hosts), job._gateway.rpartition(":")[0])
""",
        PATH=path,
    )
    assert client.wait() == 0, client.text
    assert client.said == ["['0', '1'] tls://127.0.0.1"]
    assert remains(stub) == []


# Takes the one option it needs, runs the remote command here, and ends with it.
FAKE_SSH = """#!{python}
import os, socket, subprocess, sys, threading
here, port, there, to = sys.argv[sys.argv.index("-L") + 1].split(":")

def carry(source, target):
    while data := source.recv(65536):
        target.sendall(data)
    target.shutdown(socket.SHUT_WR)

def serve(listener):
    while True:
        client = listener.accept()[0]
        worker = socket.create_connection((there, int(to)))
        for pair in ((client, worker), (worker, client)):
            threading.Thread(target=carry, args=pair, daemon=True).start()

listener = socket.create_server((here, int(port)))
threading.Thread(target=serve, args=(listener,), daemon=True).start()
os._exit(subprocess.run(["sh", "-c", sys.argv[-1]]).returncode)
"""
