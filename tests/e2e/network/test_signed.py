#!/usr/bin/env python3
"""Requests that are signed anew on the way: unmodified clients with keys that open nothing, against a server (lab/signed.py)
that verifies every signature with the real one."""
import json
import os
import secrets
import time

import room  # noqa: F401
from harness import main, test
from signing import Signed

@test()
def the_aws_cli_copies_to_s3_and_back(lab):
    s = Signed(lab)
    (lab.dir / "small").write_bytes(os.urandom(1024))
    (lab.dir / "large").write_bytes(os.urandom(9 * 1024 * 1024))
    for name, key in (("small", "a key (with) ä+odd~characters & more"), ("large", "folder/large")):
        s.aws("s3", "cp", lab.dir / name, f"s3://bucket/{key}")
        s.aws("s3", "cp", f"s3://bucket/{key}", lab.dir / f"{name}.back")
        assert (lab.dir / name).read_bytes() == (lab.dir / f"{name}.back").read_bytes()
    listed = s.aws("s3", "ls", "s3://bucket/folder/").out
    assert b"large" in listed, listed
    s.aws("s3", "rm", "s3://bucket/folder/large")
    seen = s.all_were_right(8)
    assert any("partNumber" in r["path"] for r in seen), "of several parts"


@test()
def a_copy_from_standard_input_streams(lab):
    s = Signed(lab)
    s.aws("s3", "cp", "-", "s3://bucket/streamed", stdin=b"line\n" * 5000)
    assert s.aws("s3", "cp", "s3://bucket/streamed", "-").out == b"line\n" * 5000
    s.all_were_right(3)


@test()
def the_aws_cli_speaks_to_dynamodb(lab):
    s = Signed(lab, "sigv4: { region: eu-central-1, service: dynamodb }")
    item = '{"id": {"S": "1"}, "what": {"S": "a thing, ä"}}'
    s.aws("dynamodb", "put-item", "--table-name", "things", "--item", item)
    got = json.loads(s.aws("dynamodb", "get-item", "--table-name", "things", "--key", '{"id": {"S": "1"}}').out)
    assert got["Item"]["what"]["S"] == "a thing, ä", got
    s.all_were_right(2)


@test()
def keys_that_last_bring_no_token(lab):
    s = Signed(lab, token=False)
    s.env["AWS_SESSION_TOKEN"] = "the-clients-own-token-0123456789"
    s.aws("s3", "ls", "s3://bucket/")
    (seen,) = s.all_were_right(1)
    assert "x-amz-security-token" not in seen["fields"], seen


@test()
def a_write_is_held_and_signed_when_it_is_sent(lab):
    s = Signed(lab, write="hold")
    (lab.dir / "file").write_bytes(b"held\n" * 100)
    copy = lab.start(["/usr/bin/aws", "--endpoint-url", s.url, "s3", "cp", str(lab.dir / "file"), "s3://bucket/held"], env=s.env)
    ticket = s.gw.pending()
    shown = json.dumps(s.gw.cli_json("approvals", "show", ticket["id"])).lower()
    assert "x-amz-date" not in shown and "akiafake" not in shown, shown
    assert s.requests() == []
    s.gw.approve(ticket["id"])
    assert copy.wait(60) == 0, copy.seen
    s.all_were_right(1)


@test()
def what_cannot_be_signed_is_refused(lab):
    s = Signed(lab)
    presigned = s.aws("s3", "presign", "s3://bucket/thing").out.decode().strip()
    assert "X-Amz-Signature=" in presigned or "Signature=" in presigned, presigned
    for words in ([presigned], ["-H", "x-amz-content-sha256: STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD", s.url + "/bucket/a"],
                  ["-H", "x-amz-content-sha256: UNSIGNED-PAYLOAD", "-H", "x-amz-content-sha256: UNSIGNED-PAYLOAD",
                   s.url + "/bucket/a"],
                  ["-T", "/etc/hostname", "-H", "x-amz-content-sha256: STREAMING-AWS4-HMAC-SHA256-PAYLOAD", s.url + "/bucket/a"]):
        said = s.curl(*words)
        assert said.endswith("\n400") and "cannot-sign" in said, said
    assert s.requests() == []


