#!/usr/bin/env python3
"""Attack B51, F19 by the verb its users have: whatever a policy file is, `policy check` says one clear thing, with a bound
on its memory (512 MiB of address space; not asked of a build with sanitizers) and on its CPU time. Prints what fails,
and nothing else."""
import os
import pathlib
import resource
import socket
import subprocess
import sys
import tempfile

CLI = os.path.abspath("./countersign")
MEMORY, CPU = 512 << 20, 20
OUTPUT_MAX = 1 << 20
os.environ["ASAN_OPTIONS"] = "detect_leaks=0"  # half of its time, for what a program that ends leaves behind
SANITIZED = b"__asan_init" in pathlib.Path(CLI).read_bytes()
V = b"version: 1\n"
RULE = b"rules: [{ id: a, match: { host: a.example }, decide: allow }]\n"
failed = 0


def limits():
    resource.setrlimit(resource.RLIMIT_CPU, (CPU, CPU))
    if not SANITIZED:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def check(what, path, wanted, rc=3):
    global failed
    done = subprocess.run([CLI, "policy", "check", path], capture_output=True, preexec_fn=limits)
    said = done.stdout + done.stderr
    if done.returncode != rc or wanted.encode() not in said or len(said) > OUTPUT_MAX or b"Sanitizer" in said:
        failed = 1
        print(f"not ok {what}: exit {done.returncode}, wanted {rc} and {wanted!r}: {said[:400]!r}")


