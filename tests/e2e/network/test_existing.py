#!/usr/bin/env python3
"""Sandboxes that exist already: tokens, the variables printed for them, and the certificates in every form."""
import re
import shutil
import ssl
import subprocess

import room  # noqa: F401
from existing import api_setup, fetch_class, variables
from gateway import program
from harness import PATIENCE, Skip, main, test


def curl(lab, env, url, *more):
    return lab.run(["curl", "-sS", "--max-time", str(PATIENCE), *more, url], env=env)


def printed_again(done):
    """What --format shell sets, by a real shell."""
    names = re.findall(rb"^export (\w+)=", done.out, re.M)
    script = done.out + b"env -0"
    env = subprocess.run(["sh", "-c", script], capture_output=True, check=True, env={"PATH": "/usr/bin:/bin"}).stdout
    every = dict(pair.split("=", 1) for pair in env.decode().split("\0") if pair)
    return {name.decode(): every[name.decode()] for name in names}


@test()
def the_printed_variables_lead_tools_through(lab):
    up, gw, base = api_setup(lab)
    made = gw.cli("sandbox", "create", "ci", "--format", "docker", rc=0)
    env = variables(made.out)
    assert curl(lab, env, base + "/ok", "-f").rc == 0
    assert b"cst_" in made.err and env["HTTPS_PROXY"].startswith("http://ci:cst_")
    again = printed_again(gw.cli("env", "ci", rc=0))
    assert again.keys() == env.keys()
    assert again["HTTPS_PROXY"] != env["HTTPS_PROXY"], "a fresh token"
    known = re.search(r":(cst_\w+)@", env["HTTPS_PROXY"])[1]
    same = variables(gw.cli("env", "ci", "--token", known, "--format", "docker", rc=0).out)
    assert same == env
    moved = variables(gw.cli("env", "ci", "--format", "docker", "--dir", "/countersign", rc=0).out)
    assert moved["SSL_CERT_FILE"] == "/countersign/bundle.crt" and moved["DENO_CERT"] == "/countersign/ca.crt"
    assert "trustStore=/countersign/truststore.p12 " in moved["JAVA_TOOL_OPTIONS"]
    assert gw.cli("env", "ci", "--via", "socks5").rc == 1, "there is no such listener"
    assert gw.cli("env", "ci", "--format", "toml").rc == 2


@test("E10 proxy")
def a_fresh_token_leaves_the_earlier_ones_until_they_are_ended(lab):
    up, gw, base = api_setup(lab)
    first = variables(gw.cli("sandbox", "create", "ci", "--format", "docker", rc=0).out)
    second = variables(gw.cli("env", "ci", "--format", "docker", rc=0).out)
    for env in (first, second):
        assert curl(lab, env, base + "/ok", "-f").rc == 0
    row = gw.cli_json("sandbox", "list")["sandboxes"][0]
    assert row["name"] == "ci" and row["generation"] == 1, row
    third = variables(gw.cli("env", "ci", "--format", "docker", "--revoke-others", rc=0).out)
    for env in (first, second):
        done = curl(lab, env, base + "/ok")
        assert done.rc != 0 and b"407" in done.err, done.text()
    assert curl(lab, third, base + "/ok", "-f").rc == 0
    assert gw.cli("env", "nobody").rc == 1
    gw.stop()  # hashes outlive it
    gw.config.write_text(gw.config.read_text().replace("127.0.0.1:0", gw.proxy))
    gw.up()
    assert curl(lab, third, base + "/ok", "-f").rc == 0
    assert curl(lab, first, base + "/ok").rc != 0
    text = (gw.state / "store/ledger.db").read_bytes()
    assert b"cst_" not in text


@test()
def what_has_no_token_is_told_what_to_trust(lab):
    listener = '{ name: vms, http: "127.0.0.1:0", identity: { source: { "192.0.2.1": vm1 } } }'
    up, gw, base = api_setup(lab, listeners=[listener])
    done = gw.cli("env", "vm1", "--format", "docker", rc=0)
    env = variables(done.out)
    assert env["SSL_CERT_FILE"] == str(gw.state / "bundle.crt") and "HTTPS_PROXY" not in env and gw.proxy not in str(env), env
    assert b"known without a token" in done.err and b"cst_" not in done.err + done.out, done.text()
    done = gw.cli("sandbox", "create", "vm1")
    assert done.rc == 1 and b"countersign env vm1" in done.err, done.text()


@test()
def java_trusts_by_the_truststore(lab):
    classes, system = fetch_class(lab), "/etc/ssl/certs/ca-certificates.crt"
    up, gw, base = api_setup(lab, config=f"roots: {system}\n")
    listed = lab.run(["keytool", "-list", "-keystore", gw.state / "truststore.p12", "-storepass", "changeit"], rc=0)
    roots = len(re.findall("BEGIN CERT", open(system, encoding="ascii").read()))
    assert listed.out.count(b"trustedCertEntry") == roots + 1 and b"countersign-1," in listed.out, listed.text()

    def run(*words):
        return lab.run([program(), "run", "--state-dir", gw.state, "--workspace", classes, "--", *words])
    done = run("java", "-cp", ".", "Fetch", "GET", base + "/ok")
    assert done.out.startswith(b"200 "), done.text()
    done = run("java", "-cp", ".", "Fetch", "POST", base + "/x", "a=1")
    assert done.out.startswith(b"403 ") and b"ask in #platform" in done.out, done.text()
    shutil.copy("/etc/ssl/certs/java/cacerts", classes / "theirs")
    proxy = "-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=3128"
    done = run("sh", "-c", f"JAVA_TOOL_OPTIONS='{proxy}' java -cp . Fetch GET {base}/ok")
    assert done.out.startswith(b"200 "), "also where the JDK looks by itself: " + done.text()
    done = run("sh", "-c", f"JAVA_TOOL_OPTIONS='{proxy} -Djavax.net.ssl.trustStore=theirs' java -cp . Fetch GET {base}/ok")
    assert done.out == b"" and b"unable to find valid certification path" in done.err, done.text()


@test()
def the_certificates_can_be_taken_elsewhere(lab):
    up, gw, base = api_setup(lab)
    gw.cli("ca", "export", lab.dir / "public", rc=0)
    gw.cli("ca", "export", lab.dir / "public", rc=0)  # again, over what is there
    for name in ("ca.crt", "bundle.crt", "truststore.p12"):
        path = lab.dir / "public" / name
        assert path.read_bytes() == (gw.state / name).read_bytes() and path.stat().st_mode & 0o777 == 0o644
    env = variables(gw.cli("sandbox", "create", "ci", "--format", "docker", "--dir", lab.dir / "public", rc=0).out)
    assert curl(lab, env, base + "/ok", "-f").rc == 0
    assert gw.cli("ca", "truststore", rc=0).out == (gw.state / "truststore.p12").read_bytes()
    ssl.create_default_context(cafile=str(lab.dir / "public/bundle.crt"))
    if not shutil.which("certutil"):
        raise Skip("certutil (libnss3-tools) is not here")
    for _ in range(2):
        gw.cli("ca", "nss", lab.dir / "nssdb", rc=0)
    listed = lab.run(["certutil", "-d", f"sql:{lab.dir}/nssdb", "-L"], rc=0).out
    assert re.findall(rb"^Countersign +C,,", listed, re.M), listed
    lab.run(["certutil", "-d", f"sql:{lab.dir}/nssdb", "-V", "-n", "Countersign", "-u", "L"], rc=0)


main()
