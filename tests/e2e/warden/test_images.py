#!/usr/bin/env python3
"""Images of started sandboxes: what is imported, what is refused and leaves nothing, and what a sandbox sees of one; by
root's gateway and by an ordinary user's."""
import json
import os
import pathlib
import shutil
import signal
import stat
import subprocess
import sys
import tarfile

from boxes import Nobodys, both, execute, setup, shell, start
from gateway import program
import harness
from harness import Skip, main, test
from layouts import (GZIP, MACHINE, OCI, OTHER, TAR, Layout, digest, folder, hard, link, member, programs, simple, tar)

sys.path.insert(0, str(harness.HERE / "lab"))
from terminal import Terminal  # noqa: E402

BASE = []


def base():
    if not BASE:
        BASE.append(tar(folder("bin"), *programs("sh", "cat", "ls", "stat", "id", "env", "readlink", "touch", "mkdir")))
    return BASE[0]


def place(lab, name):
    path = lab.dir / "layouts"
    path.mkdir(exist_ok=True)
    path.chmod(0o755)
    return path / name


def read(path):
    try:
        return pathlib.Path(path).read_text(errors="replace")
    except OSError:
        return ""


def images(gw):
    return {i["name"]: i["digest"] for i in gw.cli_json("image", "list")["images"]}


def kept(gw):
    """What lies in the folder of images, but for its lock and its names."""
    return sorted(p.name for p in (gw.state / "images").iterdir() if p.name not in ("lock", "names"))


def refused(gw, layout, *words, options=()):
    before = kept(gw) if (gw.state / "images").exists() else []
    done = gw.cli("image", "import", *options, str(layout), "bad", rc=1)
    for word in words:
        assert word in done.err, (word, done.err)
    assert done.err.splitlines()[-1].startswith(b"countersign: ") and not any(c < 32 and c != 10 or c > 126 for c in done.err), done.err
    assert "bad" not in images(gw) and kept(gw) == before, kept(gw)
    return done


def root_of(gw, name):
    return gw.state / "images" / images(gw)[name][7:] / "root"


