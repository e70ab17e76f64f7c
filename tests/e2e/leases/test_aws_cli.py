#!/usr/bin/env python3
"""The AWS CLI, unmodified, signs with a lease's pair inside `countersign run --with`: the service (lab/signed.py) takes the real
keys' signatures alone, and nothing of a sandbox ever holds one of those."""
from clients import PYTHON, REGION, Storage
from harness import main, test


@test()
def the_aws_cli_copies(lab):
    s = Storage(lab)
    s.file("small", 1024)
    s.file("large", 100 << 20)
    aws = f"aws --endpoint-url {s.url} s3 cp --no-progress"
    s("aws", "sh", "-ec", f"{aws} small s3://bucket/small; {aws} large s3://bucket/large; {aws} s3://bucket/large - | cmp - large; "
      f"seq 9999 | {aws} - s3://bucket/streamed", early="python")
    assert any("partNumber" in r["path"] for r in s.signed.all_were_right(7)), "of several parts"
    s.inside.had_no_secret(PYTHON, early=True)


@test()
def the_aws_cli_puts_and_gets_items(lab):
    s = Storage(lab, f"sigv4: {{ region: {REGION}, service: dynamodb }}")
    aws = f"aws --endpoint-url {s.url} dynamodb"
    item = '{"id": {"S": "1"}, "what": {"S": "a thing"}}'
    done = s("aws", "sh", "-ec", f"{aws} put-item --table-name things --item '{item}'; {aws} get-item --table-name things --key '{{\"id\": {{\"S\": \"1\"}}}}'",
             early="python")
    assert b"a thing" in done.out, done.text()
    s.signed.all_were_right(2)
    s.inside.had_no_secret(PYTHON, early=True)


if __name__ == "__main__":
    main()
