"""What the tests of sandboxes that exist already share."""
import secrets
import shutil

from gateway import Gateway, simple_policy
from harness import HERE, Skip


def variables(text):
    """NAME=VALUE lines, as `docker run --env-file` reads them."""
    return dict(line.split("=", 1) for line in text.decode().splitlines())


def api_setup(lab, write="deny", **more):
    """One upstream behind a gateway: (upstream, gateway, its URL)."""
    up = lab.upstream()
    gw = Gateway(lab, simple_policy(up, write=write), {"api": lab.canary(secrets.token_urlsafe(32)).encode()}, **more)
    return up, gw, f"https://{up.name}:{up.port}"


def fetch_class(lab):
    """The directory of Fetch.class (lab/Fetch.java)."""
    if not shutil.which("javac") or not shutil.which("java"):
        raise Skip("java and javac (openjdk-17-jdk-headless) are not here")
    lab.run(["javac", "-d", lab.dir / "java", HERE / "lab/Fetch.java"], rc=0)
    return lab.dir / "java"
