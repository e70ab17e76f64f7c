"""A passkey in software: what a browser and its device say, made by hand (WebAuthn level 2), so that a test can say it wrongly."""
import base64
import hashlib
import json
import os
import struct

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def cbor(v):
    """The canonical part that CTAP 2 writes."""
    def head(kind, n):
        for add, form, most in ((n, None, 24), (24, ">B", 1 << 8), (25, ">H", 1 << 16), (26, ">I", 1 << 32)):
            if n < most:
                return bytes([kind << 5 | add]) + (struct.pack(form, n) if form else b"")
        raise ValueError(n)
    if isinstance(v, int):
        return head(0, v) if v >= 0 else head(1, -1 - v)
    if isinstance(v, bytes):
        return head(2, len(v)) + v
    if isinstance(v, str):
        return head(3, len(v.encode())) + v.encode()
    return head(5, len(v)) + b"".join(cbor(k) + cbor(x) for k, x in v.items())


class Passkey:
    def __init__(self, origin, rp, kind="es256"):
        self.origin, self.rp, self.kind, self.count, self.id = origin, rp, kind, 0, os.urandom(20)
        self.key = (ec.generate_private_key(ec.SECP256R1()) if kind == "es256" else ed25519.Ed25519PrivateKey.generate() if kind == "eddsa"
                    else rsa.generate_private_key(65537, 2048))

    def cose(self):
        public = self.key.public_key()
        if self.kind == "es256":
            n = public.public_numbers()
            return cbor({1: 2, 3: -7, -1: 1, -2: n.x.to_bytes(32, "big"), -3: n.y.to_bytes(32, "big")})
        if self.kind == "eddsa":
            return cbor({1: 1, 3: -8, -1: 6, -2: public.public_bytes(Encoding.Raw, PublicFormat.Raw)})
        n = public.public_numbers()
        return cbor({1: 3, 3: -257, -1: n.n.to_bytes(256, "big"), -2: b"\x01\x00\x01"})

    def client(self, kind, challenge, **more):
        return json.dumps({"type": f"webauthn.{kind}", "challenge": challenge, "origin": self.origin, "crossOrigin": False, **more}).encode()

    def data(self, flags, more=b""):
        return hashlib.sha256(self.rp.encode()).digest() + bytes([flags]) + struct.pack(">I", self.count) + more

    def make(self, challenge, flags=0x45, **more):
        """What the page's script sends of a new one."""
        data = self.data(flags, bytes(16) + struct.pack(">H", len(self.id)) + self.id + self.cose())
        return ".".join(map(b64, (self.client("create", challenge, **more), cbor({"fmt": "none", "attStmt": {}, "authData": data}))))

    def sign(self, challenge, flags=0x05, **more):
        self.count += 1
        data, client = self.data(flags), self.client("get", challenge, **more)
        over = data + hashlib.sha256(client).digest()
        signature = (self.key.sign(over, ec.ECDSA(hashes.SHA256())) if self.kind == "es256" else self.key.sign(over) if self.kind == "eddsa"
                     else self.key.sign(over, padding.PKCS1v15(), hashes.SHA256()))
        return ".".join(map(b64, (self.id, client, data, signature)))
