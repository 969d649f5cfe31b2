# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
"""How each program that measures is called, and how its words become numbers.

Latencies are half round trips in microseconds, bandwidths are in GB/s (10^9 bytes), rates in million messages per
second. A program that is missing, fails or takes too long raises NotMeasured with the reason: there is no figure then.
"""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

MIB = 1 << 20


class NotMeasured(Exception):
    """Why there is no figure."""


class TookTooLong(NotMeasured):
    """There would be none on a second attempt either."""


class Setup:
    """What all calls share: the build folder, the two CPUs, and the length of one measurement."""

    def __init__(self, build, cpus, ms):
        self.build = os.path.abspath(build)
        self.cpus = cpus
        self.ms = ms

    def cpu_pair(self):
        return "%d,%d" % tuple(self.cpus)


def _last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return re.sub(r"^\[[^]]*\]\s*", "", lines[-1]) if lines else "no message"


def _reason(program, text):
    """What the program said first in its own name, else what was said last."""
    own = [line for line in text.splitlines() if line.startswith(os.path.basename(program) + ": ")]
    return own[0].split(": ", 1)[1] if own else _last_line(text)


def _need(program):
    path = program if os.path.sep in program else shutil.which(program)
    if not path or not os.access(path, os.X_OK):
        raise NotMeasured("%s is not there" % os.path.basename(program))
    return path


