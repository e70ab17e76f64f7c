#!/usr/bin/env python3
"""include: by the verb its users have: what belongs together loads, and what is refused says by which way the file
was reached. Attack B51 of files: links, circles, ways out of the folder. Prints what fails, and nothing else."""
import os
import pathlib
import subprocess
import sys
import tempfile

CLI = os.path.abspath("./countersign")
CA = "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n"
failed = 0


def rule(name, decide="allow"):
    return f"rules:\n  - {{ id: {name}, match: {{ host: {name}.example, method: GET }}, decide: {decide} }}\n"


def write(where, files):
    for name, text in files.items():
        path = pathlib.Path(where, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        if text.startswith("-> "):
            path.symlink_to(text[3:])
        elif text.startswith("= "):
            os.link(pathlib.Path(where, text[2:]), path)
        else:
            path.write_text(text if text.startswith("-----") else "version: 1\n" + text)


def check(what, files, wanted, *args, tops=("p.yaml",)):
    """wanted: (exit, words...) of which each stands in what is printed."""
    global failed
    with tempfile.TemporaryDirectory() as where:
        write(where, files)
        done = subprocess.run([CLI, "policy", "check", *args, *tops], cwd=where, capture_output=True, text=True, timeout=60)
    said = done.stdout + done.stderr
    if done.returncode != wanted[0] or any(word not in said for word in wanted[1:]):
        failed = 1
        print(f"not ok {what}: exit {done.returncode}, wanted {wanted}\n{said}")


check("a file beside", {"p.yaml": "include: a.yaml\n" + rule("p"), "a.yaml": rule("a")}, (0, "valid, 2 rules"))
check("in folders, and up again within the policy's folder",
      {"p.yaml": "include: [sub/a.yaml, ./sub//b.yaml]\n", "sub/a.yaml": "include: [../c.yaml, deep/d.yaml]\n" + rule("a"),
       "sub/b.yaml": rule("b"), "c.yaml": rule("c"), "sub/deep/d.yaml": "include: ../../c.yaml\n" + rule("d")}, (0, "valid, 4 rules"))
check("one file by three names is one", {"p.yaml": "include: [a.yaml, ./a.yaml, b/hard.yaml]\n", "a.yaml": rule("a"), "b/x": "", "b/hard.yaml": "= a.yaml"},
      (0, "valid, 1 rules"))
check("named and included", {"p.yaml": "include: q.yaml\n" + rule("p"), "q.yaml": "name: q\n" + rule("q")}, (0, "valid, 2 rules"), tops=("p.yaml", "q.yaml"))
check("of an absolute path", {"p.yaml": "include: sub/a.yaml\n", "sub/a.yaml": rule("a")}, (0, "valid, 1 rules"), tops=("./p.yaml",))
with tempfile.TemporaryDirectory() as elsewhere:
    write(elsewhere, {"q.yaml": "include: c.yaml\n" + rule("q"), "c.yaml": rule("c")})
    check("beside a file of an absolute path, with one of this folder", {"p.yaml": rule("p")}, (0, "valid, 3 rules"), tops=("p.yaml", f"{elsewhere}/q.yaml"))
check("a circle", {"p.yaml": "name: x\ninclude: [a.yaml]\n", "a.yaml": "include: b.yaml\n", "b.yaml": "include:\n  - a.yaml\n"},
      (3, "b.yaml:3:5: error P018: files include each other in a circle", "(p.yaml includes a.yaml includes b.yaml includes a.yaml)"))
check("itself", {"p.yaml": "include: p.yaml\n"}, (3, "p.yaml:2:10: error P018", "(p.yaml includes p.yaml)"))
check("itself by another name", {"p.yaml": "include: h.yaml\n" + rule("p"), "h.yaml": "= p.yaml"}, (3, "p.yaml:2:10: error P018", "circle"))
check("above", {"p/p.yaml": "include: ../a.yaml\n", "a.yaml": rule("a")}, (3, "p/p.yaml:2:10: error P018: this leaves the folder"), tops=("p/p.yaml",))
check("above from below", {"p/p.yaml": "include: s/b.yaml\n", "p/s/b.yaml": "include: ../../a.yaml\n", "a.yaml": rule("a")},
      (3, "p/s/b.yaml:2:10: error P018: this leaves", "(p/p.yaml includes p/s/b.yaml includes ../../a.yaml)"), tops=("p/p.yaml",))
check("down and out", {"p/p.yaml": "include: s/../../a.yaml\n", "p/s/x": "", "a.yaml": rule("a")}, (3, "this leaves"), tops=("p/p.yaml",))
check("absolute", {"p.yaml": "include: /etc/passwd\n"}, (3, "p.yaml:2:10: error P018", "relative"))
check("a link", {"p.yaml": "include: l.yaml\n", "a.yaml": rule("a"), "l.yaml": "-> a.yaml"}, (3, "p.yaml:2:10: error P018: l.yaml is a symbolic link"))
check("a link to a device", {"p.yaml": "include: l.yaml\n", "l.yaml": "-> /dev/zero"}, (3, "l.yaml is a symbolic link"))
check("a folder that is a link", {"p.yaml": "include: l/a.yaml\n", "s/a.yaml": rule("a"), "l": "-> s"}, (3, "l is a symbolic link or no folder"))
check("a folder that is a link, deeper", {"p.yaml": "include: s/l/a.yaml\n", "s/t/a.yaml": rule("a"), "s/l": "-> t"}, (3, "s/l is a symbolic link"))
check("a file as folder", {"p.yaml": "include: a.yaml/b.yaml\n", "a.yaml": rule("a")}, (3, "a.yaml is a symbolic link or no folder"))
check("a folder", {"p.yaml": "include: s\n", "s/a.yaml": rule("a")}, (3, "s is not a regular file"))
check("nothing", {"p.yaml": "include: [none.yaml]\n"}, (3, "p.yaml:2:11: error P018: cannot open none.yaml", "(p.yaml includes none.yaml)"))
check("an empty list", {"p.yaml": "include: []\n"}, (3, "p.yaml:2:10: error P008"))
check("no version there", {"p.yaml": "include: a.yaml\n", "a.yaml": "-----\n"}, (3, "a.yaml:1:1: error"))
check("errors have their own file", {"p.yaml": "include: a.yaml\n", "a.yaml": "rulse: []\n"}, (3, 'a.yaml:2:1: error P006: a policy has no key "rulse"'))
check("ids are unique over all", {"p.yaml": "include: a.yaml\n" + rule("r"), "a.yaml": rule("r")}, (3, "a.yaml:3:11: error P012", "p.yaml:4"))
check("name in an included file", {"p.yaml": "include: a.yaml\n", "a.yaml": "name: a\n" + rule("r")},
      (3, 'a.yaml:2:7: error P018: "name" stands only in a file that the gateway is given (p.yaml includes a.yaml)'))
check("floors include nothing", {"p.yaml": rule("p"), "f.yaml": "include: a.yaml\n" + rule("f", "deny"), "a.yaml": rule("a", "deny")},
      (3, 'f.yaml:2:1: error P006: "include" cannot be here', "stands alone"), "--floors", "f.yaml")
chain = {f"c{i}.yaml": f"include: c{i + 1}.yaml\n" for i in range(100)}
check("64 files", {"p.yaml": "include: c37.yaml\n", **chain, "c99.yaml": rule("p")}, (0, "valid, 1 rules"))
check("65 files", {"p.yaml": "include: c36.yaml\n", **chain, "c99.yaml": rule("p")},
      (3, "c98.yaml:2:10: error P018: more than 64 files"))
check("a thousand", {"p.yaml": f"include: [{', '.join(f'c{i}.yaml' for i in range(1000))}]\n"}, (3, "1000 files are included here"))
upstream = "upstreams: [{ host: u.example, ca: ca.pem }]\n" + rule("u")
check("a CA lies beside the file that names it", {"p.yaml": "include: s/a.yaml\n", "s/a.yaml": upstream, "s/ca.pem": CA}, (0, "valid"))
check("and nowhere else", {"p.yaml": "include: s/a.yaml\n", "s/a.yaml": upstream, "ca.pem": CA}, (3, "s/a.yaml:2:36: error P011", "s/ca.pem"))
check("not above", {"p.yaml": upstream.replace("ca.pem", "s/../../ca.pem"), "s/ca.pem": CA}, (3, 'without ".."'))
with tempfile.TemporaryDirectory() as where:
    write(where, {"p.yaml": "include: a.yaml\n", "a.yaml": rule("a")})
    os.chmod(pathlib.Path(where, "a.yaml"), 0o666)
    done = subprocess.run([CLI, "policy", "check", "p.yaml"], cwd=where, capture_output=True, text=True)
    if done.returncode != 3 or "anybody may write a.yaml" not in done.stderr:
        failed = 1
        print(f"not ok writable: {done}")
sys.exit(failed)
