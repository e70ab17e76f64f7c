#!/usr/bin/env python3
"""Other clients of S3, unmodified, sign with a lease's pair inside `countersign run --with`, as in test_aws_cli.py."""
from clients import BOTO3, NODE, PYTHON, REGION, Storage
from harness import HERE, main, test
from servers import npm_modules


@test()
def boto3_puts_and_gets(lab):
    s = Storage(lab)
    (s.inside.work / "client.py").write_text(BOTO3)
    s("python3", "/usr/bin/python3", "client.py", s.url, early="python")
    s.signed.all_were_right(2)
    s.inside.had_no_secret(PYTHON, early=True)


@test()
def the_sdk_for_javascript_puts_streams_and_gets(lab):
    s = Storage(lab)
    modules = npm_modules(HERE / "npm") / "node_modules"
    done = s("env", "node", "-e", NODE, s.url, early="node", options=["--read", modules, "--setenv", f"NODE_PATH={modules}"])
    assert done.out == b"from node\n", done.text()
    s.signed.all_were_right(3)
    s.inside.had_no_secret("node", early=True)


@test()
def s3cmd_puts_and_gets(lab):
    s = Storage(lab)
    data, at = s.file("file", 300_000), s.url.partition("//")[2]
    cmd = f"s3cmd -c /dev/null --host={at} --host-bucket={at} --region={REGION} --ca-certs=$SSL_CERT_FILE --no-progress"
    s("s3cmd", "sh", "-ec", f"{cmd} put file 's3://bucket/of (1)'; {cmd} get 's3://bucket/of (1)' back", early="python")
    assert s.came_back("back", data)
    s.signed.all_were_right(2)
    s.inside.had_no_secret(PYTHON, early=True)


@test()
def rclone_copies(lab):
    s = Storage(lab)
    data = s.file("file", 300_000)
    remote = [f"RCLONE_CONFIG_S_{name}" for name in ("TYPE=s3", "PROVIDER=Other", f"ENDPOINT={s.url}", "ENV_AUTH=true", f"REGION={REGION}")]
    s("rclone", "env", *remote, "RCLONE_S3_NO_CHECK_BUCKET=true", "sh", "-ec",
      "rclone copyto file s:bucket/of/it; rclone copyto s:bucket/of/it back")
    assert s.came_back("back", data)
    s.signed.all_were_right(2)
    s.inside.had_no_secret("rclone")


if __name__ == "__main__":
    main()
