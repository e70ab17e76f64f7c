"""Tickets to look at: ordinary ones, and what a hostile sandbox would send (E14, E16, E17, E18, E20)."""
import hashlib
import json
import pathlib
import sys
import time

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "e2e/approvals"))
from pictures import drawn, png  # noqa: E402

XSS = ['<script>alert(1)</script>', '"><img src=x onerror=alert(1)>', "'-alert(1)-'", '</title><svg/onload=alert(1)>',
       'javascript:alert(1)', '{{7*7}}${7*7}', '\n\nevent: ticket\ndata: {"forged":true}\n\n', '--><!--', '&lt;b&gt;']
SPOOF = ('\u202egnp.exe\u202c \u2066x\u2069 \u200bzero\u200d \u2060 \ufeff \U000e0041tag e\u0301\u0301\u0301 \u00a0nbsp \u2028line '
         '\x1b[31mred\x1b[0m \x1b]0;title\x07 over\rwrite \t tab \x85 \u061c \ue000 pаypal')


def git_push(led):
    body = (b"00a80000000000000000000000000000000000000000 4b825dc642cb6eb9a060e54bf8d69288fbee4904 refs/heads/agent/fix-12\0"
            b" report-status-v2 side-band-64k object-format=sha1 agent=git/2.39.5" + b"0000PACK\0\0\0\2\0\0\0\3" + bytes(range(256)))
    led.ticket(body=body, host="git.example.com", path="/acme/app.git/git-receive-pack", op="git.push", effect="write",
               resource="acme/app", credential="github", rule_id="hold-pushes", rule_file="policies/git.yaml", rule_line=21,
               summary="Push 2 refs to acme/app: refs/heads/agent/fix-12, refs/tags/v1.4.0",
               agent_reason="The login test failed on main; this branch fixes the race in session.c.",
               facts_json=json.dumps([{"label": "Create", "value": "refs/heads/agent/fix-12 at 4b825dc642cb6eb9a060e54bf8d69288fbee4904"},
                                      {"label": "Create", "value": "refs/tags/v1.4.0 at 9f8e7d6c5b4a39281706f5e4d3c2b1a098765432"},
                                      {"label": "Commits", "value": "3, newest: fix the race in session.c"}]),
               fields_json=json.dumps([["content-type", "application/x-git-receive-pack-request"],
                                       ["accept", "application/x-git-receive-pack-result"], ["user-agent", "git/2.39.5"],
                                       ["authorization", "Basic c2FuZGJveDpwbGFjZWhvbGRlcg=="]]), repeats=2)


def plain(led):
    body = json.dumps({"title": "Fix the race in session.c", "head": "agent/fix-12", "base": "main",
                       "body": "Closes #12.\n\nThe lock was taken too late.", "draft": False}).encode()
    led.ticket(body=body, host="api.github.com", path="/repos/acme/app/pulls", op="github.pull.create", credential="github",
               summary="Create pull request acme/app: main from agent/fix-12", resource="acme/app",
               fields_json=json.dumps([["content-type", "application/json"], ["accept", "application/vnd.github+json"]]))
    led.ticket(method="DELETE", host="api.github.com", path="/repos/acme/app/branches/release", effect="delete", reason_required=1,
               summary="Delete branch release of acme/app", op="github.branch.delete", credential="github", rule_id="hold-deletes", waits=9000,
               resource="acme/app", expires_ms=int(time.time() * 1000) + 90000)
    led.ticket(effect="spend", host="api.cloud.example", path="/v2/instances", summary="Start 4 instances of gpu-xl", body=b"count=4&type=gpu-xl",
               op="cloud.instance.create", fields_json=json.dumps([["content-type", "application/x-www-form-urlencoded"]]))


def hostile(led):
    nasty = "\n".join(XSS) + "\n" + SPOOF
    led.ticket(id="hst" + "0" * 23, sandbox="<b>evil</b>", session=SPOOF, method="PO<ST", host="xn--pypal-4ve.example.com",
               path="/%E2%80%AE/" + "<script>alert(1)</script>", query="a=%0d%0aSet-Cookie:x&b=\"><img src=x onerror=alert(1)>",
               summary=XSS[0] + " Approved by policy \u2713 " + SPOOF, op=XSS[1], resource=XSS[3], agent_reason=nasty,
               rule_id=XSS[2], rule_file="</dd><script>alert(1)</script>", credential=XSS[1], approve_by="",
               facts_json=json.dumps([{"label": x, "value": x} for x in XSS]),
               fields_json=json.dumps([[x, SPOOF] for x in XSS] + [["content-type", "text/html"]]),
               body=("<h1>Approved</h1><form action=/tickets/x/approve method=post><button>Approve this request</button></form>"
                     + "\n" * 5000 + " " * 900 + nasty + "\n\nrm -rf /\n").encode() + b"\xff\xfe\x80")
    led.ticket(id="dp0" + "0" * 23, summary="JSON with duplicate keys", body=b'{"to":"alice","amount":1,"amount":1000000,"to":"mallory"}',
               fields_json=json.dumps([["content-type", "application/json"]]))
    led.ticket(id="bng" + "0" * 23, summary="A long body", host="h.example", path="/" + "a" * 3000,
               body=("line of padding\n" * 9000 + '"delete": "everything"\n').encode())
    led.ticket(id="bnr" + "0" * 23, summary="Two megabytes of bytes", body=hashlib.sha256(b"x").digest() * 65536, effect="exec")


