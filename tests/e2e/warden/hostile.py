"""What a hostile sandbox tries, run inside one by test_escapes.py, which gives this text to Python there. Prints a row for each:
what it tried (its first word is an id of attacks.tsv), what may come of it, and what came of it. `worked` means that it did; a filter's
no is told from the kernel's by its number, so a call that reached the kernel with bad arguments is no refusal."""
import ctypes
import errno
import fcntl
import json
import os
import resource
import shutil
import socket
import subprocess
import sys

KINDS = {"user": 0x10000000, "mnt": 0x20000, "net": 0x40000000, "pid": 0x20000000, "ipc": 0x8000000, "uts": 0x4000000, "cgroup": 0x2000000}
HIGH = 1 << 32  # an int argument of the kernel's has 32 bits, a filter sees 64
SEEN, ROWS = "EACCES EPERM EROFS ENOENT", []
FDS = [fd for fd in range(3, 1024) if os.path.lexists(f"/proc/self/fd/{fd}")]  # as it began
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long


def call(number, *words):
    ctypes.set_errno(0)
    got = libc.syscall(ctypes.c_long(number), *[word if isinstance(word, bytes) else ctypes.c_long(word) for word in words])
    if number == 56 and got == 0:
        os._exit(0)
    return "worked" if got >= 0 else errno.errorcode.get(ctypes.get_errno(), "?")


def attempt(function, *words):
    try:
        function(*words)
    except OSError as e:
        return errno.errorcode.get(e.errno, "?")
    except ValueError:
        return "EINVAL"
    return "worked"


def hidden(path):
    got = attempt(read, path)
    return "empty" if got == "worked" and read(path) == b"" else got


def row(what, may, got):
    ROWS.append((what, may, got))


def read(path):
    with open(path, "rb") as f:
        return f.read(1)


def write(path, data=b"1"):
    with open(path, "wb", buffering=0) as f:
        f.write(data)


def calls(group, may, **numbers):
    for name, words in numbers.items():
        row(f"{group} {name}", may, call(*words))


def namespaces():
    for kind, flag in KINDS.items():
        for high in (0, HIGH):
            row(f"G11 unshare {kind} {high:x}", "EPERM", call(272, high | flag))
            row(f"G11 clone {kind} {high:x}", "EPERM", call(56, high | flag | 17, 0, 0, 0, 0))
    row("G11 unshare time", "EPERM", call(272, 0x80))
    calls("G11", "ENOSYS", clone3=(435, b"\0" * 88, 88))
    calls("G11", "EPERM", setns=(308, 0, 0), mount=(165, b"proc", b"/tmp", b"proc", 0, 0), bind=(165, b"/", b"/tmp", 0, 4096, 0),
          remount=(165, b"", b"/proc", 0, 32, 0), umount=(166, b"/workspace", 2), pivot_root=(155, b"/tmp", b"/tmp"), chroot=(161, b"/tmp"),
          move_mount=(429, 0, 0, 0, 0, 0), open_tree=(428, -100, b"/", 0), fsopen=(430, b"proc", 0), fsconfig=(431, 0, 0, 0, 0, 0),
          fsmount=(432, 0, 0, 0), fspick=(433, -100, b"/", 0), mount_setattr=(442, -100, b"/", 0, 0, 0),
          open_by_handle_at=(304, -100, 0, 0), name_to_handle_at=(303, -100, b"/", 0, 0, 0))
    for name in ("uid_map", "gid_map", "setgroups", "oom_score_adj", "attr/current", "clear_refs"):
        row(f"G11 write /proc/self/{name}", SEEN + " EINVAL", attempt(write, f"/proc/self/{name}"))
    row("G11 a control: what is allowed works", "worked", call(272, 0))


