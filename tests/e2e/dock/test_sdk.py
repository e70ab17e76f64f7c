#!/usr/bin/env python3
"""E2B's own SDK, unmodified, in the two versions between which its routes moved, and ComputeSDK's provider for it."""
import room  # noqa: F401
from boxes import nothing_is_left
from docks import both
from harness import main

OPERATIONS = """create health getInfo list setTimeout files.write files.read files.stream files.list files.exists files.getInfo
files.makeDir files.rename files.remove commands.run commands.stream commands.list commands.sendStdin commands.connect
commands.closeStdin commands.kill pty getMetrics pause connect kill""".split()


def all_of_it(dock, package):
    key = dock.key("builder", "acme")
    said = dock.node(key.secret, "sdk.mjs", package)
    done = {line.removeprefix("ok ") for line in said.splitlines()}
    assert not set(OPERATIONS) - done, f"{set(OPERATIONS) - done} is missing:\n{said}"
    notes = {row["about"] for row in dock.gw.audit() if row["kind"] == "note" and row["what"].get("operator") == "key builder"}
    assert {"sandbox-start", "sandbox-exec", "sandbox-files", "sandbox-pause", "sandbox-resume", "sandbox-destroy"} <= notes, notes
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


main()
