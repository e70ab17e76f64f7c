"""Programs that a source may run, for the tests: stand-ins for `op`, `sops` and their like, which print what they are told.

    p = Programs(lab)
    path = p.write("op", 'printf "%s\\n" "$TOKEN"')     # a shell script; another user runs it when the tests are root's
    p.calls("op")                                        # how often it was run
    p.write("op", GROUP + ...); p.running("op")          # what runs of the process group in which it was
"""
import os
import pathlib

GROUP = 'cut -d " " -f 5 /proc/$$/stat > "$0.new"; mv "$0.new" "$0.group"\n'


class Programs:
    def __init__(self, lab):
        self.dir = lab.dir / "programs"
        self.dir.mkdir()
        os.chmod(self.dir, 0o777)  # its user writes the marks of its calls
        lab.exempt(self.dir)

    def write(self, name, body):
        path = self.dir / name
        path.write_text(f"#!/bin/bash\necho called >> {self.dir}/{name}.calls\n{body}\n")
        os.chmod(path, 0o755)
        return path

    def calls(self, name):
        path = self.dir / f"{name}.calls"
        return len(path.read_text().splitlines()) if path.exists() else 0

    def running(self, name):
        """{pid: (what it is called, its parent)} of its process group: who reads what it prints, the relay, what it
        started. Empty before it has begun, too."""
        path, found = self.dir / f"{name}.group", {}
        group = path.read_text().strip() if path.exists() else None
        for pid in filter(str.isdigit, os.listdir("/proc")):  # a glob looks whether each is there still, and they end
            stat = pathlib.Path("/proc", pid, "stat")
            try:
                called, rest = stat.read_text().split("(", 1)[1].rsplit(")", 1)
            except OSError:
                continue
            state, parent, its, *_ = rest.split()
            if its == group and state != "Z":
                found[int(stat.parent.name)] = called, int(parent)
        return found

    def relay(self, name):
        """The process beside the job of a program with hosts: the job's child, and no program yet or any more."""
        there = self.running(name)
        return next((pid for pid, (called, parent) in there.items()
                     if parent in there and called.startswith("countersign-fet")), None)
