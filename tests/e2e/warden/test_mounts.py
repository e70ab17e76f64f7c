#!/usr/bin/env python3
"""Directories and devices that the configuration gives started sandboxes and tasks: whose they are, that nothing is
written or led out of by them, and that a device is one sandbox's until nothing of that is left."""
import concurrent.futures
import contextlib
import json
import os
import pathlib
import stat

from boxes import Nobodys, execute, nothing_is_left, shell, start
from gateway import Gateway, simple_policy
from harness import Skip, main, test

ANY = '{"type": ["object", "array"]}'


@contextlib.contextmanager
def two_nodes():
    """Two device nodes that anybody may open and no sandbox has by itself."""
    if os.geteuid() != 0:
        raise Skip("only root can make device nodes")
    nodes = [f"/dev/countersign-{os.getpid()}-{n}" for n in (3, 5)]  # what is behind them is null and zero
    try:
        for n, node in zip((3, 5), nodes):
            os.mknod(node, 0o666 | stat.S_IFCHR, os.makedev(1, n))
            os.chmod(node, 0o666)
        yield nodes
    finally:
        for node in nodes:
            pathlib.Path(node).unlink(missing_ok=True)


def kind(lab, name, script, **more):
    (lab.dir / "any.json").write_text(ANY)
    (lab.dir / f"{name}.yaml").write_text(json.dumps({
        "version": 1, "kind": name, "command": ["/bin/sh", "-c", script], "timeout": "60s", "limits": {"memory": "256MiB"},
        "input": "any.json", "output": "any.json", **more}))
    return f"{name}.yaml"


def rules(lab, name="rules"):
    folder = lab.dir / name
    folder.mkdir(mode=0o755)
    (folder / "one.txt").write_text(f"of {name}\n")
    (folder / "out").symlink_to(lab.dir)
    (folder / "up").symlink_to("../secret")
    (lab.dir / "secret").write_text("not theirs\n")
    lab.dir.chmod(0o755)
    return folder


def gateway(lab, more, ordinary=False):
    return Gateway(Nobodys(lab) if ordinary else lab, simple_policy(lab.upstream()), {"api": lab.canary("c" * 40).encode()},
                   config=more)


def both(function):
    for ordinary in (False, True):
        def case(lab, ordinary=ordinary):
            function(lab, ordinary)
        case.__name__ = function.__name__ + ("_by_an_ordinary_user" if ordinary else "")
        case.__doc__ = function.__doc__
        test()(case)
    return function


@both
def a_directory_is_read_by_those_it_is_for_and_leads_nowhere(lab, ordinary):
    ours, others = rules(lab), lab.dir / "others"
    others.mkdir()
    gw = gateway(lab, "mounts:\n"
                      f"  - {{ name: rules, path: {ours}, tenants: [default, acme] }}\n"
                      f"  - {{ name: others, path: {others}, tenants: [acme] }}\n"
                      f"tasks: [{kind(lab, 'look', 'cp /mnt/r/one.json $COUNTERSIGN_TASK_RESULT', mounts={'rules': '/mnt/r'})}]\n",
                 ordinary)
    (ours / "one.json").write_text("[1]")
    is_ = start(gw, "box", "--mount", "rules:/mnt/rules")
    assert is_["mounts"] == [{"name": "rules", "at": "/mnt/rules"}], is_
    assert execute(gw, "box", "cat", "/mnt/rules/one.txt").out == b"of rules\n"
    for command in ("echo x > /mnt/rules/one.txt", "echo x > /mnt/rules/new", "rm /mnt/rules/one.txt", "chmod 777 /mnt/rules/one.txt",
                    "echo x > /mnt/new", "mkdir /mnt/rules/d", "mv /mnt/rules /mnt/other", "rmdir /mnt/rules"):
        shell(gw, "box", f"! ({command}) 2>/dev/null")
    shell(gw, "box", "! cat /mnt/rules/up && ! cat /mnt/rules/out/secret && ! ls /mnt/rules/../../secret")
    (ours / "later.txt").write_text("also\n")  # it is the directory, not a copy
    assert execute(gw, "box", "cat", "/mnt/rules/later.txt").out == b"also\n"
    shell(gw, "box", "test -d /mnt/rules && test ! -e /workspace/rules && test $(stat -c %d /mnt/rules) != $(stat -c %d /workspace)")
    assert gw.cli_json("sandbox", "fork", "box", "copy", "--mount", "rules:/home/agent/.rules")["mounts"][0]["at"] == "/home/agent/.rules"
    assert execute(gw, "copy", "cat", "/home/agent/.rules/one.txt").out == b"of rules\n"
    for mount, said in (("others:/mnt/x", b"no mount others for this tenant"), ("none:/mnt/x", b"no mount none for this tenant"),
                        ("rules:/etc/x", b"below /mnt"), ("rules:/mnt/../etc", b"below /mnt"), ("rules:/mnt", b"below /mnt"),
                        ("rules:/mnt/a b", b"below /mnt"), ("rules", b"NAME:/PLACE")):
        done = gw.cli("sandbox", "start", "bad", "--mount", mount)
        assert done.rc != 0 and said in done.err, (mount, done.both)
    assert b"below /mnt" in gw.cli("sandbox", "start", "bad", "--mount", "rules:/mnt/a", "--mount", "rules:/mnt/a/b").err
    status, answer = gw.control("POST", "/api/v1/tasks", {"kind": "look", "input": {}})
    assert (status, answer["result"]) == (200, [1]), answer
    assert [s["name"] for s in gw.cli_json("sandbox", "started")["started"]] == ["copy", "box"]
    for name in ("box", "copy"):
        gw.cli("sandbox", "destroy", name, rc=0)
    nothing_is_left(gw)


