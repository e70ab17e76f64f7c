#!/usr/bin/env python3
"""Leases in two halves, of a credential that signs: what was not signed with the secret half of the sandbox's own is never
signed anew (attacks.tsv D12, D13, D32, D48). The upstream is the oracle's: nothing of a refused request is there."""
import hashlib
import secrets

import room  # noqa: F401
from attack import everywhere, fields_of, wires
from harness import main
from leased import again, asked, known, leaked, name_of, refused
from signing import Pair
from ways import PATIENCE

FORMAT = 'inject: { header: Authorization, format: "Bearer {}" }'
SIGNED = "inject: { sigv4: { region: eu-central-1, service: s3 } }\n    lease: aws"


def pairs(rig, transport):
    """From now on the gateway signs with its credential, and gives leases of it; who brings none is signed for all the same."""
    rig.key = "AKIA" + secrets.token_hex(8).upper()
    key = rig.lab.canary(secrets.token_urlsafe(30))
    rig.gw.cli("secret", "set", "api", stdin=f"{rig.key}:{key}".encode(), rc=0)
    text = rig.gw.policy.read_text().replace(FORMAT, SIGNED)
    assert SIGNED in text
    rig.gw.policy.write_text(text)
    rig.reload()
    rig.lab.expects("a lease of sandbox")
    known(rig, transport)


def issue(rig, transport, who="agent", **bounds):
    made = asked(rig, "/api/v1/leases", credential="api", sandbox=name_of(transport, who), **bounds)
    pair = Pair(made["lease"], rig.lab.canary(made["secret"]))
    pair.made = made
    return pair


def signed(rig, wire, pair, method="GET", path="/ok", query="", payload="UNSIGNED-PAYLOAD", **more):
    """Lines of a head."""
    host = f"{rig.up.name}:{rig.up.plain_port if wire.plain else rig.up.port}"
    return {**pair.sign(method, host, path, query, {"x-amz-meta-note": "a note", **more}, payload)}


def send(wire, fields, method="GET", path="/ok", body=None):
    lines = [f"{name}: {value}" for name, value in fields.items()]
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    return wire.talk(wire.head(method, path, *lines) + (body or b""), 1)


def passes(rig, what, got, path="/ok", method="GET"):
    (new,) = rig.passed(what, got, [(method, path, None)])
    assert fields_of(new)["authorization"].startswith(f"AWS4-HMAC-SHA256 Credential={rig.key}/"), new


def other(text, at):
    return text[:at] + ("0" if text[at] != "0" else "1") + text[at + 1:]


@everywhere("D12", cleartext=True)
def a_pairs_id_stands_in_its_signature_alone(rig, transport):
    pairs(rig, transport)
    for wire in wires(rig, transport):
        pair = issue(rig, transport)
        for what, path, fields in (("query", f"/ok?key={pair.id}", {}), ("path", f"/x/{pair.id}", {}), ("a field", "/ok", {"x-note": pair.id}),
                                   ("a token without a signature", "/ok", {"x-amz-security-token": pair.id}),
                                   ("as a bearer", "/ok", {"authorization": f"Bearer {pair.id}"}),
                                   ("beside its signature", "/ok", {**signed(rig, wire, pair), "x-api-key": pair.id})):
            refused(rig, f"D12 {what}", send(wire, fields, path=path), "lease-misplaced")
        url = f"/ok?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential={pair.id}%2Fx&X-Amz-Signature={'0' * 64}"
        rig.refused("D12 in a URL that is signed", send(wire, {}, path=url), closed=False, status=400)
        passes(rig, "D12 and in its signature", send(wire, signed(rig, wire, pair)))
        passes(rig, "D12 and in its token", send(wire, signed(rig, wire, pair, **{"x-amz-security-token": pair.id})))
        wire.close()


@everywhere("D32", cleartext=True)
def another_sandboxs_pair_has_leaked_and_its_id_has_not(rig, transport):
    pairs(rig, transport)
    known(rig, transport, "thief")
    for wire in wires(rig, transport, who="thief"):
        pair, own = issue(rig, transport), issue(rig, transport, "thief")
        refused(rig, "D32 its id alone", send(wire, signed(rig, wire, Pair(pair.id, own.secret))), "lease-unproven")
        refused(rig, "D32 its id elsewhere", send(wire, {"x-note": pair.id}), "lease-misplaced")
        mine = rig.open(transport, plain=wire.plain) if wire.plain and transport != "absolute" else rig.open(transport)
        passes(rig, "D32 which is good as before", send(mine, signed(rig, mine, pair)))
        refused(rig, "D32 both halves", send(wire, signed(rig, wire, pair)), "lease-leaked")
        leaked(rig, "D32 both halves: whose", pair.made, name_of(transport, "thief"), rig.up.name)
        refused(rig, "D32 of no use to its owner either", send(mine, signed(rig, mine, pair)), "lease-ended")
        passes(rig, "D32 who has one of its own", send(wire, signed(rig, wire, own)))
        wire.close()
        mine.close()


