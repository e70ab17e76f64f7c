#!/usr/bin/env python3
"""What stands in a policy's files, as a running gateway takes it (attacks.tsv B45, B46, B51, B53): a bad file is refused and
the old policy stays in force, the order of rules and files says nothing, patterns end where labels and segments do."""
import os
import random
import subprocess

import room  # noqa: F401
from attack import Rig, everywhere, fields_of
from harness import main, test
from gateway import REFUSED
from ways import Refused, Wire

V = b"version: 1\n"


def reload(rig):
    """None when the new policy is in force, else what was said."""
    status, said = rig.control("POST", "/api/v1/reload")
    if status == 200:
        return None
    rig.lab.expects(REFUSED)
    return str(said)


def decides(rig, what):
    """As the first policy did: a read passes with the credential, /guard is denied, another write is held."""
    wire = rig.open("connect")
    new = rig.passed(f"{what} a read", wire.talk(wire.head("GET", "/ok"), 1), [("GET", "/ok", b"")])
    rig.holds(f"{what} with its credential", fields_of(new[0]).get("authorization") == f"Bearer {rig.secret}", new)
    rig.refused(f"{what} the guard", wire.talk(wire.head("GET", "/guard"), 1), closed=False, status=403)
    rig.held(f"{what} a write", wire.talk(wire.head("POST", "/other", "Content-Length: 1") + b"x", 1))


