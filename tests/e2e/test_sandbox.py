#!/usr/bin/env python3
"""What a command inside `countersign run` can see and reach. The gateway is a stand-in (lab/control.py): these are
the walls of the sandbox itself. COUNTERSIGN names the program, else the build trees are searched."""
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import textwrap

import harness
from harness import PATIENCE, Skip, main, test

sys.path.insert(0, str(harness.HERE / "lab"))
from control import Control  # noqa: E402
from inside import program, python, run  # noqa: E402
from ports import free_port  # noqa: E402
from terminal import Terminal  # noqa: E402


@test("G1 run", "G28 run")
def the_environment_is_an_allow_list(lab):
    secret = lab.canary("canary-environment-secret-0123456789")
    theirs = {"GITHUB_TOKEN": secret, "AWS_SECRET_ACCESS_KEY": secret, "api_key": secret, "SSH_AUTH_SOCK": "/x",
              "BASH_FUNC_ls%%": "() { :; }", "LC_SECRET": secret, "HTTPS_PROXY": "http://elsewhere:1",
              "REQUESTS_CA_BUNDLE": "/elsewhere", "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "LD_LIBRARY_PATH": "/x",
              "NODE_OPTIONS": "--require /x", "PYTHONPATH": "/x", "TZ": "UTC"}
    seen = python(lab, """
        import json, os
        print(json.dumps(dict(os.environ)))
        """, env=theirs)
    shown = subprocess.run(["grep", "-o", r'{"[A-Za-z0-9_]*", ENV_', harness.TOP / "sandbox-shim/env.c"],
                           stdout=subprocess.PIPE, check=True).stdout.decode()
    ours = set(re.findall(r'"(\w+)"', shown))
    assert len(ours) > 35, ours
    plain = {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "COUNTERSIGN_SANDBOX", "PWD", "TERM", "LC_ALL", "TZ", "LANG"}
    url_parts = {"CLOUDSDK_PROXY_USERNAME", "CLOUDSDK_PROXY_PASSWORD"}
    assert set(seen) <= ours | plain, set(seen) - ours - plain
    assert ours - url_parts <= set(seen), ours - set(seen)
    assert seen["HTTPS_PROXY"] == seen["https_proxy"] == "http://127.0.0.1:3128"
    assert seen["REQUESTS_CA_BUNDLE"] == seen["npm_config_cafile"] == seen["GIT_SSL_CAINFO"] == "/countersign/bundle.crt"
    assert seen["NODE_EXTRA_CA_CERTS"] == "/countersign/ca.crt"
    assert seen["TERM"] == "xterm-256color" and seen["HOME"] == "/home/agent" and seen["USER"] == "agent"


@test("G1 run")
def no_environment_of_any_process_shows_a_secret(lab):
    secret = lab.canary("canary-proc-environ-secret-0123456789")
    done = run(lab, "cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'; ls -A ~; "
                    "cat ~/.netrc ~/.git-credentials ~/.npmrc ~/.aws/* 2>&1 | head -5", env={"MY_TOKEN": secret}, rc=0)
    assert b"HTTPS_PROXY=" in done.out and secret.encode() not in done.both
    assert done.both.count(b"No such file") == 4


