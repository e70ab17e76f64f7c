"""JSON Web Signatures as those verify them who trust a key, through the openssl command.

    key = Key(lab, "rsa")                      # or "ec": key.pem to be sealed, key.public
    head, claims = verified(lab, jwt, key.public)    # or an AssertionError
"""
import base64
import json
import secrets
import subprocess

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


def der_of(signature):
    """ECDSA's two numbers as openssl reads them."""
    def number(raw):
        raw = raw.lstrip(b"\0")
        raw = b"\0" + raw if not raw or raw[0] & 0x80 else raw
        return b"\x02" + bytes([len(raw)]) + raw
    assert len(signature) == 64, len(signature)
    body = number(signature[:32]) + number(signature[32:])
    return b"\x30" + bytes([len(body)]) + body


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
