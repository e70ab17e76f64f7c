"""A gateway with the broker, a scripted model behind it, and readers of its streams."""
import http.client
import json
import os
import pathlib
import re
import threading

import room  # noqa: F401
from boxes import Nobodys
from gateway import Gateway, running, upstream_yaml
from harness import PATIENCE
from models import Model

POLICY = """version: 1
name: test
{packs}upstreams:
{up}{model}{upstreams}
credentials:
  model:
    source: {{ store: model }}
    inject: {{ {inject} }}
    lease: generic
    require_lease: true
    only: [{{ host: {mhost}, port: {mport} }}]
  api:
    source: {{ store: api }}
    inject: {{ header: Authorization, format: "Bearer {{}}" }}
    only: [{{ host: {host}, port: {port} }}]
{credentials}rules:
  - id: model
    match: {{ host: {mhost}, port: {mport}, method: POST }}
    decide: allow
    use: model
  - id: reads
    match: {{ host: {host}, port: {port}, effect: read }}
    decide: allow
    use: api
  - id: counted
    match: {{ host: {host}, port: {port}, method: POST, path: "/things/**" }}
    decide: allow
    use: api
  - id: writes
    match: {{ host: {host}, port: {port}, effect: [write, delete] }}
    except: [{{ method: POST, path: "/things/**" }}]
    decide: hold
    use: api
    approve: {{ within: 2h }}
{rules}"""
MODELS = """version: 1
models:
  scripted:
    protocol: {protocol}
    provider: ours
    model: scripted-1
    endpoint: https://{host}:{port}/v1
    context: 200000
    output: 8000
    lease: model
    price: {{ input: 3, output: 15 }}
{others}tasks:
  chat: {{ models: [{chat}] }}
{tasks}"""


class Broker:
    """also: what is in the policy beside the model and one upstream, by the part it goes to, and its secrets. models: more of
    them in the table; chat: those of its task, scripted alone where that is not said; tasks: more of these.
    only: "stream" or "turn", a part of the broker alone; one that does turn has no address."""

    def __init__(self, lab, protocol="anthropic", workers=2, ordinary=False, lanes=False, more="", also=None, config="", models="",
                 chat="scripted", tasks="", only=None):
        also = {"packs": "", "upstreams": "", "credentials": "", "rules": "", "secrets": {}, **(also or {})}
        self.lab, self.model, self.up = lab, Model(lab), lab.upstream()
        inject = 'header: x-api-key, format: "{}"' if protocol == "anthropic" else 'header: Authorization, format: "Bearer {}"'
        place = {"inject": inject, "host": self.up.name, "port": self.up.port, "mhost": self.model.name, "mport": self.model.port,
                 **{part: words for part, words in also.items() if part != "secrets"}}
        policy = POLICY.format(up=upstream_yaml(self.up.name, self.up.port, self.up.ca),
                               model=upstream_yaml(self.model.name, self.model.port, self.model.ca), **place)
        (lab.dir / "models.yaml").write_text(MODELS.format(protocol=protocol, host=self.model.name, port=self.model.port, chat=chat, tasks=tasks,
                                                           others=models.format(host=self.model.name, port=self.model.port)))
        self.gw = Gateway(Nobodys(lab) if ordinary else lab, policy,
                          {"api": lab.canary("c" * 40).encode(), "model": lab.canary("m" * 40).encode(), **also["secrets"]},
                          config="broker: { models: models.yaml" + (f", only: [{only}]" if only else "")
                                 + (', http: "127.0.0.1:0"' if only != "turn" else "")
                                 + (f", workers: {workers}" if only != "stream" else "")
                                 + (", lanes: { default: web }" if lanes else "") + more + " }\n" + config)
        if only == "turn":
            return
        self.find()
        self.key = self.gw.cli_json("key", "create", "reader", "--broker")["key"]

    def find(self):
        host, _, port = re.search(rb"broker +http://(\S+)", self.gw.process.seen)[1].decode().rpartition(":")
        self.host, self.port = host, int(port)

    def ask(self, method, path, body=None, key=None, **fields):
        """(status, JSON)"""
        link = http.client.HTTPConnection(self.host, self.port, timeout=PATIENCE)
        data = json.dumps(body).encode() if body is not None else None
        link.request(method, path, data, {"Authorization": f"Bearer {key or self.key}", "Content-Type": "application/json",
                                          **{k.replace("_", "-"): v for k, v in fields.items()}})
        response = link.getresponse()
        said = response.read()
        link.close()
        return response.status, json.loads(said) if said else None

    def chat(self, message, **more):
        status, said = self.ask("POST", "/chat", {"message": message, **more})
        assert status == 202, (status, said)
        return said

    def read(self, said, after=None):
        return Reader(self, said["conversation_id"], after or said["last_event_id"])

    def turn(self, said):
        return self.ask("GET", "/turns/" + said["turn_id"])[1]

    def done(self, said):
        """Waits for the end of a turn, without a stream."""
        return self.lab.wait_for("the end of the turn", lambda: (lambda t: t if t["state"] in ("done", "aside") else None)(self.turn(said)))

    def pid(self, worker):
        """Of one of the broker's processes, once it is there; 0: of the one that serves."""
        def found():
            for pid in running(self.gw.process.pid, "countersign-broker"):
                try:
                    if self.serves(pid) == (worker == 0):
                        return pid
                except OSError:  # it has just ended
                    pass
            return None
        return self.lab.wait_for("a process of the broker", found)

    def does(self):
        """What its processes do, by their own words."""
        return sorted(pathlib.Path(f"/proc/{pid}/cmdline").read_text().split("\0")[2]
                      for pid in running(self.gw.process.pid, "countersign-broker"))

    @staticmethod
    def serves(pid):
        """It alone listens."""
        listening = set()
        for table in ("tcp", "unix"):
            for row in pathlib.Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
                fields = row.split()
                if table == "tcp" and fields[3] == "0A":
                    listening.add(fields[9])
        links = [os.readlink(link) for link in pathlib.Path(f"/proc/{pid}/fd").iterdir()]
        return any(f"socket:[{inode}]" in links for inode in listening)


