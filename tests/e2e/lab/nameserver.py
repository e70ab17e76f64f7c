"""A name server that says what a test wants, on UDP and TCP of one port; it keeps every question.

    ns = NameServer(lab)
    ns.zone["upstream.test"] = [A("127.0.0.1")]                # the same again and again
    ns.zone["upstream.test"] = lambda question, tcp: [raw, ...]  # packets, from next to no help
    ns.asked                                                   # names, as they were asked
"""
import socket
import struct
import threading

from patience import PATIENCE

TYPES = {"A": 1, "CNAME": 5, "TXT": 16, "AAAA": 28, "SVCB": 64, "HTTPS": 65}


def wire_name(name):
    return b"".join(bytes([len(part)]) + part.encode() for part in name.split(".") if part) + b"\0"


class Record:
    def __init__(self, kind, data, owner=None, ttl=0):
        self.kind, self.data, self.owner, self.ttl = kind, data, owner, ttl

    def bytes(self, owner):
        return (wire_name(self.owner or owner) + struct.pack("!HHIH", TYPES[self.kind], 1, self.ttl, len(self.data))
                + self.data)


def A(address, **more):
    return Record("A", socket.inet_aton(address), **more)


def AAAA(address, **more):
    return Record("AAAA", socket.inet_pton(socket.AF_INET6, address), **more)


def CNAME(name, **more):
    return Record("CNAME", wire_name(name), **more)


class Question:
    def __init__(self, packet):
        self.id, at, labels = struct.unpack("!H", packet[:2])[0], 12, []
        while packet[at]:
            labels.append(packet[at + 1:at + 1 + packet[at]].decode("latin-1"))
            at += 1 + packet[at]
        self.name, self.type = ".".join(labels), struct.unpack("!H", packet[at + 1:at + 3])[0]
        self.section = packet[12:at + 5]

    def answer(self, records=(), code=0, truncated=False, number=None):
        """Those of the records that fit the question, with what they are reached through."""
        fit = [r for r in records if TYPES[r.kind] in (self.type, TYPES["CNAME"]) or r.kind == "TXT" and r.owner]
        flags = 0x8180 | code | (0x0200 if truncated else 0)
        return (struct.pack("!HHHHHH", self.id if number is None else number, flags, 1, len(fit), 0, 0) + self.section
                + b"".join(r.bytes(self.name) for r in fit))


class NameServer:
    def __init__(self, lab):
        self.zone, self.questions = {}, []
        while True:  # one number for both
            self.tcp = socket.create_server(("127.0.0.1", 0), backlog=64)
            self.port = self.tcp.getsockname()[1]
            self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            try:
                self.udp.bind(("127.0.0.1", self.port))
                break
            except OSError:
                self.tcp.close()
                self.udp.close()
        self.other = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)  # speaks from another port
        self.other.bind(("127.0.0.1", 0))
        for work in (self.serve_udp, self.serve_tcp):
            threading.Thread(target=work, daemon=True).start()
        lab.at_end.append(self.close)

    def close(self):
        self.tcp.shutdown(socket.SHUT_RDWR)
        for sock in (self.tcp, self.udp, self.other):
            sock.close()

    @property
    def asked(self):
        return [question.name for question in self.questions]

    def packets(self, packet, tcp):
        question = Question(packet)
        self.questions.append(question)
        found = self.zone.get(question.name.lower())
        if callable(found):
            return found(question, tcp)
        return [question.answer(found)] if found is not None else [question.answer(code=3)]

    def serve_udp(self):
        while True:
            try:
                packet, peer = self.udp.recvfrom(65536)
                for answer in self.packets(packet, False):
                    if isinstance(answer, tuple):  # ("elsewhere", packet)
                        self.other.sendto(answer[1], peer)
                    else:
                        self.udp.sendto(answer, peer)
            except OSError:
                return

    def serve_tcp(self):
        while True:
            try:
                sock, _ = self.tcp.accept()
            except OSError:
                return
            threading.Thread(target=self.serve_one, args=(sock,), daemon=True).start()

    def serve_one(self, sock):
        with sock:
            sock.settimeout(PATIENCE)
            try:
                while head := sock.recv(2, socket.MSG_WAITALL):
                    packet = sock.recv(struct.unpack("!H", head)[0], socket.MSG_WAITALL)
                    for answer in self.packets(packet, True):
                        sock.sendall(struct.pack("!H", len(answer)) + answer)
            except OSError:
                return
