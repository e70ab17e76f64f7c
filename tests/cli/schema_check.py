#!/usr/bin/env python3
"""`countersign schema check`: what it says, on which stream, and its exit codes.

usage: schema_check.py      in the build directory
"""
import json
import pathlib
import subprocess
import tempfile

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}, "at": {"format": "date-time"}}, "required": ["n"],
          "additionalProperties": {"maxLength": 3}}


def run(*args, given=""):
    done = subprocess.run(["./countersign", "schema", "check", *map(str, args)], input=given, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def main():
    with tempfile.TemporaryDirectory() as folder:
        at = lambda name, text: (pathlib.Path(folder, name).write_text(text), pathlib.Path(folder, name))[1]
        schema = at("schema.json", json.dumps(SCHEMA))
        assert run(schema) == (0, f"{schema}: valid\n", ""), run(schema)
        assert run(schema, at("good.json", '{"n": 1.0}')) == (0, f"{folder}/good.json: fits\n", "")
        assert run(schema, "-", given='{"n":1}') == (0, "-: fits\n", "")
        assert run(schema, "-", given='{"n":"canary"}') == (1, "", "-: /n: does not fit type\n")
        assert run(schema, "-", given="[]") == (1, "", "-: the whole: does not fit type\n")
        assert run(schema, "-", given='{"n":1,"canary":"canary"}') == (1, "", "-: the whole: something below it does not fit maxLength\n")
        assert run(schema, "-", given='{"n":1,"n":1}') == (1, "", "-: not-json\n")
        assert run(schema, "-", given='"' + "a" * (4 << 20) + '"') == (1, "", "-: too-large\n")
        assert run(schema, "-", given='{"n":1,"at":"now"}')[0] == 0  # a note
        assert run("--formats", schema, "-", given='{"n":1,"at":"now"}') == (1, "", "-: /at: does not fit format\n")
        code, out, err = run("--json", schema, "-", given='{"n":"x"}')
        assert (code, err) == (1, ""), (code, err)
        assert json.loads(out) == {"valid": False, "error": "schema-violation", "path": "/n", "below": False, "keyword": "type"}, out
        assert json.loads(run("--json", schema)[1]) == {"valid": True}
        assert json.loads(run("--json", schema, "-", given='{"n":1}')[1]) == {"valid": True}
        assert json.loads(run("--json", schema, "-", given="x")[1]) == {"valid": False, "error": "not-json"}
        bad = at("bad.json", '{"properties": {"a\\u001b[31m": {"requierd": []}}}')
        code, out, err = run(bad)
        assert (code, out) == (3, "") and "\x1b" not in err and "/requierd: is not known here" in err, (code, out, err)
        code, out, err = run("--json", bad)
        said = json.loads(out)
        assert (code, err, said["error"], said["keyword"]) == (3, "", "schema-refused", "requierd"), (code, said)
        assert said["pointer"] == "/properties/a\x1b[31m/requierd", said
        large = at("large.json", '{"title":"' + "a" * (256 << 10) + '"}')
        assert run(large) == (3, "", f"{large}: the whole: it is larger than 256 KiB\n"), run(large)
        assert run(folder + "/none.json")[0] == 1 and "No such file" in run(folder + "/none.json")[2]
    print("schema check says what fits, what does not, and what is refused")


if __name__ == "__main__":
    main()
