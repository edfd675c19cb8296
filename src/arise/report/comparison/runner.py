"""Run the members of a comparison, each in its own process; skip finished ones and resume interrupted ones."""

import ctypes
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from arise.errors import AriseError, Exit
from arise.report.comparison.plan import Comparison, Member, lifecycle_file
from arise.run.progress import progress_of
from arise.text import numbers

log = logging.getLogger(__name__)

TRIES = 2
"""Maximum number of tries: a failed run is resumed once, a second failure needs the user."""

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


@dataclass
class Job:
    """A member and its current process."""

    member: Member
    process: subprocess.Popen[bytes] | None = None
    command: str = ""
    started: float = 0.0
    failures: int = 0
    gave_up: bool = False
    unmeasured: bool = False
    """Whether measuring retention failed; the run itself is complete."""
    finished: bool = False

    def is_finished(self) -> bool:
        """Return whether the run is finished; cache a positive answer."""
        self.finished = self.finished or is_finished(self.member)
        return self.finished

    def iterations(self) -> int:
        return self.member.config.train.iterations if self.finished else progress_of(self.member.folder).committed


class Runner:
    """`Runner(comparison, jobs, threads).run()` completes all members and can resume after Ctrl-C or kill -9."""

    def __init__(self, comparison: Comparison, jobs: int, threads: int) -> None:
        self.comparison, self.jobs, self.threads = comparison, jobs, threads
        # Go seed by seed, so that an early report has complete pairs; ARISE first, because others need its export.
        self.all = [Job(m) for m in sorted(comparison.members, key=lambda m: (m.seed, m.method != "arise"))]
        self._began, self._has_start = time.monotonic(), False
        self._at_start = self._iterations_done()

    def run(self, show: Callable[[str], None], pause: float = 1.0) -> list[Job]:
        """Work until every member is finished or has failed; return the failed jobs."""
        with self._taken_down():
            while True:
                for job in self.all:
                    self._reap(job)
                self._start_more()
                if not any(job.process for job in self.all):
                    break
                show(self.progress())
                time.sleep(pause)
        for job in self.all:
            if not job.gave_up and self._command(job):
                job.gave_up = True  # it waited for a run that failed
        return [job for job in self.all if job.gave_up]

    def _start_more(self) -> None:
        """Start jobs in free slots; let the first run create the shared start before starting a second one."""
        self._has_start = self._has_start or any(progress_of(job.member.folder).weights for job in self.all)
        places = self.jobs if self._has_start else 1
        for job in self.all:
            if sum(other.process is not None for other in self.all) >= places:
                return
            if job.process is None and not job.gave_up and not self._waits(job) and (found := self._command(job)):
                self._start(job, *found)

    def _waits(self, job: Job) -> bool:
        needed = job.member.config.pool.lifecycle
        return bool(needed) and not Path(needed).is_file()

    def _command(self, job: Job) -> tuple[str, list[str]] | None:
        """Return the next command of a member, from its folder: a name and the arguments of `arise`."""
        member, folder = job.member, str(job.member.folder)
        if not (member.folder / "config.toml").is_file():
            config = str(self.comparison.config_file(member))
            return "train", ["train", config, "--run-dir", folder]
        if not job.is_finished():
            return "resume", ["resume", folder]
        if member.method != "arise":
            return None
        lifecycle = lifecycle_file(self.comparison.folder, member.seed)
        if not lifecycle.is_file():
            return "export", ["pool", "export", folder, "--out", str(_draft(lifecycle))]
        if not job.unmeasured and not (member.folder / "retention.done").is_file():
            return "retention", ["retention", folder]
        return None

    def _start(self, job: Job, name: str, arguments: list[str]) -> None:
        output = self.comparison.log_file(job.member)
        output.parent.mkdir(parents=True, exist_ok=True)
        count = str(self.threads)
        environment = os.environ | {"OMP_NUM_THREADS": count, "MKL_NUM_THREADS": count, "NO_COLOR": "1"}
        with output.open("ab") as file:
            file.write(f"$ arise {' '.join(arguments)}\n".encode())
            file.flush()
            job.process = subprocess.Popen(
                [sys.executable, "-m", "arise.cli.main", *arguments],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_end_with(os.getpid()),
            )
        job.started, job.command = time.monotonic(), name
        log.info("%s: %s", job.member.name, name)

    def _reap(self, job: Job) -> None:
        if job.process is None or job.process.poll() is None:
            return
        code, name = job.process.returncode, job.member.name
        spent = time.monotonic() - job.started
        job.process = None
        if code == 0:
            self._keep(job)
            log.info("%s: %s done in %s", name, job.command, numbers.duration(spent))
            return
        if job.command == "retention":
            job.unmeasured, outcome = True, "left out"
        else:
            job.failures += 1
            job.gave_up = job.failures >= TRIES
            outcome = "given up" if job.gave_up else "will be resumed"
        where = self.comparison.log_file(job.member)
        log.warning("%s: %s ended with exit code %d, %s; see %s", name, job.command, code, outcome, where)

    def _keep(self, job: Job) -> None:
        """Mark the output of a finished command as complete; a killed command leaves only drafts."""
        if job.command == "export":
            lifecycle = lifecycle_file(self.comparison.folder, job.member.seed)
            _draft(lifecycle).replace(lifecycle)
        if job.command == "retention":
            (job.member.folder / "retention.done").touch()

    def progress(self) -> str:
        """Return the status line."""
        finished = sum(job.is_finished() for job in self.all)
        running = [f"{job.member.name} {job.iterations()}" for job in self.all if job.process]
        total = sum(member.config.train.iterations for member in self.comparison.members)
        done, spent = self._iterations_done(), time.monotonic() - self._began
        left = (
            ""
            if done == self._at_start
            else f", about {numbers.duration(spent * (total - done) / (done - self._at_start))} left"
        )
        return (
            f"{finished}/{len(self.all)} runs, {done}/{total} iterations, {numbers.duration(spent)} so far{left}"
            f" | now: {', '.join(running)}"
        )

    def _iterations_done(self) -> int:
        return sum(job.iterations() for job in self.all)

    @contextmanager
    def _taken_down(self) -> Iterator[None]:
        """Stop all processes on exit: first ask them to stop, then kill them."""
        previous = signal.signal(signal.SIGTERM, _interrupt)
        try:
            yield
        except KeyboardInterrupt:
            raise AriseError(
                "interrupted",
                Exit.INTERRUPTED,
                f"stopped by you in {self.comparison.folder}",
                "every committed iteration of every run is kept",
                "run the same command again",
            ) from None
        finally:
            signal.signal(signal.SIGTERM, previous)
            running = [job.process for job in self.all if job.process]
            for process in running:
                process.terminate()
            for process in running:
                try:
                    process.wait(timeout=30)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()


def _draft(path: Path) -> Path:
    return path.with_name(f".{path.name}")


def is_finished(member: Member) -> bool:
    """Return whether a run was trained to its end and evaluated there."""
    progress = progress_of(member.folder)
    return progress.committed >= member.config.train.iterations and progress.after > 0


def _end_with(parent: int) -> Callable[[], None]:
    """Make the kernel stop the child when this process dies, even by kill -9; runs can be resumed."""

    def arrange() -> None:
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)

    return arrange


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt
