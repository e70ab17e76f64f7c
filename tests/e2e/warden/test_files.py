#!/usr/bin/env python3
"""Files of started sandboxes: in and out as they are, never out of the workspace, whatever lies there and whoever
changes it meanwhile; by root's gateway and by an ordinary user's."""
import hashlib
import http.client
import json
import os
import pathlib
import random
import socket
import subprocess
import tempfile
import urllib.parse

from boxes import NOBODY, Nobodys, both, execute, following, setup, shell, start
from gateway import program
from harness import PATIENCE, main, test

PYTHON = "/usr/bin/python3"


def place(gw, name="here"):
    """A folder that whoever copies may write."""
    made = gw.lab.dir / name
    made.mkdir()
    if isinstance(gw.lab, Nobodys):
        os.chown(made, NOBODY, NOBODY)
    return made


def copy(gw, source, target, *options, rc=0, **more):
    return gw.cli("sandbox", "cp", *options, source, target, rc=rc, **more)


class Control(http.client.HTTPConnection):
    """The operator API."""

    def __init__(self, gw):
        super().__init__("countersign", timeout=PATIENCE)
        self.path = str(pathlib.Path(gw.state) / "control.sock")

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(PATIENCE)
        self.sock.connect(self.path)

    def ask(self, method, what, body=None, name="box", **query):
        """Status and answer."""
        path = f"/api/v1/sandboxes/{name}/files{what}?" + urllib.parse.urlencode(query)
        self.close()
        self.request(method, path, body)
        answer = self.getresponse()
        return answer.status, answer.read()


def same(one, other):
    """Both trees have the same names, contents, links and modes of files."""
    def seen(top):
        found = {}
        for folder, folders, files in os.walk(os.fsencode(top)):
            for name in folders + files:
                path = os.path.join(folder, name)
                if os.path.islink(path):
                    found[path[len(os.fsencode(top)):]] = os.readlink(path)
                elif os.path.isfile(path):
                    with open(path, "rb") as f:
                        found[path[len(os.fsencode(top)):]] = (os.stat(path).st_mode & 0o777, hashlib.sha256(f.read()).digest())
                else:
                    found[path[len(os.fsencode(top)):]] = None
        return found
    one, other = seen(one), seen(other)
    assert one == other, [(k, one.get(k), other.get(k)) for k in sorted(one.keys() | other.keys()) if one.get(k, 1) != other.get(k, 1)][:5]


@both
def a_file_comes_back_as_it_went(lab, gw):
    start(gw, "box")
    here = place(gw)
    for size in (0, 1, 32768, 5000000):
        for name in (f"plain-{size}", f"a b\u00e9\n{size}", f"raw\udcff{size}"):
            path = here / name
            path.write_bytes(random.Random(size).randbytes(size))
            path.chmod(0o754)
            raw = os.fsencode(path)
            copy(gw, raw, b"box:" + os.fsencode(name))
            copy(gw, b"box:/workspace/" + os.fsencode(name), raw + b".back")
            back = pathlib.Path(os.fsdecode(raw + b".back"))
            assert back.read_bytes() == path.read_bytes() and back.stat().st_mode & 0o777 == 0o754, name
    assert copy(gw, "box:plain-1", "-").out == (here / "plain-1").read_bytes()
    copy(gw, "-", "box:from-input", stdin=b"said")
    copy(gw, here / "plain-1", "box:")
    shell(gw, "box", "mkdir d; chmod 640 from-input")
    copy(gw, "-", "box:from-input", stdin=b"other")
    assert shell(gw, "box", "cat from-input; stat -c %a:%u from-input; id -u").out == b"other640:1000\n1000\n"
    copy(gw, here / "plain-1", "box:d")
    copy(gw, here / "plain-1", "box:d/other")
    assert shell(gw, "box", "cat d/plain-1 d/other | wc -c; ls -A . | grep -c countersign", rc=1).out == b"2\n0\n"
    listed = gw.cli("sandbox", "ls", "box:", rc=0).out
    assert b"-rw-r-----" in listed and b"drwxr-xr-x" in listed and b"from-input" in listed and b"plain-5000000" in listed, listed
    assert b"\xff" not in listed, listed
    for wrong in (("box:a", "box:b"), (here / "plain-1", here / "x"), ("-", "-")):
        assert b"NAME:PATH" in copy(gw, *wrong, rc=2).err
    assert b"there is no such file" in copy(gw, "box:none", here / "none", rc=1).err
    assert not (here / "none").exists() and [p.name for p in here.iterdir() if p.name.startswith("none")] == []
    assert b"no sandbox of this name runs" in copy(gw, "other:x", here / "none", rc=1).err
    assert b"cannot open" in copy(gw, here / "none", "box:x", rc=1).err
    assert b"larger than" in copy(gw, "box:plain-5000000", here / "none", "--most", "1M", rc=1).err
    for said in ("a b\u00e9\n1", "raw\ufffd1"):  # the record of a name that is not UTF-8 is JSON as well
        assert gw.recorded(1, lambda r, said=said: r["what"]["path"] == said, about="sandbox-files")
    gw.cli("sandbox", "destroy", "box", rc=0)


