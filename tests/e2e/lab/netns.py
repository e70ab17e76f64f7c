"""Networks of a test's own, made of namespaces: nothing of this machine's is touched. As root.

    netns.own()                      # this process (and what it starts) gets an empty network
    box = netns.Box(lab)             # a sandbox behind agents0 (10.99.0.1, fd00:99::1), which is its router
    box.run(["curl", ...])           # in there
"""
import ctypes
import os
import pathlib
import subprocess

from harness import Skip

CLONE_NEWNET = 0x40000000
RULES = pathlib.Path(__file__).resolve().parents[3] / "conf/nftables"


def own():
    """Once a process, before the first thread; says why it cannot be (and then every test that needs it skips)."""
    if os.geteuid() != 0:
        return "only root can make networks"
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
        return f"no network namespace can be made: {os.strerror(ctypes.get_errno())}"
    if subprocess.run(["ip", "link", "set", "lo", "up"], check=False).returncode != 0:
        return "ip(8) cannot set up an interface"
    for name in ("ipv4/icmp_ratelimit", "ipv6/icmp/ratelimit"):  # tests send more at once than the kernel answers
        pathlib.Path("/proc/sys/net", name).write_text("0", encoding="ascii")
    return None


def need(why):
    if why:
        raise Skip(why)


def ip(*words):
    subprocess.run(["ip", *words], check=True, stdout=subprocess.PIPE)


class Box:
    def __init__(self, lab, nameserver="10.99.0.1"):
        self.lab = lab
        conf = lab.dir / "resolv.conf"
        conf.write_text(f"nameserver {nameserver}\noptions timeout:1 attempts:1\n")
        switch = lab.dir / "nsswitch.conf"
        switch.write_text("passwd: files\ngroup: files\nhosts: files dns\n")
        self.holder = lab.start(["unshare", "-nm", "sh", "-c", f"mount --bind {conf} /etc/resolv.conf && "
                                 f"mount --bind {switch} /etc/nsswitch.conf && echo there && exec cat"],
                                ready="there", stdin=subprocess.PIPE)
        lab.at_end.append(lambda: subprocess.run(["ip", "link", "del", "agents0"], check=False,
                                                stderr=subprocess.DEVNULL))  # it may have gone with the holder
        ip("link", "add", "agents0", "type", "veth", "peer", "name", "eth0", "netns", str(self.holder.pid))
        ip("addr", "add", "10.99.0.1/24", "dev", "agents0")
        ip("addr", "add", "fd00:99::1/64", "dev", "agents0", "nodad")
        ip("link", "set", "agents0", "up")
        for words in ("link set lo up", "addr add 10.99.0.2/24 dev eth0", "addr add fd00:99::2/64 dev eth0 nodad",
                      "link set eth0 up", "route add default via 10.99.0.1", "-6 route add default via fd00:99::1"):
            self.inside("ip", *words.split())

    def inside(self, *words):
        subprocess.run(self.command(words), check=True, stdout=subprocess.PIPE)

    def command(self, words):
        return ["nsenter", "-t", str(self.holder.pid), "-n", "-m", "--", *words]

    def run(self, words, cwd="/", **more):
        return self.lab.run(self.command(["env", "-C", str(cwd), *words]), **more)

    def start(self, words, cwd="/", **more):
        return self.lab.start(self.command(["env", "-C", str(cwd), *words]), **more)


class Rules:
    """One of conf/nftables, loaded until the test ends."""

    def __init__(self, lab, name, **defines):
        text = (RULES / f"{name}.nft").read_text()
        for key, value in defines.items():
            before = text
            text = "".join(f"define {key} = {value}\n" if line.startswith(f"define {key} =") else line
                           for line in text.splitlines(keepends=True))
            assert text != before, key
        self.file = lab.dir / f"{name}.nft"
        self.file.write_text(text)
        lab.run(["nft", "-f", self.file], rc=0)
        lab.at_end.append(lambda: subprocess.run(["nft", "flush", "ruleset"], check=True))