@both
def a_sandbox_has_the_files_of_its_image(lab, gw):
    """G2 G9 G10: and no more of the machine's than before."""
    shadow = member("etc/shadow", data=b"root:x\n", mode=0o600)
    setuid = member("bin/su", data=b"#!/bin/sh\n", mode=0o4755)
    over = tar(folder("opt/app"), member("opt/app/run", data=b"#!/bin/sh\necho from the image\n", mode=0o700), shadow, setuid,
               link("etc/resolv.conf", "/oldroot/etc/passwd"), link("tmp", "/oldroot/etc"), member("home", data=b"a file"))
    config = {"Env": ["PATH=/opt/app:/bin", "GREETING=hello world", "HTTPS_PROXY=http://evil", "LD_PRELOAD=/x.so", "HOME=/root",
                      "SSL_CERT_FILE=/evil", "COUNTERSIGN_SANDBOX=other"], "User": "root", "WorkingDir": "/opt", "Cmd": ["sh"]}
    layout, made = simple(place(lab, "app"), base(), over, config=config)
    said = gw.cli_json("image", "import", str(layout), "app")
    assert said["image"]["digest"] == made and said["known"] is False, said
    assert set(said["image"]["ignored"]) == {"User", "WorkingDir", "Cmd"}, said
    assert set(said["image"]["variables_left_out"]) == {"HTTPS_PROXY", "LD_PRELOAD", "HOME", "SSL_CERT_FILE", "COUNTERSIGN_SANDBOX"}
    assert said["image"]["lost_rights"] == 1, said
    box = start(gw, "box", "--image", "app")
    assert (box["image"], box["digest"]) == ("app", made), box
    assert execute(gw, "box", "run").out == b"from the image\n"  # by its PATH, and its owner's right to run it
    seen = shell(gw, "box", 'echo "$GREETING,$HTTPS_PROXY$LD_PRELOAD$SSL_CERT_FILE,$HOME,$COUNTERSIGN_SANDBOX"; pwd; id -u').out
    assert seen == b"hello world,,/home/agent,box\n/workspace\n1000\n", seen
    own = shell(gw, "box", 'run; echo "$GREETING,${HTTPS_PROXY##*:}$LD_PRELOAD,$SSL_CERT_FILE,$HOME,$COUNTERSIGN_SANDBOX"; pwd; id -u; '
                "cat $SSL_CERT_FILE | while read line; do echo $line; break; done", options=("--lane", "web")).out
    assert own.startswith(b"from the image\nhello world,3128,/countersign/bundle.crt,/home/agent,box\n/workspace\n1000\n"), own
    assert shell(gw, "box", "cat /etc/shadow /etc/resolv.conf").out.startswith(b"root:x\n# No name server"), "its files"
    assert shell(gw, "box", "ls /usr /countersign; ls -a /tmp /home", rc=None).out.count(b"countersign-shim") == 1
    assert b"agent" in shell(gw, "box", "cat /etc/passwd").out
    for where in ("/", "/bin", "/opt/app", "/etc", "/countersign", "/etc/passwd"):
        done = shell(gw, "box", f"touch {where}/x" if where != "/etc/passwd" else "echo > /etc/passwd", rc=None)
        assert b"Read-only" in done.err, (where, done.text())
    assert shell(gw, "box", "for d in /tmp /var/tmp /dev/shm /home/agent /workspace; do touch $d/x && echo $d; done").out.count(b"\n") == 5
    assert shell(gw, "box", "stat -c %a /bin/su /bin/sh /").out == b"755\n755\n755\n"
    assert shell(gw, "box", "ls /proc/1/root/oldroot /oldroot", rc=None).rc != 0
    row = [s for s in gw.cli_json("sandbox", "started")["started"] if s["name"] == "box"][0]
    assert (row["image"], row["digest"]) == ("app", made), row
    listed = [s for s in gw.cli_json("sandbox", "list")["sandboxes"] if s["name"] == "box"][0]
    assert listed["labels"] == {"image": made}, listed
    lab.wait_for("its record", lambda: any(made in json.dumps(r) and r.get("about") == "sandbox-started" for r in gw.audit()))
    assert any(r["kind"] == "sandbox" and r.get("image") == made for r in gw.audit()), gw.audit()
    gw.cli("sandbox", "pause", "box", rc=0)
    gw.cli("sandbox", "resume", "box", rc=0)
    listed = [s for s in gw.cli_json("sandbox", "list")["sandboxes"] if s["name"] == "box"][0]
    assert listed["labels"] == {"image": made} and listed["generation"] == 2, listed
    gw.cli("sandbox", "destroy", "box", rc=0)


@both
def an_image_needs_nothing_of_its_own(lab, gw):
    """Files go in and out of one without a program; what is its own at our places is hidden, and stays as it was."""
    layout, _ = simple(place(lab, "bare"), tar(member("only", data=b"this\n"), member("workspace/hidden", data=b"x"), member("proc/fake", data=b"x"),
                                               member("name\nwith \udcff", data=b"y"), member("countersign/countersign-shim", data=b"evil", mode=0o755)))
    gw.cli("image", "import", str(layout), "bare", rc=0)
    start(gw, "box", "--image", "bare")
    assert execute(gw, "box", "/bin/sh", rc=127).err
    (lab.dir / "file").write_bytes(b"into")
    (lab.dir / "file").chmod(0o644)
    gw.cli("sandbox", "cp", str(lab.dir / "file"), "box:file", rc=0)
    assert gw.cli("sandbox", "cp", "box:file", "-", rc=0).out == b"into"
    assert b"hidden" not in gw.cli("sandbox", "ls", "box:.", rc=0).out
    root = root_of(gw, "bare")
    assert (root / "workspace/hidden").read_bytes() == b"x" and (root / "countersign/countersign-shim").read_bytes() == b"evil"
    assert b"name\nwith \xff" in [os.fsencode(p.name) for p in root.iterdir()]
    gw.cli("sandbox", "destroy", "box", rc=0)


