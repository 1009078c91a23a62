"""The exceptions that a program's output shows."""

from __future__ import annotations

import textwrap

from monarch_client.runner.scripts.mportal_runtime.tracebacks import exception_that_ended

PLAIN = textwrap.dedent("""\
    step 3
    Traceback (most recent call last):
      File "/tmp/rank-3/workdir/train.py", line 8, in <module>
        load(3)
      File "/v/site-packages/torch/data.py", line 1, in load
        raise ValueError(f"shard {n} is corrupt")
        ^^^^^^^^^^^^^^^^^^^^^
    ValueError: shard 3 is corrupt: bad magic number
    saved nothing
""")
CHAINED = textwrap.dedent("""\
    Traceback (most recent call last):
      File "/w/a.py", line 1, in <module>
    KeyError: 'x'

    During handling of the above exception, another exception occurred:

    Traceback (most recent call last):
      File "/w/a.py", line 3, in <module>
    my.lib.Broken: no shard
""")
# What torchrun 2.9 prints after a worker's own output.
TORCHRUN = "".join(
    f"[rank0]: {line}\n" for line in PLAIN.splitlines() if line != "saved nothing"
) + textwrap.dedent("""\
    E1127 11:00:00.1 71 torch/distributed/elastic/multiprocessing/api.py:874] failed (exitcode: 1)
    Traceback (most recent call last):
      File "/v/bin/torchrun", line 8, in <module>
        sys.exit(main())
      File "/v/site-packages/torch/distributed/launcher/api.py", line 269, in launch_agent
        raise ChildFailedError(
    torch.distributed.elastic.multiprocessing.errors.ChildFailedError:@
    ============================================================
    train.py FAILED
    ------------------------------------------------------------
    Failures:
      <NO_OTHER_FAILURES>
    ------------------------------------------------------------
    Root Cause (first observed failure):
    [0]:
      time      : 2026-11-27_11:00:00
      host      : node-a
      rank      : 5 (local_rank: 1)
      exitcode  : -9 (pid: 71)
      error_file: <N/A>
      traceback : Signal 9 (SIGKILL) received by PID 71
    ============================================================
""").replace("@", " ")


def test_the_exception_is_found_although_other_output_follows_it() -> None:
    found = exception_that_ended(PLAIN)
    assert found is not None
    assert found.error == "ValueError: shard 3 is corrupt: bad magic number"
    assert (found.place, found.first_line) == ("train.py:8", 1)


def test_of_chained_exceptions_the_last_one_counts() -> None:
    found = exception_that_ended(CHAINED)
    assert found is not None
    assert (found.error, found.place) == ("my.lib.Broken: no shard", "a.py:3")
    assert found.first_line == 0


def test_under_torchrun_the_exception_is_that_of_the_worker() -> None:
    found = exception_that_ended(TORCHRUN)
    assert found is not None
    assert (found.error.partition(":")[0], found.place) == ("ValueError", "train.py:8")


def test_an_error_of_torchrun_names_the_process_that_failed() -> None:
    alone = TORCHRUN[TORCHRUN.index("E1127") :]
    kind = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:"
    for code, ended in (("-9", "was ended by SIGKILL"), ("3 ", "returned exit code 3")):
        found = exception_that_ended(alone.replace(": -9", f": {code}"))
        assert found is not None
        assert found.error == kind  # as the log has it
        assert found.words == f"{kind} process rank 5 {ended}"


def test_the_place_is_in_the_users_own_files() -> None:
    """Skip frames of the standard library and of installed commands."""
    lines = [
        "Traceback (most recent call last):",
        '  File "/w/.venv/bin/serve", line 8, in <module>',
        '  File "/w/lib/load.py", line 7, in main',
        *(
            f'  File "{folder}/json/decoder.py", line 353, in raw_decode'
            for folder in ("/usr/lib/python3.11", "/o/lib64/pypy3.10", "/z/lib/python311.zip")
        ),
        "json.decoder.JSONDecodeError: Expecting property name",
    ]
    found = exception_that_ended("\n".join(lines))
    assert found is not None
    assert found.place == "load.py:7"
    del lines[2]
    found = exception_that_ended("\n".join(lines))
    assert found is not None
    assert found.place == ""


def test_a_traceback_whose_head_is_cut_off_counts_too() -> None:
    found = exception_that_ended(PLAIN.partition("load(3)\n")[2])
    assert found is not None
    assert found.error.startswith("ValueError: shard 3")


def test_an_exception_of_another_thread_did_not_end_the_program() -> None:
    of_thread = "Exception in thread Thread-1:\n" + PLAIN.partition("step 3\n")[2]
    assert exception_that_ended(of_thread) is None


def test_output_without_a_traceback_shows_no_exception() -> None:
    assert exception_that_ended("Loading: 3\nValueError: is what I expect\nDone\n") is None
