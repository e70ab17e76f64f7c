#!/usr/bin/env python3
"""Signatures of a policy's files (attack B51: a file that somebody else wrote), made by ssh-keygen and minisign themselves
and looked at by the verb its users have. Prints what fails, and nothing else."""
import base64
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

CLI = os.path.abspath("./countersign")
if not shutil.which("ssh-keygen") or not shutil.which("minisign"):
    print("skipped: ssh-keygen or minisign is missing (openssh-client, minisign)")
    sys.exit(77)
RULES = "rules:\n  - { id: %s, match: { host: a.example, method: GET }, decide: allow }\n"
CA = "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n"
NS = "countersign-policy"
failed = 0


def run(*args, **more):
    subprocess.run(args, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, **more)


def ssh(path, key="ssh", ns=NS, alg="sha512"):
    pathlib.Path(f"{path}.sig").unlink(missing_ok=True)
    run("ssh-keygen", "-Y", "sign", "-n", ns, "-f", key, "-O", f"hashalg={alg}", path)


def mini(path, key="mini", legacy=False, comment="by hand"):
    run("minisign", "-S", *(["-l"] if legacy else ["-H"]), "-s", f"{key}.key", "-m", path, "-x", f"{path}.minisig", "-t", comment)


def check(what, rc, wanted, *tops, signers="signers", verb="check", more=()):
    global failed
    args = [CLI, "policy", verb, *(["--signers", signers] if signers else []), *more, *(tops or ("p.yaml",))]
    done = subprocess.run(args, capture_output=True, text=True)
    if done.returncode != rc or wanted not in done.stdout + done.stderr or "Sanitizer" in done.stderr:
        failed = 1
        print(f"not ok {what}: exit {done.returncode}, wanted {rc} and {wanted!r}\n{done.stdout}{done.stderr}")


def write(name, text):
    pathlib.Path(name).parent.mkdir(parents=True, exist_ok=True)
    pathlib.Path(name).write_text(text)


def clean():
    for path in [*pathlib.Path(".").glob("**/*.sig"), *pathlib.Path(".").glob("**/*.minisig")]:
        path.unlink()


def changed(name, at, what):
    """Every byte of a signature file that matters, flipped: each is refused."""
    good = pathlib.Path(name).read_bytes()
    for i in at:
        bad = bytearray(good)
        bad[i] ^= 1 if bad[i] != 0x0b else 2
        pathlib.Path(name).write_bytes(bytes(bad))
        check(f"{what}, byte {i} changed", 3, name)
    pathlib.Path(name).write_bytes(good)
    check(f"{what}, whole again", 0, "valid, 1 rules")


