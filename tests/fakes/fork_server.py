"""Starts Python programs by forking a process that has imported them already.

`Forked` is such a program, as its parent sees it: `Forked.start("tests.wire.served_child")` does what
`python -m tests.wire.served_child` would. Run as a program, this module is the process that is forked.
"""

import atexit
import os
import pickle
import runpy
import select
import signal
import socket
import subprocess
import sys
import warnings
from functools import cache
from importlib import import_module
from typing import IO, Final

from tests.fakes.tree import PYTHON_PATH, ROOT

PRELOADED: Final = ("tests.wire.served_child", "openai", "alembic.command", "dateparser")
"""What most of the programs import, some of it only once they have started. Neither NumPy nor ONNX Runtime: they start
threads as they are imported, and a fork has none of these."""
MAX_REQUEST_BYTES: Final = 1 << 20


class Forked:
    """A program that was forked. It has the methods of `subprocess.Popen` that tests use."""

    def __init__(self, pid: int, stdin: IO[bytes], stdout: IO[bytes], status: int) -> None:
        self.pid = pid
        self.stdin = stdin
        self.stdout = stdout
        self.returncode: int | None = None
        self._status = status

    @classmethod
    def start(cls, module: str, *arguments: str, stderr: IO[bytes]) -> "Forked":
        """`python -m MODULE ARGUMENTS` in the tree of the tests, with the environment of this moment."""
        their_in, our_in = os.pipe()
        our_out, their_out = os.pipe()
        our_status, their_status = os.pipe()
        request = pickle.dumps((module, arguments, dict(os.environ)))
        theirs = [their_in, their_out, stderr.fileno(), their_status]
        server = _fork_server()
        socket.send_fds(server, [request], theirs)
        for descriptor in (their_in, their_out, their_status):
            os.close(descriptor)
        pid = int.from_bytes(server.recv(8))
        return cls(pid, os.fdopen(our_in, "wb"), os.fdopen(our_out, "rb"), our_status)

    def poll(self) -> int | None:
        return self._wait(0)

    def wait(self, timeout: float | None = None) -> int:
        code = self._wait(timeout)
        if code is None:
            raise TimeoutError(f"process {self.pid} has not ended within {timeout} s")
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _wait(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._status], [], [], timeout)[0]:
            self.returncode = int.from_bytes(os.read(self._status, 2), signed=True)
            os.close(self._status)
        return self.returncode


@cache
def _fork_server() -> socket.socket:
    """One for this process, started when it is needed. It ends when this process does, or closes the socket."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.fakes.fork_server", str(theirs.fileno())],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": PYTHON_PATH},
        pass_fds=[theirs.fileno()],
    )
    theirs.close()

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


class _ForkServer:
    """The other side: forks when it is asked to, and tells how each child has ended."""

    def __init__(self, requests: socket.socket) -> None:
        self._requests = requests
        self._statuses: dict[int, int] = {}
        """The descriptors to which the exit codes of children are written, by process id."""
        self._wakes, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)

    def run(self) -> tuple[str, tuple[str, ...]] | None:
        """Returns once in every child, with what it is to run, and in the server itself when it is not needed more."""
        sources: list[socket.socket | int] = [self._requests, self._wakes]
        while True:
            ready, _, _ = select.select(sources, [], [])
            if self._wakes in ready:
                os.read(self._wakes, 64)
                self._reap()
            if self._requests in ready:
                request, descriptors, _, _ = socket.recv_fds(self._requests, MAX_REQUEST_BYTES, 4)
                if not request:
                    return None
                pid = os.fork()
                if pid == 0:
                    return self._begin(request, descriptors)
                for descriptor in descriptors[:3]:
                    os.close(descriptor)
                self._statuses[pid] = descriptors[3]
                self._requests.send(pid.to_bytes(8))

    def _reap(self) -> None:
        for pid, descriptor in list(self._statuses.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                os.write(descriptor, os.waitstatus_to_exitcode(status).to_bytes(2, signed=True))
                os.close(descriptor)
                del self._statuses[pid]

    def _begin(self, request: bytes, descriptors: list[int]) -> tuple[str, tuple[str, ...]]:
        """Leaves nothing of the server in the child."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self._requests.close()
        for place, descriptor in enumerate(descriptors[:3]):
            os.dup2(descriptor, place)
        for descriptor in (*descriptors, self._wakes, *self._statuses.values()):
            os.close(descriptor)
        module, arguments, environment = pickle.loads(request)
        os.environ.clear()
        os.environ.update(environment)
        return module, arguments


def main() -> None:
    # Ctrl-C is for the tests: the server ends with them.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    server = _ForkServer(socket.socket(fileno=int(sys.argv[1])))
    for module in PRELOADED:
        import_module(module)
    forked = server.run()
    if forked is not None:
        module, arguments = forked
        sys.argv = [module, *arguments]
        # It says that the module was imported before, which is the point.
        warnings.filterwarnings("ignore", category=RuntimeWarning, module="runpy")
        runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
