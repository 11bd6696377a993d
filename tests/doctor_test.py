#!/usr/bin/env python3
"""Induces faults of the machine and checks that `weir doctor` names each one, and nothing else.

    doctor_test.py --weir FILE --hello FILE

Faults are made for one process: by limits, namespaces, control groups, system call filters, and by
files of an invented machine (--root). A fault that this machine does not allow is skipped. Each
fault also runs with a service that does not ask for what is missing: the doctor must be quiet then.
"""

import argparse
import contextlib
import ctypes
import errno
import json
import os
import pathlib
import platform
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

SKIPPED = 77
SKIPS_MAX = 6
SECONDS_MAX = 30
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
URING_SETUP, URING_ENTER = 425, 426  # the same numbers on all architectures

WELL = {
    "proc/self/status": "Name:\tweir\n",
    "proc/thread-self/status": "CapEff:\t0000000000000000\nSeccomp:\t0\n",
    "proc/self/limits":
        "Limit                     Soft Limit           Hard Limit           Units\n"
        "Max processes             96365                96365                processes\n"
        "Max open files            1024                 1048576              files\n"
        "Max locked memory         8388608              8388608              bytes\n"
        "Max realtime priority     99                   99\n"
        "Max file size             unlimited            unlimited            bytes\n",
    "proc/self/cgroup": "0::/\n",
    "proc/sys/kernel/osrelease": "6.1.0-28-amd64\n",
    "proc/sys/kernel/sched_rt_runtime_us": "950000\n",
    "proc/sys/net/core/somaxconn": "4096\n",
    "proc/sys/net/ipv4/tcp_max_syn_backlog": "128\n",
    "proc/sys/net/ipv4/tcp_syncookies": "1\n",
    "proc/sys/net/ipv4/ip_local_port_range": "32768\t60999\n",
    "proc/sys/net/ipv6/conf/all/disable_ipv6": "0\n",
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
    "sys/devices/system/clocksource/clocksource0/available_clocksource": "tsc hpet\n",
    "etc/hosts": "127.0.0.1 store.example\n",
    "etc/resolv.conf": "nameserver 127.0.0.1\n",
}


class Fault:
    """One fault: how it is made, what asks for the missing thing, and what the doctor says."""

    def __init__(self, name, check, status=1, found="", config="", quiet="", prefix=(), filters=(),
                 files=None, group=None, around=None):
        self.name, self.check, self.status, self.found = name, check, status, found
        self.config = config  # the configuration that asks for it; empty: every service does
        self.quiet = quiet  # a configuration that does not; None: there is none
        self.prefix, self.filters, self.files = list(prefix), filters, files
        self.group, self.around = group, around


def deny(number, error):
    """Makes a system call of this process fail, as a container's profile does."""
    libc = ctypes.CDLL(None, use_errno=True)
    program = struct.pack("HBBIHBBIHBBIHBBI", 0x20, 0, 0, 0, 0x15, 0, 1, number,
                          0x06, 0, 0, 0x00050000 | error, 0x06, 0, 0, 0x7FFF0000)
    buffer = ctypes.create_string_buffer(program)
    filters = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(buffer))
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.c_char_p(filters), 0, 0):
        os._exit(126)


def in_network(*settings):
    """A network of its own, with settings of the kernel."""
    lines = [f"echo '{value}' > /proc/sys/net/{name}" for name, value in settings]
    return ["unshare", "-n", "sh", "-c", "; ".join(["set -e", *lines, 'exec "$@"']), "sh"]


def with_setting(path, text, folder):
    """Hides a setting of the kernel behind a file."""
    file = pathlib.Path(folder) / f"setting_{text.strip()}"
    file.write_text(text)
    return ["unshare", "-m", "sh", "-c",
            f'set -e; mount --bind {file} {path}; exec "$@"', "sh"]


