"""Metrics as Prometheus reads them: every line strictly, and by promtool where that is installed."""
import re
import shutil
import subprocess

import room  # noqa: F401

ROW = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{((?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (\d+(?:\.\d+)?)')


def rows(text):
    """{'name{label="value"}': number}"""
    found, kinds, helped = {}, {}, set()
    for line in text.splitlines():
        if line.startswith("# "):
            _, what, name, words = line.split(" ", 3)
            assert name not in (helped if what == "HELP" else kinds), line
            helped.add(name) if what == "HELP" else kinds.update({name: words})
            continue
        name, labels, value = ROW.fullmatch(line).groups()
        family = name if name in kinds else re.sub("_(bucket|sum|count)$", "", name)
        assert family in helped and family in kinds and (kinds[family] != "counter" or family.endswith("_total")), line
        key = line.rsplit(" ", 1)[0]
        assert key not in found, line
        found[key] = float(value)
    for name in (n for n, kind in kinds.items() if kind == "histogram"):
        buckets = {}
        for key, value in found.items():
            if key.startswith(name + "_bucket{"):
                of, le = re.fullmatch(re.escape(name) + r'_bucket\{(.*),le="([^"]+)"\}', key).groups()
                buckets.setdefault(of, []).append((float(le), value))
        for of, all_ in buckets.items():
            assert all_ == sorted(all_) and [v for _, v in all_] == sorted(v for _, v in all_), (name, of, all_)
            assert all_[-1] == (float("inf"), found[f"{name}_count{{{of}}}"]) and f"{name}_sum{{{of}}}" in found, (name, of)
    if promtool := shutil.which("promtool"):
        done = subprocess.run([promtool, "check", "metrics"], input=text.encode(), capture_output=True, check=False)
        assert done.returncode == 0, done
    return found
