#!/usr/bin/env python3
"""Forms with files as unmodified clients write them: what a rule of multipart: lets through passes from each of them, and nothing else."""
import shutil

import room  # noqa: F401
from gateway import Gateway, program, upstream_yaml
from harness import Skip, main, test

PYTHON = """
import sys, requests
at, folder, name = sys.argv[1:]
print(requests.post(at, data={"folder": folder}, files={"doc": (name, b"\\x00text\\r\\n--", "text/plain")}).text)
"""
NODE = """
const [at, folder, name] = process.argv.slice(1), form = new FormData();
form.append("folder", folder);
form.append("doc", new Blob(["text\\r\\n--"], { type: "text/plain" }), name);
fetch(at, { method: "POST", body: form }).then(r => r.text()).then(console.log);
"""


def command(client, work, folder, name):
    at = ["https://AT/up", folder, name]
    if client == "curl":
        (work / name).write_text("text")
        return ["curl", "-sS", "-F", f"folder={folder}", "-F", f"doc=@{name};type=text/plain", at[0]]
    return ["python3", "-c", PYTHON, *at] if client == "python3" else ["node", "-e", NODE, *at]


def passes_what_is_meant(lab, client):
    if not shutil.which(client, path="/usr/bin"):
        raise Skip(f"{client} of Debian (conf/need test)")
    work, up = lab.dir / "work", lab.upstream("files.test")
    work.mkdir()
    gw = Gateway(lab, f"""version: 1
name: uploads
upstreams:
{upstream_yaml("files.test", up.port, up.ca)}
rules:
  - {{ id: drafts, match: {{ host: files.test, port: {up.port}, path: /up, method: POST, multipart: [{{ field: folder, equals: drafts }}, {{ file: doc, glob: "*.txt" }}] }}, decide: allow }}
""")
    for folder, name, passes in (("drafts", "a b.txt", True), ("drafts", "ä.txt", True), ("drafts", "a.exe", False), ("live", "a.txt", False)):
        before = len(up.requests())
        words = [w.replace("AT", f"files.test:{up.port}") for w in command(client, work, folder, name)]
        done = lab.run([program(), "run", "--quiet", "--state-dir", gw.state, "--workspace", work, "--", *words])
        assert (len(up.requests()) == before + 1) == passes and (b'"ok":true' in done.out) == passes, (client, folder, name, done.text())


for one in ("curl", "python3", "node"):
    def run(lab, client=one):
        passes_what_is_meant(lab, client)
    run.__name__ = f"a_form_with_a_file_of_{one}"
    test()(run)


if __name__ == "__main__":
    main()
