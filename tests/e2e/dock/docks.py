"""A gateway with the sandbox API, for the tests of this folder, and callers of it that speak its wire themselves."""
import base64
import http.client
import json
import os
import re
import socket
import struct

import room
from boxes import Nobodys
from gateway import Gateway, simple_policy
from harness import PATIENCE, test
from lab.servers import npm_modules

NPM = room.HERE.parent / "npm"
GONE = (502, "the sandbox does not run, or this token does not open it")


class Dock:
    def __init__(self, lab, ordinary=False, policy=None, secrets=None, lanes="", more=""):
        """lanes: of tenants, as in `acme: web`. Without a policy it is that of one upstream."""
        self.gw = Gateway(Nobodys(lab) if ordinary else lab, policy or simple_policy(lab.upstream()),
                          secrets or {"api": lab.canary("c" * 40).encode()},
                          config=(f'e2b: {{ http: "127.0.0.1:0", lanes: {{ {lanes} }} }}\n' if lanes
                                  else 'e2b: { http: "127.0.0.1:0" }\n') + more)
        self.lab = lab
        self.host, _, port = re.search(rb"e2b +http://(\S+)", self.gw.process.seen)[1].decode().rpartition(":")
        self.port = int(port)
        self.url = f"http://{self.host}:{self.port}"

    def key(self, name, tenant):
        """A caller that holds a key."""
        return Caller(self, self.gw.cli_json("key", "create", name, "--tenant", tenant)["key"])

    def node(self, key, script, package, *more):
        """What a script of node's says that uses the SDK, run to its end."""
        env = {"PATH": os.environ["PATH"], "E2B_API_KEY": key, "E2B_API_URL": self.url,
               "E2B_SANDBOX_URL": self.url}
        return self.lab.run(["node", room.HERE / script, npm_modules(NPM), package, *more], env=env, rc=0).out.decode()

    def raw(self, data, pieces=None):
        """A connection on which these bytes were sent; in pieces of so many bytes each."""
        sock = socket.create_connection((self.host, self.port), timeout=PATIENCE)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for i in range(0, len(data), pieces or len(data) or 1):
            sock.sendall(data[i:i + (pieces or len(data))])
        return sock


def answer(sock):
    """(status, JSON or bytes) of what comes until its end."""
    response = http.client.HTTPResponse(sock)
    response.begin()
    body = response.read()
    try:
        return response.status, json.loads(body)
    except ValueError:
        return response.status, body


class Caller:
    """The wire of E2B, as a platform speaks it. box: the sandbox that calls are about."""

    def __init__(self, dock, key):
        self.dock, self.secret = dock, key

    def ask(self, method, path, body=None, headers=None):
        """(status, JSON or bytes)"""
        link = http.client.HTTPConnection(self.dock.host, self.dock.port, timeout=PATIENCE)
        data = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else None
        link.request(method, path, data, {"X-API-KEY": self.secret, "Content-Type": "application/json", **(headers or {})})
        response = link.getresponse()
        said = response.read()
        link.close()
        try:
            return response.status, json.loads(said)
        except ValueError:
            return response.status, said

    def create(self, **members):
        status, box = self.ask("POST", "/v2/sandboxes", {"templateID": "base", **members})
        assert status == 201, (status, box)
        return Box(self, box["sandboxID"], self.dock.lab.canary(box["envdAccessToken"]))

    def ids(self):
        return {row["sandboxID"] for row in self.ask("GET", "/v2/sandboxes")[1]}


class Box:
    def __init__(self, caller, name, token):
        self.caller, self.id, self.token = caller, name, token

    def headers(self, **more):
        return {"E2b-Sandbox-Id": self.id, "E2b-Sandbox-Port": "49983", "X-Access-Token": self.token, "X-API-KEY": "", **more}

    def rpc(self, method, message, **more):
        return self.caller.ask("POST", "/" + method, message, self.headers(**more))

    def run(self, command, **message):
        """The events of a command, and how its stream ended."""
        body = json.dumps({"process": {"cmd": "/bin/sh", "args": ["-c", command]}, **message}).encode()
        status, said = self.caller.ask("POST", "/process.Process/Start", struct.pack(">BI", 0, len(body)) + body,
                                       self.headers(**{"Content-Type": "application/connect+json"}))
        assert status == 200, (status, said)
        return frames(said)

    def says(self, command, **message):
        """What a command writes to its standard output: in how many events it comes is the machine's affair."""
        events, _ = self.run(command, **message)
        return b"".join(base64.b64decode(e["data"]["stdout"]) for e in events if e.get("data", {}).get("stdout"))

    def kill(self):
        return self.caller.ask("DELETE", f"/sandboxes/{self.id}")[0]


def frames(said):
    """([events], end) of Connect's stream."""
    events = []
    while said:
        flags, length = struct.unpack(">BI", said[:5])
        message, said = json.loads(said[5:5 + length]), said[5 + length:]
        if flags == 2:
            assert not said, said
            return events, message
        events.append(message["event"])
    raise AssertionError(f"the stream has no end: {events}")


def refusal(said):
    status, body = said
    assert isinstance(body, dict) and body["message"], said
    return status, body["message"]


def write(box, path, data, query=True):
    body = (b'--B\r\nContent-Disposition: form-data; name="file"; filename="' + path.encode() + b'"\r\n\r\n' + data
            + b"\r\n--B--\r\n")
    where = "/files?path=" + path if query else "/files"
    return box.caller.ask("POST", where, body, box.headers(**{"Content-Type": "multipart/form-data; boundary=B"}))


def both(function):
    """The same by root's gateway and by an ordinary user's."""
    for ordinary in (False, True):
        def case(lab, ordinary=ordinary):
            function(lab, Dock(lab, ordinary))
        case.__name__ = function.__name__ + ("_by_an_ordinary_user" if ordinary else "")
        case.__doc__ = function.__doc__
        test()(case)
    return function