@both
def what_it_is_and_not_what_it_is_called_counts(lab, gw):
    one, first = simple(place(lab, "one"), base(), tar(member("version", data=b"one\n")))
    two, second = simple(place(lab, "two"), base(), tar(member("version", data=b"two\n")))
    gw.cli("image", "import", str(one), "app", rc=0)
    start(gw, "old", "--image", "app")
    assert b"a sandbox uses it" in gw.cli("image", "rm", "app", rc=1).err
    gw.cli("image", "import", str(two), "app", rc=0)
    start(gw, "new", "--image", "app")
    assert images(gw) == {"app": second}
    for name, made, says in (("old", first, b"one\n"), ("new", second, b"two\n")):
        row = [s for s in gw.cli_json("sandbox", "started")["started"] if s["name"] == name][0]
        assert row["digest"] == made and shell(gw, name, "cat /version").out == says, row
    assert kept(gw) == sorted((first[7:], second[7:]))  # the first has no name, but a sandbox
    again = gw.cli_json("image", "import", str(two), "other")
    assert again["known"] is True and images(gw) == {"app": second, "other": second}
    gw.cli("image", "rm", "app", rc=0)  # another name keeps it
    for name in ("old", "new"):
        gw.cli("sandbox", "destroy", name, rc=0)
    gw.cli("image", "rm", "other", rc=0)
    assert images(gw) == {} and kept(gw) == [], kept(gw)
    assert b"there is no image of this name" in gw.cli("image", "rm", "other", rc=1).err
    assert b"there is no image app" in gw.cli("sandbox", "start", "x", "--image", "app", rc=1).err
    assert gw.cli_json("sandbox", "started")["started"] == []


@both
def one_that_is_idle_has_its_image_again_or_the_next_one_of_its_name(lab, gw):
    """G24"""
    one, first = simple(place(lab, "one"), base(), tar(member("version", data=b"one\n")))
    two, second = simple(place(lab, "two"), base(), tar(member("version", data=b"two\n")))

    def row():
        return next(s for s in gw.cli_json("sandbox", "started")["started"] if s["name"] == "box")

    def idles():
        gw.cli("sandbox", "pause", "box", rc=0)
        lab.wait_for("that it is idle", lambda: row()["state"] == "idle")

    gw.cli("image", "import", str(one), "app", rc=0)
    start(gw, "box", "--image", "app", "--idle", "1s")
    shell(gw, "box", "echo kept > file")
    idles()
    refused = gw.cli("image", "rm", "app", rc=1)
    assert b"idle sandboxes use it" in refused.err and b"box" in refused.err, refused.text()
    done = shell(gw, "box", "cat /version file")
    assert done.out == b"one\nkept\n" and b"its image is another one" not in done.err and row()["digest"] == first, done.text()
    idles()
    gw.cli("image", "import", str(two), "app", rc=0)  # and of the first one nothing is left
    assert kept(gw) == [second[7:]]
    done = shell(gw, "box", "cat /version file")
    assert done.out == b"two\nkept\n" and b"its image is another one" in done.err and row()["digest"] == second, done.text()
    gw.recorded(1, about="sandbox-another-image", fits=lambda r: (r["what"]["was"], r["what"]["digest"]) == (first, second))
    gw.cli("sandbox", "destroy", "box", rc=0)
    gw.cli("image", "rm", "app", rc=0)


@both
def a_fork_has_the_image_of_its_source_and_a_checkpoint_that_of_its_start(lab, gw):
    one, first = simple(place(lab, "one"), base(), tar(member("version", data=b"one\n")))
    two, second = simple(place(lab, "two"), base(), tar(member("version", data=b"two\n")))
    gw.cli("image", "import", str(one), "app", rc=0)
    start(gw, "box", "--image", "app")
    shell(gw, "box", "echo kept > file")
    gw.cli("image", "import", str(two), "app", rc=0)
    assert gw.cli_json("sandbox", "fork", "box", "twin")["digest"] == first
    made = gw.cli_json("sandbox", "snapshot", "box")
    assert gw.cli_json("sandbox", "restore", made["id"], "other", "--image", "app")["digest"] == second
    for name, says in (("box", b"one\n"), ("twin", b"one\n"), ("other", b"two\n")):
        assert shell(gw, name, "cat /version file").out == says + b"kept\n"
        gw.cli("sandbox", "destroy", name, rc=0)