def decided(led):
    now = int(time.time() * 1000)
    for state, extra in (("denied", {"decided_reason": "Not on a Friday."}), ("approved", {}), ("expired", {}),
                         ("done", {"status": 201, "bytes_out": 812, "bytes_in": 90, "delivered": 1, "ended_ms": now}),
                         ("unknown", {"ended_ms": now})):
        by = {"decided_by": "uid 0", "decided_channel": "page"}
        if state == "expired":  # by nobody, as the ledger says it
            by = {"decided_by": "time", "decided_channel": "", "decided_reason": "nobody decided in time"}
        led.ticket(id=state[:3].replace("u", "v").replace("o", "0") + "1" * 22 + "0", state=state, summary=f"An earlier request that is {state}",
                   decided_ms=now - 600000, **by, **extra)


def unusual(led):
    """Held for something else than a rule's own word, and withdrawn by a change of the policy."""
    pay = dict(host="api.pay.example", path="/v1/payments", op="rest.write", credential="pay", body=b'{"amount": 250}',
               fields_json=json.dumps([["content-type", "application/json"]]), summary="POST to api.pay.example/v1/payments")
    led.ticket(id="past" + "0" * 22, code="over-limit", rule_id="large-payments", rule_file="policies/pay.yaml", rule_line=31,
               facts_json=json.dumps([{"label": "Limit", "value": "Rule small-payments: the limit of 2 requests in 1 day is used up"},
                                      {"label": "amount", "value": "250"}]), **pay)
    led.ticket(id="new0" + "0" * 22, code="learning", rule_id="", rule_file="", rule_line=0, host="new.example", path="/v1/jobs", op="",
               summary="POST to new.example/v1/jobs", body=b"{}", facts_json=json.dumps([{"label": "Limit", "value": "not the judge's"}]))
    led.ticket(id="g0ne" + "0" * 22, state="cancelled", decided_ms=int(time.time() * 1000) - 60000, decided_by="policy",
               decided_channel="", decided_reason="the policy would not hold it like this any more", **pay)


def pictures(led):
    """One that is wider than a telephone, and a form of which one is damaged."""
    wide = drawn("PAY 900 TO MALLORY AND SAY NO MORE ABOUT IT")
    led.ticket(id="pct" + "0" * 23, path="/v1/avatars", summary="Set the avatar of acme", body=png(wide * 8),
               fields_json=json.dumps([["content-type", "image/png"]]), agent_reason="our new logo, a blue square")
    part = b'--b0undary\r\nContent-Disposition: form-data; name="%s"; filename="%s.png"\r\nContent-Type: image/png\r\n\r\n%s\r\n'
    led.ticket(id="pcb" + "0" * 23, path="/v1/pages", summary="Add two pictures to a page", fields_json=json.dumps(
        [["content-type", "multipart/form-data; boundary=b0undary"]]), body=part % (b"first", b"a", png(drawn("A GOOD PIN"))) +
        part % (b"second", b"b", png(drawn("SEND IT"))[:-30]) + b"--b0undary--\r\n")


def burst(led):
    """Invitations that differ in their names, as they must; one in its role, too, and one in what hides in a value."""
    for n, (name, role) in enumerate([("ann", "member"), ("bob", "member"), ("eve", "member"), ("joe", "owner"), ("<b>kim</b>\u202e", "member"),
                                      ("lea", "member"), ("max", "member"), ("zoe", "member")]):
        led.ticket(id=f"gr{n}" + "0" * 23, sandbox="onboarding", method="POST", host="api.example.com", path="/v1/invitations", op="rest.write",
                   credential="hr", rule_id="hold-invitations", summary="Invite somebody to acme", waits=(n + 1) * 4000 if n < 6 else -90000,
                   body=json.dumps({"email": f"{name}@example.com", "role": role, "team": "core"}).encode(),
                   fields_json=json.dumps([["content-type", "application/json"], ["content-length", str(60 + n)]]))


def fill(led):
    burst(led)
    led.audit("start", version="test")
    decided(led)
    hostile(led)
    plain(led)
    unusual(led)
    pictures(led)
    git_push(led)