@contextlib.contextmanager
def control_group(controller, settings):
    """A child of this process's group of version 1, or None if that is not allowed."""
    root = pathlib.Path("/sys/fs/cgroup") / controller
    own = [line.split(":")[2] for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines()
           if controller in line.split(":")[1].split(",")]
    group = root / own[0].lstrip("/") / f"weir_doctor_{os.getpid()}" if own else None
    try:
        if group is None:
            raise OSError("no such controller")
        group.mkdir()
        if controller == "cpuset":
            (group / "cpuset.mems").write_text((group.parent / "cpuset.mems").read_text())
        for name, value in settings:
            (group / name).write_text(value)
    except OSError:
        yield None
    else:
        yield group
    finally:
        for _ in range(50):
            try:
                if group is not None and group.exists():
                    group.rmdir()
                break
            except OSError:
                time.sleep(0.1)


@contextlib.contextmanager
def listening(backlog=16):
    """A socket that listens; its port is the value."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(backlog)
        yield listener.getsockname()[1]


@contextlib.contextmanager
def full_queue():
    """A listener whose queue is full: the kernel drops further handshakes."""
    with listening(0) as port, contextlib.ExitStack() as clients:
        for _ in range(4):
            client = clients.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(("127.0.0.1", port))
        yield port


@contextlib.contextmanager
def silent_name_server():
    """A name server that never answers, at an address of its own."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        try:
            server.bind(("127.0.0.53", 53))
        except OSError:
            yield None
            return
        yield 53


