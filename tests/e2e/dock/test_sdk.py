#!/usr/bin/env python3
"""E2B's own SDK, unmodified, in the two versions between which its routes moved, and ComputeSDK's provider for it."""
import io
import tarfile

import room  # noqa: F401
from boxes import nothing_is_left
from docks import both
from harness import main

# What the API is counted by, as sdk.mjs calls it when it went well.
OPERATIONS = """create connect list metadata setTimeout pause resume snapshot fork kill
files.write files.read files.list files.exists files.getInfo files.rename files.remove files.makeDir files.watchDir
files.uploadUrl files.downloadUrl commands.run commands.stream commands.background commands.list commands.kill commands.sendStdin pty""".split()
# More of the SDK that there is.
OTHERS = "health getInfo getMetrics files.stream commands.connect commands.closeStdin".split()
# What is not had, and a part of the words in which the SDK's caller is told why.
NOT_HAD = {"updateNetwork": "sandboxes have no network here yet",
           "secrets": "credentials are set by operators"}


def all_of_it(dock, package):
    key = dock.key("builder", "acme")
    said = dock.node(key.secret, "sdk.mjs", package).splitlines()
    done = {line.removeprefix("ok ") for line in said if line.startswith("ok ")}
    words = dict(line.removeprefix("no ").split(": ", 1) for line in said if line.startswith("no "))
    assert done == {*OPERATIONS, *OTHERS}, (done ^ {*OPERATIONS, *OTHERS}, said)
    assert words.keys() == NOT_HAD.keys() and all(why in words[name] for name, why in NOT_HAD.items()), words
    assert len(set(OPERATIONS)) == 28
    notes = {row["about"] for row in dock.gw.audit() if row["kind"] == "note" and row["what"].get("operator") == "key builder"}
    assert {"sandbox-start", "sandbox-exec", "sandbox-files", "sandbox-pause", "sandbox-resume", "sandbox-destroy", "sandbox-snapshot",
            "sandbox-restore", "checkpoint-rm"} <= notes, notes
    nothing_is_left(dock.gw)


@both
def sdk_2_51_does_all_operations(lab, dock):
    all_of_it(dock, "e2b")


@both
def sdk_2_50_does_all_operations(lab, dock):
    all_of_it(dock, "e2b-2-50")


@both
def computesdk_starts_a_sandbox_and_runs_code(lab, dock):
    key = dock.key("builder", "acme")
    assert "ok computesdk" in dock.node(key.secret, "computesdk.mjs", "@computesdk/e2b")


@both
def an_application_is_made_kept_and_gone_on_with(lab, dock):
    tarball = lab.dir / "shout-1.0.0.tgz"
    with tarfile.open(tarball, "w:gz") as tar:
        for name, text in (("package.json", '{"name":"shout","version":"1.0.0","type":"module","exports":"./index.js"}'),
                           ("index.js", "export const shout = (text) => text.toUpperCase() + '!'\n")):
            info = tarfile.TarInfo("package/" + name)
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text.encode()))
    key = dock.key("builder", "acme")
    assert "ok vibe" in dock.node(key.secret, "vibe.mjs", "e2b", tarball)
    nothing_is_left(dock.gw)


main()
