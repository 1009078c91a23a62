"""The preparation of a node: the job's folders, `setup`, and Monarch where it is missing.

All methods run on the main loop's thread; only unpacking has one of its own.
"""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING

from monarch_client.runner.base.processes import exit_code_of
from monarch_client.runner.node import setup_stamp
from monarch_client.runner.node.job_code import JobCode
from monarch_client.runner.node.unpacking import UploadError, lay_out
from monarch_client.runner.programs import environment
from monarch_client.runner.programs.repository import repository_environment
from monarch_client.runner.programs.shell import SETUP, WORKDIR, start_shell
from monarch_client.runner.vocabulary import node_state, streams

if TYPE_CHECKING:
    from typing import Any, Callable

    from monarch_client.runner.base.lines import Piece
    from monarch_client.runner.base.processes import Command
    from monarch_client.runner.node.setup_stamp import Stamp
    from monarch_client.runner.place import Place

    OnEnd = Callable[[dict[str, Any]], None]


class Preparation:
    """The preparation; calls `on_end` once with its part of the node's state."""

    def __init__(self, place: Place, on_end: OnEnd) -> None:
        self._place = place
        self._on_end = on_end
        self._command: Command | None = None
        self._skipped = ""
        self._code = JobCode(place.folder)
        self._is_cancelled = False

    @property
    def evidence(self) -> str:
        """The last lines of the last program."""
        return self._command.evidence if self._command else ""

    def begin(self) -> None:
        """Begin with the folders; the further steps follow."""
        for text in self._place.config.remarks if self._place.rank == 0 else ():
            self._place.recorder.remark(text)
        if self._place.config.uploads:
            threading.Thread(target=self._unpack, daemon=True, name="unpack").start()
        else:
            self._fetch()

    def cancel(self) -> None:
        """Start no further step."""
        self._is_cancelled = True

    def _unpack(self) -> None:
        """Unpack the uploads on a thread, so that large ones do not make this node look dead."""
        step: Callable[[], None] = self._fetch
        try:
            for upload in self._place.config.uploads:
                lay_out(upload, self._place.folder)
        except UploadError as error:
            step = functools.partial(self._fail, node_state.UPLOADS, str(error))
        self._place.loop.post(step)

    def _fetch(self) -> None:
        """Fetch the repository for the work directory, if the job names one."""
        place, repository = self._place, self._place.config.repository
        if self._is_cancelled:
            return
        if repository is None:
            self._record_code()
            return
        env = repository_environment(repository, environment.setup_environment(place))
        self._command = start_shell(place, WORKDIR, env, self._record, self._fetched)

    def _fetched(self, returncode: int) -> None:
        if returncode:
            last = self.evidence.splitlines()[-1:] or [f"exit code {exit_code_of(returncode)}"]
            why = f"{self._place.config.repository}: {last[0].rstrip('.')}"
            self._fail(node_state.REPOSITORY, why)
        else:
            self._record_code()

    def _record_code(self) -> None:
        """Record the code before `setup` adds files of its own, if laptops may change it."""
        if self._is_cancelled:
            return
        if self._place.config.gateway:
            self._work(self._code.record, self._set_up)
        else:
            self._set_up()

    def _adopt_code(self) -> None:
        """Make the work directory one that laptops can switch, as the last step."""
        if not self._place.config.gateway:
            self._end(setup=0)
            return
        self._work(self._code.adopt, self._succeed)

    def _work(self, function: Callable[[], None], then: Callable[[], None]) -> None:
        """Call a function that may take long on a thread, then the next step."""

        def work() -> None:
            try:
                function()
            finally:
                self._place.loop.post(then)

        threading.Thread(target=work, daemon=True, name="code").start()

    def _succeed(self) -> None:
        if self._code.problem:
            self._place.recorder.remark(f"Code cannot be synced to this node: {self._code.problem}")
        self._end(setup=0)

    def _set_up(self) -> None:
        place = self._place
        if self._is_cancelled:
            return
        if not place.config.setup:
            self._look_for_monarch()
            return
        env = environment.setup_environment(place)
        # The content of a branch is not known before it is fetched: setup always runs after it.
        stamp = None if place.config.repository else setup_stamp.look(place, env)
        if stamp is not None and stamp.skipped:
            self._skipped = stamp.skipped
            place.recorder.remark(f"setup skipped: {stamp.skipped}")
            self._look_for_monarch()
            return
        if stamp is not None and stamp.remark:
            place.recorder.remark(stamp.remark)
        setup_stamp.forget_all(place)
        before = setup_stamp.listing(place.folder.workdir) if stamp else {}
        on_exit = functools.partial(self._setup_ended, stamp, before)
        self._command = start_shell(place, SETUP, env, self._record, on_exit)

    def _setup_ended(self, stamp: Stamp | None, before: dict[str, Any], returncode: int) -> None:
        if returncode:
            self._end(setup=exit_code_of(returncode))
            return
        if stamp is not None:
            after = setup_stamp.listing(self._place.folder.workdir)
            setup_stamp.leave(self._place, stamp, setup_stamp.changes(before, after))
        self._look_for_monarch()

    def _look_for_monarch(self) -> None:
        """Find or install Monarch for a job with meshes; `setup` may have installed it."""
        config, folder = self._place.config, self._place.folder
        if self._is_cancelled:
            return
        if not (config.is_monarch and config.torchmonarch and folder.shared):
            self._adopt_code()
            return
        script = str(folder.state / "prepare_monarch.py")
        venvs = str(folder.shared / "venvs")
        try:
            self._command = self._place.children.start(
                [config.python, script, config.torchmonarch, venvs, str(folder.venv)],
                cwd=folder.workdir,
                env=environment.setup_environment(self._place),
                on_pieces=self._record,
                on_exit=self._monarch_ended,
            )
        except OSError as error:
            self._fail(node_state.MONARCH, f"{config.python} cannot be started: {error}")

    def _monarch_ended(self, returncode: int) -> None:
        if returncode:
            last = self.evidence.splitlines()[-1:] or [f"exit code {exit_code_of(returncode)}"]
            self._fail(node_state.MONARCH, last[0].rstrip("."))
        else:
            self._adopt_code()

    def _fail(self, obstacle: str, why: str) -> None:
        self._end(obstacle=obstacle, obstacle_why=why[:1000])

    def _end(self, **found: Any) -> None:
        self._on_end({"evidence": self.evidence, "setup_skipped": self._skipped, **found})

    def _record(self, _stream: str, pieces: list[Piece]) -> None:
        self._place.recorder.write_lines(streams.SETUP, pieces)
