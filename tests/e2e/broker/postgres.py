"""A PostgreSQL of a test's own: below the lab's folder, a Unix socket and no TCP, as a user who is not root."""
import os
import pathlib
import signal
import subprocess
import urllib.parse

NOBODY = 65534
BIN = pathlib.Path("/usr/lib/postgresql/15/bin")


class Postgres:
    def __init__(self, lab):
        self.lab, self.dir = lab, lab.dir / "postgres"
        self.dir.mkdir()
        os.chmod(self.dir, 0o755)  # the broker's own user goes through it
        self.drop = []
        if os.geteuid() == 0:
            os.chown(self.dir, NOBODY, NOBODY)
            self.drop = ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups"]
        self.lab.run([*self.drop, BIN / "initdb", "-N", "-A", "trust", "-U", "broker", "--locale=C", "-E", "UTF8",
                      "-D", self.dir / "data"], cwd=self.dir, rc=0)
        self.url = f"postgresql://broker@{urllib.parse.quote(str(self.dir), safe='')}/postgres"
        self.start()

    def start(self):
        self.process = self.lab.start(
            [*self.drop, BIN / "postgres", "-D", self.dir / "data", "-c", f"unix_socket_directories={self.dir}",
             "-c", "listen_addresses=", "-c", "fsync=off", "-c", "shared_buffers=16MB"],
            cwd=self.dir, ready=r"database system is ready to accept connections")
        self.process.end_by = signal.SIGINT  # at TERM it waits until everybody who is connected has gone

    def stop(self):
        """As if its machine had lost its power: -m immediate."""
        self.process.signal(signal.SIGQUIT)
        self.process.wait()

    def restart(self):
        self.stop()
        self.start()

    def ask(self, sql):
        said = subprocess.run([*self.drop, BIN / "psql", "-h", str(self.dir), "-U", "broker", "-d", "postgres", "-AtXc", sql],
                              cwd=self.dir, check=True, capture_output=True, text=True)
        return said.stdout.split("\n")[:-1]
