"""Programs that a source may run, for the tests: stand-ins for `op`, `sops` and their like, which print what they are told.

    p = Programs(lab)
    path = p.write("op", 'printf "%s\\n" "$TOKEN"')     # a shell script; another user runs it when the tests are root's
    p.calls("op")                                        # how often it was run
"""
import os


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