@test()
def a_client_that_does_not_sign_is_signed_for(lab):
    s = Signed(lab)
    assert s.curl("-X", "PUT", "--data-binary", "plain bytes", s.url + "/bucket/plain").endswith("\n200")
    assert s.curl(s.url + "/bucket/plain") == "plain bytes\n200"
    unsigned = ["-H", "x-amz-content-sha256: UNSIGNED-PAYLOAD", "-X", "PUT", "--data-binary", "x"]
    assert s.curl(*unsigned, s.url + "/bucket/b?c&a=1+2").endswith("200")
    s.all_were_right(3)


def in_chunks(data, size, trailer):
    """A body of signed chunks, with signatures of a key that is not the real one."""
    def fake():
        return secrets.token_hex(32)
    out = b""
    for at in range(0, len(data), size):
        piece = data[at:at + size]
        out += f"{len(piece):x};chunk-signature={fake()}\r\n".encode() + piece + b"\r\n"
    out += f"0;chunk-signature={fake()}\r\n".encode()
    if trailer:
        out += f"x-amz-checksum-crc32:AAAAAA==\r\nx-amz-trailer-signature:{fake()}\r\n".encode()
    return out + b"\r\n"


def put_chunks(s, name, body, decoded, mode):
    (s.lab.dir / name).write_bytes(body)
    trailer = ["-H", "x-amz-trailer: x-amz-checksum-crc32"] if mode.endswith("TRAILER") else []
    return s.curl("-X", "PUT", "-H", f"x-amz-content-sha256: {mode}", "-H", f"x-amz-decoded-content-length: {decoded}",
                  "-H", "content-encoding: aws-chunked", *trailer, "--data-binary", f"@{s.lab.dir / name}",
                  f"{s.url}/bucket/{name}")


@test()
def signed_chunks_are_signed_anew_in_the_same_length(lab):
    s = Signed(lab)
    for size, step in ((0, 8192), (1, 8192), (200_000, 65536), (3_000_000, 8192)):
        for trailer in (False, True):
            data, name = os.urandom(size), f"chunks-{size}-{trailer}"
            body = in_chunks(data, step, trailer)
            mode = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD" + ("-TRAILER" if trailer else "")
            assert put_chunks(s, name, body, size, mode).endswith("\n200"), s.requests()[-1]
            assert s.requests()[-1]["length"] == len(body)
            got = s.lab.run(["curl", "-sSf", f"{s.url}/bucket/{name}"], env=s.env, rc=0).out
            assert got == data
    s.all_were_right(16)


@test()
def an_unsigned_trailer_passes_as_it_is(lab):
    s = Signed(lab)
    body = b"5\r\nhello\r\n0\r\nx-amz-checksum-crc32:NhCmhg==\r\n\r\n"
    assert put_chunks(s, "trailer", body, 5, "STREAMING-UNSIGNED-PAYLOAD-TRAILER").endswith("\n200"), s.requests()
    assert s.curl(s.url + "/bucket/trailer") == "hello\n200"
    s.all_were_right(2)


@test()
def a_retry_with_other_signatures_joins_the_ticket(lab):
    lab.leaves("pending")
    s = Signed(lab, write="hold")
    for _ in range(2):
        put = lab.start(["curl", "-sS", "-m", "3", "-X", "PUT", "-H", "x-amz-content-sha256: STREAMING-AWS4-HMAC-SHA256-PAYLOAD",
                         "-H", "x-amz-decoded-content-length: 5", "--data-binary", in_chunks(b"hello", 8, False).decode(),
                         "-H", f"x-amz-date: {time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}", s.url + "/bucket/c"], env=s.env)
        s.gw.pending()
        put.wait()
    assert len(s.gw.tickets("all")) == 1, s.gw.tickets("all")


@test()
def a_call_of_tencent_cloud_is_signed(lab):
    s = Signed(lab, "tc3: { service: tcb }")
    own = ["X-TC-Timestamp: 1", "X-TC-Token: a-token-of-the-client", "Authorization: TC3-HMAC-SHA256 Credential=x"]
    said = s.curl("-X", "POST", "-H", "Content-Type: application/json", "-H", "X-TC-Action: DescribeEnvs", *sum((["-H", h] for h in own), []),
                  "--data-binary", '{"Limit":1}', s.url + "/")
    assert said.endswith("\n200") and "DescribeEnvs" in said, (said, s.requests())
    s.all_were_right(1)


if __name__ == "__main__":
    main()
