#!/usr/bin/env python3
"""Pairs: leases of credentials that sign. A sandbox signs with both halves, the gateway sees that it did, and signs anew with
the keys that the sandbox never has. The upstream (lab/signed.py) takes the real keys' signatures alone. What is sent here is signed
by hand; unmodified clients: test_aws_cli.py, test_s3_clients.py."""
import hashlib
import json
import os
import re
import time

import room  # noqa: F401
from harness import main, test
from signing import EMPTY, Pair, Pairs

CHUNKS = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"


@test()
def every_kind_of_payload_is_verified_and_signed_anew(lab):
    s = Pairs(lab)
    pair, data = s.issue(), os.urandom(200_000)
    sha = hashlib.sha256(data).hexdigest()
    decoded = {"x-amz-decoded-content-length": str(len(data)), "content-encoding": "aws-chunked"}
    trailing = {**decoded, "x-amz-trailer": "x-amz-checksum-crc32"}
    plain = f"{len(data):x}\r\n".encode() + data + b"\r\n0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n"
    assert s.put(pair, sha, data) == "200"
    assert s.put(pair, "UNSIGNED-PAYLOAD", data) == "200"
    assert s.put(pair, "STREAMING-UNSIGNED-PAYLOAD-TRAILER", plain, trailing) == "200"
    for mode, more, trailer in ((CHUNKS, decoded, b""), (CHUNKS + "-TRAILER", trailing, b"x-amz-checksum-crc32:AAAAAA==")):
        fields = pair.sign("PUT", s.at, "/bucket/a", "", more, mode)
        good = pair.chunks(data, 65536, trailer)
        assert s.send(fields, "PUT", body=good) == "200"
        # A byte of the data, of a signature, of the last signature: what follows from it is another one.
        for at in (good.index(b"\r\n") + 100, good.index(b"chunk-signature=") + 20, len(good) - 8):
            bad = bytearray(good)
            bad[at] = ord("0") if bad[at] != ord("0") else ord("1")
            assert s.send(fields, "PUT", body=bytes(bad)) == "lease-unproven", at
    assert s.get(pair) == "200"
    s.all_were_right(6)


@test()
def one_changed_byte_is_refused(lab):
    s = Pairs(lab)
    pair, body = s.issue(), b"a body"
    sha = hashlib.sha256(body).hexdigest()
    fields = pair.sign("PUT", s.at, "/bucket/a", "b=2&c=", {"x-amz-meta-note": "a note", "content-type": "text/plain", "content-length": "6"}, sha)

    def ask(method="PUT", path="/bucket/a", query="c&b=2", body=body, **change):
        return s.send({**fields, **{k.replace("_", "-"): v for k, v in change.items()}}, method, path, query, body)

    signed = fields["authorization"]
    other = signed[:-1] + ("0" if signed[-1] != "0" else "1")
    assert ask() == "200"
    for change in ({"method": "POST"}, {"path": "/bucket/b"}, {"query": "c&b=3"}, {"body": b"b body"}, {"x_amz_meta_note": "another"},
                   {"content_type": "text/html"}, {"x_amz_meta_more": "unsigned"}, {"authorization": other},
                   {"authorization": signed.replace("eu-central-1", "eu-central-2")}, {"authorization": signed.replace("/s3/", "/sqs/")},
                   {"authorization": signed.replace("host;", "")}, {"x_amz_date": "20200101T000000Z"}, {"x_amz_date": ""},
                   {"x_amz_content_sha256": "UNSIGNED-PAYLOAD"}):
        assert ask(**change) == "lease-unproven", change
    assert len(s.all_were_right(1)) == 1
    # A clock that is wrong, or a request that is kept for later.
    for late in (-16 * 60, 16 * 60):
        pair.at = time.time() + late
        assert s.get(pair) == "lease-unproven"
    pair.at = time.time() - 14 * 60
    assert s.get(pair) == "200"
    assert s.state(pair) == "live"


@test()
def another_sandboxs_pair_is_refused_and_told(lab):
    s = Pairs(lab)
    lab.expects("a lease of sandbox")
    pair = s.issue()
    # Who knows its id alone does no harm by it.
    named = Pair(pair.id, "guessed/guessed/guessed/guessed/guessed0")
    assert s.get(named, sandbox="other") == "lease-unproven"
    assert s.send({"x-note": pair.id}, sandbox="other") == "lease-misplaced"
    assert s.get(pair) == "404" and s.state(pair) == "live"
    # Who has its key as well has it from there.
    assert s.get(pair, sandbox="other") == "lease-leaked"
    (leak,) = s.gw.recorded(kind="lease-leaked")
    assert s.get(pair) == "lease-ended" and s.state(pair) == "leaked"
    assert leak["sandbox"] == "agent" and leak["used_by"] == "other", leak
    assert len(s.all_were_right(1)) == 1


