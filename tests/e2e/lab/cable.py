"""An agent's network as a container platform lays it: a namespace with one cable to the gateway's and no other route,
and the two files that a platform writes into a container.
(netns.Box is the other kind: its gateway is its router and captures what it sends.)

    netns.own()
    agent = Agent(lab)                 # agent.gateway is our address on the cable, agent.address its own
    agent.run(["curl", ...], env=...)  # like lab.run, from in there
"""
import netns


class Agent:
    count = 0

    def __init__(self, lab, name=None):
        """name: what the gateway is called in there."""
        Agent.count += 1
        self.lab, n = lab, Agent.count
        self.gateway, self.address, cable = f"10.77.{n}.1", f"10.77.{n}.2", f"agent{n}"
        hosts, resolv = lab.dir / "agent.hosts", lab.dir / "agent.resolv"
        hosts.write_text("127.0.0.1 localhost\n" + (f"{self.gateway} {name}\n" if name else ""))
        resolv.write_text("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n")  # nobody
        # The namespace lives as long as this process, and the cable as long as the namespace.
        self.holder = lab.start(["unshare", "--net", "--mount", "sh", "-ec", f"mount --bind {hosts} /etc/hosts; "
                                 f"mount --bind {resolv} /etc/resolv.conf; echo ready; exec sleep infinity"], ready="ready")
        netns.ip("link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", str(self.holder.pid))
        netns.ip("addr", "add", f"{self.gateway}/30", "dev", cable)
        netns.ip("link", "set", cable, "up")
        for words in (["link", "set", "lo", "up"], ["addr", "add", f"{self.address}/30", "dev", "eth0"],
                      ["link", "set", "eth0", "up"]):
            lab.run([*self._enter(), "ip", *words], rc=0)

    def _enter(self):
        return ["nsenter", "--target", str(self.holder.pid), "--net", "--mount", "--"]

    def run(self, command, **more):
        return self.lab.run([*self._enter(), *command], **{"cwd": self.lab.dir, **more})

    def start(self, command, **more):
        return self.lab.start([*self._enter(), *command], **more)