@test("G2 run")
def only_three_descriptors_are_open(lab):
    extra = [os.open("/etc/hostname", os.O_RDONLY) for _ in range(3)]
    pair = socket.socketpair()
    for fd in extra + [s.fileno() for s in pair]:
        os.set_inheritable(fd, True)
    control = Control(lab)
    (lab.dir / "work").mkdir()
    done = subprocess.run([program(), "run", "--state-dir", control.state, "--workspace", lab.dir / "work", "--",
                           "/usr/bin/python3", "-c", "import os; print(sorted(os.listdir('/proc/self/fd'), key=int))"],
                          env=lab.env(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, close_fds=False, timeout=PATIENCE,
                          check=True)
    for fd in extra:
        os.close(fd)
    assert done.stdout.strip() == b"['0', '1', '2', '3']", done.stdout  # 3 is the directory being listed
    directory = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    refused = subprocess.run([program(), "run", "--state-dir", control.state, "--workspace", lab.dir / "work", "--",
                              "true"], env=lab.env(), stdin=directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             timeout=PATIENCE, check=False)
    os.close(directory)
    assert refused.returncode == 1 and b"is a directory" in refused.stderr


@test("G3 run", "G4 run")
def no_socket_of_the_host_is_there(lab):
    abstract = socket.socket(socket.AF_UNIX)
    abstract.bind("")  # under a name of the kernel's choice: other runs beside this one have one as well
    abstract.listen(1)
    name = abstract.getsockname().decode()
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(name)  # it answers here
    seen = python(lab, f"""
        import json, os, socket
        found = []
        for top, dirs, files in os.walk("/", followlinks=False):
            if top.startswith(("/proc", "/sys", "/usr")):
                dirs[:] = []
                continue
            found += [p for p in (os.path.join(top, f) for f in files) if os.path.exists(p) and (os.stat(p).st_mode & 0o170000) == 0o140000]
        try:
            socket.socket(socket.AF_UNIX).connect({name!r})
            abstract = "reached"
        except ConnectionRefusedError:
            abstract = "refused"
        print(json.dumps({{"sockets": found, "run": os.listdir("/run"), "abstract": abstract}}))
        """)
    abstract.close()
    assert seen == {"sockets": ["/countersign/proxy.sock"], "run": [], "abstract": "refused"}, seen


@test("G6 run", "G7 run", "G8 run")
def there_is_no_route_out(lab):
    server = socket.socket()
    server.bind(("0.0.0.0", 0))
    server.listen(4)
    port = server.getsockname()[1]
    with socket.create_connection(("127.0.0.1", port)):
        pass  # it answers here
    seen = python(lab, f"""
        import errno, json, os, socket
        def attempt(family, kind, address, proto=0):
            try:
                with socket.socket(family, kind, proto) as s:
                    s.settimeout({PATIENCE})
                    s.connect(address) if kind != socket.SOCK_DGRAM else s.sendto(b"x", address)
                return "reached"
            except OSError as why:
                return errno.errorcode.get(why.errno, str(why))
        def family(f, kind=socket.SOCK_DGRAM, proto=0):
            try:
                socket.socket(f, kind, proto).close()
                return "opened"
            except OSError as why:
                return errno.errorcode.get(why.errno, str(why))
        try:
            socket.getaddrinfo("example.org", 443)
            dns = "resolved"
        except socket.gaierror:
            dns = "failed"
        print(json.dumps({{
            "host": attempt(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", {port})),
            "net": attempt(socket.AF_INET, socket.SOCK_STREAM, ("192.0.2.1", 443)),
            "net6": attempt(socket.AF_INET6, socket.SOCK_STREAM, ("2001:db8::1", 443)),
            "udp": attempt(socket.AF_INET, socket.SOCK_DGRAM, ("192.0.2.1", 53)),
            "raw": family(socket.AF_INET, socket.SOCK_RAW, 1), "packet": family(17, socket.SOCK_RAW),
            "vsock": family(40, socket.SOCK_STREAM), "alg": family(38, 5), "bluetooth": family(31, socket.SOCK_RAW, 1),
            "xdp": family(44, socket.SOCK_RAW), "nfqueue": family(16, socket.SOCK_RAW, 12),
            "sctp": family(socket.AF_INET, socket.SOCK_STREAM, 132), "kcm": family(41),
            "route": family(16, socket.SOCK_RAW, 0), "dns": dns,
            "interfaces": [name for _, name in socket.if_nameindex()],
        }}))
        """, "--no-capture")
    server.close()
    assert seen["host"] == "ECONNREFUSED" and seen["net"] == "ENETUNREACH" and seen["dns"] == "failed", seen
    assert seen["net6"] in ("ENETUNREACH", "EADDRNOTAVAIL", "EAFNOSUPPORT"), seen
    assert seen["udp"] == "ENETUNREACH" and seen["interfaces"] == ["lo"] and seen["route"] == "opened", seen
    assert seen["raw"] == "EPERM", seen
    assert all(seen[k] == "EAFNOSUPPORT" for k in ("packet", "vsock", "alg", "bluetooth", "xdp", "kcm")), seen
    assert seen["nfqueue"] == seen["sctp"] == "EPROTONOSUPPORT", seen


@test()
def the_relay_is_the_one_way_out(lab):
    control = Control(lab)
    done = run(lab, "curl -sS -o /dev/null https://api.example.org/; curl -sS http://plain.example.org/ | wc -c; "
                    "env -u HTTPS_PROXY -u https_proxy -u ALL_PROXY -u all_proxy curl -sS https://api.example.org/",
               "--no-capture", control=control, rc=6)
    assert b"response 403" in done.err and done.out.strip() == b"1048576", done.text()
    assert control.seen == ["CONNECT api.example.org:443 HTTP/1.1", "GET http://plain.example.org/ HTTP/1.1"]
    assert [c[:2] for c in control.calls] == [("POST", "/api/v1/sandboxes"), ("DELETE", "/api/v1/sandboxes/run-ab12")]
    body = control.calls[0][2]
    assert body["kind"] == "run" and body["session"].endswith(f"@{lab.dir}/work") and body["with"] == []


@test()
def the_relay_keeps_half_closed_connections_and_many_at_once(lab):
    control = Control(lab)
    seen = python(lab, """
        import hashlib, json, os, socket, threading
        good, lock = [], threading.Lock()
        def one(i):
            data = os.urandom(200000 + i)
            s = socket.create_connection(("127.0.0.1", 3128))
            s.sendall(b"ECHO / HTTP/1.1\\r\\n\\r\\n" + data)
            s.shutdown(socket.SHUT_WR)
            back = b""
            while more := s.recv(65536):
                back += more
            with lock:
                good.append(back == data)
        threads = [threading.Thread(target=one, args=(i,)) for i in range(300)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        print(json.dumps([len(good), all(good)]))
        """, control=control)
    assert seen == [300, True], seen


@test("G9 run")
def other_processes_are_out_of_sight(lab):
    seen = python(lab, f"""
        import json, os
        pids = sorted(int(p) for p in os.listdir("/proc") if p.isdigit())
        names = [open(f"/proc/{{p}}/comm").read().strip() for p in pids]
        try:
            open("/proc/1/mem", "rb")
            mem = "opened"
        except PermissionError:
            mem = "refused"
        try:
            os.kill({os.getpid()}, 0)
            kill = "reached"
        except ProcessLookupError:
            kill = "no such process"
        print(json.dumps([names, mem, kill]))
        """, "--no-capture")
    assert seen == [["countersign-shi", "python3"], "refused", "no such process"], seen


@test("G10 run", "G11 run")
def no_privilege_can_be_gained(lab):
    seen = python(lab, """
        import ctypes, errno, json, os, subprocess
        libc = ctypes.CDLL(None, use_errno=True)
        def call(*a):
            ctypes.set_errno(0)
            rc = libc.syscall(*[ctypes.c_long(x) for x in a])
            return errno.errorcode.get(ctypes.get_errno(), "worked") if rc < 0 else "worked"
        status = dict(l.split(":", 1) for l in open("/proc/self/status").read().splitlines())
        print(json.dumps({
            "caps": {k: int(status[k], 16) for k in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")},
            "nnp": status["NoNewPrivs"].strip(), "seccomp": status["Seccomp"].strip(),
            "uid": os.getuid(), "gid": os.getgid(),
            "userns": subprocess.run(["unshare", "-Ur", "true"], stderr=subprocess.DEVNULL).returncode,
            "nosuid": [l for l in open("/proc/self/mounts") if "nosuid" not in l],
            "su": subprocess.run(["su", "-c", "true"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL).returncode,
            "calls": {name: call(*a) for name, a in {
                "unshare userns": (272, 0x10000000), "unshare high bits": (272, 0x1_0000_0000 | 0x10000000),
                "clone userns": (56, 0x10000000 | 17, 0, 0, 0, 0), "clone3": (435, 0, 0), "setns": (308, 0, 0),
                "mount": (165, 0, 0, 0, 0, 0), "fsopen": (430, 0, 0), "open_tree": (428, 0, 0, 0),
                "bpf": (321, 0, 0, 0), "perf": (298, 0, 0, 0, 0, 0), "userfaultfd": (323, 1), "keyctl": (250, 0, 0),
                "add_key": (248, 0, 0, 0, 0, 0), "kexec": (246, 0, 0, 0, 0), "init_module": (175, 0, 0, 0),
                "open_by_handle_at": (304, 0, 0, 0), "io_uring_setup": (425, 1, 0), "chroot": (161, 0)}.items()},
        }))
        """) if os.uname().machine == "x86_64" else None
    if seen is None:
        raise Skip("the numbers are those of x86-64")
    calls = seen.pop("calls")
    assert calls.pop("clone3") == calls.pop("io_uring_setup") == "ENOSYS", calls
    assert set(calls.values()) == {"EPERM"}, calls
    assert not any(seen["caps"].values()), seen
    assert seen["nnp"] == "1" and seen["seccomp"] == "2" and (seen["uid"], seen["gid"]) == (1000, 1000), seen
    assert seen["userns"] != 0 and seen["su"] != 0, seen
    assert [m.split()[1] for m in seen["nosuid"]] in ([], ["/dev/pts"]), seen


@test("G11 run")
def another_abi_ends_the_process(lab):
    if os.uname().machine != "x86_64":
        raise Skip("x86-64 only")
    code = """
        import ctypes, mmap
        code = bytes.fromhex(%r)
        page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        page.write(code)
        ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
        """
    control = Control(lab)
    for name, bytes_ in (("x32 getpid", "b8270000400f05c3"), ("int80 getpid", "b814000000cd80c3")):
        command = ["/usr/bin/python3", "-c", textwrap.dedent(code % bytes_)]
        # Some hypervisors have no int 0x80: there the processor itself ends the process, outside a sandbox as well.
        outside = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
        ends = signal.SIGSEGV if outside == -signal.SIGSEGV else signal.SIGSYS
        done = run(lab, command, rc=128 + ends, control=control)
        assert done.rc == 128 + ends, name


def at_a_terminal(lab, command):
    """`run` as a person would use it."""
    control = Control(lab)
    (lab.dir / "work").mkdir()
    return Terminal(lab, [program(), "run", "--state-dir", str(control.state), "--workspace", str(lab.dir / "work"), "--", *command],
                    lab.env())


@test()
def every_namespace_is_its_own_and_so_is_the_session(lab):
    """Compared with those outside: a sandbox that shared one would look the same from within."""
    kinds = ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts")
    inside = python(lab, f"""
        import json, os
        names = {{kind: os.readlink("/proc/self/ns/" + kind) for kind in {kinds!r}}}
        print(json.dumps({{"names": names, "session": os.getsid(0), "group": os.getpgid(0)}}))
    """)
    shared = [kind for kind in kinds if inside["names"][kind] == os.readlink(f"/proc/self/ns/{kind}")]
    assert not shared, f"shared with the outside: {shared}"
    # 0 is what a number outside the PID namespace looks like from within.
    assert inside["session"] != 0 and inside["group"] != 0, inside


@test("G12 run", "G2 run")
def nothing_types_into_the_terminal(lab):
    if os.uname().machine != "x86_64":
        raise Skip("the numbers are those of x86-64")
    code = """
        import ctypes, errno, json, os
        out, libc = {}, ctypes.CDLL(None, use_errno=True)
        for name, request in (("TIOCSTI", 0x5412), ("high bits", 0x1_0000_5412), ("TIOCLINUX", 0x541c), ("TIOCSETD", 0x5423)):
            rc = libc.syscall(ctypes.c_long(16), ctypes.c_long(0), ctypes.c_ulong(request), ctypes.create_string_buffer(b"x"))
            out[name] = errno.errorcode[ctypes.get_errno()] if rc else "worked"
        print(json.dumps([out, [os.isatty(fd) for fd in range(3)], [os.fstat(fd).st_rdev for fd in range(3)],
                          os.get_terminal_size(), os.tcgetpgrp(os.open("/dev/tty", os.O_RDWR)) == os.getpgrp()]))
        """
    terminal = at_a_terminal(lab, ["/usr/bin/python3", "-c", textwrap.dedent(code)])
    assert terminal.end() == 0, terminal.said
    calls, ttys, devices, size, foreground = json.loads(terminal.said)
    assert set(calls.values()) == {"EPERM"}, calls
    assert ttys == [True] * 3 and terminal.device not in devices, (ttys, devices)
    assert size == [99, 33] and foreground, (size, foreground)


@test()
def a_terminal_works_as_one(lab):
    """Job control, Ctrl-C for the command alone, a change of size, and everything put back."""
    terminal = at_a_terminal(lab, ["bash", "--norc", "-i"])
    terminal.type(b"PS1='ready'\"> \"\n")
    terminal.until(b"ready> ")
    terminal.type(b"echo reads-$((1+1)); cat\n")
    terminal.until(b"reads-2")  # before that, the shell itself might take what comes
    terminal.type(b"echoed\n")
    terminal.until(b"echoed\r\nechoed\r\n")
    terminal.type(b"\x03")
    terminal.until(b"ready> ")
    terminal.type(b"sleep 1000 &\n")
    terminal.until(b"[1]")
    terminal.until(b"ready> ")
    terminal.type(b"kill %1; wait; echo jobs-$?\n")
    terminal.until(b"jobs-0")
    terminal.until(b"ready> ")
    terminal.resize(44, 77)
    terminal.type(b"until [ \"$(stty size)\" = '44 77' ]; do :; done; echo size-$(stty size)\n")
    terminal.until(b"size-44 77")
    terminal.until(b"ready> ")
    terminal.type(b"exit 6\n")
    assert terminal.end() == 6, terminal.said
    assert b"no job control" not in terminal.said, terminal.said


@test("G14 run")
def only_the_workspace_and_fresh_memory_can_be_written(lab):
    secret = lab.canary("canary-home-secret-0123456789")
    lab.exempt(lab.home / ".netrc").write_text(secret)
    lab.exempt(lab.dir / "state/keyfile").parent.mkdir()
    (lab.dir / "state/keyfile").write_text(secret)
    control = Control(lab)
    (lab.dir / "work").mkdir()
    (lab.dir / "work/given").write_text("from outside")
    seen = python(lab, f"""
        import json, os
        def can(path):  # never writes: were the wall open, this would hit the machine
            try:
                os.close(os.open(path, os.O_WRONLY | (0 if path.startswith("/proc/") else os.O_CREAT)))
                return True
            except OSError:
                return False
        def reads(path):
            try:
                return len(open(path, "rb").read(1))
            except OSError:
                return 0
        read = open("given").read()
        open("made", "w").write("from inside")
        print(json.dumps({{
            "cwd": os.getcwd(), "read": read, "root": sorted(os.listdir("/")), "home": os.listdir("/home"),
            "agent": os.listdir("/home/agent"), "theirs": os.path.exists({str(lab.home)!r}) or os.path.exists({str(control.state)!r}),
            "write": [p for p in ("/etc/hosts", "/etc/x", "/x", "/dev/x", "/usr/x", "/countersign/x", "/countersign/bundle.crt",
                                  "/countersign/proxy.sock", "/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger",
                                  "/proc/sys/net/ipv4/ip_forward", "/proc/sys/user/max_user_namespaces",
                                  "/etc/ssl/certs/ca-certificates.crt") if can(p)],
            "fresh": [p for p in ("/tmp/x", "/var/tmp/x", "/home/agent/x", "/run/x", "/dev/shm/x") if can(p)],
            "shadow": [p for p in ("/etc/shadow", "/etc/ssh", "/etc/gitconfig", "/etc/profile.d", "/root", "/var/lib", "/sys") if os.path.exists(p)],
            "kernel": [p for p in ("kcore", "keys", "kpageflags", "vmallocinfo", "slabinfo", "kmsg") if reads("/proc/" + p)],
            "bundle": open("/etc/ssl/certs/ca-certificates.crt").read(),
        }}))
        """, control=control)
    assert (lab.dir / "work/made").read_text() == "from inside"
    assert seen["cwd"] == "/workspace" and seen["read"] == "from outside", seen
    assert seen["home"] == ["agent"] and seen["agent"] == [] and not seen["theirs"], seen
    assert seen["write"] == [] and seen["shadow"] == [] and seen["kernel"] == [], seen
    assert seen["fresh"] == ["/tmp/x", "/var/tmp/x", "/home/agent/x", "/run/x", "/dev/shm/x"], seen
    assert seen["bundle"] == "-----BEGIN bundle.crt-----\n", seen
    assert set(seen["root"]) <= {"bin", "sbin", "lib", "lib32", "lib64", "libx32", "usr", "etc", "proc", "dev", "tmp", "run",
                                 "home", "var", "countersign", "workspace"}, seen


@test("G29 run")
def a_workspace_behind_a_planted_link_is_refused(lab):
    """An earlier run had the folder above and left a link where the next one's workspace is."""
    secret = lab.canary("canary-planted-link-secret-0123456789")
    keys = lab.dir / "keys"
    keys.mkdir()
    lab.exempt(keys / "id").write_text(secret)
    (lab.dir / "work").mkdir()
    (lab.dir / "work/real").mkdir()
    control = Control(lab)
    run(lab, control=control, command=f"ln -s ../keys sub; ln -s {keys} abs; ln -s real near; ln -s sub second; mkdir -p a; ln -s ../.. a/up")
    for n, planted in enumerate(("sub", "abs", "near", "second", "a/up/keys", "near/../sub", "./sub/.")):
        for options in ([], ["--read", lab.dir / "work" / planted]):
            place = lab.dir / "work" / (planted if not options else "real")
            done = run(lab, "cat id; echo ran", *options, workspace=place, control=control, rc=2)
            assert b"symbolic link" in done.both and b"ran" not in done.out and secret.encode() not in done.both, done.text()
            assert str(lab.dir / "work/real" if planted == "near" else keys).encode() in done.both, done.text()
    assert run(lab, "echo ran", workspace=lab.dir / "work/real", control=control).out == b"ran\n"


@test("G30 run")
def what_is_read_is_what_was_checked(lab):
    """--read and --workspace are exchanged for links between the check and the mounts: by what stands for bubblewrap."""
    secret = lab.canary("canary-exchanged-read-secret-0123456789")
    keys = lab.dir / "keys"
    for directory in (keys, lab.dir / "tools", lab.dir / "work"):
        directory.mkdir()
    lab.exempt(keys / "id").write_text(secret)
    for directory in ("tools", "work"):
        (lab.dir / directory / "id").write_text("what was checked")
    late = lab.dir / "late"
    late.write_text(f"#!/bin/sh\nPATH=/usr/bin:/bin\ncd {lab.dir}\n"
                    'for d in tools work; do mv $d $d.old && ln -s keys $d || exit 9; done\nexec bwrap "$@"\n')
    late.chmod(0o700)
    done = run(lab, f"cat {lab.dir}/tools/id; cat id; ls /proc/self/fd | wc -l", "--bwrap", late, "--read", lab.dir / "tools", rc=0)
    assert done.out.split() == b"what was checkedwhat was checked4".split(), done.text()  # 0 to 2, and the listing
    assert secret.encode() not in done.both


@test("G17 run")
def the_callers_environment_reaches_no_program_of_ours(lab):
    """A preloaded library would say something: neither bubblewrap nor the shim may load it."""
    source = lab.dir / "loud.c"
    source.write_text('#include <unistd.h>\n#include <string.h>\n#include <stdio.h>\n'
                      '__attribute__((constructor)) static void loud(void) { char n[64] = ""; FILE *f = '
                      'fopen("/proc/self/comm", "r"); if (f) { fgets(n, 64, f); fclose(f); } '
                      'if (strncmp(n, "countersign\\n", 12)) write(2, "LOADED\\n", 7); }\n')
    library = lab.dir / "loud.so"
    if lab.run(["cc", "-shared", "-fPIC", "-o", library, source]).rc != 0:
        raise Skip("no C compiler")
    env = {"LD_PRELOAD": str(library), "PATH": f"{lab.dir}:/usr/bin:/bin", "ASAN_OPTIONS": "verify_asan_link_order=0"}
    (lab.dir / "bwrap").write_text("#!/bin/sh\necho HIJACKED >&2\n")
    (lab.dir / "bwrap").chmod(0o755)
    done = run(lab, ["true"], env=env, rc=0)
    assert b"LOADED" not in done.err and b"HIJACKED" not in done.err, done.text()


@test("G18 run")
def a_sandbox_that_cannot_be_set_up_runs_nothing(lab):
    control = Control(lab)
    mark = lab.dir / "work/ran"
    done = run(lab, ["touch", "/workspace/ran"], "--bwrap", "/nonexistent/bwrap", control=control, rc=1)
    assert b"/nonexistent/bwrap" in done.err and control.calls == []
    fake = lab.dir / "half"
    fake.write_text("#!/bin/sh\necho half-way >&2\nexit 0\n")
    fake.chmod(0o755)
    done = run(lab, ["touch", "/workspace/ran"], "--bwrap", fake, control=control, rc=1)
    assert b"half-way" in done.err and b"could not be set up" in done.err, done.text()
    control.listener.unlink()  # a mount that fails, in the real bubblewrap
    done = run(lab, ["touch", "/workspace/ran"], control=control, rc=1)
    assert b"could not be set up" in done.err, done.text()
    assert not mark.exists()
    assert [c[0] for c in control.calls] == ["POST", "DELETE", "POST", "DELETE"]


@test("G18 run")
def the_shim_starts_nothing_without_its_listener(lab):
    here = pathlib.Path(program()).parent
    shim = next(p for p in (here / "countersign-shim", here.parent / "libexec/countersign/countersign-shim") if p.exists())
    taken = socket.socket()
    taken.bind(("127.0.0.1", 0))
    taken.listen(1)
    port = taken.getsockname()[1]
    mark = lab.dir / "ran"
    done = lab.run([shim, "--socket", "/x", "--listen", f"127.0.0.1:{port}", "--", "touch", mark], rc=125)
    assert b"cannot listen" in done.err and not mark.exists()
    for wrong in ("0.0.0.0:3128", "127.0.0.1", "127.0.0.1:0", "127.0.0.1:65536", "::1:3128", "localhost:3128"):
        lab.run([shim, "--socket", "/x", "--listen", wrong, "--", "touch", mark], rc=125)
    assert not mark.exists()
    port = free_port()
    done = lab.run([shim, "--socket", lab.dir / "nobody.sock", "--listen", f"127.0.0.1:{port}", "--", "curl", "-sS", "-x",
                    f"http://127.0.0.1:{port}", "https://api.example.org/"], rc=56)
    assert b"response 503" in done.err
    taken.close()


@test()
def the_commands_status_is_passed_on(lab):
    control = Control(lab)
    run(lab, "exit 0", control=control, rc=0)
    run(lab, "exit 7", control=control, rc=7)
    run(lab, "kill -TERM $$", control=control, rc=143)
    run(lab, ["/nonexistent"], control=control, rc=127)
    run(lab, ["/etc/passwd"], control=control, rc=126)
    done = run(lab, "cat", control=control, stdin=b"through\n", rc=0)
    assert done.out == b"through\n"


@test("G24 run")
def nothing_outlives_the_command(lab):
    """And a signal to `run` reaches the command, which may still clean up."""
    control = Control(lab)
    run(lab, "(trap '' HUP TERM; exec setsid sleep 1000) & exit 0", control=control, rc=0)  # the harness looks for it
    (lab.dir / "work").mkdir(exist_ok=True)
    # os.write: the signal may come while the other line is still being printed
    code = "import os, signal, sys\ndef end(*_):\n os.write(1, b'cleaned\\n')\n sys.exit(9)\n" \
           "signal.signal(signal.SIGINT, end)\nprint('ready', flush=True)\nsignal.pause()"
    process = lab.start([program(), "run", "--state-dir", control.state, "--workspace", lab.dir / "work", "--",
                         "/usr/bin/python3", "-c", code], ready="ready")
    process.signal(signal.SIGINT)
    assert process.wait() == 9
    process.wait_line("cleaned")
    process = lab.start([program(), "run", "--state-dir", control.state, "--workspace", lab.dir / "work", "--", "sh", "-c",
                         "echo ready; sleep 1000"], ready="ready")
    process.signal(signal.SIGKILL)  # even so: bubblewrap dies with its parent
    process.wait()


@test()
def a_workspace_that_would_give_secrets_away_is_refused(lab):
    control = Control(lab)
    home = lab.dir / "home"
    (control.state / "inner").mkdir()
    link = lab.dir / "link"
    link.symlink_to(control.state)
    mine = pathlib.Path(lab.dir / "fine")
    mine.mkdir()
    for where, words in ((control.state, b"state directory"), (control.state / "inner", b"state directory"),
                         (lab.dir, b"state directory"), (link, b"symbolic link"), ("/", b"must not be /"),
                         (home, b"home directory"), ("/etc", b"belongs to the system"), ("/usr/share", b"belongs to"),
                         ("/proc", b"belongs to"), ("/var/lib", b"shared"), ("/nonexistent/x", b"cannot be used"),
                         (control.state / "ca.crt", b"not a directory")):
        done = lab.run([program(), "run", "--state-dir", control.state, "--workspace", where, "--", "true"], rc=2)
        assert words in done.err, (where, done.text())
        if where not in ("/", "/etc", "/usr/share", "/proc", "/var/lib"):
            done = lab.run([program(), "run", "--state-dir", control.state, "--workspace", mine, "--read", where, "--",
                            "true"], rc=2)
    assert control.calls == []
    lab.run([program(), "run", "--state-dir", control.state, "--", "true"], cwd=home, rc=2)
    lab.run([program(), "run", "--state-dir", control.state, "--", "true"], cwd=mine, rc=0)


@test()
def several_workspaces_are_there_by_their_names_and_each_is_checked(lab):
    control = Control(lab)
    for name in ("one", "two", "a/two", "state/in"):
        (lab.dir / name).mkdir(parents=True, exist_ok=True)
    start = [program(), "run", "--state-dir", control.state, "--workspace", lab.dir / "one", "--workspace"]
    lab.run([*start, lab.dir / "two", "--", "sh", "-c", "pwd >here; touch /workspaces/two/there"], rc=0)
    assert (lab.dir / "one/here").read_text() == "/workspace\n" and (lab.dir / "two/there").exists()
    assert control.calls[0][2]["session"].endswith(f"@{lab.dir}/one"), control.calls[0]
    done = lab.run([*start, lab.dir / "two", "--workspace", lab.dir / "a/two", "--", "true"], rc=2)
    assert b"would both be /workspaces/two" in done.err, done.text()
    (lab.dir / "link").symlink_to(lab.dir / "two")
    for where, words in ((lab.dir / "state/in", b"overlaps the state directory"), (lab.dir, b"overlaps the state directory"),
                         (lab.dir / "link", b"symbolic link"), ("/etc", b"belongs to the system")):
        done = lab.run([*start, where, "--", "true"], rc=2)
        assert words in done.err, (where, done.text())


@test()
def a_home_with_a_name_is_found_again_and_is_nobody_elses(lab):
    homes = lab.dir / "data/countersign/homes"

    def at_home(command, *options, rc=0):
        return run(lab, command, *options, env={"XDG_DATA_HOME": lab.dir / "data"}, control=control, rc=rc)
    control = Control(lab)
    at_home("echo was here >~/.note", "--home", "mine")
    assert at_home("cat ~/.note; echo $HOME", "--home", "mine").out == b"was here\n/home/agent\n"
    assert at_home("ls -A ~", "--home", "other").out == b"" and at_home("ls -A ~").out == b""
    assert (homes / "mine").stat().st_mode & 0o777 == 0o700 and (homes / "mine/.note").exists()
    for name in ("..", "a/b", "", "Mine"):
        at_home("true", "--home", name, rc=2)
    # What it left is for it alone: no other sandbox gets it as a workspace, or to read.
    for option, where in (("--workspace", homes / "mine"), ("--read", lab.dir / "data"), ("--read", homes / "mine")):
        done = at_home("true", option, where, rc=2)
        assert b"where the homes of sandboxes lie" in done.err, done.text()
    (homes / "link").symlink_to("mine")
    assert b"symbolic link" in at_home("true", "--home", "link", rc=2).err


def as_nobody(lab):
    """The begin of a command line: `run` as an ordinary user, in the workspace "work"."""
    if os.geteuid() != 0:
        raise Skip("not root: the other tests ran as an ordinary user")
    where, drop = pathlib.Path(program()), ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    if lab.run([*drop, "test", "-x", where]).rc != 0:
        raise Skip(f"{where} cannot be reached by an ordinary user")
    control, work = Control(lab), lab.dir / "work"
    work.mkdir()
    for path in [work, control.state, *control.state.iterdir()]:
        os.chown(path, 65534, 65534)
    return [*drop, where, "run", "--state-dir", control.state, "--workspace", work]


TAKE = """
import os, sys, time
what, n = sys.argv[1], int(sys.argv[2])
if what == "memory":
    bytearray(n << 20)
else:
    for _ in range(n):
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
print("had it")
"""


@test()
def memory_and_processes_are_limited_or_nothing_starts(lab):
    control = Control(lab)
    take = [sys.executable if sys.executable.startswith("/usr/") else "/usr/bin/python3", "-c", TAKE]
    done = run(lab, [*take, "memory", "400"], "--memory", "128M", control=control, rc=None)
    assert done.rc != 0 and b"had it" not in done.out and b"limits: memory 128 MiB" in done.err, done.text()
    assert b"had it" in run(lab, [*take, "memory", "40"], "--memory", "512M", control=control).out
    for wrong in (("--memory", "1M"), ("--memory", "x"), ("--memory", "1GG"), ("--memory", "-1"), ("--pids", "0"),
                  ("--pids", "1e9"), ("--cpus", "0"), ("--cpus", "nan"), ("--cpus", "0x2")):
        run(lab, "true", *wrong, control=control, rc=2)
    top = pathlib.Path("/sys/fs/cgroup")
    each, all_of_them = top / "pids", top / "cgroup.subtree_control"  # version 1, version 2
    if os.access(each, os.W_OK) or (all_of_them.exists() and "pids" in all_of_them.read_text()):
        done = run(lab, [*take, "processes", "60"], "--pids", "20", control=control, rc=None)
        assert done.rc != 0 and b"had it" not in done.out and b"by the cgroup" in done.err, done.text()
        assert b"had it" in run(lab, [*take, "processes", "10"], "--pids", "20", control=control).out
        assert not os.path.exists(done.err.split(b"by the cgroup ")[1].split()[0]), "a cgroup was left behind"
        return
    for limit in (("--pids", "20"), ("--cpus", "1")):  # root's processes are counted by nothing but a cgroup
        done = run(lab, "touch ran", *limit, control=control, rc=1)
        assert b"needs a cgroup" in done.err and not (lab.dir / "work/ran").exists(), done.text()


@test()
def an_ordinary_users_processes_are_limited_too(lab):
    start = [*as_nobody(lab), "--pids", "20", "--", "/usr/bin/python3", "-c", TAKE, "processes"]
    done = lab.run([*start, "60"])
    assert done.rc != 0 and b"had it" not in done.out and b"limits: processes 20" in done.err, done.text()
    assert b"had it" in lab.run([*start, "10"], rc=0).out
    assert b"had it" in lab.run(["env", "HOME=/root", *start, "10"], rc=0).out  # as su leaves it


@test()
def without_nft_it_is_said_and_the_variables_lead_out(lab):
    if os.geteuid() != 0:
        raise Skip("needs root, to hide nft")
    control = Control(lab)
    (lab.dir / "work").mkdir()
    hidden = ["unshare", "-m", "sh", "-c", 'for nft in /usr/sbin/nft /usr/local/sbin/nft; do [ ! -e $nft ] || '
              'mount --bind /dev/null $nft; done; exec "$@"', "sh"]
    start = [*hidden, program(), "run", "--state-dir", control.state, "--workspace", lab.dir / "work"]
    done = lab.run([*start, "--", "sh", "-c", "curl -sS http://plain.example.org/ | wc -c"], rc=0)
    assert done.out.strip() == b"1048576" and b"connections are not captured" in done.err, done.text()
    assert b"nft is not installed" in done.err and "captured" not in control.calls[0][2], done.text()
    assert lab.run([*start, "--quiet", "--", "true"], rc=0).both == b""
    assert b"nft is not installed" in lab.run([*start, "--transparent", "--", "true"], rc=1).err


@test()
def read_only_directories_and_variables_can_be_added(lab):
    tools = lab.dir / "tools"
    tools.mkdir()
    (tools / "hello").write_text("#!/bin/sh\necho hello from $WHO\n")
    (tools / "hello").chmod(0o755)
    control = Control(lab)
    done = run(lab, f"{tools}/hello; touch {tools}/x 2>&1", "--read", tools, "--setenv", "WHO=me", rc=1, control=control)
    assert b"hello from me" in done.out and b"Read-only" in done.out, done.text()
    for wrong in ("HTTPS_PROXY=x", "SSL_CERT_FILE=x", "=x", "x"):
        run(lab, "true", "--setenv", wrong, rc=2, control=control)
    assert len(control.calls) == 2


@test()
def the_gateway_is_asked_and_its_words_are_shown(lab):
    mine = lab.dir / "work"
    mine.mkdir()
    start = [program(), "run", "--state-dir", lab.dir / "state", "--workspace", mine]
    done = lab.run(start + ["--", "true"], rc=4)
    assert b"no gateway runs" in done.err and b"countersign up" in done.err
    lab.run(start + ["--policy", lab.dir / "absent", "--", "true"], rc=3)
    (lab.dir / "broken.yaml").write_text("version: [\n")
    done = lab.run(start + ["--policy", lab.dir / "broken.yaml", "--", "touch", "ran"])
    assert done.rc in (1, 3) and b"the gateway did not start" in done.err and not (mine / "ran").exists(), done.text()
    lab.run(start + ["--with", "nothing-shipped-for-this", "--", "true"], rc=3)
    control = Control(lab, credentials={"github": True, "empty": False})
    done = lab.run(start + ["--policy", "/dev/null", "--", "true"], rc=2)
    assert b"a gateway runs already" in done.err
    lab.run(start + ["--with", "github", "--name", "mine", "--", "true"], rc=0)
    assert control.calls[1][2]["with"] == ["github"] and control.calls[1][2]["name"] == "mine"
    for name, said in (("empty", b"`countersign secret set empty` seals one"), ("absent", b"no credential named `absent`")):
        assert said in lab.run(start + ["--with", name, "--", "true"], rc=1).err
    for name in ("../x", "", "A", "x/y"):
        lab.run(start + ["--with", name, "--", "true"], rc=2)
        lab.run(start + ["--name", name, "--", "true"], rc=2)
    lab.run(start, rc=2)
    control.extra["POST", "/api/v1/sandboxes"] = 503, {"title": "no", "detail": "the store is full\x1b[2J"}
    done = lab.run(start + ["--", "true"], rc=1)
    assert b"the store is full\\u{1b}[2J" in done.err, done.text()


@test("G9 run", "G10 run")
def an_ordinary_user_gets_the_same_sandbox(lab):
    """Everything else here runs as whoever runs the tests; this one drops root first."""
    start = as_nobody(lab)
    done = lab.run([*start, "--", "sh", "-c", "id -u; touch made; curl -sS https://x.test/"], rc=56)
    made = lab.dir / "work/made"
    assert done.out == b"1000\n" and b"response 403" in done.err and made.stat().st_uid == 65534, done.text()


if __name__ == "__main__":
    main()