@test()
def the_api_does_what_is_done_with_files(lab):
    gw = setup(lab)
    start(gw, "box")
    api = Control(gw)
    assert api.ask("POST", "/mkdir", path="a/b/c", parents="true") == (204, b"")
    assert api.ask("POST", "/mkdir", path="a/b/c")[0] == 409
    assert api.ask("PUT", "", b"0123456789" * 100000, path="a/f", mode="600") == (204, b"")
    assert api.ask("PUT", "", iter([b"chunks ", b"of it"]), path="a/g") == (204, b"")
    assert api.ask("GET", "", path="a/g") == (200, b"chunks of it")
    assert gw.recorded(1, lambda r: r["what"]["what"] == "write" and r["what"]["path"] == "a/g", about="sandbox-files")
    assert api.ask("GET", "", path="a/f", offset=999995, length=100) == (200, b"56789")
    assert api.ask("GET", "", path="a/f", offset=3, length=4) == (200, b"3456")
    assert api.ask("GET", "", path="a/f", offset=2000000) == (200, b"")
    assert api.ask("GET", "", path="a/f", most=10)[0] == 413
    assert api.ask("GET", "", path="a")[0] == 409 and api.ask("GET", "", path="x")[0] == 404
    status, said = api.ask("GET", "/stat", path="a/f")
    assert (said := json.loads(said)) and status == 200 and (said["kind"], said["mode"], said["size"]) == ("file", "0600", 1000000), said
    status, said = api.ask("GET", "/list", path="a", limit=2)
    assert [e["name"] for e in json.loads(said)["entries"]] == ["b", "f"] and json.loads(said)["more"], said
    assert [e["name"] for e in json.loads(api.ask("GET", "/list", path="a", after="f")[1])["entries"]] == ["g"]
    assert api.ask("POST", "/move", path="a/f", to="a/g")[0] == 409
    assert api.ask("POST", "/move", path="a/f", to="a/g", replace="true")[0] == 204
    assert api.ask("POST", "/move", path="a", to="a/b/d")[0] == 400
    assert api.ask("DELETE", "", path="a")[0] == 409
    assert api.ask("DELETE", "", path="a", recursive="true") == (204, b"")
    assert api.ask("DELETE", "", path="a")[0] == 404
    assert api.ask("GET", "", path="a", name="none")[0] == 404
    shell(gw, "box", "mkdir many; seq -f many/file-%06.0f 0 4999 | xargs touch")
    assert [line.split()[-1] for line in gw.cli("sandbox", "ls", "box:many", rc=0).out.split(b"\n")[:-1]] == \
        [b"file-%06d" % n for n in range(5000)]
    gw.cli("sandbox", "destroy", "box", rc=0)