def _stop(process):
    """End a program that was started here, with everything that it started."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(2)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _start(argv, env, out):
    return subprocess.Popen(argv, env={**os.environ, **env}, stdin=subprocess.DEVNULL, stdout=out,
                            stderr=subprocess.STDOUT if out is not subprocess.PIPE else subprocess.PIPE,
                            text=True, start_new_session=True)


def call(argv, env, limit):
    """Run a program to its end and return what it printed, standard error behind standard output."""
    _need(argv[0])
    process = _start(argv, env, subprocess.PIPE)
    try:
        out, err = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        raise TookTooLong("no end within %d s" % limit) from None
    finally:
        _stop(process)
    if process.returncode:
        kind = TookTooLong if process.returncode == 3 else NotMeasured
        raise kind(_reason(argv[0], err or out))
    return out + err


def _listening(port):
    """True when some process listens on this TCP port; connecting to find out would use up the server."""
    wanted = ":%04X" % port
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError), open(table) as f:
            for line in f:
                word = line.split()
                if word[1].endswith(wanted) and word[3] == "0A":
                    return True
    return False


def _said(log, words):
    with open("/proc/self/fd/%d" % log.fileno()) as again:  # its own place in the file: the server's stays
        return words in again.read()


def _free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def call_pair(server, client, env, port, limit, cpus, ready=None):
    """Run a server on the second CPU and, when it listens, a client on the first; return what the client printed.

    ready: what the server prints when its clients may come, for one that is not called by a TCP port.
    """
    _need(server[0])
    with tempfile.TemporaryFile("w+") as log:
        process = _start(["taskset", "-c", str(cpus[1])] + server, env, log)
        try:
            end = time.monotonic() + 5
            while not (_listening(port) if ready is None else _said(log, ready)):
                if process.poll() is not None or time.monotonic() > end:
                    log.seek(0)
                    raise NotMeasured("server: " + _last_line(log.read()))
                time.sleep(0.01)
            return call(["taskset", "-c", str(cpus[0])] + client, env, limit)
        finally:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(1)
            _stop(process)


# ---- this project's programs ----------------------------------------------------------------------------------------

class Provider:
    """One libfabric provider as a peer of the comparison."""

    def __init__(self, name, title, address=None, transport=None, build=None, key_file=None):
        self.name, self.title, self.address, self.transport, self.build = name, title, address, transport, build
        self.key_file = key_file

    def env(self):
        env = {"FI_LOG_LEVEL": "warn"}
        if self.build:
            env["FI_PROVIDER_PATH"] = self.build
        if self.transport:
            env["HEDDLE_TRANSPORT"] = self.transport
        if self.key_file:
            env["HEDDLE_KEY_FILE"] = self.key_file
        return env

    def check(self):
        if self.build and not os.path.exists(os.path.join(self.build, "libheddle-fi.so")):
            raise NotMeasured("libheddle-fi.so is not built in %s" % os.path.basename(self.build))


def _lines(text):
    for line in text.splitlines():
        if line.startswith("test="):
            yield dict(word.split("=", 1) for word in line.split())


def hd_bench(setup, provider, *options, limit=60):
    """Run hd-bench once; return its lines of result as dictionaries."""
    provider.check()
    argv = [os.path.join(setup.build, "bench", "hd-bench"), "-p", provider.name, "-r", "1", "-T", str(setup.ms),
            "--cpus", setup.cpu_pair(), "--timeout", "25", *options]
    if provider.address:
        argv += ["-a", provider.address]
    lines = list(_lines(call(argv, provider.env(), limit)))
    if not lines:
        raise NotMeasured("hd-bench printed no result")
    return lines


def _size_list(sizes):
    return ",".join(str(s) for s in sizes)


def fi_latency(setup, provider, sizes, *options):
    lines = hd_bench(setup, provider, "-t", "lat", "-s", _size_list(sizes), *options)
    return {int(d["size"]): float(d["median_us"]) for d in lines}


def fi_bandwidth(setup, provider, sizes):
    lines = hd_bench(setup, provider, "-t", "bw", "-s", _size_list(sizes))
    return {int(d["size"]): float(d["median_gb_s"]) for d in lines}


def fi_rate(setup, provider, *options):
    return {8: float(hd_bench(setup, provider, "-t", "rate", *options)[0]["median_mmsg_s"])}


def fi_match(setup, provider, n):
    """Ratios and nanoseconds by "kind order", such as "posted reverse"."""
    lines = hd_bench(setup, provider, "--match", str(n), limit=100)
    return {"%s, %s" % (d["kind"], d["order"]): (float(d["median_ratio"]), float(d["median_ns"]),
                                                float(d["one_median_ns"])) for d in lines}


def fi_wake(setup, provider, n):
    return {8: float(hd_bench(setup, provider, "--wake=%d" % n)[0]["median_us"])}


def fi_sleep(setup, provider, seconds):
    """CPU time of a sleeper, in percent of one core."""
    return {8: float(hd_bench(setup, provider, "--sleep", str(seconds))[0]["cpu_us_per_s"]) / 1e4}


def rma(setup, provider, sizes):
    """One-sided operations beside the bare system call: {figure: {size: (ours, bare)}}; and beside messages, 8 bytes."""
    provider.check()
    argv = [os.path.join(setup.build, "bench", "hd-rma"), "-p", provider.name, "-r", "3", "-T", str(setup.ms),
            "-c", setup.cpu_pair(), "-s", _size_list(sizes)]
    found = {}
    for d in _lines(call(argv, provider.env(), 90)):
        unit = "gb_s" if "median_gb_s" in d else "us"
        figure = d["test"] + (", " + d["target"] if "target" in d else "")
        beside = d.get("bare_" + unit) or d["message_us"]
        found.setdefault(figure, {})[int(d["size"])] = (float(d["median_" + unit]), float(beside))
    if not found:
        raise NotMeasured("hd-rma printed no result")
    return found


MEMORY_FIGURES = ("peer memory", "endpoint memory", "buffer memory", "endpoint descriptors")


def memory(setup, provider):
    """Resident KiB for each idle peer, each endpoint beyond the first, each buffer posted; by how many there were."""
    provider.check()
    argv = [os.path.join(setup.build, "bench", "hd-memory"), "-p", provider.name]
    if provider.address:
        argv += ["-a", provider.address]
    found = {figure: {} for figure in MEMORY_FIGURES}
    for d in _lines(call(argv, provider.env(), 60)):
        found[d["test"] + " memory"][int(d["n"])] = float(d["kib"])
        if "descriptors" in d:
            found["endpoint descriptors"][int(d["n"])] = float(d["descriptors"])
    if not all(found.values()):
        raise NotMeasured("hd-memory printed no result")
    return found


def _raw(setup, name, *options):
    return list(_lines(call([os.path.join(setup.build, "bench", name), "-c", setup.cpu_pair(), *options], {}, 60)))


def raw_latency(setup, sizes):
    lines = _raw(setup, "raw-tcp", "-r", "1", "-T", str(setup.ms), "-l", _size_list(sizes), "-b", "")
    return {int(d["size"]): float(d["median_us"]) for d in lines}


def raw_bandwidth(setup, sizes):
    lines = _raw(setup, "raw-tcp", "-r", "1", "-T", str(setup.ms), "-l", "", "-b", _size_list(sizes))
    return {int(d["size"]): float(d["median_gb_s"]) for d in lines}


def raw_wake(setup, n):
    return {8: float(_raw(setup, "raw-wake", "-n", str(n))[0]["median_us"])}


CORE, NEAR, FAR = "one core", "near", "far"
CORE_NS = 32  # between what a line takes between the two threads of a core, and between two cores that share a cache
FAR_NS = 150  # and where they share none


def raw_line(setup):
    """(nanoseconds that a bare line takes between the two CPUs, CORE, NEAR or FAR): a hypervisor moves them as it likes."""
    ns = float(_raw(setup, "raw-line")[0]["best_ns"])
    return ns, FAR if ns > FAR_NS else NEAR if ns > CORE_NS else CORE


def raw_copies(setup, sizes):
    """The kernel's calls alone: {figure: {size: value}} of BARE_FIGURES."""
    found = {figure: {} for figure in BARE_FIGURES}
    for d in _raw(setup, "raw-copy", "-T", str(setup.ms), "-s", _size_list(sizes)):
        figure = "bare " + d["test"] + (", " + d["target"] if "target" in d else "")
        found[figure][int(d["size"])] = float(d.get("median_us") or d["median_gb_s"])
    return found


