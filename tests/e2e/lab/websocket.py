"""WebSocket frames (RFC 6455) by hand, for both ends of the lab: to write any, also wrong ones, and to read strictly."""
import base64
import hashlib
import os
import struct

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
KEY = "dGhlIHNhbXBsZSBub25jZQ=="


def accept_of(key):
    return base64.b64encode(hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()).decode()


def frame(op, data=b"", fin=True, mask=True, rsv=0, length=None):
    """mask: True for random bytes, 4 bytes, or None. length: another one than the data has."""
    data = data.encode() if isinstance(data, str) else data
    n = len(data) if length is None else length
    head = bytes([(0x80 if fin else 0) | rsv << 4 | op])
    bit = 0x80 if mask else 0
    head += bytes([bit | n]) if n < 126 else bytes([bit | 126]) + struct.pack(">H", n) if n < 65536 else bytes([bit | 127]) + struct.pack(">Q", n)
    if mask:
        mask = os.urandom(4) if mask is True else mask
        head, data = head + mask, unmask(mask, data)
    return head + data


def close(code=1000, reason="", mask=True):
    return frame(CLOSE, struct.pack(">H", code) + reason.encode() if code else b"", mask=mask)


def unmask(mask, data):
    n = len(data)
    return (int.from_bytes(data, "big") ^ int.from_bytes((mask * (n // 4 + 1))[:n], "big")).to_bytes(n, "big")


class Reader:
    """recv() gives more bytes, b"" at the end. masked: what every frame must be."""

    def __init__(self, recv, masked, buffer=b""):
        self.recv, self.masked, self.buffer, self.masks = recv, masked, bytearray(buffer), []

    def exactly(self, n):
        while len(self.buffer) < n:
            more = self.recv()
            if not more:
                raise EOFError("the peer ended")
            self.buffer += more
        taken = bytes(self.buffer[:n])
        del self.buffer[:n]
        return taken

    def frame(self):
        """(op, fin, data)"""
        first, second = self.exactly(2)
        assert not first & 0x70, f"reserved bits in {first:x}"
        assert bool(second & 0x80) == self.masked, "masked" if second & 0x80 else "not masked"
        n = second & 0x7f
        n = struct.unpack(">H", self.exactly(2))[0] if n == 126 else struct.unpack(">Q", self.exactly(8))[0] if n == 127 else n
        if self.masked:
            self.masks.append(self.exactly(4))
        data = self.exactly(n)
        return first & 15, bool(first & 0x80), unmask(self.masks[-1], data) if self.masked else data

    def message(self):
        """(op, data) of the next whole message or control frame; of a close (CLOSE, (code, reason))."""
        whole, kind = b"", None
        while True:
            op, fin, data = self.frame()
            if op == CLOSE:
                return op, (struct.unpack(">H", data[:2])[0] if data else 0, data[2:].decode())
            if op in (PING, PONG):
                return op, data
            assert (op == 0) == (kind is not None), f"opcode {op} inside a message"
            kind, whole = kind or op, whole + data
            if fin:
                return kind, whole
