#!/usr/bin/env python3
"""Unmodified clients that make a part of each request anew: what is held once is one ticket, however often the client is run again, and
the run after the approval gets the answer to the bytes that were held first. Another effect is another ticket."""
import json
import os
import re
import shutil

import room  # noqa: F401
from apis import LOOKS, image, raw
from gateway import Gateway, program, upstream_yaml
from harness import Skip, main, test
from servers import docker_registry

HOLD = "inline_wait: 0s, expires: 2h"
FORM = """
import sys, requests
print(requests.post(sys.argv[1], files={"file": ("a.txt", sys.argv[2])}, data={"b": "c"}).text)
"""
NODE = """
const form = new FormData(); form.append("file", new Blob([process.argv[2]]), "a.txt");
fetch(process.argv[1], { method: "POST", body: form }).then(r => r.text()).then(console.log);
"""


MCP = """
import random, sys, requests
ask = {"jsonrpc": "2.0", "id": random.randrange(1000, 10**9), "method": "tools/call", "params": {"name": sys.argv[2], "_meta": {"progressToken": 1}}}
got = requests.post(sys.argv[1], json=ask, headers={"Accept": "application/json, text/event-stream"})
print("mine" if '"id": %d,' % ask["id"] in got.text or '"id":%d,' % ask["id"] in got.text else "not mine", got.text)
"""


class Held:
    """A host where what only looks is allowed and everything else is held."""

    def __init__(self, lab):
        lab.leaves("pending")
        self.lab, self.work, self.up = lab, lab.dir / "work", lab.upstream("hold.test")
        self.work.mkdir()
        answers = {path: raw(answer) for path, answer in LOOKS.items()}
        answers["/api/v1/namespaces/default/configmaps/x"] = raw({"kind": "Status", "apiVersion": "v1", "status": "Success"})
        result = {"jsonrpc": "2.0", "id": 1, "result": {"content": []}}
        answers.update({"/mcp": raw(result), "/mcp/events": raw(result, events=True)})
        self.up.script(answers)
        place = f"host: hold.test, port: {self.up.port}"
        self.gw = Gateway(lab, f"""version: 1
name: retries
upstreams:
{upstream_yaml("hold.test", self.up.port, self.up.ca)}
rules:
  - {{ id: look, match: {{ {place}, effect: read }}, decide: allow }}
  - {{ id: write, match: {{ {place}, effect: [write, delete] }}, decide: hold }}
""", hold=HOLD)
        self.at = f"hold.test:{self.up.port}"

    def run(self, *words):
        return self.lab.run([program(), "run", "--quiet", "--state-dir", self.gw.state, "--workspace", self.work, "--",
                             *[str(w).replace("AT", self.at) for w in words]])

    def sent(self):
        return [r for r in self.up.requests() if r["method"] not in ("GET", "HEAD")]

    def joins(self, *words, other):
        """Run twice, the command has one ticket; what does something else has its own. Approved, it is sent once, as it was first."""
        if not shutil.which(words[0], path="/usr/bin"):
            raise Skip(f"{words[0]} of Debian (conf/need test)")
        for _ in range(2):
            done = self.run(*words)
            first = self.gw.tickets()
            assert len(first) == 1, (done.text(), first)
        self.run(*other)
        assert len(self.gw.tickets()) == 2, self.gw.tickets()
        shown = self.gw.show(first[0]["id"])
        self.gw.approve(first[0]["id"])
        done = self.run(*words)
        sent = self.sent()
        assert len(sent) == 1 and len(self.gw.tickets()) == 1, (done.text(), sent, self.gw.tickets())
        self.gw.recorded(kind="result", ticket=first[0]["id"])
        return shown, sent[0], done


@test()
def a_form_of_curl_joins(lab):
    held = Held(lab)
    (held.work / "file").write_text("data")
    shown, sent, done = held.joins("curl", "-sS", "-F", "a=1", "-F", "f=@file", "https://AT/up",
                                   other=["curl", "-sS", "-F", "a=2", "-F", "f=@file", "https://AT/up"])
    assert b'"ok":true' in done.out, done.text()
    boundary = re.search(r"boundary=(\S+)", dict(sent["fields"])["Content-Type"])[1]
    assert boundary in json.dumps(shown), shown


