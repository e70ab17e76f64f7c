"""A port for what cannot choose one by itself and tell."""
import pathlib
import random
import socket

GIVEN = pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_port():
    """A port of the loopback that nobody has now. Between this and its use stands a moment in which another test, or any
    connection, is given ports by the kernel: so it lies outside of those that the kernel gives."""
    low, high = map(int, GIVEN.read_text().split())
    ports = [p for p in range(10240, 65536) if not low <= p <= high] or list(range(low, high + 1))
    random.SystemRandom().shuffle(ports)
    for port in ports:
        try:
            with socket.create_server(("127.0.0.1", port)):
                return port
        except OSError:
            continue
    raise OSError("no port of 127.0.0.1 is free")
