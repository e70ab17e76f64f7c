"""Test certificates through the openssl command: a CA, and leafs signed by it (EC P-256)."""
import os
import pathlib
import subprocess

EC = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]


def _openssl(*args, stdin=None):
    done = subprocess.run(["openssl", *map(str, args)], input=stdin, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"openssl {args[0]}: {done.stderr.strip()}")


class CA:
    """A CA kept as ca.pem and ca.key in a directory; made there when it is not there yet."""

    def __init__(self, directory, subject="Lab CA"):
        self.dir = pathlib.Path(directory)
        self.dir.mkdir(parents=True, exist_ok=True)
        self.cert, self.key = self.dir / "ca.pem", self.dir / "ca.key"
        if not self.cert.exists():
            _openssl("req", "-x509", *EC, "-days", 30, "-subj", f"/CN={subject}", "-keyout", self.key,
                     "-out", self.cert, "-addext", "basicConstraints=critical,CA:TRUE",
                     "-addext", "keyUsage=critical,keyCertSign,cRLSign")
            os.chmod(self.key, 0o600)

    def leaf(self, name, sans=None, days=30, self_signed=False, usage="serverAuth"):
        """Returns (cert, key). days=-1 gives one that is expired already."""
        stem = self.dir / (name.replace("*", "star") + (".self" if self_signed else "") + (".old" if days < 0 else ""))
        cert, key, csr = (stem.with_name(stem.name + end) for end in (".pem", ".key", ".csr"))
        sans = sans or [f"DNS:{name}", "DNS:localhost", "IP:127.0.0.1"]
        config = stem.with_name(stem.name + ".cnf")
        config.write_text(f"[req]\nprompt=no\ndistinguished_name=dn\nx509_extensions=ext\n[dn]\nCN={name}\n[ext]\n"
                          f"subjectAltName={','.join(sans)}\nbasicConstraints=critical,CA:FALSE\n"
                          f"keyUsage=critical,digitalSignature\nextendedKeyUsage={usage}\n"
                          "subjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n")
        if days >= 0:
            signer = [] if self_signed else ["-CA", self.cert, "-CAkey", self.key]
            _openssl("req", "-x509", *EC, "-config", config, "-days", days, *signer, "-keyout", key, "-out", cert)
        else:  # which "req" does not make
            signer = ["-signkey", key] if self_signed else ["-CA", self.cert, "-CAkey", self.key, "-CAcreateserial"]
            _openssl("req", *EC, "-config", config, "-keyout", key, "-out", csr)
            _openssl("x509", "-req", "-in", csr, "-days", days, "-extfile", config, "-extensions", "ext", *signer, "-out", cert)
        os.chmod(key, 0o600)
        return cert, key


def bundle(out, *certs):
    """One PEM file of several, as a client's trust store."""
    out = pathlib.Path(out)
    out.write_bytes(b"".join(pathlib.Path(c).read_bytes() for c in certs))
    return out
