"""Started sandboxes, for the tests of this folder: a gateway for them, of root's or of an ordinary user's, and what is
left of them."""
import hashlib
import os
import pathlib

import room  # noqa: F401
from gateway import Gateway, program, simple_policy
from harness import Skip, test

CGROUPS = pathlib.Path("/sys/fs/cgroup")
NOBODY = 65534


class Nobodys:
    """A lab whose gateway and commands are an ordinary user's."""

    def __init__(self, lab):
        self.lab = lab
        self.drop = ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups"]
        if os.geteuid() != 0:
            raise Skip("not root: the other tests ran as an ordinary user")
        if lab.run([*self.drop, "test", "-x", program()]).rc != 0:
            raise Skip(f"{program()} cannot be reached by an ordinary user")

    def _own(self):
        for path in (self.lab.dir, *self.lab.dir.iterdir()):
            os.chown(path, NOBODY, NOBODY)

    def run(self, command, **more):
        return self.lab.run([*self.drop, *command], **more)

    def start(self, command, **more):
        self._own()
        return self.lab.start([*self.drop, *command], **more)

    def __getattr__(self, name):
        return getattr(self.lab, name)


def setup(lab, ordinary=False, lease=None, config=""):
    policy = simple_policy(lab.upstream()).replace("rules:", "scopes:\n  web: { labels: { lane: [web] } }\nrules:", 1)
    if lease:
        policy = policy.replace("source: { store: api }", f"source: {{ store: api }}\n    lease: {lease}")
    return Gateway(Nobodys(lab) if ordinary else lab, policy, {"api": lab.canary("c" * 40).encode()}, config=config)


def alive(gw, name, lease):
    return any(r["id"] == lease["id"] and r["state"] == "live"
               for r in gw.cli_json("lease", "list", "--sandbox", name)["leases"])


def start(gw, name, *options):
    return gw.cli_json("sandbox", "start", name, *options)


def execute(gw, name, *command, rc=0, options=()):
    return gw.cli("sandbox", "exec", *options, name, "--", *command, rc=rc)


def shell(gw, name, script, rc=0, options=()):
    return execute(gw, name, "sh", "-c", script, rc=rc, options=options)


def following(gw, name, *command):
    """A command whose client is left running."""
    return gw.lab.start([program(), "sandbox", "exec", name, "--", *command],
                        env={"COUNTERSIGN_STATE": gw.state, "PATH": os.environ["PATH"]})


def mark(gw):
    """What the cgroups of this gateway's sandboxes begin with: others may run beside it."""
    return f"countersign-{hashlib.sha256(str(gw.state).encode()).hexdigest()[:12]}-"


def inside(gw):
    """Every process of a sandbox of this gateway's, which is root's."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark(gw) in (entry / "cgroup").read_text() \
                    and "State:\tZ" not in (entry / "status").read_text():
                found.append((int(entry.name), (entry / "cmdline").read_bytes()))
        except OSError:
            pass
    return found


def group(leader):
    """The processes of this process group that live."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (rest := (entry / "stat").read_text().rpartition(")")[2].split())[2] == str(leader) \
                    and rest[0] != "Z":
                found.append(int(entry.name))
        except OSError:
            pass
    return found


def cgroups(gw):
    return [name for _, folders, _ in os.walk(CGROUPS) for name in folders if name.startswith(mark(gw))]


def nothing_is_left(gw):
    gw.lab.wait_for("nothing left of any sandbox", lambda: not inside(gw) and not cgroups(gw))


def both(function=None, config=""):
    """The same by root's gateway and by an ordinary user's."""
    if function is None:
        return lambda function: both(function, config)
    for ordinary in (False, True):
        def case(lab, ordinary=ordinary):
            function(lab, setup(lab, ordinary, config=config))
        case.__name__ = function.__name__ + ("_by_an_ordinary_user" if ordinary else "")
        case.__doc__ = function.__doc__
        test()(case)
    return function
