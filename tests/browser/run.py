#!/usr/bin/env python3
"""The page alone in a real browser: countersign-desk under desk_parent.py, then sample.mjs.

usage: run.py --desk BUILD/countersign-desk --modules DIR/node_modules [--shots DIR]
Exits 77 when Chromium, node or the modules are not there.
"""
import argparse
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def wait_for(parent, word):
    for line in parent.stdout:
        if line.startswith(word + " "):
            return line.split()[1]
    sys.exit("run.py: the desk did not start")


def play(parent, link, modules, shots):
    cmd = ["node", os.path.join(HERE, "sample.mjs"), "--sample", "--link", link, "--modules", modules, "--shots", shots]
    page = subprocess.Popen(cmd, stdout=subprocess.PIPE, text=True)
    for line in page.stdout:
        if line.strip() == "want ticket":
            parent.stdin.write("ticket\n")
            parent.stdin.flush()
        else:
            print(line, end="", flush=True)
    return page.wait()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--desk", required=True)
    ap.add_argument("--modules", required=True)
    ap.add_argument("--shots")
    args = ap.parse_args()
    if not os.path.exists("/usr/bin/chromium") or not os.path.isdir(os.path.join(args.modules, "playwright-core")):
        print("skipped: no /usr/bin/chromium, or no playwright-core below " + args.modules)
        return 77
    with tempfile.TemporaryDirectory(prefix="desk.") as tmp:
        os.makedirs(tmp + "/state")
        parent = subprocess.Popen([sys.executable, os.path.join(HERE, "desk_parent.py"), "--desk", args.desk, "--dir", tmp + "/state"],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            link = wait_for(parent, "signin")
            rc = play(parent, link, os.path.abspath(args.modules), args.shots or "-")
        finally:
            parent.stdin.close()
            ended = parent.wait(60)
        return rc or ended  # not 0: the desk died


if __name__ == "__main__":
    sys.exit(main())
