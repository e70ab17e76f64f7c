#!/usr/bin/env python3
"""A lease stands where its credential will: in a field, a cookie, the query, the path, a form, a JSON body or the handshake of a
WebSocket. It is of worth there and nowhere else, what leaves has the credential in its place, and no record has the lease."""
import json
import re
import secrets

import room  # noqa: F401
from gateway import Gateway, Page, upstream_yaml
from harness import HERE, PATIENCE, main, test
from servers import npm_modules

JSON = 'header = "Content-Type: application/json"'
# what the policy says, and a request with a text in that place: its target, and lines of curl's own configuration
PLACES = {
    "a_bearer": ('header: Authorization, format: "Bearer {}"', lambda t: ("/h", f'header = "Authorization: Bearer {t}"')),
    "a_field": ('header: X-Api-Key, format: "{}"', lambda t: ("/h", f'header = "X-Api-Key: {t}"')),
    "a_template": ('header: X-Auth, format: "key={};v=1"', lambda t: ("/h", f'header = "X-Auth: key={t};v=1"')),
    "basic": ("basic: { user: bot }", lambda t: ("/h", f'user = "anybody:{t}"')),
    "a_cookie": ("cookie: sid", lambda t: ("/c", f'header = "Cookie: theme=dark; sid={t}"')),
    "the_query": ("query: key", lambda t: (f"/q?a=1&key={t}&b=2",)),
    "the_path": ('path: "/bot{}"', lambda t: (f"/bot{t}/getMe?a=1",)),
    "a_form": ("form: token", lambda t: ("/f", f'data = "a=1&token={t}"')),
    "json": ("json: /auth/token", lambda t: ("/j", JSON, 'data = "{\\"n\\":1,\\"auth\\":{\\"token\\":\\"' + t + '\\"}}"')),
}

SOCKET = """
const WebSocket = require("ws"), { HttpsProxyAgent } = require("https-proxy-agent");
const headers = process.env.LEASE ? { Authorization: `Bearer ${process.env.LEASE}` } : {};
const ws = new WebSocket(process.argv[1], { agent: new HttpsProxyAgent(process.env.HTTPS_PROXY), headers });
ws.on("open", () => ws.send("hello"));
ws.on("message", data => { console.log(`got ${data}`); if (process.argv[2] !== "stay") ws.close(1000); });
ws.on("unexpected-response", (request, answer) => { console.log(`answer ${answer.statusCode}`); process.exit(3); });
ws.on("close", code => console.log(`closed ${code}`));
ws.on("error", why => console.log(`error ${why}`));
"""


class Placed:
    def __init__(self, lab, inject, write="allow", more=""):
        self.lab, self.up, self.secret = lab, lab.upstream(), lab.canary(secrets.token_urlsafe(32))
        place = f"host: {self.up.name}, port: {self.up.port}"
        self.gw = Gateway(lab, f"""version: 1
name: places
upstreams:
{upstream_yaml(self.up.name, self.up.port, self.up.ca)}credentials:
  api:
    source: {{ store: api }}
    inject: {{ {inject} }}
    lease: generic
    require_lease: true
    only: [{{ {place} }}]
rules:
  - {{ id: read, match: {{ {place}, effect: read }}, decide: allow, use: api }}
  - {{ id: write, match: {{ {place}, effect: write }}, decide: {write}, use: api }}
{more.format(place=place)}""", {"api": self.secret.encode()}, hold="inline_wait: 0s, expires: 2h")
        self.env = self.gw.client_env()

    def issue(self):
        """A lease that is to be found in no file when the test is over."""
        status, made = self.gw.control("POST", "/api/v1/leases", {"credential": "api", "sandbox": "agent"})
        assert status == 201, made
        self.lab.canary(made["lease"])
        return made

    def ask(self, target, *lines):
        """The status, or the code of a refusal. Nothing of it stands in a list of processes, or in a file of the test's."""
        config = "\n".join([f'url = "https://{self.up.name}:{self.up.port}{target}"', *lines])
        done = self.lab.run(["curl", "-sS", "--path-as-is", "--globoff", "--max-time", str(PATIENCE), "--suppress-connect-headers", "-D", "-", "-K", "-"],
                            env=self.env, stdin=config.encode(), rc=0)
        found = re.search(rb'"code":"([a-z-]+)"', done.out)
        return found[1].decode() if found else done.out.split(b" ", 2)[1].decode()

    def sent(self):
        """The last request as it arrived, head and body."""
        request = self.up.requests()[-1]
        return json.dumps([request["line"], request["fields"]]) + self.up.body(request["n"]).decode()


