#!/usr/bin/env python3
"""Requests that get an HMAC as the policy's template says, against a server (lab/hmac_signed.py) that verifies each with Python's
hmac, as the services document it."""
import base64
import json
import secrets
import sys

import room  # noqa: F401
from gateway import Gateway, upstream_yaml
from harness import HERE, main, test

HOST = "hooks.demo.test"
INJECT = {
    "github": 'sign: "{body}", headers: { X-Hub-Signature-256: "sha256={signature}" }',
    "older": 'sign: "{body}", algorithm: sha1, headers: { X-Hub-Signature: "sha1={signature}" }',
    "stripe": 'sign: "{time}.{body}", headers: { Stripe-Signature: "t={time},v1={signature}" }',
    "coin": 'sign: "{time}{method}{target}{body}", key: base64, encoding: base64, headers: { CB-ACCESS-SIGN: "{signature}", '
            'CB-ACCESS-KEY: "{id}", CB-ACCESS-TIMESTAMP: "{time}", CB-ACCESS-PASSPHRASE: "{token}" }',
    "azure": 'sign: "{method}\\n{target}\\n{date};{host};{body_sha256_base64}", key: base64, encoding: base64, headers: { '
             'x-ms-date: "{date}", x-ms-content-sha256: "{body_sha256_base64}", Authorization: "HMAC-SHA256 '
             'Credential={id}&SignedHeaders=x-ms-date;host;x-ms-content-sha256&Signature={signature}" }',
}


class Hooks:
    """The server, and a gateway that has its keys."""

    def __init__(self, lab, write="allow", lease=""):
        self.lab, self.dir = lab, lab.exempt(lab.dir / "hooks")
        self.dir.mkdir()
        keys = {name: lab.canary(secrets.token_urlsafe(24)) for name in ("github", "older", "stripe")}
        for name in ("coin", "azure"):
            raw = secrets.token_hex(12)
            keys[name] = {"id": f"id-{name}", "key": lab.canary(base64.b64encode(lab.canary(raw).encode()).decode()),
                          "pass": lab.canary(secrets.token_urlsafe(12))}
        (self.dir / "keys.json").write_text(json.dumps(keys))
        self.keys = keys
        process = lab.start([sys.executable, HERE / "lab/hmac_signed.py", "--dir", self.dir, "--name", HOST],
                            ready=rb"ready (\{.*\})")
        said = json.loads(process.ready[1])
        place = f"host: {HOST}, port: {said['port']}"
        stored = {name: keys[name] for name in ("github", "older", "stripe")}
        stored["coin"] = ":".join(keys["coin"][part] for part in ("id", "key", "pass"))
        stored["azure"] = ":".join(keys["azure"][part] for part in ("id", "key"))
        text = f"version: 1\nname: hooks\nupstreams:\n{upstream_yaml(HOST, said['port'], said['ca'])}\ncredentials:\n"
        for name, inject in INJECT.items():
            text += f"  {name}:\n    source: {{ store: {name} }}\n    inject: {{ hmac: {{ {inject} }} }}{lease}\n"
            text += f'    only: [{{ {place}, path: "/{name}/**" }}]\n'
        text += "rules:\n"
        for name in INJECT:
            hold = "decide: hold\n    approve: { within: 2h }" if write == "hold" else f"decide: {write}"
            text += f'  - id: {name}-reads\n    match: {{ {place}, path: "/{name}/**", effect: read }}\n    decide: allow\n    use: {name}\n'
            text += f'  - id: {name}-writes\n    match: {{ {place}, path: "/{name}/**", effect: [write, delete] }}\n    {hold}\n    use: {name}\n'
        self.gw = Gateway(lab, text, {name: value.encode() for name, value in stored.items()})
        self.url, self.env = f"https://{HOST}:{said['port']}", self.gw.client_env()

    def requests(self):
        path = self.dir / "requests.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def curl(self, path, *words):
        return self.lab.run(["curl", "-sS", "-w", "\n%{http_code}", *words, self.url + path], env=self.env, rc=0).out.decode()

    def all_were_right(self, n):
        seen = self.requests()
        assert len(seen) == n and not [r for r in seen if r["wrong"]], seen
        return seen