def kernel():
    calls("G13", "EPERM", keyctl=(250, 0, -3, 1), add_key=(248, b"user", b"x", b"y", 1, -3), request_key=(249, b"user", b"x", 0, -3))
    row("G13 /proc/keys", SEEN + " empty", hidden("/proc/keys"))
    calls("G11", "ENOSYS", io_uring_setup=(425, 1, b"\0" * 120), io_uring_enter=(426, 0, 1, 0, 0, 0, 0), io_uring_register=(427, 0, 0, 0, 0))
    calls("G10", "EPERM", bpf=(321, 0, 0, 0), perf=(298, 0, 0, -1, -1, 0), userfaultfd=(323, 1), fanotify=(300, 0, 0), quotactl=(179, 0, 0, 0, 0),
          kexec=(246, 0, 0, 0, 0), init_module=(175, 0, 0, b""), finit_module=(313, 0, b"", 0), delete_module=(176, b"x", 0), reboot=(169, 0, 0, 0, 0),
          swapon=(167, b"/tmp", 0), acct=(163, 0), syslog=(103, 3, 0, 0), settimeofday=(164, 0, 0), clock_settime=(227, 0, 0),
          adjtimex=(159, 0), iopl=(172, 3), ioperm=(173, 0, 1, 1), modify_ldt=(154, 0, 0, 0), vhangup=(153,), lookup_dcookie=(212, 0, 0, 0),
          sethostname=(170, b"x", 1), mknod=(133, b"/workspace/mem", 0o20666, 0x101), mknod_disk=(133, b"/workspace/disk", 0o60666, 0xfe00),
          setgroups=(116, 0, 0), realtime=(144, 0, 1, b"\1\0\0\0"))
    row("G10 setuid", "EPERM EINVAL", call(105, 0))
    row("G10 setgid", "EPERM EINVAL", call(106, 0))
    row("G10 capset", "EPERM", call(126, b"\x22\x05\x08\x20" + b"\0" * 4, b"\xff" * 24))
    row("G10 a priority", "EACCES EPERM", attempt(os.setpriority, os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, 0) - 1))
    for name in ("NOFILE", "NPROC", "CORE", "MEMLOCK", "RTPRIO"):
        kind, hard = getattr(resource, "RLIMIT_" + name), resource.getrlimit(getattr(resource, "RLIMIT_" + name))[1]
        if hard != resource.RLIM_INFINITY:
            row(f"G20 a higher {name}", "EPERM EINVAL", attempt(resource.setrlimit, kind, (hard + 1, hard + 1)))
    shutil.copy("/usr/bin/id", "/workspace/id")
    os.chmod("/workspace/id", 0o6755)
    row("G10 a set-user-id program", "1000", subprocess.run(["/workspace/id", "-u"], capture_output=True, text=True, check=True).stdout.strip())
    for words in (["su", "-c", "true"], ["unshare", "-Ur", "true"], ["mount", "-t", "tmpfs", "x", "/tmp"], ["chroot", "/", "true"]):
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        row(f"G10 {words[0]}", "refused", "worked" if done.returncode == 0 else "refused")


def sockets():
    for name, number in (("socket", 41), ("socketpair", 53)):
        for family in range(64):
            if family not in (1, 2, 10, 16):
                for high in (0, HIGH):
                    row(f"G6 {name} of family {family} {high:x}", "EAFNOSUPPORT", call(number, high | family, 2, 0, b"\0" * 8))
        for high in (64, 0x7fff, -1):
            row(f"G6 {name} of family {high}", "EAFNOSUPPORT", call(number, high, 2, 0, b"\0" * 8))
        for protocol in range(1, 32):
            row(f"G6 {name} of netlink {protocol}", "EPROTONOSUPPORT", call(number, 16, 3, protocol, b"\0" * 8))
        for protocol in (33, 132, 136, 262):  # DCCP, SCTP, UDP-Lite, MPTCP
            row(f"G6 {name} of protocol {protocol}", "EPROTONOSUPPORT", call(number, 2, 1, protocol, b"\0" * 8))
    row("G6 a raw socket", "EPERM", call(41, 2, 3, 1))
    row("G6 a control: a pair works", "worked", call(53, 1, 1, 0, ctypes.create_string_buffer(8).raw))
    outside, theirs = sys.argv[1].encode(), b"\0theirs"
    for name in (outside, theirs):
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
            row(f"G4 {name!r}", "ECONNREFUSED", attempt(socket.socket(socket.AF_UNIX, kind).connect, name))
    own = socket.socket(socket.AF_UNIX)
    own.bind(b"\0own")
    own.listen()
    row("G4 a control: one of its own", "worked", attempt(socket.socket(socket.AF_UNIX).connect, b"\0own"))
    for path in sys.argv[2:]:
        row(f"G3 {path}", "ENOENT EACCES", attempt(socket.socket(socket.AF_UNIX).connect, path))
        row(f"G14 {path}", SEEN, attempt(read, path))
    names = [line.split()[-1] for line in open("/proc/net/unix").readlines()[1:] if "/" in line or "@" in line]
    row("G4 sockets that are seen", "", " ".join(name for name in names if name != "@own"))
    row("G4 shared memory of another one", "ENOENT", call(29, 0x5ec7e7, 0, 0))
    row("G4 a message queue of another one", "ENOENT", call(68, 0x5ec7e7, 0))
    row("G4 a queue with a name", SEEN + " ENOSYS", call(240, b"theirs", 0))
    row("G4 /dev/shm", "", " ".join(os.listdir("/dev/shm")))