def stands(name):
    inject, request = PLACES[name]

    def run(lab):
        p = Placed(lab, inject)
        made, other = p.issue(), p.issue()
        text = made["lease"]
        assert p.ask(*request(text)) == "200"
        there = p.sent()
        assert text not in there and (p.secret in there or name == "basic"), there
        for wrong in ("x" * 43, "cs_" + "A" * 40):
            assert p.ask(*request(wrong)) == "lease-required", wrong
        assert p.ask(*request(text[:-1] + ("0" if text[-1] != "0" else "1"))) == "lease-unknown"
        target, *lines = request(text)
        assert p.ask(target, *lines, f'header = "X-Other: {text}"') == "lease-misplaced"
        assert p.ask(target, *lines, f'header = "X-Other: {other["lease"]}"') == "lease-misplaced"
        target, *lines = request("nothing-of-worth")
        assert p.ask(target, *lines, f'header = "X-Other: {text}"') == "lease-misplaced"
        assert p.ask(*request(text)) == "200" and len(p.up.requests()) == 2
        p.gw.cli("lease", "revoke", made["id"], rc=0)
        assert p.ask(*request(text)) == "lease-ended" and p.ask(*request(other["lease"])) == "200"
        assert len(p.up.requests()) == 3 and p.gw.cli("audit", "verify").rc == 0
    run.__name__ = f"a_lease_stands_in_{name}"
    return run


for each in PLACES:
    test()(stands(each))


@test()
def a_websocket_opens_with_one_and_ends_with_it(lab):
    p = Placed(lab, PLACES["a_bearer"][0],
               more="  - {{ id: ws, match: {{ {place}, path: /ws, ws: {{}} }}, decide: allow, use: api, messages: {{ send: text, max: 1KiB }} }}\n")
    made = p.issue()
    modules = npm_modules(HERE / "npm") / "node_modules"
    words = ["node", "-e", SOCKET, f"wss://{p.up.name}:{p.up.port}/ws?echo=1"]

    def env(lease):
        return {**p.env, "NODE_PATH": modules, **({"LEASE": lease} if lease else {})}
    done = lab.run(words, env=env(made["lease"]), rc=0)
    assert done.out == b"got hello\nclosed 1000\n", done.text()
    assert p.secret in p.sent() and made["lease"] not in p.sent()
    for other in (None, "cs_" + "A" * 40):
        done = lab.run(words, env=env(other), rc=3)
        assert done.out in (b"answer 401\n", b"answer 403\n"), done.text()
    stays = lab.start([*words, "stay"], env=env(made["lease"]), ready="got hello")
    p.gw.cli("lease", "revoke", made["id"], rc=0)
    stays.wait_line("closed")
    stays.wait()
    assert len(p.up.requests()) == 2


def waits(name):
    """Shown without its lease; and sent with the credential, when it is repeated with another one."""
    inject, request = PLACES[name]

    def run(lab):
        p = Placed(lab, inject, write="hold")
        made, again = p.issue(), p.issue()
        target, *lines = request(made["lease"])
        assert p.ask(target, 'request = "POST"', *lines) == "held"
        (ticket,) = p.gw.tickets()
        shown = json.dumps(p.gw.show(ticket["id"])) + p.gw.cli("approvals", "show", ticket["id"], "--body", rc=0).out.decode()
        _, page = Page(p.gw).ask("GET", f"/tickets/{ticket['id']}")
        assert "~api~" in shown and made["lease"] not in shown and made["lease"].encode() not in page, shown
        p.gw.approve(ticket["id"])
        target, *lines = request(again["lease"])
        assert p.ask(target, 'request = "POST"', *lines) == "200"
        assert p.secret in p.sent() and len(p.up.requests()) == 1
    run.__name__ = f"what_waits_is_shown_without_its_lease_in_{name}"
    return run


for each in ("the_query", "a_form", "json"):
    test()(waits(each))

if __name__ == "__main__":
    main()