class Reader(threading.Thread):
    """Reads a stream to its end, and comes back with the last id when it is cut off: as an EventSource does."""

    def __init__(self, broker, conversation, after):
        super().__init__(daemon=True)
        self.broker, self.conversation, self.after = broker, conversation, after
        self.events, self.beats, self.statuses, self.changed = [], 0, [], threading.Condition()
        self.ended = False
        self.start()

    def run(self):
        while not self.ended:
            try:
                self.once()
            except (OSError, http.client.HTTPException):
                pass

    def once(self):
        link = http.client.HTTPConnection(self.broker.host, self.broker.port, timeout=PATIENCE)
        link.request("GET", "/stream/" + self.conversation, None,
                     {"Authorization": f"Bearer {self.broker.key}", "Last-Event-ID": self.after})
        response = link.getresponse()
        self.statuses.append(response.status)
        if response.status != 200:
            self.ended = response.status != 503
            self.tell()
            return
        event = {}
        for line in response:
            line = line.decode().rstrip("\n")
            if line:
                key, _, value = line.partition(": ")
                event[key] = value
                continue
            if event.get("event") == "heartbeat":
                self.beats += 1
            elif "event" in event:
                assert "id" in event or event["event"] == "session_lost", event
                self.after = event.get("id", self.after)
                self.events.append((event["event"], json.loads(event["data"]), event.get("id")))
                self.tell()
            event = {}

    def tell(self):
        with self.changed:
            self.changed.notify_all()

    def until(self, name, n=1, **has):
        """The n-th event of that name with these members."""
        def found():
            fits = [e for e in list(self.events) if e[0] == name and all(e[1]["event"].get(k) == v for k, v in has.items())]
            return fits[n - 1][1]["event"] if len(fits) >= n else None
        with self.changed:
            assert self.changed.wait_for(found, PATIENCE), (name, has, self.events)
        return found()

    def names(self):
        return [e[0] for e in self.events]

    def whole(self):
        """No gap, nothing twice: the numbers of the ids follow each other."""
        numbers = [int(e[2].partition(".")[2]) for e in self.events if e[2]]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers))), numbers
        return numbers