@test()
def what_leads_into_the_state_directory_is_no_mount(lab):
    ours = rules(lab)
    gw = gateway(lab, f"mounts: [{{ name: rules, path: {ours}, tenants: [default] }}]\n")
    text = gw.config.read_text()
    (lab.dir / "link").symlink_to(ours)
    for path, said in ((gw.state, "overlaps the state directory"), (gw.state / "store", "overlaps the state directory"),
                       (lab.dir, "overlaps the state directory"), ("/", "full path"), (lab.dir / "link", "leads elsewhere by a link"),
                       (f"{lab.dir}/rules/../rules", "full path"), (lab.dir / "none", "cannot be found"), ("rules", "full path")):
        gw.config.write_text(text.replace(f"path: {ours}", f"path: {path}"))
        lab.expects("reload refused")
        done = gw.cli("reload")
        assert done.rc != 0 and said.encode() in done.err, (path, done.both)
    gw.config.write_text(text)
    ours.rename(lab.dir / "moved")  # and what became a link since leads nowhere
    ours.symlink_to(gw.state)
    lab.expects("its mount /mnt/rules cannot be had")
    assert gw.cli("sandbox", "start", "box", "--mount", "rules:/mnt/rules").rc != 0
    assert gw.cli_json("sandbox", "started")["started"] == []
    nothing_is_left(gw)


def loops(gw):
    """Devices and mounts of what this gateway keeps: in no process's mounts but those of its sandboxes."""
    found = [p for p in pathlib.Path("/sys/block").glob("loop*/loop/backing_file") if str(gw.state) in p.read_text()]
    return found + [line for line in pathlib.Path("/proc/self/mounts").read_text().splitlines() if str(gw.state) in line]