BARE_FIGURES = ("bare write, asleep", "bare write, spinning", "bare pingpong", "bare read", "bare write")


# ---- verbs programs under `heddle run` --------------------------------------------------------------------------------

def _heddle_run(setup, provider):
    provider.check()
    return [_need(os.path.join(provider.build or setup.build, "heddle")), "run", "--"]


def _perftest(setup, provider, program, size, count, *options):
    """The words of the line that perftest prints for this size."""
    _need(program)
    port = _free_port()
    base = _heddle_run(setup, provider) + [program, "-F", "-s", str(size), "-n", str(count), "-p", str(port),
                                            *options]
    out = call_pair(base, base + ["127.0.0.1"], provider.env(), port, 30, setup.cpus)
    for line in out.splitlines():
        words = line.split()
        if len(words) >= 5 and words[:2] == [str(size), str(count)]:
            return [float(w) for w in words]
    raise NotMeasured("%s: %s" % (program, _last_line(out)))


def verbs_latency(setup, provider, program):
    """Half a round trip, the median of all: perftest's t_typical."""
    return {8: _perftest(setup, provider, program, 8, _count(setup, 8, 2, 8000))[4]}


def verbs_bandwidth(setup, provider, program, sizes):
    """perftest counts in MiB/s. -N: no time taken for each request, as the bare calls beside it take none."""
    return {s: _perftest(setup, provider, program, s, max(4 * _count(setup, s, 1, 20000), 1000), "-N")[3] * MIB / 1e9
            for s in sizes}


def verbs_rate(setup, provider):
    return {8: _perftest(setup, provider, "ib_send_bw", 8, _count(setup, 8, 0.2, 8000), "-N")[4]}


MANY_KINDS = ("qp", "srq", "window")
VERBS_MANY_FIGURES = (("qp memory", "wakes, polling", "wakes, asleep") +
                      tuple("%s of a %s" % (word, kind) for kind in MANY_KINDS for word in ("cost", "growth")))


def verbs_many(setup, provider):
    """Resident KiB of an idle queue pair, of the side that needs more; how many wakes there were; what creating the n-th object
    costs in microseconds, and the last against the first."""
    argv = _heddle_run(setup, provider) + [os.path.join(setup.build, "bench", "hd-verbs"), "-c", setup.cpu_pair()]
    found = {figure: {} for figure in VERBS_MANY_FIGURES}
    for d in _lines(call(argv, provider.env(), 60)):
        if d["test"] == "qp":
            found["qp memory"][int(d["n"])] = max(float(d["kib"]), float(d["other_kib"]))
        elif d["test"] == "cost":
            found["cost of a " + d["what"]][int(d["n"])] = float(d["us"])
        else:
            found["wakes, " + d["target"]][int(d["operations"])] = float(d["wakes"])
    for kind in MANY_KINDS:
        cost = found["cost of a " + kind]
        if cost:
            found["growth of a " + kind][max(cost)] = cost[max(cost)] / cost[min(cost)]
    if not all(found.values()):
        raise NotMeasured("hd-verbs printed no result")
    return found