@test()
def what_a_pair_is_not_for(lab):
    s = Pairs(lab)
    bound, short, pair = s.issue("--method", "GET", "--path", "/bucket/a"), s.issue("--for", "2s"), s.issue()
    started = time.time()
    assert s.get(bound) == "404"
    assert s.put(bound, "UNSIGNED-PAYLOAD", b"x") == "lease-not-for-this"
    assert s.send({}) == "lease-required"
    assert s.get(Pair("AKIAFAKEFAKEFAKEFAKE", "fake/fake/fake/fake/fake/fake/fake/fake0")) == "lease-required"
    unknown = Pair(pair.id[:10] + ("A" if pair.id[10] != "A" else "B") + pair.id[11:], pair.secret)
    assert s.get(unknown) == "lease-unknown"
    # In a URL that is signed itself, in a second field, in the body.
    assert s.send({}, query=f"X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential={pair.id}%2F20260101%2F&X-Amz-Signature=0") == "cannot-sign"
    fields = pair.sign("GET", s.at, "/bucket/a", "", {}, EMPTY)
    assert s.send({**fields, "x-api-key": pair.id}) == "lease-misplaced"
    assert s.put(pair, "UNSIGNED-PAYLOAD", f"key={pair.id}".encode()) == "lease-misplaced"
    s.gw.cli("lease", "revoke", pair.lease, rc=0)
    lab.wait_for("the pair is revoked", lambda: s.get(pair) == "lease-ended")
    lab.wait_for("the pair has expired", lambda: time.time() > started + 2 and s.get(short) == "lease-ended")
    s.all_were_right(1)


@test()
def a_held_write_is_verified_when_it_comes(lab):
    s = Pairs(lab, write="hold")
    pair = s.issue()
    assert s.put(Pair(pair.id, pair.secret[::-1]), "UNSIGNED-PAYLOAD", b"held") == "lease-unproven"
    assert s.gw.tickets("all") == []
    fields = pair.sign("PUT", s.at, "/bucket/a", "", {}, "UNSIGNED-PAYLOAD")
    put = lab.start(["curl", "-sSf", "-X", "PUT", *(w for n, v in fields.items() for w in ("-H", f"{n}: {v}")), "-H", "content-type;",
                     "--data-binary", "held", s.url + "/bucket/a"], env=s.env)
    ticket = s.gw.pending()
    assert pair.id not in json.dumps(s.gw.cli_json("approvals", "show", ticket["id"]))
    s.gw.approve(ticket["id"])
    assert put.wait(60) == 0, put.seen
    s.all_were_right(1)


@test()
def a_call_of_tencent_cloud_with_a_pair(lab):
    s = Pairs(lab, "tc3: { service: tcb }", lease="\n    lease: tencent\n    require_lease: true")
    pair, body = s.issue(scheme="TC3", service="tcb"), b'{"Limit":1}'
    sha = hashlib.sha256(body).hexdigest()
    fields = pair.sign("POST", s.at, "/", "", {"content-type": "application/json"}, sha)

    def ask(path="/", query="", body=body, **change):
        more = {**fields, "x-tc-action": "DescribeEnvs", **{k.replace("_", "-"): v for k, v in change.items()}}
        return s.send(more, "POST", path, query, body)

    assert re.fullmatch(r"AKID\w{32}", pair.id)
    assert ask() == "200" and ask(x_tc_token=pair.id) == "200"
    signed = fields["authorization"]
    for change in ({"path": "/b"}, {"query": "a=1"}, {"body": b'{"Limit":2}'}, {"content_type": "text/plain"},
                   {"authorization": signed.replace("/tcb/", "/cvm/")}, {"x_tc_timestamp": str(int(pair.at) + 1)},
                   {"x_tc_timestamp": "1"}, {"authorization": signed.replace("content-type;", "")}):
        assert ask(**change) == "lease-unproven", change
    assert ask(x_tc_token="x" + pair.id) == "lease-misplaced"
    action = pair.sign("POST", s.at, "/", "", {"content-type": "application/json", "x-tc-action": "describeenvs"}, sha)
    assert s.send({**action, "x-tc-action": "DescribeEnvs"}, "POST", "/", body=body) == "200"
    pair.at -= 6 * 60
    old = pair.sign("POST", s.at, "/", "", {"content-type": "application/json"}, sha)
    assert s.send({**old, "x-tc-action": "DescribeEnvs"}, "POST", "/", body=body) == "lease-unproven"
    assert len(s.all_were_right(3)) == 3


if __name__ == "__main__":
    main()
