"""Unmodified clients inside `countersign run --with`, and the search of what the sandbox had: its processes' memory (lab/memory.py),
the files that only it sees, and its workspace, which the harness searches with everything else."""
import json
import pathlib
import sys

import room  # noqa: F401
from gateway import Gateway, program
from harness import HERE, PATIENCE
from memory import EARLY

WORKSPACE = "/workspace"


class Inside:
    """A gateway, and commands in sandboxes of it that are looked into from outside."""

    def __init__(self, lab, policy, secrets, **more):
        self.lab, self.work, self.reports = lab, lab.dir / "work", 0
        self.work.mkdir()
        self.gw = Gateway(lab, policy, secrets, **more)

    def command(self, words, options, looked_for):
        self.reports += 1
        self.report = self.lab.dir / f"memory-{self.reports}.json"
        files = []
        for n, secret in enumerate(looked_for or self.lab.secrets):
            path = self.lab.exempt(self.lab.dir / f"looked-for-{n}")
            path.write_bytes(secret)
            files += ["--secret-file", path]
        return [sys.executable, HERE / "lab/memory.py", *files, "--report", self.report, "--", program(), "run", "--state-dir",
                self.gw.state, "--workspace", self.work, *options, "--", *words]

    def early(self, kind):
        """Options with which programs of this kind are looked into before they give their memory back."""
        name, code, variable, value = EARLY[kind]
        folder = self.work / "early"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(code)
        return ["--setenv", f"{variable}={value.format(f'{WORKSPACE}/early')}"]

    def __call__(self, *words, options=(), looked_for=(), rc=0, timeout=2 * PATIENCE):
        return self.lab.run(self.command(words, options, looked_for), rc=rc, timeout=timeout)

    def start(self, *words, options=()):
        return self.lab.start(self.command(words, options, ()))

    def rows(self, inside=True):
        return [row for row in json.loads(pathlib.Path(self.report).read_text()) if row["inside"] == inside]

    def had_no_secret(self, *programs, early=False):
        """Of the last command that ended: these programs among those that were looked into, and nothing found in any."""
        rows = self.rows() + self.rows(inside=False)
        found = [row for row in rows if row["found"]]
        assert not found, found
        looked = {row["program"] for row in self.rows() if row["bytes"] > 0 and row["early"] == early}
        assert set(programs) <= looked and "countersign-shim" in {row["program"] for row in self.rows()}, rows