class Certificates:
    """Files in PEM that openssl makes."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.make("good", 365)
        self.make("soon", 3)
        self.make("other", 365)
        self.make_expired()

    def run(self, *arguments):
        subprocess.run(["openssl", *arguments], check=True, capture_output=True, cwd=self.folder)

    def make(self, name, days):
        self.run("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                 "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-days",
                 str(days), "-keyout", f"{name}.key", "-out", f"{name}.pem")
        (self.folder / f"{name}.key").chmod(0o644)

    def make_expired(self):
        self.run("req", "-new", "-key", "good.key", "-subj", "/CN=localhost", "-out", "old.csr")
        (self.folder / "index.txt").write_text("")
        (self.folder / "serial").write_text("01\n")
        (self.folder / "ca.conf").write_text(
            "[ca]\ndefault_ca=a\n[a]\ndatabase=index.txt\nserial=serial\nnew_certs_dir=.\n"
            "default_md=sha256\npolicy=p\n[p]\ncommonName=supplied\n")
        self.run("ca", "-batch", "-config", "ca.conf", "-selfsign", "-keyfile", "good.key", "-in",
                 "old.csr", "-startdate", "20200101000000Z", "-enddate", "20200201000000Z",
                 "-out", "old.pem", "-notext")

    def config(self, chain, key):
        return f'[tls]\nchain = "{self.folder}/{chain}"\nkey = "{self.folder}/{key}"\n'


class Doctor:
    def __init__(self, program, folder):
        self.program, self.folder = program, pathlib.Path(folder)

    def run(self, fault, config, more=()):
        """Returns (status, output) of `weir doctor` on the machine with the fault."""
        arguments = [*fault.prefix, str(self.program), "doctor", "--timeout", "1", *more]
        if config:
            path = self.folder / "service.toml"
            path.write_text(config)
            path.chmod(0o644)
            arguments += ["--for", str(path)]
        if fault.files is not None:
            arguments += ["--root", self.tree(fault.files)]
        with contextlib.ExitStack() as stack:
            group = None
            if fault.group:
                group = stack.enter_context(control_group(*fault.group))
                if group is None:
                    return None, "this machine has no such control groups"

            def prepare():
                if group is not None:
                    (group / "cgroup.procs").write_text("0")
                for number, error in fault.filters:
                    deny(number, error)

            done = subprocess.run(arguments, capture_output=True, text=True, timeout=SECONDS_MAX,
                                  preexec_fn=prepare)
        return done.returncode, done.stdout + done.stderr

    def tree(self, changes):
        root = tempfile.mkdtemp(dir=self.folder)
        for name, text in {**WELL, **changes}.items():
            if text is None:
                continue
            path = pathlib.Path(root) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return root


def faults_of_limits(folder):
    connections = "connections_max = 20000\nbody_max = 1024\n"
    prlimit = lambda *limits: ["prlimit", *limits]
    real_time = "[real_time]\npriority = 50\nlock_memory = false\n"
    filtered = "a seccomp filter refuses it"
    epoll = 'backend = "epoll"\n'
    disabled = "/proc/sys/kernel/io_uring_disabled"
    addresses = "Max address space         314572800            unlimited            bytes\n"
    return [
        Fault("no descriptor is left", "descriptors", 2, "answers no client", quiet=None,
              prefix=prlimit("--nofile=10")),
        Fault("1024 descriptors", "descriptors", 1, "for 20000 connections", config=connections,
              prefix=prlimit("--nofile=1024")),
        Fault("io_uring EPERM", "io_uring", 1, filtered, quiet=epoll,
              filters=[(URING_SETUP, errno.EPERM)]),
        Fault("io_uring ENOSYS", "io_uring", 1, filtered, quiet=epoll,
              filters=[(URING_SETUP, errno.ENOSYS)]),
        Fault("io_uring refused after its setup", "io_uring", 1, "io_uring_enter", quiet=epoll,
              filters=[(URING_ENTER, errno.EPERM)]),
        Fault("io_uring demanded", "io_uring", 2, filtered, config='backend = "uring"\n',
              quiet=epoll, filters=[(URING_SETUP, errno.EPERM)]),
        Fault("io_uring_disabled 2", "io_uring", 1, "kernel.io_uring_disabled is 2", quiet=epoll,
              prefix=with_setting(disabled, "2\n", folder), filters=[(URING_SETUP, errno.EPERM)]),
        Fault("io_uring_disabled 1", "io_uring", 1, "kernel.io_uring_disabled is 1", quiet=epoll,
              prefix=with_setting(disabled, "1\n", folder) + NOBODY,
              filters=[(URING_SETUP, errno.EPERM)]),
        Fault("a kernel that is too old", "io_uring", 1, "is too old", quiet=epoll,
              filters=[(URING_SETUP, errno.EINVAL)]),
        Fault("5 processes of its user", "processes", 1, "RLIMIT_NPROC", quiet=None,
              prefix=NOBODY + prlimit("--nproc=5")),
        Fault("300 MiB of addresses", "address_space", 1, "300 MiB (RLIMIT_AS", quiet=None,
              files={"proc/self/limits": WELL["proc/self/limits"] + addresses}),
        Fault("no file size", "file_size", 1, "RLIMIT_FSIZE", config='log_file = "/tmp/a"\n',
              prefix=prlimit("--fsize=0")),
        Fault("no real time", "real_time", 1, "RLIMIT_RTPRIO", config=real_time,
              prefix=NOBODY + prlimit("--rtprio=0")),
        Fault("no real time in the kernel", "real_time", 1, "sched_rt_runtime_us is 0",
              config=real_time, files={"proc/sys/kernel/sched_rt_runtime_us": "0\n"}),
        Fault("64 KiB of locked memory", "locked_memory", 1, "RLIMIT_MEMLOCK",
              config="[real_time]\npriority = 0\n", prefix=NOBODY + prlimit("--memlock=65536")),
        Fault("/proc not mounted", "proc", 1, "/proc is not mounted", quiet=None,
              prefix=["unshare", "-m", "sh", "-c", 'umount -l /proc && exec "$@"', "sh"]),
    ]


def faults_of_the_network():
    many = "outgoing_connections = 1000\n"
    return [
        Fault("somaxconn 128", "backlog", 1, "somaxconn is 128", config="backlog = 1024\n",
              quiet="backlog = 100\n", prefix=in_network(("core/somaxconn", 128))),
        Fault("tcp_max_syn_backlog 64", "syn_backlog", 1, "is 64", quiet="backlog = 64\n",
              prefix=in_network(("ipv4/tcp_max_syn_backlog", 64))),
        Fault("no syncookies", "syn_cookies", 1, "is 0", quiet=None,
              prefix=in_network(("ipv4/tcp_syncookies", 0))),
        Fault("100 ports", "ports", 1, "100 ports", config=many,
              prefix=in_network(("ipv4/ip_local_port_range", "40000 40099"))),
        Fault("a small table of tracked connections", "tracked_connections", 1, "at most 1000",
              config="connections_max = 2000\n",
              files={"proc/sys/net/netfilter/nf_conntrack_max": "1000\n"}),
        Fault("a full table of tracked connections", "tracked_connections", 1, "1000 of at most",
              quiet=None, files={"proc/sys/net/netfilter/nf_conntrack_max": "1000\n",
                                 "proc/sys/net/netfilter/nf_conntrack_count": "1000\n"}),
        Fault("a privileged port", "privileged_port", 2, "CAP_NET_BIND_SERVICE",
              config='listen = "127.0.0.1:80"\n', quiet='listen = "127.0.0.1:18080"\n',
              prefix=in_network(("ipv4/ip_unprivileged_port_start", 1024)) + NOBODY),
        Fault("no IPv6", "ipv6", 2, "IPv6 is disabled", config='listen = "[::1]:18080"\n',
              prefix=in_network(("ipv6/conf/all/disable_ipv6", 1))),
    ]


def faults_of_cpus():
    two = "cores = 2\n"
    memory = "connections_max = 1000\nbody_max = 1048576\n"
    interrupts = {
        "proc/interrupts": "   CPU0  CPU1\n 24: 90000 0 PCI-MSI eth0-0\n"
                           " 25: 90000 0 PCI-MSI eth0-1\n",
        "sys/class/net/eth0/device/msi_irqs/24": "msi\n",
        "sys/class/net/eth0/device/msi_irqs/25": "msi\n",
    }
    clock = "sys/devices/system/clocksource/clocksource0/current_clocksource"
    return [
        Fault("half a CPU (version 1)", "cpu_quota", 1, "0.5 CPUs", config=two,
              group=("cpu", [("cpu.cfs_period_us", "100000"), ("cpu.cfs_quota_us", "50000")])),
        Fault("half a CPU (version 2)", "cpu_quota", 1, "0.5 CPUs", config=two,
              files={"sys/fs/cgroup/cpu.max": "50000 100000\n"}),
        Fault("one CPU by affinity", "cpuset", 1, "1 CPU of", config=two,
              prefix=["taskset", "-c", "0"]),
        Fault("one CPU by cpuset", "cpuset", 1, "1 CPU of", config=two,
              group=("cpuset", [("cpuset.cpus", "0")])),
        Fault("512 MiB (version 1)", "memory", 1, "512 MiB", config=memory,
              group=("memory", [("memory.limit_in_bytes", str(512 << 20))])),
        Fault("512 MiB (version 2)", "memory", 1, "512 MiB", config=memory,
              files={"sys/fs/cgroup/memory.max": f"{512 << 20}\n"}),
        Fault("512 MiB of the machine", "memory", 1, "512 MiB (the machine)", config=memory,
              files={"proc/meminfo": f"MemTotal:       {512 << 10} kB\n"}),
        Fault("few tasks (version 1)", "tasks", 1, "pids.max", quiet=None,
              group=("pids", [("pids.max", "4")])),
        Fault("TasksMax= of a unit", "tasks", 2, "0 more threads", quiet=None,
              files={"sys/fs/cgroup/pids.max": "10\n", "sys/fs/cgroup/pids.current": "10\n"}),
        Fault("the clock hpet", "clock_source", 1, "hpet", quiet=None, files={clock: "hpet\n"}),
        Fault("all interrupts on one CPU", "interrupts", 1, "eth0 (2 queues)", config=two,
              quiet="cores = 1\n", files=interrupts),
    ]


def faults_of_names_and_files(certificates):
    name = 'host_names = ["store.example"]\n'
    absent = 'host_names = ["absent.example"]\n'
    server = {"etc/resolv.conf": "nameserver 127.0.0.53\noptions timeout:1 attempts:1\n"}
    search = {"etc/resolv.conf": "nameserver 127.0.0.1\nsearch a b c d\noptions ndots:5\n"}
    (certificates.folder / "secret.key").write_text((certificates.folder / "good.key").read_text())
    (certificates.folder / "secret.key").chmod(0o600)
    store = 'url = "postgres://user:secret@127.0.0.1:{port}/shop"\n'
    return [
        Fault("no resolv.conf", "name_servers", 1, "No such file", config=name,
              files={"etc/resolv.conf": None}),
        Fault("a silent name server", "name", 1, "no answer in 1 s", config=absent, files=server,
              around=silent_name_server),
        Fault("no name server", "name", 1, "absent.example", config=absent, files={}),
        Fault("ndots:5 and 4 search domains", "search_domains", 1, "ndots:5", config=name,
              files=search),
        Fault("a key that is not readable", "certificate", 2, "Permission denied",
              config=certificates.config("good.pem", "secret.key"), prefix=NOBODY),
        Fault("an expired certificate", "certificate", 2, "expired",
              config=certificates.config("old.pem", "good.key"),
              quiet=certificates.config("good.pem", "good.key")),
        Fault("a certificate that expires soon", "certificate", 1, "expires in 2 days",
              config=certificates.config("soon.pem", "soon.key")),
        Fault("the key of another certificate", "certificate", 2, "key_mismatch",
              config=certificates.config("good.pem", "other.key")),
        Fault("a store that refuses", "store", 1, "Connection refused",
              config=store.format(port=1)),
        Fault("a store that is filtered", "store", 1, "no answer in 1 s", config=store,
              around=full_queue),
        Fault("a port in use", "address", 2, "in use", config='listen = "127.0.0.1:{port}"\n',
              around=listening),
    ]


def check_fault(doctor, fault):
    """Returns the reason of a failure, "" if all is right, or None if it was skipped."""
    with contextlib.ExitStack() as stack:
        port = stack.enter_context(fault.around()) if fault.around else 0
        if port is None:
            return None
        config = fault.config.replace("{port}", str(port))
        status, output = doctor.run(fault, config)
        if status is None or status == 126 or "Operation not permitted" in output and \
                fault.prefix and "doctor:" not in output:
            return None
        if fault.check == "proc" and "Sanitizer" in output:
            return None  # the runtime of the sanitizers needs /proc
        lines = [line for line in output.splitlines() if not line.startswith("doctor: ")]
        named = [line for line in lines if line.startswith(fault.check + ": ")]
        if len(lines) != 1 or len(named) != 1 or fault.found not in output:
            return f"expected one line of {fault.check} with {fault.found!r}:\n{output}"
        if status != fault.status:
            return f"status {status} instead of {fault.status}:\n{output}"
        if "secret@" in output:
            return f"shows a password:\n{output}"
        found = json.loads(doctor.run(fault, config, ["--json"])[1])["findings"]
        if [each["check"] for each in found if each["severity"] != "note"] != [fault.check]:
            return f"the JSON names {found}"
        if fault.quiet is None:
            return ""
        status, output = doctor.run(fault, fault.quiet)
        if status != 0 or len(output.splitlines()) != 1:
            return f"a false alarm, with status {status}:\n{output}"
    return ""


def check_clean_machine(doctor, certificates):
    """The doctor says one line on a machine without a fault."""
    here, tree = Fault("", ""), Fault("", "", files={})
    everything = ("cores = 1\nconnections_max = 100\nbody_max = 1024\n"
                  'host_names = ["localhost"]\nlisten = "127.0.0.1:0"\nlog_file = "a"\n'
                  "outgoing_connections = 1000\n" + certificates.config("good.pem", "good.key"))
    with listening() as port:
        for fault, config in ((here, ""), (here, everything), (tree, ""),
                              (here, f'url = "redis://127.0.0.1:{port}"\n')):
            status, output = doctor.run(fault, config)
            if status != 0 or not re.fullmatch(r"doctor: \d+ checks: well\n", output):
                return f"status {status} on a clean machine:\n{output}"
    status, output = doctor.run(here, "a = = 1\n")
    if status != 2 or "service.toml:1" not in output:
        return f"status {status} of a malformed configuration:\n{output}"
    return ""


def start_lines(program, prefix=(), filters=(), arguments=(), until="listening on"):
    """Returns what a server logs at its start, up to a line that contains `until`."""
    def prepare():
        for number, error in filters:
            deny(number, error)

    process = subprocess.Popen([*prefix, str(program), "--port", "0", *arguments], text=True,
                               stderr=subprocess.PIPE, preexec_fn=prepare)
    lines = []
    limit = threading.Timer(SECONDS_MAX, process.kill)
    limit.start()
    for line in process.stderr:
        lines.append(line)
        if until in line:
            break
    limit.cancel()
    process.send_signal(signal.SIGTERM)
    try:
        return "".join(lines) + process.communicate(timeout=SECONDS_MAX)[1]
    finally:
        process.kill()


def check_start(hello):
    """A server says the same at its start, and nothing on a clean machine."""
    clean = start_lines(hello)
    if ", wanted " in clean or "listening on" not in clean:
        return f"a start on a clean machine:\n{clean}"
    scarce = start_lines(hello, ["prlimit", "--nofile=13"], arguments=["--cores", "2"],
                          until="answers no client")
    if len(re.findall(r"^weir: descriptors: .*answers no client", scarce, re.MULTILINE)) != 1:
        return f"a start with 13 descriptors:\n{scarce}"
    refused = start_lines(hello, filters=[(URING_SETUP, errno.EPERM)])
    if len(re.findall(r"^weir: io_uring: a seccomp filter", refused, re.MULTILINE)) != 1:
        return f"a start without io_uring:\n{refused}"
    asked = start_lines(hello, filters=[(URING_SETUP, errno.EPERM)],
                        arguments=["--backend", "epoll"])
    if ", wanted " in asked:
        return f"a start with epoll:\n{asked}"
    return ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--weir", type=pathlib.Path, required=True)
    parser.add_argument("--hello", type=pathlib.Path, required=True)
    parser.add_argument("--only", default="", help="a part of the names of the faults")
    arguments = parser.parse_args()
    if platform.machine() != "x86_64" or os.geteuid() != 0:
        print("faults are induced as root on x86-64 only")
        return SKIPPED
    failures, skipped, passed = 0, [], 0
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        certificates = Certificates(folder)
        doctor = Doctor(arguments.weir.resolve(), folder)
        cases = [(fault.name, lambda fault=fault: check_fault(doctor, fault)) for fault in (
            *faults_of_limits(folder), *faults_of_the_network(), *faults_of_cpus(),
            *faults_of_names_and_files(certificates))]
        cases.append(("a clean machine", lambda: check_clean_machine(doctor, certificates)))
        cases.append(("the start of a server", lambda: check_start(arguments.hello.resolve())))
        for name, check in cases:
            if arguments.only not in name:
                continue
            reason = check()
            if reason is None:
                skipped.append(name)
            elif reason:
                print(f"FAIL {name}: {reason}")
                failures += 1
            else:
                passed += 1
    print(f"{passed} passed, {failures} failed, {len(skipped)} skipped: {', '.join(skipped)}")
    if failures or len(skipped) > SKIPS_MAX:
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