with tempfile.TemporaryDirectory() as where:
    os.chdir(where)
    for name in ("ssh", "other"):
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", name, "-C", "")
    run("ssh-keygen", "-q", "-t", "rsa", "-b", "2048", "-N", "", "-f", "rsa", "-C", "")
    for name in ("mini", "mother"):
        run("minisign", "-G", "-W", "-p", f"{name}.pub", "-s", f"{name}.key")
    public = pathlib.Path("ssh.pub").read_text().strip()
    other = pathlib.Path("other.pub").read_text().strip()
    minikey = pathlib.Path("mini.pub").read_text()
    write("signers", f'# who may\n\nalice@example.com namespaces="file,{NS}" {public} a comment\n{minikey}')
    write("p.yaml", "version: 1\nrequire_signed: true\n" + RULES % "p")

    # Nobody, and nobody named.
    check("no signers named", 3, "p.yaml:2:17: error P019: the files of this policy must be signed: nobody said whose", signers=None)
    check("no signature", 3, "p.yaml is not signed: there is no p.yaml.sig")
    check("explain too", 3, "p.yaml is not signed", "GET", "https://a.example/", "p.yaml", verb="explain")

    # Those that are good.
    for alg in ("sha512", "sha256"):
        ssh("p.yaml", alg=alg)
        check(f"ssh-keygen {alg}", 0, "valid, 1 rules")
    check("explain", 0, "ALLOW", "GET", "https://a.example/", "p.yaml", verb="explain")
    write("p_test.yaml", "policy: p.yaml\ncases:\n  - { name: a, request: { method: GET, url: \"https://a.example/\" }, expect: { decide: allow } }\n")
    check("test", 0, "1 passed", "p_test.yaml", verb="test")
    check("test without", 3, "error P019", "p_test.yaml", verb="test", signers=None)
    os.unlink("p_test.yaml")
    lines = pathlib.Path("p.yaml.sig").read_bytes()
    body = lines.index(b"\n") + 1
    changed("p.yaml.sig", range(body, lines.rindex(b"\n-----END"), 7), "ssh-keygen")
    for cut in (0, 1, body, len(lines) // 2, len(lines) - 2):
        pathlib.Path("p.yaml.sig").write_bytes(lines[:cut])
        check(f"ssh-keygen, {cut} bytes of it", 3, "no Ed25519 signature")
    pathlib.Path("p.yaml.sig").write_bytes(lines + b"x\n")
    check("ssh-keygen, more behind it", 3, "no Ed25519 signature")
    blob = base64.b64decode(lines[body:lines.index(b"-----END")])
    pathlib.Path("p.yaml.sig").write_bytes(lines[:body] + base64.b64encode(blob + b"\0") + b"\n" + lines[lines.index(b"-----END"):])
    check("ssh-keygen, a byte inside behind it", 3, "no Ed25519 signature")
    clean()
    for legacy in (False, True):
        mini("p.yaml", legacy=legacy)
        check(f"minisign {legacy}", 0, "valid, 1 rules")
        text = pathlib.Path("p.yaml.minisig").read_bytes()
        second = text.index(b"\n") + 1
        changed("p.yaml.minisig", [*range(second, text.index(b"\n", second) - 2, 5), text.index(b"trusted comment: ", second) + 17, len(text) - 20], "minisign")
        for cut in (0, second, len(text) // 2, len(text) - 3):
            pathlib.Path("p.yaml.minisig").write_bytes(text[:cut])
            check(f"minisign, {cut} bytes of it", 3, "no signature of minisign")
        pathlib.Path("p.yaml.minisig").write_bytes(text + b"x\n")
        check("minisign, more behind it", 3, "no signature of minisign")
    clean()

    # Those of others, of other things, for other things.
    ssh("p.yaml", key="other")
    check("another key", 3, "its key is not among the signers")
    ssh("p.yaml", key="rsa")
    check("RSA", 3, "no Ed25519 signature")
    ssh("p.yaml", ns="file")
    check("another namespace", 3, "of another namespace")
    mini("p.yaml")
    check("a good one beside a bad one does not help", 3, "of another namespace")
    clean()
    mini("p.yaml", key="mother")
    check("another minisign key", 3, "its key is not among the signers")
    clean()
    write("q.yaml", "version: 1\n" + RULES % "q")
    ssh("q.yaml")
    shutil.copy("q.yaml.sig", "p.yaml.sig")
    check("the signature of another file", 3, "one of the two was changed")
    clean()
    mini("q.yaml")
    shutil.copy("q.yaml.minisig", "p.yaml.minisig")
    check("the same of minisign", 3, "one of the two was changed")
    clean()
    for sign in (ssh, mini):
        sign("p.yaml")
        with open("p.yaml", "a") as f:
            f.write("#")
        check("a byte more of the file", 3, "one of the two was changed")
        write("p.yaml", "version: 1\nrequire_signed: true\n" + RULES % "p")
        check("without it", 0, "valid")
        clean()
    ssh("p.yaml")
    os.rename("p.yaml.sig", "real")
    os.symlink("real", "p.yaml.sig")
    check("a link", 3, "p.yaml.sig is a symbolic link")
    clean()
    os.mkfifo("p.yaml.sig")
    check("a FIFO", 3, "p.yaml.sig is not a regular file")
    clean()

    # Every file that is read.
    write("unasked.yaml", "version: 1\n" + RULES % "u")
    check("signers are named: the policy need not ask", 3, "unasked.yaml is not signed", "unasked.yaml")
    write("t.yaml", "version: 1\nrequire_signed: true\npacks: [own@1]\ninclude: s/i.yaml\n" + RULES % "t")
    write("s/i.yaml", "version: 1\nupstreams: [{ host: u.example, ca: ca.pem }]\n" + RULES % "i")
    write("s/ca.pem", CA)
    write("packs/own.yaml", "pack: own@1\nhosts: [a.example]\noperations:\n  - { op: own.read, method: GET, path: /x, effect: read }\n")
    write("f.yaml", "version: 1\n" + RULES.replace("allow", "deny") % "f")
    parts = ("t.yaml", "s/i.yaml", "s/ca.pem", "packs/own.yaml", "f.yaml")
    more = ("--packs", "packs", "--floors", "f.yaml")
    for left in (None, *parts):
        clean()
        for n, part in enumerate(p for p in parts if p != left):
            (ssh, mini)[n % 2](part)
        check(f"all signed but {left}", 3 if left else 0, f"{left} is not signed" if left else "valid", "t.yaml", more=more)
    clean()
    write("inc.yaml", "version: 1\ninclude: p.yaml\n")
    for part in ("inc.yaml", "p.yaml"):
        ssh(part)
    check("require_signed in an included file", 3, '"require_signed" stands only in', "inc.yaml")
    clean()

    # The list of keys.
    ssh("p.yaml")
    for what, text, wanted in (("empty", "", "it names no key"), ("only comments", "# a\n", "it names no key"),
                               ("a line of nothing", f"alice {public}\nnonsense\n", "line 2: "),
                               ("RSA", "a " + pathlib.Path("rsa.pub").read_text(), "only ssh-ed25519 keys"),
                               ("an option", f"alice cert-authority {public}\n", "only ssh-ed25519 keys"),
                               ("an end of validity", f'alice valid-before="20200101" {public}\n', "only ssh-ed25519 keys"),
                               ("another namespace", f'alice namespaces="file" {public}\n', "namespaces= does not name"),
                               ("a cut key", f"alice {public[:40]}\n", "malformed"),
                               ("a public key without a name", public + "\n", "line 1: "),
                               ("65 keys", f"alice {other}\n" * 65, "more than 64")):
        write("keys", text)
        check(f"signers: {what}", 3, wanted, signers="keys")
    write("keys", f"alice {other}\n")
    check("the other key alone", 3, "its key is not among the signers", signers="keys")
    write("keys", f"bob {other}\nalice {public}\n")
    check("and both", 0, "valid", signers="keys")
    os.chmod("keys", 0o666)
    check("signers that anybody may write", 3, "anybody may write keys", signers="keys")
    check("no signers file", 3, "cannot open none", signers="none")
    os.chdir("/")
sys.exit(failed)
