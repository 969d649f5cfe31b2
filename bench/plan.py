# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
"""What is measured, of whom, and in which order: neighbours in a list of tasks are neighbours in time."""

import programs as p
from report import BARE_COPY, DAPL_SIZE, MIB, MPI_OWN, RAW, RMA_FIGURES, SHM, TCP, UCX, UCX_TCP, VERBS_BANDWIDTH_KEYS

BARE_WAKE = "bare eventfd"
ALL_SIZES = [1 << i for i in range(25)]
FEW_SIZES = [1, 8, 64, 512, 4096, 32768, 262144, 524288, MIB, 2 * MIB, 4 * MIB, 16 * MIB]
PARTS = ("shm", "rma", "tcp", "match", "wake", "one", "memory", "clients", "verbs", "dat", "keys")


class Task:
    """One program measuring one figure. `run` returns {key: value}, or {figure: {key: value}} if `figure` is a tuple."""

    def __init__(self, part, figure, peer, run):
        self.part, self.figure, self.peer, self.run = part, figure, peer, run


def providers(build, address="127.0.0.1"):
    return {
        "shm heddle": p.Provider("heddle", "heddle", address, "shm", build),
        "tcp heddle": p.Provider("heddle", "heddle", address, "tcp", build),
        SHM: p.Provider("shm", SHM),
        TCP: p.Provider("tcp;ofi_rxm", TCP, address),
    }


def shm_tasks(s, pr, sizes):
    ours, theirs = pr["shm heddle"], pr[SHM]
    one, copy = "posix,self", "posix,cma,self"
    ucx = {"latency": (p.ucx_latency, one), "bandwidth": (p.ucx_bandwidth, copy)}
    tasks = []

    def add(figure, peer, run):
        tasks.append(Task("shm", figure, peer, run))

    def add_sizes(word, fi):
        """A program for each size: where the CPUs are is looked at before and after, and neighbours are of one size."""
        figure, (run_ucx, transports) = "shm " + word, ucx[word]
        for size in sizes:
            add(figure, "heddle", lambda z=[size]: fi(s, ours, z))
            add(figure, SHM, lambda z=[size]: fi(s, theirs, z))
            add(figure, UCX, lambda z=[size]: run_ucx(s, transports, z))

    add_sizes("latency", p.fi_latency)
    add("shm latency, alone", "heddle", lambda: p.fi_latency(s, ours, [8]))
    add("shm latency, 63 idle", "heddle", lambda: p.fi_latency(s, ours, [8], "--idle", "63"))
    add("shm rate", "heddle", lambda: p.fi_rate(s, ours))
    add("shm rate", SHM, lambda: p.fi_rate(s, theirs))
    add("shm rate", UCX, lambda: p.ucx_rate(s, one))
    add_sizes("bandwidth", p.fi_bandwidth)
    for word in ("inject", "untagged"):
        option = "--" + word
        add("shm latency, " + word, "heddle", lambda o=option: p.fi_latency(s, ours, [8], o))
        add("shm latency, " + word, SHM, lambda o=option: p.fi_latency(s, theirs, [8], o))
    return tasks


RMA_SIZES = [8, 64, 4096, 262144, MIB, 4 * MIB]


def rma_tasks(s, pr):
    """One program measures both sides of each comparison, in turn: two peers of one task."""
    seen = {}

    def side(i):
        if i == 0:
            seen.clear()
            seen.update(p.rma(s, pr["shm heddle"], RMA_SIZES))
        elif not seen:
            raise p.NotMeasured("hd-rma gave no figures in this round")
        return {figure: {k: v[i] for k, v in seen.get(figure, {}).items()} for figure in RMA_FIGURES}

    return [Task("rma", RMA_FIGURES, "heddle", lambda: side(0)),
            Task("rma", RMA_FIGURES, BARE_COPY, lambda: side(1))]