@both
def no_path_leads_out_of_the_workspace(lab, gw):
    """G14: by a link, by .., by what is put in its place in between."""
    start(gw, "box")
    here = place(gw)
    (here / "f").write_bytes(b"planted")
    shell(gw, "box", "echo secret > /tmp/secret; ln -s /tmp/secret abs; ln -s ../tmp/secret rel; ln -s .. above; ln -s /tmp dir; "
          "ln -s loop loop; mkdir d; echo inside > d/f; ln -s d/f fine; ln -s /proc/self/root root; mkfifo fifo")
    for path in ("abs", "rel", "above/tmp/secret", "dir/secret", "../tmp/secret", "/tmp/secret", "d/../../tmp/secret",
                 "root/tmp/secret", "/workspace/../tmp/secret", "/proc/1/environ", "loop"):
        done = copy(gw, f"box:{path}", "-", rc=1)
        assert done.out == b"" and b"secret" not in done.err.replace(path.encode(), b""), (path, done.text())
        if path not in ("abs", "rel", "loop"):  # a link in this place is replaced itself
            copy(gw, here / "f", f"box:{path}", rc=1)
            copy(gw, here / "f", f"box:{path}/x", rc=1)
    api = Control(gw)
    for path in ("above/tmp/secret", "dir/secret", "../tmp/secret", "/tmp/secret", "/workspace", ".", "..", "d/.."):
        assert api.ask("DELETE", "", path=path, recursive="true")[0] in (400, 403), path
        assert api.ask("POST", "/move", path=path, to="stolen")[0] in (400, 403), path
        assert api.ask("POST", "/move", path="d/f", to=path)[0] in (400, 403, 409), path
    assert api.ask("GET", "", path="fifo")[0] == 400  # and nobody waits for who writes it
    assert copy(gw, "box:fine", "-").out == b"inside\n"
    copy(gw, here / "f", "box:rel")
    assert shell(gw, "box", "cat /tmp/secret rel d/f; ls -A /tmp").out == b"secret\nplantedinside\nsecret\n"
    swap = """
import ctypes, os
libc = ctypes.CDLL(None)
os.mkdir("swap"); open("swap/secret", "w").write("inside\\n"); os.symlink("/tmp", "link")
while True:
    libc.renameat2(-100, b"swap", -100, b"link", 2)
"""
    other = following(gw, "box", PYTHON, "-c", swap)
    gw.lab.wait_for("its link", lambda: api.ask("GET", "/stat", path="link")[0] == 200)
    seen = set()
    for _ in range(300):
        seen.add(api.ask("GET", "", path="swap/secret")[1])
        api.ask("PUT", "", b"planted", path="swap/planted")
        api.ask("DELETE", "", path="swap/secret2", recursive="true")
    assert b"inside\n" in seen and b"secret\n" not in seen, seen
    other.stop()
    assert shell(gw, "box", "ls -A /tmp").out == b"secret\n"
    gw.cli("sandbox", "destroy", "box", rc=0)


@both
def ten_thousand_files_come_back_as_they_went(lab, gw):
    start(gw, "box", "--disk", "512M")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:  # a disk would take its time for each of them
        if isinstance(gw.lab, Nobodys):
            os.chown(folder, NOBODY, NOBODY)
        ten_thousand(gw, pathlib.Path(folder))
    gw.cli("sandbox", "destroy", "box", rc=0)


def ten_thousand(gw, here):
    tree, numbers = here / "tree", random.Random(1)
    for n in range(100):
        folder = tree / f"pkg-{n}" / ("deep/" * (n % 12))
        folder.mkdir(parents=True)
        for k in range(100):
            (folder / f"file-{k}.js").write_bytes(numbers.randbytes(numbers.randrange(0, 2000)))
        (folder / "link").symlink_to("file-0.js")
        (folder / "file-1.js").chmod(0o755)
    long = tree / ("n" * 200) / ("m" * 250) / ("o" * 250)
    long.mkdir(parents=True)
    (long / "f").write_text("deep")
    (tree / "raw\udcff\n").write_text("raw")
    (tree / "sealed").mkdir()
    (tree / "sealed" / "f").write_text("x")
    (tree / "sealed").chmod(0o555)
    (tree / "empty").mkdir()
    copy(gw, tree, "box:tree")
    assert shell(gw, "box", "find tree -type f -printf x | wc -c").out == b"10003\n"
    copy(gw, "box:tree", here / "back")
    same(tree, here / "back")
    for _ in range(2):  # a folder that is there gets it by its name, also over itself
        copy(gw, "box:tree/pkg-1", here / "back")
        same(tree, here / "back")
    packed = subprocess.run(["tar", "-C", tree, "-cf", "-", "."], check=True, capture_output=True).stdout
    copy(gw, "-", "box:tarred", "--tar", stdin=packed)
    with open(here / "out", "wb") as out:
        out.write(copy(gw, "box:tarred", "-", "--tar").out)
    (here / "tarred").mkdir()
    subprocess.run(["tar", "-C", here / "tarred", "-xf", here / "out"], check=True)
    same(tree, here / "tarred")
    assert Control(gw).ask("DELETE", "", path="tree", recursive="true") == (204, b"")