@everywhere("D13")
def its_own_pair_for_another_place_is_refused_and_stays_good(rig, transport):
    """As an SDK signs for each host that it speaks to."""
    pairs(rig, transport)
    places = [("over http", {"plain": True}), ("another host", {"host": "other.test"})] if transport != "absolute" else []
    pair = issue(rig, transport)

    def live(what):
        state = rig.control("GET", f"/api/v1/leases/{pair.made['id']}")[1]["state"]
        rig.holds(f"D13 {what}: it stays good", state == "live", state)
    for what, where in places:
        for place in ("signed", "elsewhere"):
            wire = rig.open(transport, **where)
            fields = signed(rig, wire, pair) if place == "signed" else {"x-key": pair.id}
            refused(rig, f"D13 {what}, {place}", send(wire, fields), "lease-not-for-this")
            live(f"{what}, {place}")
            wire.close()
    if transport == "absolute":
        for host, port in (("upstream.test", 9), ("other.test", rig.up.port), ("elsewhere.test", 80)):
            wire = rig.open(transport)
            lines = "".join(f"{name}: {value}\r\n" for name, value in signed(rig, wire, pair).items())
            got = wire.talk(f"GET http://{host}:{port}/ok HTTP/1.1\r\nHost: {host}:{port}\r\n{{A}}{lines}\r\n", 1)
            refused(rig, f"D13 {host}:{port}", got, "denied")  # by the policy already
            live(f"{host}:{port}")
            wire.close()
    if transport != "absolute":
        wire = rig.open(transport)
        passes(rig, "D13 where it is for", send(wire, signed(rig, wire, pair)))
        wire.close()


@everywhere("D48", cleartext=True)
def a_pair_that_has_ended_or_signed_something_else(rig, transport):
    pairs(rig, transport)
    body = b"hi"
    sha = hashlib.sha256(body).hexdigest()
    for wire in wires(rig, transport):
        pair, brief = issue(rig, transport), issue(rig, transport, expires_s=1)

        def write(fields, body=body, path="/w/x", wire=wire):
            return send(wire, fields, "POST", path, body)

        good = signed(rig, wire, pair, "POST", "/w/x", payload=sha)
        passes(rig, "D48 as it was signed", write(good), "/w/x", "POST")
        last = len(good["authorization"]) - 1
        for what, got in (("another body", lambda: write(good, b"ho")), ("another path", lambda: write(good, path="/w/y")),
                          ("a query", lambda: write(good, path="/w/x?a=1")),
                          ("another field", lambda: write({**good, "x-amz-meta-note": "a mote"})),
                          ("one more field", lambda: write({**good, "x-amz-meta-more": "1"})),
                          ("another time", lambda: write({**good, "x-amz-date": other(good["x-amz-date"], 14)})),
                          ("another SHA-256", lambda: write({**good, "x-amz-content-sha256": "UNSIGNED-PAYLOAD"})),
                          ("another signature", lambda: write({**good, "authorization": other(good["authorization"], last)}))):
            refused(rig, f"D48 {what}", got(), "lease-unproven")
        pair.at -= 16 * 60
        refused(rig, "D48 kept for later", write(signed(rig, wire, pair, "POST", "/w/x", payload=sha)), "lease-unproven")
        pair.at += 16 * 60
        asked(rig, f"/api/v1/leases/{pair.made['id']}/narrow", methods=["GET"])
        refused(rig, "D48 narrowed", write(good), "lease-not-for-this")
        asked(rig, f"/api/v1/leases/{pair.made['id']}/revoke", reason="enough")
        rig.lab.wait_for("it has expired", lambda: rig.control("GET", f"/api/v1/leases/{brief.made['id']}")[1]["state"] == "expired", PATIENCE)
        for one, what in ((pair, "revoked"), (brief, "expired")):
            wire = again(rig, transport, wire)
            refused(rig, f"D48 {what}", send(wire, signed(rig, wire, one)), "lease-ended")
        wire.close()


if __name__ == "__main__":
    main()