SLEEPING_KINDS = ("rc", "ud", "socket")


def sleeping_figures(transport):
    return tuple("sleeping %s, %s" % (kind, transport) for kind in SLEEPING_KINDS)


def verbs_sleeping(setup, provider, transport):
    """Half a round trip of two ends that sleep between messages, by the worst of the ways to sleep; and of a bare socket's."""
    argv = _heddle_run(setup, provider) + [os.path.join(setup.build, "bench", "hd-sleep"), "-c", setup.cpu_pair()]
    found = {figure: {} for figure in sleeping_figures(transport)}
    for d in _lines(call(argv, provider.env(), 60)):
        figure = found["sleeping %s, %s" % (d["kind"], transport)]
        figure[8] = max(figure.get(8, 0), float(d["median_us"]))
    if not all(found.values()):
        raise NotMeasured("hd-sleep printed no result")
    return found


# ---- uDAPL programs under `heddle run` ---------------------------------------------------------------------------------

def _dapltest(setup, provider, operation, size, pipeline, count):
    """The words of the line "raw:" of dapltest's performance test, from the operation on."""
    run = _heddle_run(setup, provider) + [_need("dapltest")]
    client = run + ["-T", "P", "-s", "127.0.0.1", "-D", "heddle", "-m", "p", "-i", str(count), "-p", str(pipeline),
                    operation, str(size)]
    quit_it = " ".join(run + ["-T", "Q", "-s", "127.0.0.1", "-D", "heddle"])
    out = call_pair(run + ["-T", "S", "-D", "heddle"], ["sh", "-c", '"$@"; ' + quit_it, "sh"] + client, provider.env(),
                    0, 30, setup.cpus, "Service Point Ready")
    found = re.search(r"^raw: (%s, .*)$" % operation, out, re.M)
    if not found:
        raise NotMeasured("dapltest: " + _last_line(out))
    return [word.strip() for word in found.group(1).split(",")]


def dapl_latency(setup, provider, operation):
    """From post to completion, one at a time: dapltest's mean latency."""
    return {8: float(_dapltest(setup, provider, operation, 8, 1, _count(setup, 8, 1, 8000))[8])}


def dapl_bandwidth(setup, provider, operation, size):
    """dapltest counts in MiB/s."""
    words = _dapltest(setup, provider, operation, size, 16, max(_count(setup, size, 1, 20000), 1000))
    return {size: float(words[7]) * MIB / 1e9}


# ---- the peers' programs --------------------------------------------------------------------------------------------