def tcp_tasks(s, pr, sizes):
    ours, theirs = pr["tcp heddle"], pr[TCP]
    tasks = []

    def add(figure, peer, run):
        tasks.append(Task("tcp", figure, peer, run))

    for some in ([8], [size for size in sizes if size != 8]):  # the one that is judged by itself, as those of shared memory are
        add("tcp latency", "heddle", lambda z=some: p.fi_latency(s, ours, z))
        add("tcp latency", RAW, lambda z=some: p.raw_latency(s, z))
        add("tcp latency", TCP, lambda z=some: p.fi_latency(s, theirs, z))
        add("tcp latency", UCX_TCP, lambda z=some: p.ucx_latency(s, "tcp,self", z))
    add("tcp rate", "heddle", lambda: p.fi_rate(s, ours))
    add("tcp rate", TCP, lambda: p.fi_rate(s, theirs))
    add("tcp bandwidth", "heddle", lambda: p.fi_bandwidth(s, ours, sizes))
    add("tcp bandwidth", RAW, lambda: p.raw_bandwidth(s, sizes))
    add("tcp bandwidth", TCP, lambda: p.fi_bandwidth(s, theirs, sizes))
    add("tcp bandwidth", UCX_TCP, lambda: p.ucx_bandwidth(s, "tcp,self", sizes))
    return tasks


MATCH_FIGURES = ("match ratio", "match ns", "match one ns")
LIST_N = 1000  # what a provider that walks a list can be asked for


def match_tasks(s, pr, n):
    def split(provider, count):
        found = p.fi_match(s, provider, count)
        return {figure: {k: v[i] for k, v in found.items()} for i, figure in enumerate(MATCH_FIGURES)}

    return [Task("match", MATCH_FIGURES, "heddle", lambda: split(pr["shm heddle"], n)),
            Task("match", MATCH_FIGURES, SHM, lambda: split(pr[SHM], LIST_N))]


def wake_tasks(s, pr, wakes):
    ours = pr["shm heddle"]
    return [Task("wake", "wake", "heddle", lambda: p.fi_wake(s, ours, wakes)),
            Task("wake", "wake", BARE_WAKE, lambda: p.raw_wake(s, wakes)),
            Task("wake", "wake", TCP, lambda: p.fi_wake(s, pr[TCP], wakes)),
            Task("wake", "sleep CPU", "heddle", lambda: p.fi_sleep(s, ours, 1)),
            Task("wake", "sleep CPU", SHM, lambda: p.fi_sleep(s, pr[SHM], 1))]


def one_processor_tasks(s, pr):
    """Both ends on the first of the two CPUs."""
    one = ("--cpus", "%d,%d" % (s.cpus[0], s.cpus[0]))
    return [Task("one", "one processor, " + kind, who, lambda v=provider: p.fi_latency(s, v, [8], *one))
            for kind, who, provider in (("shm", "heddle", pr["shm heddle"]), ("shm", SHM, pr[SHM]),
                                        ("tcp", "heddle", pr["tcp heddle"]), ("tcp", TCP, pr[TCP]))]


def memory_tasks(s, pr):
    ours = pr["shm heddle"]
    return [Task("memory", p.MEMORY_FIGURES, "heddle", lambda: p.memory(s, ours))]


