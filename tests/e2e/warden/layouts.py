"""OCI layouts as tests need them: honest ones, and ones that lie."""
import gzip
import hashlib
import io
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import tarfile

MACHINE = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
OTHER = "s390x" if MACHINE != "s390x" else "amd64"
OCI = "application/vnd.oci.image."
TAR, GZIP, ZSTD = (OCI + "layer.v1.tar" + coding for coding in ("", "+gzip", "+zstd"))


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def member(name, kind=tarfile.REGTYPE, data=b"", **more):
    info = tarfile.TarInfo(name)
    info.type, info.size = kind, len(data) if kind == tarfile.REGTYPE else 0
    info.mode = more.pop("mode", 0o755 if kind == tarfile.DIRTYPE else 0o644)
    for key, value in more.items():
        setattr(info, key, value)
    return info, data


def folder(name, **more):
    return member(name, tarfile.DIRTYPE, **more)


def link(name, target):
    return member(name, tarfile.SYMTYPE, linkname=target)


def hard(name, target):
    return member(name, tarfile.LNKTYPE, linkname=target)


def tar(*members, form=tarfile.PAX_FORMAT):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as t:
        for info, data in members:
            t.addfile(info, io.BytesIO(data) if info.type == tarfile.REGTYPE else None)
    return out.getvalue()


def programs(*names):
    """Programs of this machine with the libraries that they need, as members."""
    found, made = {}, []
    for name in names:
        path = os.path.realpath(shutil.which(name))
        found[f"bin/{name}"] = path
        needs = subprocess.run(["ldd", path], capture_output=True, text=True).stdout
        for library in re.findall(r"(/\S+) \(0x", needs):
            found[library.lstrip("/")] = os.path.realpath(library)
    for name, path in sorted(found.items()):
        made.append(member(name, data=pathlib.Path(path).read_bytes(), mode=0o755))
    return made


class Layout:
    """A folder with one image; what is given instead of its parts is taken as it is."""

    def __init__(self, folder_):
        self.dir = pathlib.Path(folder_)
        (self.dir / "blobs/sha256").mkdir(parents=True)
        (self.dir / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}')
        for path in (self.dir, self.dir / "blobs", self.dir / "blobs/sha256"):
            path.chmod(0o755)

    def blob(self, data, media):
        path = self.dir / "blobs/sha256" / digest(data)[7:]
        path.write_bytes(data)
        return {"mediaType": media, "digest": digest(data), "size": len(data)}

    def path(self, descriptor):
        return self.dir / "blobs/sha256" / descriptor["digest"][7:]

    def json(self, what, media):
        return self.blob(json.dumps(what).encode(), media)

    def layer(self, plain, coding="gzip"):
        if coding == "gzip":
            return self.blob(gzip.compress(plain, 1), GZIP)
        if coding == "zstd":
            packed = subprocess.run(["zstd", "-q", "-c"], input=plain, capture_output=True, check=True).stdout
            return self.blob(packed, ZSTD)
        return self.blob(plain, TAR)

    def image(self, *plain, coding="gzip", layers=None, config=None, machine=MACHINE, diffs=None, manifest=None):
        """The descriptor of a manifest over these tar streams."""
        layers = layers or [self.layer(p, coding) for p in plain]
        made = {"architecture": machine, "os": "linux", "config": config or {},
                "rootfs": {"type": "layers", "diff_ids": diffs or [digest(p) for p in plain]}}
        what = {"schemaVersion": 2, "mediaType": OCI + "manifest.v1+json",
                "config": self.json(made, OCI + "config.v1+json"), "layers": layers}
        what.update(manifest or {})
        return self.json(what, OCI + "manifest.v1+json")

    def index(self, *manifests):
        (self.dir / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": list(manifests)}))
        return self.dir


def simple(where, *plain, **more):
    """(folder, digest of the manifest) of a layout with one image."""
    layout = Layout(where)
    made = layout.image(*plain, **more)
    return layout.index(made), made["digest"]
