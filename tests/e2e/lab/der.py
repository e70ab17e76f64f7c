"""Certificates and revocation lists byte by byte: right ones, and wrong in ways that no tool would make.

Only keys and signatures come from the openssl command. Times are seconds from now.

    root = Issuer(dir, "Root")                                  # self-signed CA, P-256
    pem = root.leaf(["DNS:a.test"], key=Key.ec(dir, "k"))        # bytes of a PEM certificate
    root.leaf(["DNS:a.test"], key=k, after=-60)                  # expired
    root.crl([4711]); root.issue(...)                            # see there
"""
import base64
import itertools
import pathlib
import subprocess
import time


def openssl(*args, stdin=None):
    done = subprocess.run(["openssl", *map(str, args)], input=stdin, capture_output=True)
    if done.returncode != 0:
        raise RuntimeError(f"openssl {' '.join(map(str, args))}: {done.stderr.decode()}")
    return done.stdout


def tlv(tag, *parts):
    body = b"".join(parts)
    n = len(body)
    size = bytes([n]) if n < 128 else bytes([0x80 | (n.bit_length() + 7) // 8]) + n.to_bytes((n.bit_length() + 7) // 8, "big")
    return bytes([tag]) + size + body


def seq(*parts):
    return tlv(0x30, *parts)


def oid(text):
    first, second, *rest = map(int, text.split("."))
    out = bytes([first * 40 + second])
    for n in rest:
        piece = [n & 0x7f]
        while n := n >> 7:
            piece.append(0x80 | n & 0x7f)
        out += bytes(reversed(piece))
    return tlv(6, out)


def integer(n):
    return tlv(2, n.to_bytes(n.bit_length() // 8 + 1, "big", signed=True))


def when(seconds):
    return tlv(0x18, time.strftime("%Y%m%d%H%M%SZ", time.gmtime(time.time() + seconds)).encode())


def name(cn):
    cn = cn if isinstance(cn, bytes) else cn.encode()
    return seq(tlv(0x31, seq(oid("2.5.4.3"), tlv(0x0c, cn)))) if cn else seq()


def extension(which, value, critical=False):
    return seq(oid(which), tlv(1, b"\xff") if critical else b"", tlv(4, value))


def general(text):
    """One of "DNS:", "IP:", "email:", "URI:" and what follows; bytes stand for a DNS name as they are."""
    if isinstance(text, bytes):
        return tlv(0x82, text)
    kind, _, value = text.partition(":")
    if kind == "IP":
        return tlv(0x87, bytes(map(int, value.split("."))))
    return tlv({"DNS": 0x82, "email": 0x81, "URI": 0x86}[kind], value.encode())


def pem(kind, der):
    text = base64.encodebytes(der).decode().replace("\n", "")
    lines = "\n".join(text[i:i + 64] for i in range(0, len(text), 64))
    return f"-----BEGIN {kind}-----\n{lines}\n-----END {kind}-----\n"


SAN, BASIC, USAGE, EKU, CONSTRAINTS, AIA = ("2.5.29.17", "2.5.29.19", "2.5.29.15", "2.5.29.37", "2.5.29.30",
                                            "1.3.6.1.5.5.7.1.1")
SERVER, CLIENT, ANY_USE = "1.3.6.1.5.5.7.3.1", "1.3.6.1.5.5.7.3.2", "2.5.29.37.0"
ALGORITHM = {("ec", "sha256"): "1.2.840.10045.4.3.2", ("ec", "sha1"): "1.2.840.10045.4.1",
             ("rsa", "sha256"): "1.2.840.113549.1.1.11", ("rsa", "sha1"): "1.2.840.113549.1.1.5",
             ("dsa", "sha256"): "2.16.840.1.101.3.4.3.2"}


class Key:
    def __init__(self, path, kind):
        self.path, self.kind = pathlib.Path(path), kind
        self.spki = openssl("pkey", "-in", path, "-pubout", "-outform", "DER")

    @classmethod
    def ec(cls, directory, stem, curve="P-256"):
        path = pathlib.Path(directory) / f"{stem}.key"
        openssl("genpkey", "-algorithm", "EC", "-pkeyopt", f"ec_paramgen_curve:{curve}", "-out", path)
        return cls(path, "ec")

    @classmethod
    def rsa(cls, directory, stem, bits):
        path = pathlib.Path(directory) / f"{stem}.key"
        openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", f"rsa_keygen_bits:{bits}", "-out", path)
        return cls(path, "rsa")

    @classmethod
    def dsa(cls, directory, stem, bits=1024):
        """A small one, unless its size is not to matter."""
        path, params = pathlib.Path(directory) / f"{stem}.key", pathlib.Path(directory) / f"{stem}.params"
        openssl("genpkey", "-genparam", "-algorithm", "DSA", "-pkeyopt", f"dsa_paramgen_bits:{bits}", "-out", params)
        openssl("genpkey", "-paramfile", params, "-out", path)
        return cls(path, "dsa")

    def sign(self, data, md):
        return openssl("dgst", f"-{md}", "-sign", self.path, stdin=data)

    def algorithm(self, md):
        return seq(oid(ALGORITHM[self.kind, md]), tlv(5) if self.kind == "rsa" else b"")

    def signed(self, tbs, md):
        return seq(tbs, self.algorithm(md), tlv(3, b"\0" + self.sign(tbs, md)))

    def pin(self):
        digest = openssl("dgst", "-sha256", "-binary", stdin=self.spki)
        return "sha256/" + base64.b64encode(digest).decode()


class Issuer:
    serials = itertools.count(1000)

    def __init__(self, directory, cn, parent=None, key=None, **how):
        self.dir, self.cn, self.parent = pathlib.Path(directory), cn, parent
        self.key = key or Key.ec(directory, "ca-" + cn.replace(" ", "-"))
        how.setdefault("extensions", [extension(BASIC, seq(tlv(1, b"\xff"), how.pop("pathlen", b"")), True),
                                      extension(USAGE, tlv(3, b"\x01\x06"), True)] + how.pop("more", []))
        self.pem = (parent or self).issue(cn, self.key, **how)

    def issue(self, cn, key, extensions=(), before=-3600, after=86400, serial=None, version=2, md="sha256", signer=None,
              issuer=None):
        """A PEM certificate. extensions: DER of each; serial: a number, or the bytes of the INTEGER."""
        serial = next(self.serials) if serial is None else serial
        number = tlv(2, serial) if isinstance(serial, bytes) else integer(serial)
        signer = signer or self.key
        tbs = seq(tlv(0xa0, integer(version)) if version else b"", number, signer.algorithm(md),
                  name(self.cn if issuer is None else issuer), seq(when(before), when(after)), name(cn), key.spki,
                  tlv(0xa3, seq(*extensions)) if extensions else b"")
        return pem("CERTIFICATE", signer.signed(tbs, md))

    def leaf(self, sans, key, cn="nobody", eku=(SERVER,), more=(), ca=False, **how):
        extensions = [extension(USAGE, tlv(3, b"\x07\x80"), True)]
        if ca:
            extensions.append(extension(BASIC, seq(tlv(1, b"\xff")), True))
        if eku:
            extensions.append(extension(EKU, seq(*map(oid, eku))))
        if sans:
            extensions.append(extension(SAN, seq(*map(general, sans))))
        return self.issue(cn, key, extensions=extensions + list(more), **how)

    def crl(self, serials=(), before=-3600, after=86400):
        revoked = [seq(integer(n), when(-60)) for n in serials]
        tbs = seq(integer(1), self.key.algorithm("sha256"), name(self.cn), when(before), when(after),
                  seq(*revoked) if revoked else b"", tlv(0xa0, seq(extension("2.5.29.20", integer(1)))))
        return pem("X509 CRL", self.key.signed(tbs, "sha256"))


def constraints(excluded=(), permitted=()):
    def trees(tag, names):
        return tlv(tag, *(seq(general(n)) for n in names)) if names else b""
    return extension(CONSTRAINTS, seq(trees(0xa0, permitted), trees(0xa1, excluded)), True)