def client_tasks(s, pr):
    tasks = []
    for kind, peer, count in (("shm", SHM, 30000), ("tcp", TCP, 4000)):
        for who in ("heddle", peer):
            provider = pr[kind + " heddle"] if who == "heddle" else pr[peer]
            tasks.append(Task("clients", "fi_pingpong, %s" % kind, who,
                              lambda v=provider, c=count: p.fi_pingpong(s, v, c)))
    for kind, count, peers in (("shm", 20000, (SHM, MPI_OWN)), ("tcp", 3000, (TCP,))):
        for who in ("heddle",) + peers:
            provider = pr[kind + " heddle"] if who == "heddle" else pr.get(who, who)
            tasks.append(Task("clients", "NetPIPE, %s" % kind, who,
                              lambda v=provider, c=count: {**p.netpipe(s, v, 8, c),
                                                           **p.netpipe(s, v, MIB, max(c // 100, 50))}))
    return tasks


def verbs_tasks(s, pr):
    """Other people's programs under `heddle run`, each beside what it is judged by."""
    shm, tcp, sizes = pr["shm heddle"], pr["tcp heddle"], VERBS_BANDWIDTH_KEYS
    tasks = []

    def add(figure, run, peer="heddle"):
        tasks.append(Task("verbs", figure, peer, run))

    add("verbs send latency", lambda: p.verbs_latency(s, shm, "ib_send_lat"))
    add("libfabric latency", lambda: p.fi_latency(s, shm, [8]))
    add("verbs write latency", lambda: p.verbs_latency(s, shm, "ib_write_lat"))
    add(p.BARE_FIGURES, lambda: p.raw_copies(s, sizes), BARE_COPY)
    for what in ("read", "write", "send"):
        add("verbs %s bandwidth" % what, lambda w=what: p.verbs_bandwidth(s, shm, "ib_%s_bw" % w, sizes))
    add("libfabric bandwidth", lambda: p.fi_bandwidth(s, shm, sizes))
    add("verbs rate, shm", lambda: p.verbs_rate(s, shm))
    add("verbs rate, tcp", lambda: p.verbs_rate(s, tcp))
    add("verbs bandwidth, tcp", lambda: p.verbs_bandwidth(s, tcp, "ib_send_bw", (MIB,)))
    add("libfabric bandwidth, tcp", lambda: p.fi_bandwidth(s, tcp, [MIB]))
    add(p.VERBS_MANY_FIGURES, lambda: p.verbs_many(s, shm))
    for transport, provider in (("shm", shm), ("tcp", tcp)):
        add(p.sleeping_figures(transport), lambda t=transport, v=provider: p.verbs_sleeping(s, v, t))
    return tasks


def dat_tasks(s, pr):
    """dapltest under `heddle run`, beside messages of libfabric over the same engine."""
    shm = pr["shm heddle"]
    tasks = []

    def add(figure, run):
        tasks.append(Task("dat", figure, "heddle", run))

    add("dapl write latency", lambda: p.dapl_latency(s, shm, "RW"))
    add("message latency", lambda: p.fi_latency(s, shm, [8]))
    add("dapl read latency", lambda: p.dapl_latency(s, shm, "RR"))
    add("dapl write bandwidth", lambda: p.dapl_bandwidth(s, shm, "RW", DAPL_SIZE))
    add("message bandwidth", lambda: p.fi_bandwidth(s, shm, [DAPL_SIZE]))
    add("dapl read bandwidth", lambda: p.dapl_bandwidth(s, shm, "RR", DAPL_SIZE))
    return tasks


def keys_tasks(s, pr):
    """Connections that a key seals, beside plain ones, and beside what sealing costs alone."""
    tcp = pr["tcp heddle"]
    return [Task("keys", "sealed latency", "heddle", lambda: p.sealed_latency(s, tcp, [8])),
            Task("keys", "plain latency", "heddle", lambda: p.fi_latency(s, tcp, [8])),
            Task("keys", "sealed bandwidth", "heddle", lambda: p.sealed_bandwidth(s, tcp, [MIB])),
            Task("keys", "plain, then AES", "heddle", lambda: p.plain_then_aes(s, tcp, [MIB]))]


FURTHER = [
    ("shm half round trip, 8 B, fi_tinject", "shm latency, inject", 8, "lat", ("heddle", SHM)),
    ("shm half round trip, 8 B, untagged", "shm latency, untagged", 8, "lat", ("heddle", SHM)),
    ("shm message rate, 8 B", "shm rate", 8, "rate", ("heddle", SHM, UCX)),
    ("shm write, target polling, 8 B", "rma-write-lat, polling", 8, "lat", ("heddle", BARE_COPY)),
    ("shm write, target polling, 4 KiB", "rma-write-lat, polling", 4096, "lat", ("heddle", BARE_COPY)),
    ("shm read, target polling, 8 B", "rma-read-lat, polling", 8, "lat", ("heddle", BARE_COPY)),
    ("shm write, target polling, 1 MiB", "rma-write-bw, polling", MIB, "bw", ("heddle", BARE_COPY)),
    ("shm read, target polling, 1 MiB", "rma-read-bw, polling", MIB, "bw", ("heddle", BARE_COPY)),
    ("tcp half round trip, 8 B", "tcp latency", 8, "lat", ("heddle", TCP, UCX_TCP, RAW)),
    ("tcp bandwidth, 1 MiB", "tcp bandwidth", MIB, "bw", ("heddle", TCP, UCX_TCP, RAW)),
    ("tcp half round trip, 8 B, one processor", "one processor, tcp", 8, "lat", ("heddle", TCP)),
    ("match, 1,000 posted, reverse, against 1", "match ratio", "posted, reverse", "x", (SHM,)),
    ("match, 1,000 waiting, reverse, against 1", "match ratio", "waiting, reverse", "x", (SHM,)),
    ("asleep in fi_cq_sread, CPU", "sleep CPU", 8, "cpu", ("heddle", SHM)),
    ("wake from fi_cq_sread and answer", "wake", 8, "lat", ("heddle", TCP, BARE_WAKE)),
    ("a buffer of a shared receive context", "buffer memory", 1000, "kib", ("heddle",)),
    ("descriptors of 1,000 endpoints", "endpoint descriptors", 1000, "fds", ("heddle",)),
    ("ib_send_bw, tcp, 1 MiB", "verbs bandwidth, tcp", MIB, "bw", ("heddle",)),
    ("libfabric, tcp, 1 MiB, beside it", "libfabric bandwidth, tcp", MIB, "bw", ("heddle",)),
    ("dapltest -T P, shm, RDMA read, 8 B", "dapl read latency", 8, "lat", ("heddle",)),
    ("dapltest -T P, shm, RDMA read, 64 KiB", "dapl read bandwidth", DAPL_SIZE, "bw", ("heddle",)),
    ("a bare write to a process that spins on it, 8 B", "bare write, spinning", 8, "lat", (BARE_COPY,)),
    ("bare writes in a ping-pong, 8 B", "bare pingpong", 8, "lat", (BARE_COPY,)),
    ("bare process_vm_readv, 64 KiB", "bare read", VERBS_BANDWIDTH_KEYS[0], "bw", (BARE_COPY,)),
    ("bare process_vm_writev, 64 KiB", "bare write", VERBS_BANDWIDTH_KEYS[0], "bw", (BARE_COPY,)),
    ("to create one of 1,000 queue pairs", "cost of a qp", 1000, "lat", ("heddle",)),
    ("to create one of 100,000 queue pairs", "cost of a qp", 100000, "lat", ("heddle",)),
    ("wakes of 50 messages, target asleep", "wakes, asleep", 50, "n", ("heddle",)),
    ("fi_pingpong, shm, 8 B", "fi_pingpong, shm", 8, "lat", ("heddle", SHM)),
    ("fi_pingpong, tcp, 8 B", "fi_pingpong, tcp", 8, "lat", ("heddle", TCP)),
    ("NetPIPE over Open MPI, shm, 8 B", "NetPIPE, shm", 8, "lat", ("heddle", SHM, MPI_OWN)),
    ("NetPIPE over Open MPI, shm, 1 MiB", "NetPIPE, shm", MIB, "lat", ("heddle", SHM, MPI_OWN)),
    ("NetPIPE over Open MPI, tcp, 8 B", "NetPIPE, tcp", 8, "lat", ("heddle", TCP)),
    ("NetPIPE over Open MPI, tcp, 1 MiB", "NetPIPE, tcp", MIB, "lat", ("heddle", TCP)),
]

CURVES = [
    ("shm latency", "lat", ("heddle", SHM, UCX), "Shared memory, tagged", "half round trip, µs", "top left"),
    ("shm bandwidth", "bw", ("heddle", SHM, UCX), "Shared memory, tagged, window 64", "GB/s one way",
     "bottom right"),
    ("tcp latency", "lat", ("heddle", TCP, UCX_TCP, RAW), "TCP over loopback, tagged", "half round trip, µs",
     "top left"),
    ("tcp bandwidth", "bw", ("heddle", TCP, UCX_TCP, RAW), "TCP over loopback, tagged, window 64",
     "GB/s one way", "bottom right"),
]


def peer_tasks(s, quick, match_n):
    """Everything of one round."""
    pr, sizes = providers(s.build), FEW_SIZES if quick else ALL_SIZES
    return (shm_tasks(s, pr, sizes) + rma_tasks(s, pr) + tcp_tasks(s, pr, sizes) + match_tasks(s, pr, match_n) +
            wake_tasks(s, pr, 100 if quick else 200) + one_processor_tasks(s, pr) + memory_tasks(s, pr) + client_tasks(s, pr) +
            verbs_tasks(s, pr) + dat_tasks(s, pr) + keys_tasks(s, pr))


def only_size(size, run, *args):
    """Of a figure with sizes, the value of this one alone, under the key that all figures of --vs have."""
    return {8: run(*args)[size]}


def vs_messages(kind):
    return [(kind + " latency, 8 B", "lat", lambda s, v: p.fi_latency(s, v, [8])),
            (kind + " latency, 4 KiB", "lat", lambda s, v: only_size(4096, p.fi_latency, s, v, [4096])),
            (kind + " message rate, 8 B", "rate", p.fi_rate),
            (kind + " bandwidth, 1 MiB", "bw", lambda s, v: only_size(MIB, p.fi_bandwidth, s, v, [MIB]))]


def vs_perftest():
    half_trips = [("verbs %s, 8 B" % tool, "lat", lambda s, v, t=tool: p.verbs_latency(s, v, t)) for tool in
                  ("ib_send_lat", "ib_write_lat", "ib_read_lat")]
    streams = [("verbs %s, 64 KiB" % tool, "bw",
                lambda s, v, t=tool: only_size(DAPL_SIZE, p.verbs_bandwidth, s, v, t, [DAPL_SIZE])) for tool in
               ("ib_send_bw", "ib_write_bw", "ib_read_bw")]
    return half_trips + streams + [("verbs ib_send_bw, 8 B", "rate", p.verbs_rate)]


def vs_dapltest():
    return [row for operation, title in (("RW", "write"), ("RR", "read")) for row in (
        ("dat %s, 8 B" % title, "lat", lambda s, v, o=operation: p.dapl_latency(s, v, o)),
        ("dat %s, 64 KiB" % title, "bw", lambda s, v, o=operation: only_size(DAPL_SIZE, p.dapl_bandwidth, s, v, o, DAPL_SIZE)))]


# What is compared of two builds: (part, transport, [(figure, unit, how it is measured with a provider)])
VS = [("shm", "shm", vs_messages("shm")), ("tcp", "tcp", vs_messages("tcp")),
      ("wake", "shm", [("wake from fi_cq_sread", "lat", lambda s, v: p.fi_wake(s, v, 100))]),
      ("verbs", "shm", vs_perftest()), ("dat", "shm", vs_dapltest()),
      ("keys", "tcp", [("sealed latency, 8 B", "lat", lambda s, v: p.sealed_latency(s, v, [8])),
                       ("sealed bandwidth, 1 MiB", "bw", lambda s, v: only_size(MIB, p.sealed_bandwidth, s, v, [MIB]))])]

# One program measures all of these: of each its figure in hd-rma, and the size.
VS_RMA = [("rma write, asleep, 8 B", "lat", "rma-write-lat, asleep", 8), ("rma write, polling, 8 B", "lat", "rma-write-lat, polling", 8),
          ("rma read, asleep, 8 B", "lat", "rma-read-lat, asleep", 8), ("rma write, asleep, 1 MiB", "bw", "rma-write-bw, asleep", MIB),
          ("rma read, asleep, 1 MiB", "bw", "rma-read-bw, asleep", MIB), ("rma ping-pong, 8 B", "lat", "rma-pingpong", 8)]


VS_PARTS = tuple(part for part, *_ in VS) + ("rma",)


def vs_rma(setup, provider):
    found = p.rma(setup, provider, [8, MIB])
    return {title: {8: found[figure][size][0]} for title, _, figure, size in VS_RMA}


def vs_tasks(setup, builds):
    """The same figures for each (name, folder) of builds, neighbours in time; and the (part, figure, unit) rows."""
    tasks, rows = [], []

    def add(part, transport, figure, run):
        for name, build in builds:
            provider = providers(build)[transport + " heddle"]
            tasks.append(Task(part, figure, name, lambda v=provider: run(setup, v)))

    for part, transport, figures in VS:
        for figure, unit, run in figures:
            rows.append((part, figure, unit))
            add(part, transport, figure, run)
    rows += [("rma", title, unit) for title, unit, *_ in VS_RMA]
    add("rma", "shm", tuple(title for title, *_ in VS_RMA), vs_rma)
    return tasks, rows
