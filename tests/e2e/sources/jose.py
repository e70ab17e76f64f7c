"""JSON Web Signatures as those verify them who trust a key, through the openssl command.

    key = Key(lab, "rsa")                      # or "ec": key.pem to be sealed, key.public
    head, claims = verified(lab, jwt, key.public)    # or an AssertionError
"""
import base64
import hashlib
import json
import secrets
import subprocess

import der

KINDS = {"rsa": ["RSA", "rsa_keygen_bits:2048"], "ec": ["EC", "ec_paramgen_curve:P-256"]}


def openssl(*args, stdin=None):
    return subprocess.run(["openssl", *map(str, args)], input=stdin, capture_output=True, check=False)


class Key:
    def __init__(self, lab, kind):
        algorithm, option = KINDS[kind]
        self.pem = openssl("genpkey", "-algorithm", algorithm, "-pkeyopt", option).stdout
        self.public = openssl("pkey", "-pubout", stdin=self.pem).stdout
        lab.canary(self.pem.decode().splitlines()[3])  # a line of it


def decoded(text):
    assert "=" not in text
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def number(raw):
    raw = raw.lstrip(b"\0")
    return der.tlv(2, b"\0" + raw if not raw or raw[0] & 0x80 else raw)


def der_of(signature):
    """ECDSA's two numbers as openssl reads them."""
    assert len(signature) == 64, len(signature)
    return der.seq(number(signature[:32]), number(signature[32:]))


def thumbprint(jwk):
    """RFC 7638: of the members that are needed, in their order."""
    needed = {"RSA": ("e", "kty", "n"), "EC": ("crv", "kty", "x", "y")}[jwk["kty"]]
    text = json.dumps({name: jwk[name] for name in needed}, separators=(",", ":"))
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")


def pem_of(jwk):
    """The public key that such numbers are, as openssl reads it (RFC 5480, RFC 8017)."""
    if jwk["kty"] == "EC":
        point = b"\x04" + decoded(jwk["x"]) + decoded(jwk["y"])
        what = der.seq(der.oid("1.2.840.10045.2.1"), der.oid("1.2.840.10045.3.1.7"))
    else:
        point = der.seq(*(number(decoded(jwk[name])) for name in ("n", "e")))
        what = der.seq(der.oid("1.2.840.113549.1.1.1"), der.tlv(5))
    text = base64.encodebytes(der.seq(what, der.tlv(3, b"\0" + point)))
    return b"-----BEGIN PUBLIC KEY-----\n" + text + b"-----END PUBLIC KEY-----\n"


def verified(lab, jwt, public):
    head, claims, signature = jwt.split(".")
    told = json.loads(decoded(head))
    raw = decoded(signature)
    where = lab.exempt(lab.dir / f"jose-{secrets.token_hex(4)}")
    where.mkdir()
    (where / "public").write_bytes(public)
    (where / "signature").write_bytes(der_of(raw) if told["alg"] == "ES256" else raw)
    done = openssl("dgst", "-sha256", "-verify", where / "public", "-signature", where / "signature",
                   stdin=f"{head}.{claims}".encode())
    assert done.returncode == 0, "the signature is not the key's"
    return told, json.loads(decoded(claims))
