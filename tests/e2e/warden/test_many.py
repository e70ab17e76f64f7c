#!/usr/bin/env python3
"""A thousand creates at once: each is there, whole, or refused in words; by root's gateway and by an ordinary user's."""
import concurrent.futures
import json
import pathlib
import socket

from boxes import Nobodys, both, execute, nothing_is_left
from harness import PATIENCE, main

MOST = 512  # that run at once, with those of the pool


def ask(gw, name):
    body = json.dumps({"name": name, "memory": 64 << 20, "disk": 1 << 20}).encode()
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(2 * PATIENCE)
        sock.connect(str(pathlib.Path(gw.state) / "control.sock"))
        sock.sendall(b"POST /api/v1/sandboxes/start HTTP/1.1\r\nHost: control\r\nContent-Type: application/json\r\nConnection: close\r\n"
                     b"Content-Length: %d\r\n\r\n" % len(body) + body)
        answer = b"".join(iter(lambda: sock.recv(65536), b""))
    head, _, said = answer.partition(b"\r\n\r\n")
    return int(head.split(b" ")[1]), json.loads(said)


@both
def each_is_there_or_refused_in_words(lab, gw):
    """G20"""
    names = [f"many-{n}" for n in range(1000)]
    with concurrent.futures.ThreadPoolExecutor(200) as pool:
        got = dict(zip(names, pool.map(lambda name: ask(gw, name), names)))
    there = {name for name, (status, _) in got.items() if status < 300}
    assert all(status in (503, 429) and said["detail"] for name, (status, said) in got.items() if name not in there), got
    assert 0 < len(there) <= MOST, len(there)
    gw.lab.wait_for("what was promised and no more", lambda: {row["name"] for row in gw.cli_json("sandbox", "started")["started"]} == there)
    one, none = sorted(there)[-1], next(name for name in names if name not in there)
    assert execute(gw, one, "echo", "whole").out == b"whole\n"
    if len(there) == MOST:
        assert b"as many sandboxes run as may at once" in gw.cli("sandbox", "start", none, rc=4).err
    gw.cli("sandbox", "destroy", one, rc=0)
    assert ask(gw, none)[0] < 300 and execute(gw, none, "echo", "whole").out == b"whole\n"
    gw.stop()
    if not isinstance(gw.lab, Nobodys):
        nothing_is_left(gw)


if __name__ == "__main__":
    main()