@test()
def what_a_sandbox_packs_is_not_trusted(lab):
    """G14: links, pipes, and streams that are none."""
    gw = setup(lab)
    start(gw, "box")
    here = place(gw)
    (here / "mine").write_text("mine")
    shell(gw, "box", "mkdir t; cd t; ln -s / root; ln -s ../../mine up; ln -s f good; mkfifo p; echo f > f; chmod 6777 f; "
          "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"s\")'; mkdir -p x; ln f x/hard")
    done = copy(gw, "box:t", here / "t", rc=1)
    assert b"2 were left out" in done.err, done.text()
    assert sorted(os.listdir(here / "t")) == ["f", "good", "x"] and (here / "t" / "x" / "hard").read_text() == "f\n"
    assert (here / "t" / "f").stat().st_mode & 0o7000 == 0
    (here / "t2").mkdir()
    (here / "t2" / "t").mkdir()
    (here / "t2" / "t" / "x").symlink_to(here)  # ours, and not written through
    copy(gw, "box:t", here / "t2", rc=1)
    assert not (here / "hard").exists()
    shell(gw, "box", "truncate -s 100G big; mkdir holes; truncate -s 3G holes/h")
    assert b"larger than" in copy(gw, "box:big", here / "big", rc=1).err
    done = copy(gw, "box:holes", here / "holes", rc=1)
    assert not (here / "big").exists() and b"larger than" in done.err or b"broke" in done.err, done.text()
    for stream, words in ((b"no tar at all" * 100, b"no tar stream"), (b"", b"cut short")):
        assert words in copy(gw, "-", "box:bad", "--tar", stdin=stream, rc=1).err
    gw.cli("sandbox", "destroy", "box", rc=0)


@both
def a_full_disk_is_said_and_costs_nobody_else_anything(lab, gw):
    """G20"""
    start(gw, "box", "--disk", "8M")
    start(gw, "neighbour")
    here = place(gw)
    (here / "big").write_bytes(os.urandom(16 << 20))
    copy(gw, "-", "box:kept", stdin=b"kept")
    for target in ("box:kept", "box:big"):
        assert b"disk is full" in copy(gw, here / "big", target, rc=1).err
    (here / "tree").mkdir()
    (here / "tree" / "big").write_bytes(os.urandom(16 << 20))
    assert b"disk is full" in copy(gw, here / "tree", "box:tree", rc=1).err
    assert shell(gw, "box", "cat kept; rm -r tree; ls -A").out == b"keptkept\n"
    copy(gw, "-", "box:after", stdin=b"x" * (4 << 20))
    assert copy(gw, "-", "neighbour:f", stdin=b"fine").rc == 0
    assert execute(gw, "neighbour", "cat", "f").out == b"fine"
    for name in ("box", "neighbour"):
        gw.cli("sandbox", "destroy", name, rc=0)


@test()
def who_goes_leaves_nothing_and_a_sandbox_that_goes_is_said(lab):
    gw = setup(lab)
    start(gw, "box")
    here = place(gw)

    def quiet():
        return gw.cli_json("sandbox", "started")["started"][0]["commands"] == 0

    for head in (b"PUT /api/v1/sandboxes/box/files?path=f", b"PUT /api/v1/sandboxes/box/files/tar?path=t"):
        api = Control(gw)
        api.connect()
        api.sock.sendall(head + b" HTTP/1.1\r\nHost: countersign\r\nContent-Length: 1000000\r\n\r\n" + b"\0" * 1000)
        lab.wait_for("its begin", lambda: not quiet())
        if b"/tar" in head:
            lab.wait_for("its folder", lambda: b"t\n" in shell(gw, "box", "ls").out)
        api.close()
        lab.wait_for("its end", quiet)
    assert shell(gw, "box", "ls -A; ls -A t").out == b"t\n"
    shell(gw, "box", "head -c 200000000 /dev/urandom > big")
    api = Control(gw)
    api.request("GET", "/api/v1/sandboxes/box/files?path=big")
    answer = api.getresponse()
    assert answer.status == 200 and len(answer.read(1000)) == 1000
    api.close()
    answer.close()
    lab.wait_for("its end", quiet)
    client = lab.start([program(), "sandbox", "cp", "-", "box:f"], stdin=subprocess.PIPE,
                       env={"COUNTERSIGN_STATE": gw.state, "PATH": os.environ["PATH"]})
    lab.wait_for("its begin", lambda: not quiet())
    gw.cli("sandbox", "destroy", "box", rc=0)
    client.popen.stdin.close()
    assert client.wait() == 1 and b"it was destroyed" in client.seen, client.seen
    assert list(here.iterdir()) == []


if __name__ == "__main__":
    main()
