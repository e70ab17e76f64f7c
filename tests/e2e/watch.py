"""What nobody announced: a role that ended, a log line that is a warning or an error, a sanitizer's report, a ticket
left open or unknown. The harness asks at the end of each test; any of it fails the test.

    lab.expects("the carrier .* ended by signal 9")   # announces lines: a pattern for "ROLE: message"
    lab.kills(pid)                                    # ends a role or the gateway: announced, and done
    lab.leaves("pending", "unknown")                  # states that tickets may be in when the test is over

An announcement that nothing followed is no failure: whether a thing must happen is for the test to assert.
"""
import json
import os
import pathlib
import re
import signal
import sqlite3

LINE = re.compile(rb'^\{"time":"[^"]*","role":"[^"]*","pid":\d+,"level":"(?:warn|error)","msg":.*\}$', re.MULTILINE)
SANITIZER = re.compile(rb"^.*(?:ERROR: \w+Sanitizer|runtime error: ).*(?:\n.*){0,12}", re.MULTILINE)
UNHEARD = r"\w+: .* could not be (given to (its peer|the \w+)|passed on|cancelled at the carrier)"  # by one that was ended
OPEN = ("pending", "approved", "executing", "unknown")
# What the machine is, not what happened on it.
MACHINE = r"parent: no user ids to separate|\w+: sanitizer build: system calls are NOT restricted|\w+: .*(?i:landlock)"


class Watch:
    """The announcements of one test, and what its files hold against them."""

    def __init__(self, directory):
        self.dir, self.patterns, self.states = pathlib.Path(directory), [MACHINE], set()
        self.killed = set()

    def expects(self, *patterns):
        self.patterns += patterns

    def kills(self, pid, number=signal.SIGKILL):
        self.expects(rf"parent: the [\w -]+ \(pid {pid}\) ended by signal {number:d}", UNHEARD)
        self.killed.add(pid)
        os.kill(pid, number)

    def leaves(self, *states):
        self.states.update(states)

    def wrong(self):
        """In words, all that was not announced."""
        return [*self._lines(), *self._tickets()]

    def _lines(self):
        known = re.compile("|".join(f"(?:{p})" for p in self.patterns))
        for path in sorted(p for p in (self.dir / "out").iterdir() if p.suffix != ".cmd"):
            data = path.read_bytes()
            for found in SANITIZER.finditer(data):
                text = found[0].decode(errors="replace")
                if not known.search(text):
                    yield f"{path.name}: {text}"
            said = {}
            for found in LINE.finditer(data):
                try:
                    line = json.loads(found[0])
                except ValueError:
                    continue
                text = f"{line['role']}: {line['msg']}"
                if not known.search(text):
                    said[text] = line["level"]
            yield from (f"{path.name}: not announced ({level}): {text}" for text, level in said.items())

    def _tickets(self):
        for path in sorted(self.dir.rglob("store/ledger.db")):
            try:
                store = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=10)
                rows = store.execute("SELECT state, count(*) FROM ticket GROUP BY state").fetchall()
                store.close()
            except sqlite3.Error as why:
                if "unreadable" not in self.states:
                    yield f"{path}: {why}"
                continue
            for state, n in rows:
                if state in OPEN and state not in self.states:
                    yield f"{path.parent.parent.name}: {n} tickets are left {state}"