@both
def a_kept_directory_outlives_its_sandboxes_and_is_nobody_elses(lab, ordinary):
    """Shared by a session's or a tenant's sandboxes at once; what is killed leaves no mount and no device."""
    gw = gateway(lab, "mounts:\n"
                      "  - { name: cache, size: 32MiB, share: tenant, tenants: [default] }\n"
                      "  - { name: work, size: 16MiB, tenants: [default, acme] }\n"
                      f"tasks: [{kind(lab, 'seen', 'ls /mnt/w > /dev/null && echo [] > $COUNTERSIGN_TASK_RESULT; test ! -e /mnt/w/mine', mounts={'work': '/mnt/w'})}]\n",
                 ordinary)
    mounts = ("--mount", "cache:/home/agent/.cache", "--mount", "work:/mnt/w")
    if ordinary:
        done = gw.cli("sandbox", "start", "box", "--limits", "strict", *mounts)
        assert done.rc != 0, done.both
    start(gw, "box", "--session", "one", *mounts)
    shell(gw, "box", "echo first > /home/agent/.cache/f && mkdir /mnt/w/d && echo mine > /mnt/w/mine && ln -s / /mnt/w/out && "
                     "test $(stat -c %u /mnt/w/mine) = 1000 && ! ls /mnt/w/out/mnt/nothing")
    start(gw, "two", "--session", "one", *mounts)
    start(gw, "three", "--session", "other", *mounts)
    shell(gw, "two", "cat /mnt/w/mine && echo second >> /home/agent/.cache/f && rm -r /mnt/w/d")  # as its own, at the same time
    shell(gw, "box", "test ! -e /mnt/w/d && grep second /home/agent/.cache/f")
    shell(gw, "three", "test ! -e /mnt/w/mine && grep first /home/agent/.cache/f")
    if not ordinary:
        shell(gw, "box", "! dd if=/dev/zero of=/mnt/w/large bs=1M count=32 2>/dev/null; test $(stat -c %s /mnt/w/large) -lt 20000000; rm /mnt/w/large")
    assert gw.cli_json("sandbox", "snapshot", "box")["bytes"] == 0  # no checkpoint has it
    assert b"work@default@" in gw.cli("mount", "list", rc=0).out
    assert b"a sandbox has cache@default" in gw.cli("mount", "rm", "cache@default", rc=1).err
    status, answer = gw.control("POST", "/api/v1/tasks", {"kind": "seen", "tenant": "acme", "input": {}})
    assert (status, answer["result"]) == (200, []), answer  # of the same name, and another tenant's
    for name in ("box", "two"):
        gw.cli("sandbox", "destroy", name, rc=0)
    gw.kill("warden")
    lab.wait_for("its end", lambda: gw.cli("sandbox", "started").rc == 0 and gw.cli_json("sandbox", "started")["started"] == [])
    nothing_is_left(gw)
    lab.wait_for("no device and no mount", lambda: not loops(gw))
    start(gw, "four", "--session", "one", *mounts)
    assert shell(gw, "four", "cat /mnt/w/mine /home/agent/.cache/f").out == b"mine\nfirst\nsecond\n"
    gw.cli("sandbox", "destroy", "four", rc=0)
    nothing_is_left(gw)
    lab.wait_for("no device and no mount", lambda: not loops(gw))
    gw.cli("mount", "rm", "cache@default", rc=0)
    assert b"cache@default" not in gw.cli("mount", "list", rc=0).out
    assert b"no directory none@default" in gw.cli("mount", "rm", "none@default", rc=1).err
    assert b"no kept directory" in gw.cli("mount", "rm", "../store", rc=1).err
    start(gw, "five", "--session", "one", *mounts)
    shell(gw, "five", "test ! -e /home/agent/.cache/f && cat /mnt/w/mine")
    gw.cli("sandbox", "destroy", "five", rc=0)
    nothing_is_left(gw)


@both
def a_device_is_one_sandboxs_until_nothing_of_it_is_left(lab, ordinary):
    with two_nodes() as nodes:
        devices(lab, ordinary, nodes)


def devices(lab, ordinary, nodes):
    seen = f"for d in {' '.join(nodes)}; do test -c $d && echo \\\"$d\\\"; done | paste -sd, | sed 's/.*/[&]/' > $COUNTERSIGN_TASK_RESULT"
    gw = gateway(lab, f"devices: [{{ name: gpu, nodes: [{', '.join(nodes)}], tenants: [default, acme], most: 1 }}]\n"
                      f"tasks: [{kind(lab, 'one', seen, devices=['gpu'])}, {kind(lab, 'two', seen, devices=['gpu', 'gpu'])}, "
                      f"{kind(lab, 'none', seen)}, {kind(lab, 'holds', 'sleep 600', devices=['gpu'])}]\n", ordinary)

    def run(name, **more):
        return gw.control("POST", "/api/v1/tasks", {"kind": name, "input": {}, **more})

    assert run("none")[1]["result"] == [] and run("one")[1]["result"] == nodes[:1]
    status, answer = run("two")
    assert status == 503 and "as many of the devices gpu as may at once (1)" in answer["detail"], answer
    status, answer = run("one", tenant="beta")
    assert status == 503 and "no devices gpu for this tenant" in answer["detail"], answer
    for ender in ("cancel", "warden", "desk"):
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            held = pool.submit(run, "holds", id="mine", tenant="acme")
            lab.wait_for("its command", lambda: [s for s in gw.cli_json("sandbox", "started")["started"] if s["commands"]])
            assert run("one", tenant="acme")[0] == 503, ender  # as many as that tenant may have
            assert run("one")[1]["result"] == nodes[1:], ender  # the other one is free, and of another tenant's quota
            if ender == "cancel":
                gw.cli("task", "cancel", "mine", rc=0)
            else:
                gw.kill(ender)
            try:
                held.result()
            except (OSError, IndexError):
                pass  # its desk was killed
        lab.wait_for("its end", lambda: gw.cli("sandbox", "started", "--json").rc == 0
                     and gw.cli_json("sandbox", "started")["started"] == [])
        nothing_is_left(gw)
        lab.wait_for("its device", lambda: run("one", tenant="acme")[1].get("result") == nodes[:1])


main()