def _ucx(setup, transports, tests):
    """tests: (name, test, size, iterations). Returns the words of each line of result by name."""
    port = _free_port()
    with tempfile.NamedTemporaryFile("w", suffix=".perftest") as batch:
        for name, test, size, count in tests:
            batch.write("%s -t %s -s %d -n %d -w %d\n" % (name, test, size, count, max(count // 10, 2)))
        batch.flush()
        base = ["ucx_perftest", "-p", str(port), "-b", batch.name]
        env = {"UCX_TLS": transports, "UCX_LOG_LEVEL": "error"}
        if "tcp" in transports:
            env["UCX_NET_DEVICES"] = "lo"
        out = call_pair(base, base + ["-f", "-v", "127.0.0.1"], env, port, 60, setup.cpus)
    found = {}
    for line in out.splitlines():
        words = line.split(",")
        if len(words) == 9 and words[1].strip().isdigit():
            found[words[0].strip()] = [float(w) for w in words[1:]]
    missing = [t[0] for t in tests if t[0] not in found]
    if missing:
        raise NotMeasured("ucx_perftest gave no line for %s: %s" % (missing[0], _last_line(out)))
    return found


def _count(setup, size, per_message_us, bytes_per_us):
    """Iterations that fill about one measurement, as hd-bench finds them by trying."""
    return max(int(setup.ms * 1e3 / (per_message_us + size / bytes_per_us)), 6)


def ucx_latency(setup, transports, sizes):
    floor = 8 if "tcp" in transports else 0.4
    tests = [(str(s), "tag_lat", s, _count(setup, s, 2 * floor, 4000)) for s in sizes]
    return {int(k): v[3] for k, v in _ucx(setup, transports, tests).items()}


def ucx_bandwidth(setup, transports, sizes):
    """ucx_perftest counts in MiB/s; its rate times the size is exact."""
    floor = 1.5 if "tcp" in transports else 0.2
    tests = [(str(s), "tag_bw", s, _count(setup, s, floor, 8000)) for s in sizes]
    return {int(k): v[7] * int(k) / 1e9 for k, v in _ucx(setup, transports, tests).items()}


def ucx_rate(setup, transports):
    tests = [("8", "tag_bw", 8, _count(setup, 8, 0.2, 8000))]
    return {8: _ucx(setup, transports, tests)["8"][7] / 1e6}


def fi_pingpong(setup, provider, count):
    """Debian's fi_pingpong, 8 bytes, tagged."""
    provider.check()
    port = _free_port()
    base = ["fi_pingpong", "-p", provider.name, "-e", "rdm", "-m", "tagged", "-S", "8", "-I", str(count)]
    out = call_pair(base + ["-B", str(port)], base + ["-P", str(port), "127.0.0.1"], provider.env(), port, 20,
                    setup.cpus)
    for line in out.splitlines():  # a warning may stand anywhere
        words = line.split()
        if len(words) == 8 and words[0] == "8":
            return {8: float(words[6])}
    raise NotMeasured("fi_pingpong: " + _last_line(out))


OPENMPI_OWN = "Open MPI's own shared memory"


def netpipe(setup, provider, size, count):
    """NetPIPE over Open MPI, over a libfabric provider or (OPENMPI_OWN) its own shared memory. One size, microseconds."""
    _need("NPopenmpi")
    env = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    if provider == OPENMPI_OWN:
        how = ["--mca", "pml", "ob1", "--mca", "btl", "self,vader"]
    else:
        provider.check()
        env.update(provider.env())
        how = ["--mca", "pml", "cm", "--mca", "mtl", "ofi", "--mca", "opal_common_ofi_provider_include", provider.name]
    with tempfile.TemporaryDirectory() as folder:
        out = call(["mpirun", "-np", "2", "--cpu-set", setup.cpu_pair(), "--bind-to", "core", *how, "NPopenmpi",
                    "-l", str(size), "-u", str(size), "-p", "0", "-n", str(count), "-o", folder + "/np"], env, 30)
    found = re.search(r"-->\s+\S+\s+Mbps in\s+(\S+)\s+usec", out)
    if not found:
        raise NotMeasured("NetPIPE printed no time")
    return {size: float(found.group(1))}


# ---- keys -----------------------------------------------------------------------------------------------------------

@contextlib.contextmanager
def sealed(provider):
    """The same provider with a key file of its own, which goes afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        key = os.path.join(folder, "key")
        call([os.path.join(provider.build, "heddle"), "key", key], {}, 5)
        yield Provider(provider.name, provider.title, provider.address, provider.transport, provider.build, key)


def sealed_latency(s, provider, sizes):
    with sealed(provider) as v:
        return fi_latency(s, v, sizes)


def sealed_bandwidth(s, provider, sizes):
    with sealed(provider) as v:
        return fi_bandwidth(s, v, sizes)


def aes_speed(s):
    """GB/s of AES-128-GCM on one processor, in blocks as long as a record of TLS."""
    out = call(["openssl", "speed", "-mr", "-evp", "aes-128-gcm", "-bytes", "16384", "-seconds", "1"], {}, 20)
    found = re.search(r"^\+F:\d+:[^:]*:([0-9.]+)", out, re.M)
    if not found:
        raise NotMeasured("openssl speed says no figure")
    return float(found.group(1)) / 1e9


def plain_then_aes(s, provider, sizes):
    """What is left of the plain bandwidth when all bytes are sealed first, one after the other."""
    aes = aes_speed(s)
    return {size: 1 / (1 / plain + 1 / aes) for size, plain in fi_bandwidth(s, provider, sizes).items()}
