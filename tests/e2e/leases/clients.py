"""Unmodified clients inside `countersign run --with`, and the search of what the sandbox had: its processes' memory (lab/memory.py),
the files that only it sees, and its workspace, which the harness searches with everything else."""
import json
import os
import pathlib
import sys

import room  # noqa: F401
from gateway import program
from harness import HERE, PATIENCE, Skip
from memory import EARLY
from signing import Signed

WORKSPACE = "/workspace"
PYTHON = os.path.basename(os.path.realpath("/usr/bin/python3"))  # what it is called when it is looked into
REGION = "eu-central-1"
BOTO3 = """
import sys, boto3, botocore.config
s3 = boto3.client("s3", endpoint_url=sys.argv[1], config=botocore.config.Config(s3={"addressing_style": "path"}))
s3.put_object(Bucket="bucket", Key="a b/(c)", Body=b"from boto3", Metadata={"note": "two  words"}, ContentType="text/plain")
assert s3.get_object(Bucket="bucket", Key="a b/(c)", Range="bytes=0-3")["Body"].read() == b"from"
"""
NODE = """
const { Readable } = require("stream");
const { S3Client, PutObjectCommand, GetObjectCommand } = require("@aws-sdk/client-s3");
(async () => {
  const s3 = new S3Client({ endpoint: process.argv[1], forcePathStyle: true });
  const Bucket = "bucket", Key = "a b/(c)*'!";
  await s3.send(new PutObjectCommand({ Bucket, Key, Body: "from node", Metadata: { note: "x" } }));
  await s3.send(new PutObjectCommand({ Bucket, Key: "s", Body: Readable.from([Buffer.alloc(70000, 97)]), ContentLength: 70000 }));
  console.log(await (await s3.send(new GetObjectCommand({ Bucket, Key }))).Body.transformToString());
})();
"""


class Inside:
    """Commands in sandboxes of a gateway, which are looked into from outside."""

    def __init__(self, lab, gw):
        self.lab, self.gw, self.work, self.reports = lab, gw, lab.dir / "work", 0
        self.work.mkdir()

    def command(self, words, options, looked_for):
        self.reports += 1
        self.report = self.lab.dir / f"memory-{self.reports}.json"
        files = []
        for n, secret in enumerate(looked_for or self.lab.secrets):
            path = self.lab.exempt(self.lab.dir / f"looked-for-{n}")
            path.write_bytes(secret)
            files += ["--secret-file", path]
        return [sys.executable, HERE / "lab/memory.py", *files, "--report", self.report, "--", program(), "run", "--state-dir",
                self.gw.state, "--workspace", self.work, *options, "--", *words]

    def early(self, kind):
        """Options with which programs of this kind are looked into before they give their memory back."""
        name, code, variable, value = EARLY[kind]
        folder = self.work / "early"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(code)
        return ["--setenv", f"{variable}={value.format(f'{WORKSPACE}/early')}"]

    def __call__(self, *words, options=(), looked_for=(), rc=0, timeout=2 * PATIENCE, env=None):
        return self.lab.run(self.command(words, options, looked_for), rc=rc, timeout=timeout, env=env)

    def start(self, *words, options=()):
        return self.lab.start(self.command(words, options, ()))

    def rows(self, inside=True):
        return [row for row in json.loads(pathlib.Path(self.report).read_text()) if row["inside"] == inside]

    def had_no_secret(self, *programs, early=False):
        """Of the last command that ended: these programs among those that were looked into, and nothing found in any."""
        rows = self.rows() + self.rows(inside=False)
        found = [row for row in rows if row["found"]]
        assert not found, found
        looked = {row["program"] for row in self.rows() if row["bytes"] > 0 and row["early"] == early}
        assert set(programs) <= looked and any(row["files"] for row in rows), rows


class Storage:
    """The service that verifies signatures, and sandboxes that have a pair for it."""

    def __init__(self, lab, inject=f"sigv4: {{ region: {REGION}, service: s3 }}", lease="aws", **place):
        self.signed = Signed(lab, inject, lease=f"\n    lease: {lease}\n    require_lease: true", **place)
        self.inside, self.url = Inside(lab, self.signed.gw), self.signed.url

    def __call__(self, program, *words, early=None, options=(), named="keys", env=None):
        if not os.path.exists(f"/usr/bin/{program}"):
            raise Skip(f"{program} of Debian (conf/need test)")
        more = sum((["--setenv", f"AWS_{name}"] for name in (f"DEFAULT_REGION={REGION}", f"REGION={REGION}", "PAGER=", "MAX_ATTEMPTS=1")), [])
        early = self.inside.early(early) if early else []
        return self.inside(*words, options=["--with", named, *more, *early, *options], env=env)

    def file(self, name, size):
        (self.inside.work / name).write_bytes(os.urandom(size))
        return (self.inside.work / name).read_bytes()

    def came_back(self, name, data):
        return (self.inside.work / name).read_bytes() == data