def others():
    calls("G9", "EPERM ESRCH", attach=(101, 16, 1, 0, 0), seize=(101, 0x4206, 1, 0, 0))
    room = ctypes.create_string_buffer(8)
    vector = (ctypes.addressof(room)).to_bytes(8, "little") + (8).to_bytes(8, "little")
    calls("G9", "EPERM", process_vm_readv=(310, 1, vector, 1, vector, 1, 0), process_vm_writev=(311, 1, vector, 1, vector, 1, 0), kcmp=(312, 1, 1, 0, 0, 0))
    handle = libc.syscall(ctypes.c_long(434), ctypes.c_long(1), ctypes.c_long(0))
    if handle >= 0:
        row("G9 pidfd_getfd", "EPERM ESRCH", call(438, handle, 3, 0))
    for name in ("mem", "environ", "maps", "auxv", "io", "pagemap", "stack", "syscall"):
        row(f"G9 /proc/1/{name}", SEEN, attempt(read, f"/proc/1/{name}"))
    for name in ("fd", "map_files", "root", "cwd", "task/1/fd"):
        row(f"G9 /proc/1/{name}", SEEN, attempt(os.listdir, f"/proc/1/{name}"))
    for name in ("exe", "root", "cwd", "ns/mnt", "ns/user", "ns/net"):
        row(f"G9 where /proc/1/{name} leads", SEEN, attempt(os.readlink, f"/proc/1/{name}"))
    row("G9 its limits", "EPERM", attempt(resource.prlimit, 1, resource.RLIMIT_NOFILE, (1, 1)))
    row("G9 a control: one's own", "worked", attempt(resource.prlimit, 0, resource.RLIMIT_NOFILE))
    for number in range(1, 65):
        row(f"G9 signal {number}", "EPERM worked", attempt(os.kill, 1, number))  # whether it lives is seen outside
    shown = b"".join(open(f"/proc/{pid}/cmdline", "rb").read() for pid in os.listdir("/proc") if pid.isdigit())
    row("G9 processes of another one", "none", "worked" if b"98765" in shown else "none")
    row("G9 files of another one", "ENOENT", attempt(read, "/workspace/theirs"))
    row("G9 files of another one in /tmp", "ENOENT", attempt(read, "/tmp/theirs"))
    about = "".join(open(f"/proc/self/{name}").read() for name in ("cgroup", "environ", "mountinfo", "status")) + os.uname().nodename
    row("G9 names of another one", "none", "worked" if "neighbour" in about else "none")
    row("G2 descriptors", "", " ".join(str(fd) for fd in FDS))
    row("G1 variables", "", " ".join(name for name in os.environ if any(part in name.upper() for part in ("TOKEN", "KEY", "SECRET", "PASS", "PROXY", "LD_"))))


def machine():
    for path in ("/sys/kernel/uevent_helper", "/sys/fs/cgroup/release_agent", "/sys/fs/cgroup/cgroup.procs", "/sys/kernel/mm/ksm/run", "/sys/power/state",
                 "/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/kernel/hostname", "/proc/sys/vm/drop_caches",
                 "/proc/sys/fs/binfmt_misc/register", "/proc/sys/kernel/ns_last_pid", "/proc/sys/net/ipv4/ip_forward", "/proc/1/oom_score_adj", "/proc/irq/default_smp_affinity",
                 "/dev/mem", "/dev/kmem", "/dev/port", "/dev/kmsg", "/dev/vda", "/dev/sda", "/dev/loop0", "/dev/loop-control", "/dev/fuse", "/dev/kvm", "/dev/net/tun",
                 "/dev/console", "/usr/bin/planted", "/etc/passwd", "/etc/ld.so.preload", "/countersign/countersign-shim", "/planted", "/dev/planted"):
        row(f"G21 write {path}", SEEN + " EIO ETXTBSY ENOTDIR ENXIO", attempt(write, path))
    for path in ("/sys/kernel", "/sys/fs/cgroup", "/sys/firmware", "/sys/class/net", "/root", "/home/root", "/var/lib", "/proc/1/root"):
        row(f"G21 list {path}", SEEN, attempt(os.listdir, path))
    for path in ("/proc/kcore", "/proc/kallsyms", "/proc/key-users", "/proc/kpagecount", "/proc/kpageflags", "/proc/kpagecgroup", "/proc/slabinfo",
                 "/proc/vmallocinfo", "/proc/timer_list", "/proc/sched_debug", "/proc/kmsg", "/proc/sys/kernel/random/../../../../etc/shadow", "/etc/shadow", "/etc/hostname"):
        row(f"G21 read {path}", SEEN + " empty", hidden(path))
    devices = {name for name in os.listdir("/dev") if os.path.exists(f"/dev/{name}") and (os.stat(f"/dev/{name}").st_mode & 0o170000) in (0o20000, 0o60000)}
    row("G21 devices", "", " ".join(sorted(devices - {"null", "zero", "full", "random", "urandom", "tty", "ptmx", "stdin", "stdout", "stderr"})))
    row("G20 its cgroup", "", " ".join(line.strip() for line in open("/proc/self/cgroup") if not line.strip().endswith((":/", "::"))))
    masters, slave = os.openpty()
    for name, number in (("TIOCSTI", 0x5412), ("TIOCLINUX", 0x541C), ("TIOCSETD", 0x5423), ("TIOCCONS", 0x541D)):
        for high in (0, HIGH):
            for end, fd in (("master", masters), ("slave", slave)):
                row(f"G12 {name} {high:x} {end}", "EPERM", call(16, fd, high | number, b"\2\0\0\0x"))
    row("G12 a control: a terminal works", "worked", attempt(fcntl.ioctl, slave, 0x5413, b"\0" * 8))


for part in (namespaces, kernel, sockets, others, machine):
    part()
print(json.dumps(ROWS))