@both
def the_machines_own_files_are_recorded_alike(lab, gw):
    status = pathlib.Path("/var/lib/dpkg/status")
    want = digest(status.read_bytes()) if status.exists() else "unknown"
    for options in ((), ("--image", "host")):
        box = start(gw, "box", *options)
        assert (box["image"], box["digest"]) == ("host", want), box
        listed = [s for s in gw.cli_json("sandbox", "list")["sandboxes"] if s["name"] == "box"][0]
        assert listed["labels"] == ({"packages": want} if status.exists() else {}), listed
        gw.cli("sandbox", "destroy", "box", rc=0)
    layout, _ = simple(place(lab, "x"), base())
    for name in ("host", "Upper", "../x", "-x", "a" * 64):
        assert b"image" in gw.cli("image", "import", "--", str(layout), name, rc=2).err or name == "host"


@both
def layers_lie_over_each_other(lab, gw):
    """G14"""
    below = tar(folder("d"), member("d/one", data=b"1"), member("d/two", data=b"2"), folder("d/sub"), member("d/sub/three", data=b"3"),
                folder("all"), member("all/old", data=b"old"), member("swap", data=b"file"), folder("other"), member("other/x", data=b"x"),
                member("twice", data=b"first"), member("twice", data=b"second"), member("late", data=b"late"),
                member("./dot/./x", data=b"dot", uid=1234, gid=4321, pax_headers={"SCHILY.xattr.security.capability": "\x01\x00\x00\x02\x00 ", "SCHILY.xattr.user.mine": "x"}), member("n" * 200 + "/" + "m" * 200, data=b"long"), link("back", "d"))
    above = tar(member("all/new", data=b"new"), member("all/.wh..wh..opq"), member("d/.wh.one"), member("d/.wh.sub"),
                member("d/sub", data=b"now a file"), folder("swap"), member("swap/in", data=b"in"), member("other", data=b"was a folder"),
                member(".wh.late"), member("late", data=b"of this layer"), member(".wh..wh.aufs"), member("gone/.wh.nothing"),
                hard("same", "d/two"), hard("link", "back"), link("away", "/etc/passwd"), member("dev/null", tarfile.CHRTYPE, devmajor=1, devminor=3),
                member("pipe", tarfile.FIFOTYPE), form=tarfile.GNU_FORMAT)
    for coding in ("gzip", "zstd", "none"):
        if coding == "zstd" and not shutil.which("zstd"):
            continue
        layout, made = simple(place(lab, coding), below, above, coding=coding)
        said = gw.cli_json("image", "import", str(layout), coding)
        assert said["image"]["left_out"] == 2, said
        root = root_of(gw, coding)
        found = {str(p.relative_to(root)): (os.readlink(p) if p.is_symlink() else p.read_bytes()) for p in root.rglob("*")
                 if p.is_symlink() or p.is_file()}
        assert found.pop("n" * 200 + "/" + "m" * 200) == b"long"
        found = {k: v for k, v in found.items() if not k.startswith("etc/")}
        assert found == {"d/two": b"2", "d/sub": b"now a file", "all/new": b"new", "swap/in": b"in", "other": b"was a folder",
                         "twice": b"second", "late": b"of this layer", "dot/x": b"dot", "back": "d", "link": "d", "same": b"2",
                         "away": "/etc/passwd"}, found
        assert (root / "same").stat().st_ino == (root / "d/two").stat().st_ino
        assert not (root / "dev/null").exists() and not (root / "gone").exists()
        owner = 65534 if isinstance(gw.lab, Nobodys) else 0
        for path in (root, *root.rglob("*")):
            st = path.lstat()
            want = 0o777 if path.is_symlink() else 0o755 if path.is_dir() else 0o644
            assert stat.S_IMODE(st.st_mode) == want and st.st_uid == owner and \
                not {"security.capability", "user.mine"} & set(os.listxattr(path, follow_symlinks=False)), (path, oct(st.st_mode))


