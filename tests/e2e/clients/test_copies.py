#!/usr/bin/env python3
"""A copy that went through the gateway is what it was, to the byte: of clients that cut a file into parts, send and fetch several at once
and go on where they were interrupted. The server (lab/signed.py) has what was signed with the real key, chunk by chunk, and nothing else."""
import hashlib
import os
import shutil

import room  # noqa: F401
from harness import Skip, main, test
from signing import Signed

KIB, MB = 1024, 1000 * 1000
PART = 8 * KIB * KIB  # of the AWS CLI
MANY = int(os.environ.get("COPIES_MB", "40")) * MB  # `make clients` takes 200


def made(path, size):
    """A file of so many random bytes; its checksum."""
    path.write_bytes(os.urandom(size))
    return checksum(path)


def checksum(path):
    summed = hashlib.sha256()
    with open(path, "rb") as data:
        while piece := data.read(MB):
            summed.update(piece)
    return summed.hexdigest()


def parts(s, key):
    """How many requests sent a part of it, and how many asked for a range of it."""
    seen = [r for r in s.requests() if r["path"].startswith(f"/bucket/{key}")]
    return len([r for r in seen if "partNumber" in r["path"]]), len([r for r in seen if r["method"] == "GET" and "range" in r["fields"]])


def there_and_back(lab, size):
    s = Signed(lab)
    file, back = lab.dir / "file", lab.dir / "back"
    was = made(file, size)
    s.aws("s3", "cp", "--no-progress", file, "s3://bucket/it")
    s.aws("s3", "cp", "--no-progress", "s3://bucket/it", back)
    assert back.stat().st_size == size and checksum(back) == was
    s.all_were_right(2)
    for path in (file, back):
        path.unlink()  # the search for canaries need not read it
    return parts(s, "it")


@test()
def the_aws_cli_copies_1_kib(lab):
    assert there_and_back(lab, KIB) == (0, 0)


@test()
def the_aws_cli_copies_12_mb(lab):
    assert there_and_back(lab, 12 * MB) == (2, 2)


@test()
def the_aws_cli_copies_many_parts(lab):
    n = -(-MANY // PART)
    assert n > 2 and there_and_back(lab, MANY) == (n, n)


@test()
def rclone_copies_in_several_streams_at_once(lab):
    if not shutil.which("rclone", path="/usr/bin"):
        raise Skip("rclone of Debian (conf/need test)")
    s = Signed(lab)
    env = {**s.env, **{f"RCLONE_CONFIG_S_{k}": v for k, v in (("TYPE", "s3"), ("PROVIDER", "Other"), ("ENDPOINT", s.url), ("ENV_AUTH", "true"),
                                                             ("REGION", "eu-central-1"))}, "RCLONE_S3_NO_CHECK_BUCKET": "true"}
    del env["AWS_CA_BUNDLE"]  # with which Debian's rclone ends: it has a transport of its own
    was = made(lab.dir / "file", 24 * MB)
    lab.run(["rclone", "copyto", "--s3-upload-cutoff=5M", "--s3-chunk-size=5M", "--s3-upload-concurrency=4", "file", "s:bucket/it"], env=env, rc=0)
    lab.run(["rclone", "copyto", "--multi-thread-cutoff=5M", "--multi-thread-streams=4", "s:bucket/it", "back"], env=env, rc=0)
    assert checksum(lab.dir / "back") == was
    s.all_were_right(10)
    assert parts(s, "it") == (5, 4), parts(s, "it")


@test()
def curl_goes_on_where_it_was_interrupted(lab):
    s = Signed(lab)
    file, back, size = lab.dir / "file", lab.dir / "back", 12 * MB
    was, url = made(file, size), s.url + "/bucket/it"
    s.aws("s3", "cp", "--no-progress", file, "s3://bucket/it")
    lab.run(["sh", "-c", 'curl -sS "$0" | head -c 5000001 >back', url], env=s.env, rc=0)  # who reads it has enough, and curl ends
    assert back.stat().st_size == 5_000_001
    for begun in (5_000_001, 1, size - 1):
        back.write_bytes((back if back.stat().st_size == begun else file).read_bytes()[:begun])
        done = lab.run(["curl", "-sSf", "-C", "-", "-o", back, "-w", "%{http_code} %{size_download}", url], env=s.env, rc=0)
        assert done.out.decode() == f"206 {size - begun}" and checksum(back) == was, (begun, done.text())
    s.all_were_right(5)


if __name__ == "__main__":
    main()