@test()
def each_way_is_signed_as_its_service_documents_it(lab):
    h = Hooks(lab)
    for name in INJECT:
        for words in (["-X", "POST", "--data-binary", '{"event": "a thing, ä", "n": 1}'], ["-X", "DELETE"], []):
            said = h.curl(f"/{name}/x?b=2&a=1%20", *words)
            assert said == "right\n200", (name, words, said, h.requests()[-1])
    (lab.dir / "large").write_bytes(b"0123456789abcdef" * 16 * 1024)  # all that {body} may have
    assert h.curl("/stripe/x", "-X", "PUT", "--data-binary", f"@{lab.dir}/large") == "right\n200"
    (lab.dir / "larger").write_bytes(b"0123456789abcdef" * 128 * 1024)
    assert h.curl("/azure/x", "-X", "PUT", "-H", "Expect:", "--data-binary", f"@{lab.dir}/larger") == "right\n200"
    h.all_were_right(3 * len(INJECT) + 2)


@test()
def what_the_client_signed_itself_does_not_leave(lab):
    h = Hooks(lab)
    own = {"azure": ["Authorization: HMAC-SHA256 mine", "x-ms-date: mine", "x_ms_content_sha256: mine"],
           "coin": ["CB-ACCESS-SIGN: mine", "cb-access-key: mine", "CB_ACCESS_PASSPHRASE: mine", "CB-ACCESS-TIMESTAMP: mine"],
           "stripe": ["stripe-signature: t=1,v1=mine", "Stripe-Signature: mine"]}
    for name, fields in own.items():
        words = [w for f in fields for w in ("-H", f)]
        assert h.curl(f"/{name}/x", "-X", "POST", "-d", "a", *words) == "right\n200", h.requests()[-1]
    for r in h.all_were_right(3):
        assert not [v for _, v in r["fields"] if "mine" in v], r


@test()
def what_cannot_be_signed_is_refused(lab):
    h = Hooks(lab)
    (lab.dir / "larger").write_bytes(b"0123456789abcdef" * 16 * 1024 + b"x")
    said = h.curl("/stripe/x", "-X", "PUT", "-H", "Expect:", "--data-binary", f"@{lab.dir}/larger")
    assert said.endswith("\n413"), said
    assert h.gw.cli("secret", "set", "coin", stdin=b"only-an-id:" + base64.b64encode(b"a key of its own")).rc != 0
    assert h.gw.cli("secret", "set", "azure", stdin=b"id:not base64 at all").rc != 0
    assert h.requests() == []


@test()
def a_write_is_held_and_signed_when_it_is_sent(lab):
    h = Hooks(lab, write="hold")
    sent = lab.start(["curl", "-sS", "-X", "POST", "-H", "x-ms-date: of-the-client", "--data-binary", "held", h.url + "/azure/x"], env=h.env)
    ticket = h.gw.pending()
    shown = json.dumps(h.gw.cli_json("approvals", "show", ticket["id"])).lower()
    assert "of-the-client" not in shown and "id-azure" not in shown, shown
    assert h.requests() == []
    h.gw.approve(ticket["id"])
    assert sent.wait(60) == 0 and b"right" in sent.seen, sent.seen
    h.all_were_right(1)


@test()
def an_answer_is_scrubbed_of_the_key_in_each_form(lab):
    h = Hooks(lab)
    for name in ("coin", "azure"):
        said = h.curl(f"/{name}/leak")
        raw = base64.b64decode(h.keys[name]["key"])
        assert said.startswith("leak ") and "***" in said, said
        for form in (h.keys[name]["key"], raw.hex(), base64.b64encode(b"x" + raw).decode()[4:-4], base64.urlsafe_b64encode(raw).decode()):
            assert form not in said, (name, form, said)


@test()
def a_lease_stands_in_for_the_signature(lab):
    h = Hooks(lab, lease="\n    lease: generic\n    require_lease: true")
    text = h.gw.cli_json("lease", "issue", "github", "--sandbox", "agent")["lease"]
    assert "lease-required" in h.curl("/github/x", "-X", "POST", "-d", "a")
    assert h.curl("/github/x", "-X", "POST", "-d", "a", "-H", f"X-Hub-Signature-256: {text}") == "right\n200"
    assert "lease" in h.curl("/github/x", "-X", "POST", "-d", text, "-H", f"X-Hub-Signature-256: {text}")
    h.all_were_right(1)


if __name__ == "__main__":
    main()