def bad_files(good):
    """(what, bytes, words of the refusal). Each would open /guard if it were taken."""
    evil = "".join(line for line in good.splitlines(True) if "id: guard" not in line).encode()
    assert evil != good.encode() and b"id: guard" not in evil
    body = evil[len(V):]
    return [
        ("empty", b"", "the file is empty"), ("only comments", b"# all of it\n# is gone\n", "the file is empty"), ("null", b"null\n", "must be a mapping"),
        ("without version", body, "version"), ("a misspelt key", evil + b"alow: []\n", 'no key "alow"'),
        ("a key twice", evil + b"name: again\n", "twice"), ("a flag that is none", evil.replace(b"version: 1\n", b"version: 1\ndefaults: { unclassified: flase }\n"), "cannot be"),
        ("a boolean of YAML 1.1", evil.replace(b"name: attacked", b"name: no"), "quotes"), ("sexagesimal", evil.replace(b"name: attacked", b"name: 22:22"), "quotes"),
        ("an address as one", evil + b"  - { id: x, match: { host: 1.1.1.1:443 }, decide: allow }\n", "1.1.1.1:443"),
        ("a tab", evil + b"\t- { id: x }\n", "a tab"), ("an anchor", evil.replace(b"name: attacked", b"name: &a attacked"), "anchors"),
        ("an alias", evil.replace(b"name: attacked", b"name: *a"), "aliases"), ("a merge key", evil + b"<<: { name: x }\n", "merge"),
        ("a tag", evil.replace(b"name: attacked", b"name: !!str attacked"), "tags"), ("a second document", evil + b"---\n" + evil, "second document"),
        ("UTF-16", evil.decode().encode("utf-16"), "UTF-8"), ("a byte order mark", b"\xef\xbb\xbf" + evil, "byte order"), ("no UTF-8", evil + b"# \xff\n", "UTF-8"),
        ("NUL", evil + b"\0", "NUL"), ("half of it", evil[:len(evil) * 2 // 3], "policy.yaml:"), ("a null rule", evil + b"  - ~\n", "policy.yaml:"),
        ("too deep", evil + b"x: " + b"[" * 5000, "nested deeper"), ("too many values", evil + b"x: [" + b"a," * 1100000 + b"]\n", "values"),
        ("what is not enforced", evil + b"  - { id: x, match: { k8s: {} }, decide: deny }\n", "not available yet"),
    ]


@test()
def a_bad_file_is_refused_and_the_old_policy_stays(lab):
    rig = Rig(lab)
    rig.reloads_refused = True
    path, good = rig.gw.policy, rig.gw.policy.read_text()
    evil = bad_files(good)[3][1]
    with rig.case("B51", "files"):
        decides(rig, "B51 before")
        for what, data, words in bad_files(good):
            path.write_bytes(data)
            said = reload(rig)
            rig.holds(f"B51 {what}", said is not None and words in said, said)
        decides(rig, "B51 behind bad texts")

        def instead(what, words, make):
            path.unlink(missing_ok=True)
            make()
            said = reload(rig)
            rig.holds(f"B51 {what}", said is not None and words in said, said)
            (path.rmdir if path.is_dir() and not path.is_symlink() else path.unlink)()

        other = lab.dir / "evil.yaml"
        other.write_bytes(V + evil)
        instead("2 GiB", "more than the 8388608", lambda: (path.touch(), os.truncate(path, 2 << 30)))
        instead("a link to another file", "symbolic link", lambda: path.symlink_to(other))
        instead("a link to a device", "symbolic link", lambda: path.symlink_to("/dev/zero"))
        instead("a FIFO", "not a regular file", lambda: os.mkfifo(path))
        instead("a folder", "not a regular file", path.mkdir)
        instead("one that anybody may write", "anybody may write", lambda: (path.write_bytes(V + evil), path.chmod(0o666)))
        instead("one that includes itself", "circle", lambda: path.write_bytes(V + b"include: policy.yaml\n" + evil))
        instead("one that includes a link", "symbolic link", lambda: (path.write_bytes(V + b"include: l.yaml\n"), (lab.dir / "l.yaml").symlink_to(other)))
        instead("a thousand includes", "more than 64 files", lambda: (path.write_bytes(V + b"include: i0.yaml\n"), [
            (lab.dir / f"i{i}.yaml").write_bytes(V + b"include: i%d.yaml\n" % (i + 1)) for i in range(1000)]))
        said = reload(rig)
        rig.holds("B51 none at all", said is not None and "No such file" in said, said)
        decides(rig, "B51 behind bad files")
        path.write_text(good)
        rig.holds("B51 the good one again", reload(rig) is None)
        decides(rig, "B51 in the end")
    rig.settle()


@test()
def a_file_that_somebody_else_wrote_is_not_taken(lab):
    rig = Rig(lab)
    rig.reloads_refused = True
    key, good = lab.dir / "key", rig.gw.policy.read_text()
    lab.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key, "-C", ""], rc=0)

    def sign():
        (lab.dir / "policy.yaml.sig").unlink(missing_ok=True)
        for part in (rig.gw.policy, rig.up.ca):
            if not os.path.exists(f"{part}.sig"):
                lab.run(["ssh-keygen", "-Y", "sign", "-n", "countersign-policy", "-f", key, part], rc=0)

    (lab.dir / "signers").write_text("operator " + (lab.dir / "key.pub").read_text())
    with rig.case("B51", "files"):
        rig.gw.config.write_text(rig.gw.config.read_text() + "policy_signers: signers\n")
        said = reload(rig)
        rig.holds("B51 not signed", said is not None and "is not signed" in said, said)
        sign()
        said = reload(rig)
        rig.holds("B51 signed", said is None, said)
        rig.gw.policy.write_text("".join(line for line in good.splitlines(True) if "id: guard" not in line))
        said = reload(rig)
        rig.holds("B51 changed behind the signature", said is not None and "one of the two was changed" in said, said)
        decides(rig, "B51 the signed one")
        sign()
        rig.holds("B51 signed again", reload(rig) is None)
        wire = rig.open("connect")
        rig.passed("B51 and in force", wire.talk(wire.head("GET", "/guard"), 1), [("GET", "/guard", b"")])
    rig.settle()


@test()
def an_empty_policy_denies_all(lab):
    rig = Rig(lab)
    with rig.case("B51", "files"):
        decides(rig, "B51 before")
        rig.gw.stop()
        rig.gw.policy.write_text("")
        done = lab.run(["timeout", "-s", "KILL", "300", "countersign", "up", "--config", rig.gw.config])
        rig.holds("B51 nothing in it: no start", done.rc not in (0, 137) and "the file is empty" in done.text(), done.text())
        rig.gw.policy.write_bytes(V)
        rig.gw.up()
        rig.tls = rig.tls_context()
        wire = Wire(rig, "absolute")
        for path in ("/ok", "/guard", "/w/a"):
            rig.refused(f"B51 only a version {path}", wire.talk(wire.head("GET", path), 1), closed=False, status=403)
    rig.settle()