@test()
def a_form_of_requests_joins(lab):
    done = Held(lab).joins("python3", "-c", FORM, "https://AT/up", "data", other=["python3", "-c", FORM, "https://AT/up", "date"])[2]
    assert b'"ok":true' in done.out, done.text()


@test()
def a_form_of_node_joins(lab):
    done = Held(lab).joins("node", "-e", NODE, "https://AT/up", "data", other=["node", "-e", NODE, "https://AT/up", "date"])[2]
    assert b'"ok":true' in done.out, done.text()


@test()
def kubectl_joins(lab):
    words = "--server https://AT --token any --cache-dir /tmp/cache delete --wait=false configmap".split()
    sent = Held(lab).joins("kubectl", *words, "x", other=["kubectl", *words, "y"])[1]
    assert sent["method"] == "DELETE", sent


@test()
def a_tool_that_is_called_again_joins_and_its_answer_is_known(lab):
    """As a client of MCP does it: each request has an id of its own, by which alone it knows the answer."""
    held = Held(lab)
    for path in ("/mcp", "/mcp/events"):
        before = len(held.sent())
        assert before == (path != "/mcp")
        call, other = (["python3", "-c", MCP, f"https://AT{path}", name] for name in ("pay", "look"))
        for _ in range(2):
            done = held.run(*call)
            tickets = [t for t in held.gw.tickets() if t["path"] == path]
            assert len(tickets) == 1 and done.out.startswith(b"mine") and b"error" in done.out, (done.text(), tickets)
        held.run(*other)
        assert len([t for t in held.gw.tickets() if t["path"] == path]) == 2, held.gw.tickets()
        held.gw.approve(tickets[0]["id"])
        done = held.run(*call)
        assert done.out.startswith(b"mine") and b'"content"' in done.out and len(held.sent()) == before + 1, done.text()
        assert ["Accept-Encoding", "identity"] in [list(f) for f in held.sent()[-1]["fields"]], held.sent()[-1]


class Images:
    """Debian's docker-registry, where an upload may begin and go on, and its end is held."""

    def __init__(self, lab):
        if not os.path.exists("/usr/bin/docker-registry") or not os.path.exists("/usr/bin/skopeo"):
            raise Skip("docker-registry and skopeo of Debian (conf/need test)")
        self.lab, self.work = lab, lab.dir / "work"
        self.work.mkdir()
        self.at, ca = docker_registry(lab, "images.test")
        place = f"host: images.test, port: {self.at}"
        self.gw = Gateway(lab, f"""version: 1
name: images
upstreams:
{upstream_yaml("images.test", self.at, ca)}
rules:
  - {{ id: look, match: {{ {place}, effect: read }}, decide: allow }}
  - {{ id: upload, match: {{ {place}, method: [POST, PATCH], path: "/v2/**/blobs/uploads/**" }}, decide: allow }}
  - {{ id: end, match: {{ {place}, method: PUT, path: "/v2/**/blobs/uploads/*" }}, decide: hold }}
  - {{ id: tag, match: {{ {place}, method: PUT, path: "/v2/**/manifests/*" }}, decide: allow }}
""", hold=HOLD)

    def skopeo(self, *words):
        words = [str(w).replace("AT", f"images.test:{self.at}") for w in words]
        return self.lab.run([program(), "run", "--quiet", "--state-dir", self.gw.state, "--workspace", self.work, "--", "skopeo",
                             "--insecure-policy", *words])


@test()
def an_upload_of_skopeo_joins(lab):
    """Each run begins an upload of its own; the end of the first one is what was held and leaves."""
    images = Images(lab)
    digest = image(images.work / "image")
    for _ in range(2):
        done = images.skopeo("copy", "dir:image", "docker://AT/demo/app:1")
        tickets = images.gw.tickets()
        assert done.rc != 0 and len(tickets) == 1, (done.text(), tickets)
    images.gw.approve(tickets[0]["id"])
    done = images.skopeo("copy", "dir:image", "docker://AT/demo/app:1")
    assert done.rc == 0 and images.gw.tickets() == [], (done.text(), images.gw.tickets())
    assert len(images.gw.tickets("all")) == 1
    done = images.skopeo("copy", "docker://AT/demo/app:1", "dir:back")
    assert done.rc == 0 and (images.work / "back" / digest).exists(), done.text()


if __name__ == "__main__":
    main()
