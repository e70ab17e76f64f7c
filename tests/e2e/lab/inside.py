"""Commands in a sandbox of `countersign run`, with a stand-in for the gateway; and Python that tries ways out of a
place: tcp(address), udp(address) give what was answered, or the error ("silence" when nothing came at all)."""
import json
import os
import pathlib
import shutil
import textwrap

from control import Control

TRIES = """
import errno, json, socket, struct, sys

def attempt(kind, address, family=socket.AF_INET):
    s = socket.socket(family, kind)
    s.settimeout(300)
    try:
        s.connect(address)
        if kind == socket.SOCK_STREAM:
            s.sendall(b"hello")
            said = s.recv(200).decode() or "ended"
        else:
            for _ in range(2):
                s.send(b"question")
            said = s.recv(200).decode()
    except OSError as e:
        said = "silence" if isinstance(e, TimeoutError) else errno.errorcode[e.errno]
    return said

tcp = lambda *a: attempt(socket.SOCK_STREAM, *a)
udp = lambda *a: attempt(socket.SOCK_DGRAM, *a)
six = socket.AF_INET6
"""


def program():
    named = os.environ.get("COUNTERSIGN") or shutil.which("countersign")
    assert named, "countersign is not in PATH: run through ./check, or put PREFIX/bin first"
    return str(pathlib.Path(named).resolve())


def run(lab, command, *options, env=None, rc=0, control=None, workspace=None, **more):
    """One command in a sandbox; a list is executed as it is, a string by sh."""
    control = control or Control(lab)
    work = pathlib.Path(workspace or lab.dir / "work")
    work.mkdir(exist_ok=True)
    command = ["sh", "-c", command] if isinstance(command, str) else command
    return lab.run([program(), "run", "--state-dir", control.state, "--workspace", work, *options, "--", *command],
                   env=env, rc=rc, **more)


def python(lab, code, *options, **more):
    """Code in the sandbox, which prints JSON."""
    done = run(lab, ["/usr/bin/python3", "-c", textwrap.dedent(code)], *options, **more)
    return json.loads(done.out)
