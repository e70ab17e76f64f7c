"""A program at a terminal of its own, as a person would use it."""
import fcntl
import os
import select
import signal
import struct
import termios

from patience import PATIENCE


class Terminal:
    """33 rows of 99 columns; the program leads its session."""

    def __init__(self, lab, command, env):
        self.fd, self.theirs = os.openpty()
        self.device = os.fstat(self.theirs).st_rdev
        self.resize(33, 99)
        self.before = termios.tcgetattr(self.theirs)
        self.said, self.read = b"", 0
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.setsid()
                for n in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
                    signal.signal(n, signal.SIG_DFL)  # whoever began the tests in the background ignores them
                fcntl.ioctl(self.theirs, termios.TIOCSCTTY, 0)
                for fd in range(3):
                    os.dup2(self.theirs, fd)
                os.execve(command[0], command, env)
            finally:
                os._exit(99)
        lab.at_end.append(self.kill)

    def resize(self, rows, columns):
        fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def until(self, words):
        """Reads to the end of the next such words."""
        while (at := self.said.find(words, self.read)) < 0:
            if not select.select([self.fd], [], [], PATIENCE)[0]:
                raise AssertionError(f"no {words!r} in {self.said!r}")
            self.said += os.read(self.fd, 4096)
        self.read = at + len(words)

    def type(self, keys):
        os.write(self.fd, keys)

    def kill(self):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)

    def is_as_before(self):
        return termios.tcgetattr(self.theirs) == self.before

    def end(self):
        """The exit status; the terminal must be as it was."""
        while os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            if select.select([self.fd], [], [], 0.05)[0]:
                self.said += os.read(self.fd, 4096)
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        self.pid = 0
        assert self.is_as_before(), "the terminal was left changed"
        while select.select([self.fd], [], [], 0)[0]:
            self.said += os.read(self.fd, 4096)
        os.close(self.fd)
        os.close(self.theirs)
        return status