with tempfile.TemporaryDirectory() as where:
    def path(name):
        return os.path.join(where, name)

    def of(what, data, wanted, rc=3):
        pathlib.Path(path("p.yaml")).write_bytes(data)
        check(what, path("p.yaml"), wanted, rc)

    # What is no file of a policy.
    for size in (100 << 20, 2 << 30, 1 << 40):
        with open(path("large.yaml"), "wb") as f:
            f.truncate(size)
        check(f"{size} bytes", path("large.yaml"), "more than the 8388608 that are read")
    os.mkfifo(path("fifo"))
    check("a FIFO without a writer", path("fifo"), "is not a regular file")
    check("a folder", where, "is not a regular file")
    check("a device", "/dev/zero", "is not a regular file")
    check("another", "/dev/null", "is not a regular file")
    os.symlink("/dev/zero", path("link"))
    check("a link to a device", path("link"), "is a symbolic link")
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(path("socket"))
        check("a socket", path("socket"), "cannot open")
    check("more than it was when it was opened", "/proc/self/status", "changed while it was read")
    check("nothing", path("none"), "No such file")
    os.symlink("loop", path("loop"))
    check("a link to itself", path("loop"), "is a symbolic link")
    pathlib.Path(path("open.yaml")).write_bytes(V + RULE)
    os.chmod(path("open.yaml"), 0o646)
    check("a file that anybody may write", path("open.yaml"), "anybody may write")

    # What is no text of one.
    of("empty", b"", "P010: the file is empty")
    of("only comments", b"# nothing\n# here\n", "P010: the file is empty")
    of("only white space", b"\n\n   \n", "P010: the file is empty")
    of("an end mark", b"---\n...\n", "error P0")
    of("null", b"null\n", "P008")
    of("~", b"~\n", "P008")
    of("a text", b"allow everything\n", "P008")
    of("a list", b"- version: 1\n", "P008: the file must be a mapping")
    of("no version", RULE, "P010")
    of("only a version denies all", V, "everything is denied", 0)
    of("null rules", V + b"rules:\n", 'p.yaml:2:7: error P008: "rules" has no value')
    of("null word", V + b"rules: null\n", "P008")
    of("a null rule", V + b"rules: [null]\n", "P008")
    of("a null host", V + b"rules: [{ id: a, match: { host: ~ }, decide: allow }]\n", "P009")
    of("invalid UTF-8", V + b"name: a\xff\n", "p.yaml:2:8: error P002: not UTF-8")
    of("overlong UTF-8", V + b"name: a\xc0\xaf\n", "P002: not UTF-8")
    of("a surrogate", V + b"name: \xed\xa0\x80\n", "P002: not UTF-8")
    of("cut UTF-8", V + b"name: \xe2\x82", "P002: not UTF-8")
    for coding in ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig"):
        of(coding, (V + RULE).decode().encode(coding), "error P002")
    of("NUL", V + b"name: a\0b\n", "P002: a NUL byte")
    of("an escaped NUL", V + b'name: "a\\0b"\n', "P002: a NUL byte")
    of("a tab", V + b"rules:\n\t- id: a\n", "p.yaml:3:1: error P002: a tab")
    of("carriage returns", V.replace(b"\n", b"\r\n") + RULE, "P002: a carriage return")
    of("an escape sequence", V + b"name: \x1b[2J\n", "P002: a control character")
    of("a right-to-left override", V + "name: a\u202eb\n".encode(), "P002: a bidirectional control")
    of("a line separator", V + "name: a\u2028b\n".encode(), "P002: an invisible mark")
    of("not YAML", V + b"rules: [\n", "P001")
    of("random bytes", bytes(range(256)) * 4096, "error P0")

    # What YAML makes of it.
    of("a misspelt key", V + b"alow: []\n", 'has no key "alow"')
    of("of a rule", V + b"rules: [{ id: a, match: { hots: a.example }, decide: allow }]\n", 'did you mean "host"?')
    of("a duplicate", V + b"rules: []\nname: x\nrules: []\n", "p.yaml:4:1: error P004")
    of("version twice", V + V + RULE, "P004")
    of("a boolean that is not one", V + b"upstreams: [{ host: a.example, cleartext_credentials: flase }]\n", "P008")
    for word in (b"yes", b"no", b"on", b"off", b"y", b"n", b"Yes", b"NO"):
        of(f"1.1 boolean {word.decode()}", V + b"name: " + word + b"\n", "P009")
        of(f"1.1 boolean {word.decode()} as a switch", V + b"upstreams: [{ host: a.example, cleartext_credentials: " + word + b" }]\n", "error P00")
    of("sexagesimal", V + b"rules: [{ id: a, match: { host: 22:22 }, decide: allow }]\n", "P009")
    of("an address as sexagesimal", V + b"rules: [{ id: a, match: { host: 1.1.1.1:443 }, decide: allow }]\n", "error P0")
    of("octal", V + b"name: 010\n", "P009")
    of("version 1.0", b"version: 1.0\n", "P008")
    of("version in quotes", b'version: "1"\n', "P008")
    of("an anchor", V + b"name: &a x\n", "P005: anchors")
    of("an alias", V + b"name: *a\n", "P005: aliases")
    of("a merge key", V + b"rules: [{ <<: { id: a } }]\n", "P005: merge keys")
    of("a tag", V + b"name: !!binary aGk=\n", "P005: tags")
    of("a tag of a host language", V + b"name: !!python/object:os.system x\n", "P005: tags")
    of("a second document", V + RULE + b"---\n" + V, "P005: a second document")
    of("behind an end mark", V + RULE + b"...\n" + V, "error P001")
    of("a directive", b"%YAML 1.1\n---\n" + V, "P005: directives")
    of("an alias bomb", V + b"a: &a [x]\n" + b"".join(b"%c: &%c [%s]\n" % (c, c, b",".join([b"*%c" % (c - 1)] * 9)) for c in range(98, 122)), "P005: anchors")
    of("a key that is a mapping", V + b"{ a: b }: c\n", "P008: a key must be a word")
    of("a key that is a list", V + b"? [a]\n: c\n", "P008: a key must be a word")

    # How much of it.
    of("100,000 lists deep", V + b"name: " + b"[" * 100000, "nested deeper than 16 levels")
    of("100,000 mappings deep", V + b"name: " + b"{a: " * 100000, "nested deeper than 16 levels")
    of("100,000 blocks deep", V + b"name:\n  " + b"- " * 100000, "nested deeper than 16 levels")
    of("unclosed quotes", V + b'name: "' + b"x" * (1 << 20), "P001")
    of("a scalar of 1 MiB", V + b"name: " + b"x" * (1 << 20) + b"\n", "p.yaml:2:7: error P017: the value has 1048576 bytes")
    of("a key of 1 MiB", V + b"x" * (1 << 20) + b": 1\n", "error P0")
    of("4 MiB of escapes", V + b'name: "' + b"\\n" * (2 << 20) + b'"\n', "error P0")
    of("a folded line of 4 MiB", V + b"name: >\n  " + b"a\n  " * (1 << 20), "error P0")
    of("2 million values", V + b"name: [" + b"a," * 2000000 + b"]\n", "more than 1000000 values")
    of("400,000 keys", V + b"".join(b"k%d: 1\n" % i for i in range(400000)), "error P006")
    of("400,000 times a key", V + b"name: a\n" * 400000, "error P004")
    of("90,000 rules of one id", V + b"rules:\n" + b"- { id: r, match: { host: a.example }, decide: allow }\n" * 90000, "error P012")
    of("90,000 rules of one host", V + b"rules:\n" + b"".join(b"- { id: r%d, match: { host: a.example }, decide: deny }\n" % i for i in range(90000)),
       "error P017: the policy is too large")
    of("27,000 credentials and rules", V + b"credentials:\n" +
       b"".join(b"  c%d: { source: { env: A }, inject: { basic: true }, only: [{ host: a.example }] }\n" % i for i in range(27000)) + b"rules:\n" +
       b"".join(b"- { id: r%d, match: { host: a.example, effect: read, path: /x%d }, decide: allow, use: c%d }\n" % (i, i, i) for i in range(27000)),
       "valid, 27000 rules", 0)
    of("300,000 hosts", V + b"rules: [{ id: r, match: { host: [" + b",".join(b"h%d.example" % i for i in range(300000)) + b"] }, decide: deny }]\n", "error P0")
    of("10,000 rules", V + b"rules:\n" + b"".join(b"- { id: rule-%d, match: { host: h%d.example, method: GET, path: [/a%d/*, /b/**] }, decide: allow, say: a sentence for the agent }\n"
       % (i, i, i) for i in range(10000)), "valid, 10000 rules", 0)
    of("as large as it may be", V + RULE + b"#" * ((8 << 20) - len(V + RULE)), "valid, 1 rules", 0)
    of("one byte larger", V + RULE + b"#" * ((8 << 20) - len(V + RULE) + 1), "more than the 8388608")

    # A thousand files.
    for i in range(1000):
        pathlib.Path(path(f"i{i}.yaml")).write_bytes(V + b"include: i%d.yaml\n" % (i + 1))
    check("a thousand that include each other", path("i0.yaml"), "more than 64 files")
    of("a thousand included", V + b"include:\n" + b"".join(b"- i%d.yaml\n" % i for i in range(1000)), "1000 files are included here")
    pathlib.Path(path("a.yaml")).write_bytes(V + b"include: b.yaml\n")
    pathlib.Path(path("b.yaml")).write_bytes(V + b"include: a.yaml\n")
    check("a circle", path("a.yaml"), "a.yaml includes ")
    for i in range(63):
        pathlib.Path(path(f"l{i}.yaml")).write_bytes(V + RULE.replace(b"id: a", b"id: a%d" % i) + b"#" * (7 << 20))
    of("63 files of 7 MiB", V + b"include: [" + b",".join(b"l%d.yaml" % i for i in range(63)) + b"]\n", "no memory to read")
sys.exit(failed)