@both
def what_lies_is_refused_and_leaves_nothing(lab, gw):
    """G14"""
    count = [0]

    def fresh():
        count[0] += 1
        return Layout(place(lab, f"lie{count[0]}"))

    plain = tar(member("f", data=b"content" * 1000))
    cut = fresh()
    made = cut.image(plain)
    blob = next(p for p in (cut.dir / "blobs/sha256").iterdir() if p.read_bytes()[:2] == b"\x1f\x8b")
    whole = blob.read_bytes()
    cut.index(made)
    blob.write_bytes(whole[:-1])
    refused(gw, cut.dir, b"are said of it")
    blob.write_bytes(bytes([*whole[:-1], whole[-1] ^ 1]))
    refused(gw, cut.dir, b"layer 1: blob sha256:", b"is not what its digest says")
    blob.unlink()
    refused(gw, cut.dir, b"is missing")
    blob.symlink_to("/etc/passwd")
    refused(gw, cut.dir, b"cannot be opened")
    wrong = fresh()
    made = wrong.image(plain, manifest={"annotations": {"a": "b"}})
    path = wrong.path(made)
    path.write_bytes(path.read_bytes().replace(b'"b"', b'"c"'))
    refused(gw, wrong.index(made), b"is not what its digest says")
    lay = fresh()
    refused(gw, lay.index(lay.image(plain, diffs=[digest(b"other")])), b"decodes to what its configuration does not name")
    lay = fresh()
    refused(gw, lay.index(lay.image(plain, layers=[lay.blob(plain, GZIP)])), b"not coded as its media type says")
    lay = fresh()
    refused(gw, lay.index(lay.image(plain, layers=[lay.blob(plain, OCI + "layer.v1.tar+encrypted")])), b"+encrypted`, which is not known")
    lay = fresh()
    refused(gw, lay.index(dict(lay.image(plain), mediaType="text/x\x1b[31m")), b"which is not known here")
    lay = fresh()
    refused(gw, lay.index(lay.image(plain, machine=OTHER)), b"it is an image for " + OTHER.encode())
    lay = fresh()
    refused(gw, lay.index(dict(lay.image(plain), platform={"os": "linux", "architecture": OTHER})), b"it holds no image for linux/" + MACHINE.encode())
    lay = fresh()
    refused(gw, lay.index(lay.image(plain), lay.image(tar(member("g")))), b"it holds 2 images: --ref")
    lay = fresh()
    refused(gw, lay.index(dict(lay.image(plain), digest="sha512:" + "0" * 128)), b"no sha256 digest")
    lay = fresh()
    refused(gw, lay.index(dict(lay.image(plain), digest="sha256:../../../../" + "0" * 52)), b"no sha256 digest")
    lay = fresh()
    refused(gw, lay.index(lay.image(plain, manifest={"layers": []})), b"layers")
    lay = fresh()
    refused(gw, lay.index(lay.image(plain, plain, diffs=[digest(plain)])), b"as many layers")
    lay = fresh()
    (lay.dir / "oci-layout").unlink()
    refused(gw, lay.index(lay.image(plain)), b"oci-layout is missing")
    lay = fresh()
    lay.index()
    (lay.dir / "index.json").write_text('{"manifests":[' * 100)
    refused(gw, lay.dir, b"index.json is no JSON object")
    assert kept(gw) == [] and images(gw) == {}