@test()
def the_order_of_rules_and_files_says_nothing(lab):
    rig = Rig(lab)
    good = rig.gw.policy.read_text()
    head, _, rules = good.partition("rules:\n")
    rules = rules.splitlines(True) + [f"  - {{ id: all, match: {{ host: upstream.test, port: {rig.up.port}, path: /guard/deep }}, decide: allow, use: api }}\n"]
    with rig.case("B46", "files"):
        for seed in range(6):
            order = random.Random(seed).sample(rules, len(rules))
            cut = len(order) * seed // 6
            rig.gw.policy.write_text(head + "include: more.yaml\nrules:\n" + "".join(order[:cut] or order[:1]))
            (lab.dir / "more.yaml").write_text("version: 1\nrules:\n" + "".join(order[cut or 1:]))
            said = reload(rig)
            rig.holds(f"B46 order {seed}", said is None, said)
            decides(rig, f"B46 order {seed}")
            wire = rig.open("connect")
            rig.refused(f"B46 a narrow allow below a deny, {seed}", wire.talk(wire.head("GET", "/guard/deep"), 1), closed=False, status=403)
    rig.settle()


PAST = ("/wx/a", "/x/w/a", "/W/a", "/%77x/a", "/w.evil/a", "/w-/a", "/;w/a", "/w%0a/x", "/w%00/a", "/w%2fa")


@everywhere("B53", ways=("connect", "absolute", "unix", "socks"))
def patterns_end_where_names_do(rig, transport):
    wire = rig.open(transport)
    rig.passed("B53 what fits", wire.talk(wire.head("POST", "/w/a/b", "Content-Length: 1") + b"x", 1), [("POST", "/w/a/b", b"x")])
    for path in PAST:
        wire = rig.open(transport)
        rig.stopped(f"B53 {path}", wire.talk(wire.head("POST", path, "Content-Length: 1") + b"x", 1))
    for host in ("notupstream.test", "upstream.test.evil", "a.upstream.test", "upstream-test", "upstream.tes", "xupstream.test", "upstream.test.evil.test"):
        try:
            wire = Wire(rig, transport, host=host)
            got = wire.talk(wire.head("GET", "/ok"), 1)
        except (Refused, OSError):
            rig.holds(f"B53 {host}", not rig.arrived(), "arrived")
        else:
            rig.refused(f"B53 {host}", got, closed=False)


@everywhere("B45", ways=("connect", "unix", "socks"))
def a_credential_stays_with_its_host(rig, transport):
    wire = rig.open(transport)
    new = rig.passed("B45 the host it is for", wire.talk(wire.head("GET", "/ok"), 1), [("GET", "/ok", b"")])
    rig.holds("B45 has it", rig.secret in fields_of(new[0]).get("authorization", ""), new)
    wire = rig.open(transport, host="other.test")
    new = rig.passed("B45 the same server by another name", wire.talk(wire.head("GET", "/ok"), 1), [("GET", "/ok", b"")])
    rig.holds("B45 has none", "authorization" not in fields_of(new[0]), new)
    for host in ("upstream.test.", "127.0.0.1", "UPSTREAM.TEST.", "www.upstream.test"):
        try:
            wire = Wire(rig, transport, host=host)
            wire.talk(wire.head("GET", "/ok"), 1)
        except (Refused, OSError):
            pass
        rig.holds(f"B45 {host}", all(rig.secret not in str(fields_of(r)) for r in rig.arrived()), host)


@test()
def a_credential_that_no_rule_guards_is_said(lab):
    rig = Rig(lab)
    text = rig.gw.policy.read_text().replace("    only: [", "    only: [{ host: wide.test }, ")
    (lab.dir / "wide.yaml").write_text(text)
    with rig.case("B45", "connect"):
        done = subprocess.run(["countersign", "policy", "check", lab.dir / "wide.yaml"], capture_output=True, text=True)
        rig.holds("B45 a host no rule is about", done.returncode == 0 and "P101" in done.stderr and "wide.test" in done.stderr, done)
    rig.settle()


if __name__ == "__main__":
    main()