@both
def tricks_in_layers_are_refused_and_leave_nothing(lab, gw):
    """G14: nothing outside of the image's own folder is made, changed or read."""
    outside = place(lab, "outside")
    outside.mkdir()
    outside.chmod(0o777)
    (outside / "kept").write_bytes(b"kept")
    where = str(outside)
    tricks = {
        "dots": ((member("../../escape"),), b"leads out by .."),
        "absolute": ((member(where + "/planted"),), b"is absolute"),
        "through": ((link("l", where), member("l/planted")), b"goes through a symbolic link"),
        "twice": ((folder("a"), link("a/b", "../.."), member("a/b/planted")), b"goes through a symbolic link"),
        "hard": ((hard("h", "../../../../../../etc/passwd"),), b"leads out by .."),
        "hard through": ((link("l", where), hard("h", "l/kept")), b"goes through a symbolic link"),
        "hard to nothing": ((hard("h", "nothing"),), b"is a link to a file that is not there"),
        "file in file": ((member("f", data=b"x"), member("f/g", data=b"y")), b"goes through what is no folder"),
        "hides dots": ((member("d/.wh..."),), b"hides a name that is none"),
        "hides through": ((member("low/.wh.kept"),), b"goes through a symbolic link"),
        "deep": ((member("a/" * 200 + "f"),), b"lies too deep"),
        "etc": ((link("etc", where),), b"its /etc is no folder"),
        "long": ((member("x" * 300),), b"has a name that is too long"),
        "escapes": ((link("low/\x1b[31m\n", "x"),), b"low/\\u{1b}[31m\\n` in it goes through a symbolic link"),
        "sparse": ((member("s", tarfile.GNUTYPE_SPARSE),), b"a form of GNU's that is not read here"),
        "sparse by name": ((member("s", pax_headers={"GNU.sparse.major": "1"}),), b"a file with holes"),
        "cut": (None, b"cut short"),
    }
    for name, (members, word) in tricks.items():
        layout = Layout(place(lab, "trick " + name))
        plain = tar(*members) if members else tar(member("f", data=b"x" * 600))[:700]
        refused(gw, layout.index(layout.image(tar(member("below"), link("low", where)), plain)), b"countersign: ", word)
        assert sorted(p.name for p in outside.iterdir()) == ["kept"] and (outside / "kept").read_bytes() == b"kept", name
    bomb = Layout(place(lab, "bomb"))
    bomb.index(bomb.image(tar(member("zeros", data=bytes(20 << 20)))))
    refused(gw, bomb.dir, b"layer 1: it unpacks to more than 10485760 bytes (--most says how many it may)", options=("--most", "10M"))
    gw.cli("image", "import", "--most", "30M", str(bomb.dir), "fits", rc=0)
    assert kept(gw) == [images(gw)["fits"][7:]]


@test()
def what_finds_no_room_leaves_nothing(lab):
    """G20"""
    if os.geteuid() != 0:
        raise Skip("not root: no disk can be made that is full")
    gw = setup(lab)
    layout, _ = simple(place(lab, "large"), base(), tar(member("noise", data=os.urandom(8 << 20))))
    gw.cli("image", "list", rc=0)
    where = gw.state / "images"
    script = f"mount -t tmpfs -o size=6m none {where} && {{ {program()} image import {layout} large; ls -A {where} {where}/names; }}"
    done = lab.run(["unshare", "-m", "sh", "-c", script], env={"COUNTERSIGN_STATE": str(gw.state), "PATH": os.environ["PATH"]})
    assert b"layer 2: there is no room for it" in done.err, done.text()
    assert done.out.split() == [f"{where}:".encode(), b"lock", b"names", f"{where}/names:".encode()], done.out


@test()
def a_person_sees_how_far_it_is(lab):
    gw = setup(lab)
    layout, made = simple(place(lab, "x"), base(), tar(member("f", tarfile.CHRTYPE), member("su", data=b"x", mode=0o4755)),
                          config={"Env": ["LD_PRELOAD=/x"], "User": "me"})
    screen = Terminal(lab, [shutil.which(program()), "image", "import", str(layout), "app"],
                      lab.env({"COUNTERSIGN_STATE": str(gw.state), "PATH": os.environ["PATH"]}))
    for words in (b"verifying layer 1 of 2: ", b"unpacking layer 1 of 2: ", b"looking into layer 2 of 2: ", b"unpacking layer 2 of 2: 100 %",
                  b"\r\x1b[Kapp is " + made.encode(), b"left out: 1 devices and pipes", b"1 lost their setuid",
                  b"variables not taken: LD_PRELOAD", b"of no meaning here: User"):
        screen.until(words)
    assert screen.end() == 0
    said = gw.cli("image", "list", rc=0).out
    assert said.startswith(f"app  {made[:19]}  ".encode()), said


@both
def an_import_that_is_killed_leaves_nothing_that_is_used(lab, gw):
    layout, made = simple(place(lab, "large"), base(), tar(member("zeros", data=os.urandom(1 << 20) * 64)))
    drop = gw.lab.drop if isinstance(gw.lab, Nobodys) else []
    env = lab.env({"COUNTERSIGN_STATE": str(gw.state), "PATH": os.environ["PATH"]})
    stage = gw.state / "images/.new"
    gw.cli("image", "list", rc=0)
    run = subprocess.Popen([*drop, program(), "image", "import", str(layout), "large"], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    lab.wait_for("a file of it", lambda: (stage / "root/bin").exists() or run.poll() is not None)
    reader = [p.parent for p in pathlib.Path("/proc").glob("[0-9]*/stat") if read(p).rpartition(")")[2].split()[1:2] == [str(run.pid)]]
    for p in reader:
        os.kill(int(p.name), signal.SIGSTOP)
    busy = gw.cli("image", "import", str(layout), "other", rc=None)
    held = [read(reader[0] / "status"), read(f"/proc/{gw.pid('warden')}/status")] if reader else []
    for line in ("CapEff", "NoNewPrivs", "Seccomp"):  # as any process that reads what is anybody's
        assert held and len({[one for one in text.splitlines() if one.startswith(line + ":")][0] for text in held}) == 1, held
    run.send_signal(signal.SIGKILL)
    run.communicate()
    assert run.returncode == -signal.SIGKILL and b"another import" in busy.err, (run.returncode, busy.err)
    assert images(gw) == {}
    gw.cli("image", "import", str(layout), "large", rc=0)
    assert images(gw) == {"large": made} and kept(gw) == [made[7:]], kept(gw)
    start(gw, "box", "--image", "large")
    assert execute(gw, "box", "stat", "-c", "%s", "/zeros").out == b"67108864\n"
    gw.cli("sandbox", "destroy", "box", rc=0)


@both
def of_several_machines_this_ones_is_taken(lab, gw):
    lay = Layout(place(lab, "many"))
    ours, other = lay.image(base(), tar(member("ours"))), lay.image(base(), tar(member("other")), machine=OTHER)
    inner = lay.json({"schemaVersion": 2, "mediaType": OCI + "index.v1+json",
                      "manifests": [dict(other, platform={"os": "linux", "architecture": OTHER}),
                                    dict(ours, platform={"os": "linux", "architecture": MACHINE}),
                                    dict(other, platform={"os": "unknown", "architecture": "unknown"})]}, OCI + "index.v1+json")
    named = dict(inner, annotations={"org.opencontainers.image.ref.name": "v1"})
    second = dict(lay.image(tar(member("second"))), annotations={"org.opencontainers.image.ref.name": "v2"})
    lay.index(named, second)
    assert b"--ref" in gw.cli("image", "import", str(lay.dir), "app", rc=1).err
    assert b"calls no image `v3`" in gw.cli("image", "import", "--ref", "v3", str(lay.dir), "app", rc=1).err
    gw.cli("image", "import", "--ref", "v1", str(lay.dir), "app", rc=0)
    assert images(gw) == {"app": ours["digest"]} and (root_of(gw, "app") / "ours").exists()


@test()
def what_skopeo_writes_is_read(lab):
    if not shutil.which("skopeo"):
        raise Skip("skopeo is not installed")
    gw = setup(lab)
    archive, layer = lab.dir / "image.tar", base()
    config = json.dumps({"architecture": MACHINE, "os": "linux", "config": {"Env": ["A=b"]},
                         "rootfs": {"type": "layers", "diff_ids": [digest(layer)]}}).encode()
    manifest = json.dumps([{"Config": "config.json", "RepoTags": ["x:1"], "Layers": ["layer.tar"]}]).encode()
    archive.write_bytes(tar(member("config.json", data=config), member("manifest.json", data=manifest), member("layer.tar", data=layer)))
    for options in ((), ("--dest-compress-format", "zstd"), ("--dest-decompress",)):
        where = place(lab, "skopeo" + "".join(options))
        lab.run(["skopeo", "copy", "--insecure-policy", *options, f"docker-archive:{archive}", f"oci:{where}:x"], rc=0)
        gw.cli("image", "import", str(where), "app", rc=0)
        start(gw, "box", "--image", "app")
        assert shell(gw, "box", "echo $A").out == b"b\n"
        gw.cli("sandbox", "destroy", "box", rc=0)


@test()
def an_image_of_another_persons_is_not_imported(lab):
    gw = setup(lab)
    if os.geteuid() != 0:
        raise Skip("not root")
    layout, _ = simple(place(lab, "x"), base())
    done = lab.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", program(), "image", "import", str(layout), "x"],
                   env={"COUNTERSIGN_STATE": str(gw.state), "PATH": os.environ["PATH"]})
    assert done.rc == 1 and b"which you cannot write" in done.err, done.text()
    assert TAR and not (gw.state / "images").exists()


if __name__ == "__main__":
    main()
