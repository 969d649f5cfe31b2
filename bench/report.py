# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
"""The table: what was asked for, what was measured, and whether that is enough."""

import textwrap

from programs import OPENMPI_OWN as MPI_OWN
from results import NOT_RUN, best, median

KIB, MIB = 1 << 10, 1 << 20
ABSENT = "not available: "
UNITS = {"lat": "µs", "bw": "GB/s", "rate": "M/s", "cpu": "%", "ns": "ns", "x": "×", "kib": "KiB", "fds": "descriptors", "n": ""}


def size_name(n):
    if n >= MIB and n % MIB == 0:
        return "%d MiB" % (n // MIB)
    if n >= KIB and n % KIB == 0:
        return "%d KiB" % (n // KIB)
    return "%d B" % n


def number(value):
    """Three digits that matter, without an exponent."""
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return "%.0f" % value
    if abs(value) >= 10:
        return "%.1f" % value
    return "%.2f" % value if abs(value) >= 1 else "%.3f" % value


def pair(values, unit, lower):
    return ("%s / %s %s" % (number(best(values, lower)), number(median(values)), UNITS[unit])).rstrip()


class Row:
    """One comparison: `figure` of Heddle against `other`, a (figure, peer) pair, for one or the worst of some keys."""

    def __init__(self, title, figure, other, other_title, limit, unit, keys=(8,), peer="heddle"):
        self.title, self.figure, self.other, self.other_title = title, (figure, peer), other, other_title
        self.limit, self.unit, self.keys = limit, unit, keys
        self.lower = unit in ("lat", "ns", "cpu")

    def by_kind(self, results):
        """One line, or one for each kind of places that the CPUs were in, where all keys were measured in each."""
        kinds = [k for k in results.kinds(self.figure[0])
                 if all(results.ratios(self.figure, self.other, key, k) for key in self.keys)]
        return [self.cells(results, k) for k in kinds] if kinds else [self.cells(results)]

    def required(self):
        return "%s %s × %s" % ("≤" if self.lower else "≥", self.limit, self.other_title)

    def cells(self, results, kind=None):
        """[figure, must reach, heddle, peer, ratio, verdict] and the notes that belong to them."""
        seen = [(k, results.ratios(self.figure, self.other, k, kind)) for k in self.keys]
        measured = [(k, median(r)) for k, r in seen if r]
        if len(measured) < len(self.keys):
            return self.unavailable(results, [k for k, r in seen if not r][0])
        key, ratio = max(measured, key=lambda m: m[1] if self.lower else -m[1])
        title = self.title + (", worst: " + size_name(key) if len(self.keys) > 1 else "")
        title += ", " + kind if kind else ""
        met = ratio <= self.limit if self.lower else ratio >= self.limit
        return [title, self.required(), pair(results.values(*self.figure, key, kind), self.unit, self.lower),
                pair(results.values(*self.other, key, kind), self.unit, self.lower), "%.3f" % ratio,
                "met" if met else "MISSED"]

    def unavailable(self, results, key):
        cells = [self.title, self.required()]
        reason = None
        for figure, peer in (self.figure, self.other):
            values = results.values(figure, peer, key)
            cells.append(pair(values, self.unit, self.lower) if values else "not available")
            reason = reason or (None if values else results.why_not(figure, peer))
        return cells + ["", ABSENT + (reason or "no round with both")]


class LimitRow:
    """A figure of Heddle's that has a fixed limit, or carries its own ratio; the worst key counts."""

    def __init__(self, title, required, figure, limit, unit, other=None, key=None):
        self.title, self.required, self.figure, self.limit, self.unit = title, required, figure, limit, unit
        self.other, self.key = other, key
        self.lower = unit != "rate"

    def by_kind(self, results):
        return [self.cells(results)]

    def cells(self, results):
        keys = [self.key] if self.key else results.keys(self.figure, "heddle")
        measured = [(k, results.values(self.figure, "heddle", k)) for k in keys]
        measured = [(k, v) for k, v in measured if v]
        if not measured:
            return [self.title, self.required, "not available", "", "",
                    ABSENT + results.why_not(self.figure, "heddle")]
        worst = max if self.lower else min
        key, values = worst(measured, key=lambda m: median(m[1]))
        met = median(values) <= self.limit if self.lower else median(values) >= self.limit
        ours, theirs = pair(values, self.unit, self.lower), ""
        if self.other:
            ours = pair(results.values(self.other[0], "heddle", key), "ns", True)
            theirs = pair(results.values(self.other[1], "heddle", key), "ns", True) + " with 1"
        return [self.title, self.required, ours, theirs, "%.3f" % median(values) if self.unit == "x" else "",
                "met" if met else "MISSED"]


class CliffRow:
    """A curve that falls nowhere: at no size below `limit` of the best at a smaller one, but where both peers fall as well."""

    def __init__(self, title, figure, peers, keys, limit):
        self.title, self.figure, self.peers, self.keys, self.limit = title, figure, peers, keys, limit

    def falls(self, results, peer, kind):
        """{size: what it has of the best at a smaller size}"""
        top, found = 0, {}
        for key in self.keys:
            values = results.values(self.figure, peer, key, kind)
            if not values:
                continue
            found[key] = median(values) / top if top else 1
            top = max(top, median(values))
        return found

    def by_kind(self, results):
        return [self.cells(results, k) for k in results.kinds(self.figure) or [None]]

    def cells(self, results, kind):
        ours, theirs = self.falls(results, "heddle", kind), [self.falls(results, peer, kind) for peer in self.peers]
        alone = {k: v for k, v in ours.items() if not all(t.get(k, 1) < self.limit for t in theirs)}
        required = "≥ %s × the best at a smaller size" % self.limit
        title = self.title + (", " + kind if kind else "")
        if not alone:
            return [title, required, "not available", "", "", ABSENT + results.why_not(self.figure, "heddle")]
        key = min(alone, key=alone.get)
        return ["%s, worst: %s" % (title, size_name(key)), required,
                pair(results.values(self.figure, "heddle", key, kind), "bw", False), "", "%.3f" % alone[key],
                "met" if alone[key] >= self.limit else "MISSED"]


BANDWIDTH_KEYS = (256 * KIB, 512 * KIB, MIB, 2 * MIB, 4 * MIB)
RMA_BANDWIDTH_KEYS = (256 * KIB, MIB, 4 * MIB)
VERBS_BANDWIDTH_KEYS = (64 * KIB, 256 * KIB, MIB)
DAPL_SIZE = 64 * KIB
RMA_FIGURES = ("rma-write-lat, asleep", "rma-read-lat, asleep", "rma-write-bw, asleep", "rma-read-bw, asleep",
               "rma-write-lat, polling", "rma-read-lat, polling", "rma-write-bw, polling", "rma-read-bw, polling",
               "rma-pingpong")
BARE_COPY = "the bare call"
SHORT_KEYS = tuple(1 << i for i in range(3, 11))   # 8 B to 1 KiB
MIDDLE_KEYS = tuple(1 << i for i in range(11, 21))  # 2 KiB to 1 MiB
BEST, UCX_TCP = "the better of both", "UCX tcp"
SHM, UCX, TCP, RAW = "libfabric shm", "UCX posix", "libfabric tcp", "raw TCP"


def gate_rows(match_n):
    """The table that decides, in the order in which it is read."""
    n = "{:,}".format(match_n)
    rows = [
        Row("shm half round trip, 8 B", "shm latency", ("shm latency", SHM), SHM, 0.45, "lat"),
        Row("shm half round trip, 8 B", "shm latency", ("shm latency", UCX), UCX, 0.85, "lat"),
        Row("the same, 63 idle peers", "shm latency, 63 idle", ("shm latency, alone", "heddle"),
            "without them", 1.5, "lat"),
        Row("the same, both ends on one CPU", "one processor, shm", ("one processor, shm", SHM), SHM, 0.1, "lat"),
        Row("shm half round trip, 4 KiB", "shm latency", ("shm latency", SHM), SHM, 0.8, "lat", (4096,)),
        Row("shm half round trip, 4 KiB", "shm latency", ("shm latency", UCX), UCX, 0.8, "lat", (4096,)),
        Row("shm half round trip, 8 B to 1 KiB", "shm latency", ("shm latency", SHM), SHM, 1, "lat", SHORT_KEYS),
        Row("shm half round trip, 8 B to 1 KiB", "shm latency", ("shm latency", UCX), UCX, 1.4, "lat", SHORT_KEYS),
        Row("shm half round trip, 2 KiB to 1 MiB", "shm latency", ("shm latency", BEST), BEST, 1.1, "lat", MIDDLE_KEYS),
        Row("shm bandwidth, 2 KiB to 1 MiB", "shm bandwidth", ("shm bandwidth", BEST), BEST, 0.95, "bw", MIDDLE_KEYS),
        CliffRow("shm bandwidth, 2 KiB to 1 MiB", "shm bandwidth", (SHM, UCX), MIDDLE_KEYS, 0.9),
        Row("NetPIPE over Open MPI, shm, 8 B", "NetPIPE, shm", ("NetPIPE, shm", MPI_OWN), MPI_OWN, 1.5, "lat"),
        Row("tcp half round trip, 8 B, loopback", "tcp latency", ("tcp latency", UCX_TCP), UCX_TCP, 1.05, "lat"),
        Row("shm message rate, 8 B, window 64", "shm rate", ("shm rate", SHM), SHM, 2, "rate"),
        Row("shm bandwidth, 256 KiB to 4 MiB", "shm bandwidth", ("shm bandwidth", SHM), SHM, 1.6, "bw",
            BANDWIDTH_KEYS),
        Row("shm bandwidth, 256 KiB to 4 MiB", "shm bandwidth", ("shm bandwidth", UCX), UCX, 1.6, "bw",
            BANDWIDTH_KEYS),
        Row("shm write, target asleep, 256 KiB to 4 MiB", "rma-write-bw, asleep",
            ("rma-write-bw, asleep", BARE_COPY), BARE_COPY, 0.95, "bw", RMA_BANDWIDTH_KEYS),
        Row("shm read, target asleep, 256 KiB to 4 MiB", "rma-read-bw, asleep",
            ("rma-read-bw, asleep", BARE_COPY), BARE_COPY, 0.95, "bw", RMA_BANDWIDTH_KEYS),
        Row("shm write, target asleep, 8 B to 4 KiB", "rma-write-lat, asleep", ("rma-write-lat, asleep", BARE_COPY),
            BARE_COPY, 1.3, "lat", (8, 64, 4096)),
        Row("shm write ping-pong, 8 B", "rma-pingpong", ("rma-pingpong", BARE_COPY), "messages", 1.5, "lat"),
        Row("tcp half round trip, 8 B, loopback", "tcp latency", ("tcp latency", RAW), RAW, 1.15, "lat"),
        Row("tcp message rate, 8 B, window 64", "tcp rate", ("tcp rate", TCP), TCP, 8, "rate"),
        Row("tcp bandwidth, 1 MiB, loopback", "tcp bandwidth", ("tcp bandwidth", RAW), RAW, 0.95, "bw", (MIB,)),
    ]
    for kind, title in (("posted", "match, %s receives posted" % n), ("waiting", "match, %s messages waiting" % n)):
        for order in ("reverse", "random"):
            rows.append(LimitRow("%s, %s" % (title, order), "≤ 6 × the cost with 1", "match ratio", 6, "x",
                                 ("match ns", "match one ns"), "%s, %s" % (kind, order)))
    rows.append(LimitRow("idle process in fi_cq_sread, CPU", "0 (under 0.1 %)", "sleep CPU", 0.1, "cpu"))
    rows.append(Row("wake from fi_cq_sread", "wake", ("wake", "bare eventfd"), "bare eventfd", 1.3, "lat"))
    rows.append(LimitRow("memory of an endpoint beyond the first, of 1,000", "≤ 8 KiB", "endpoint memory", 8, "kib"))
    rows.append(LimitRow("memory of an idle peer, shm", "≤ 300 KiB", "peer memory", 300, "kib"))
    return rows + verbs_rows() + dat_rows() + keys_rows()


def keys_rows():
    return [
        Row("tcp half round trip, sealed, 8 B", "sealed latency", ("plain latency", "heddle"), "plain", 1.4, "lat"),
        Row("tcp bandwidth, sealed, 1 MiB", "sealed bandwidth", ("plain, then AES", "heddle"), "plain, then AES-128-GCM", 0.8,
            "bw", (MIB,)),
    ]


def dat_rows():
    return [
        Row("dapltest -T P, shm, RDMA write, 8 B", "dapl write latency", ("message latency", "heddle"), "half round trip here",
            2, "lat"),
        Row("dapltest -T P, shm, RDMA write, 64 KiB", "dapl write bandwidth", ("message bandwidth", "heddle"),
            "libfabric here", 0.85, "bw", (DAPL_SIZE,)),
    ]


def verbs_rows():
    rows = [
        Row("ib_send_lat, shm, 8 B", "verbs send latency", ("libfabric latency", "heddle"), "libfabric here", 2, "lat"),
        Row("ib_write_lat, shm, 8 B", "verbs write latency", ("bare write, asleep", BARE_COPY), BARE_COPY, 1.3, "lat"),
    ]
    for what in ("write", "read", "send"):
        rows.append(Row("ib_%s_bw, shm, 64 KiB to 1 MiB" % what, "verbs %s bandwidth" % what, ("bare read", BARE_COPY),
                        "bare process_vm_readv", 0.9, "bw", VERBS_BANDWIDTH_KEYS))
    return rows + [
        Row("ib_send_bw, shm, 64 KiB to 1 MiB", "verbs send bandwidth", ("libfabric bandwidth", "heddle"),
            "libfabric here", 0.9, "bw", VERBS_BANDWIDTH_KEYS),
        LimitRow("ib_send_bw, shm, 8 B", "≥ 5 M/s", "verbs rate, shm", 5, "rate"),
        LimitRow("ib_send_bw, tcp, 8 B", "≥ 1 M/s", "verbs rate, tcp", 1, "rate"),
        LimitRow("memory of an idle RC queue pair, of 1,000 on an SRQ", "≤ 16 KiB; all get on", "qp memory", 16, "kib"),
        LimitRow("wakes in 15,000 operations, target polling", "0", "wakes, polling", 0, "n"),
    ] + [
        LimitRow("the 100,000th %s, to create" % title, "≤ 5 × one of the first 10", "growth of a " + kind, 5, "x")
        for kind, title in (("qp", "queue pair"), ("srq", "SRQ"), ("window", "window"))
    ] + [
        Row("both ends asleep, %s, %s, 8 B" % (kind.upper(), transport), "sleeping %s, %s" % (kind, transport),
            ("sleeping socket, " + transport, "heddle"), "a bare socket", 1.3, "lat")
        for transport in ("shm", "tcp") for kind in ("rc", "ud")
    ]


def rounds(n):
    return "%d round%s" % (n, "" if n == 1 else "s")


def aligned(rows, gap="  "):
    widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
    return [gap.join(cell.ljust(w) for cell, w in zip(r, widths)).rstrip() for r in rows]


def number_reasons(cells, reasons):
    """Replace each reason in the last cell by its number in `reasons`, so that the table stays narrow."""
    text = cells[-1]
    if not text.startswith(ABSENT):
        return cells
    reason = text[len(ABSENT):]
    if reason not in reasons:
        reasons.append(reason)
    return cells[:-1] + ["not available (%d)" % (reasons.index(reason) + 1)]


def numbered(reasons):
    return ["(%d) %s" % (i + 1, reason) for i, reason in enumerate(reasons)]


def ruled(rows):
    lines = aligned(rows)
    return [lines[0], "-" * max(len(line) for line in lines)] + lines[1:]


def gate_table(results, match_n):
    """The lines of the table, and how many figures were met, missed and not available."""
    head = ["figure (best / median)", "must reach", "heddle", "beside it", "ratio", "verdict"]
    reasons = []
    cells = [line for row in gate_rows(match_n) for line in row.by_kind(results)]
    cells = [number_reasons(c, reasons) for c in cells if c[-1] != ABSENT + NOT_RUN]
    lines = ruled([head] + cells) + numbered(reasons)
    met, missed = (sum(c[-1] == word for c in cells) for word in ("met", "MISSED"))
    return lines, (met, missed, len(cells) - met - missed)


def other_table(results, rows):
    """Further figures, no limit attached: (title, figure, key, unit, peers)."""
    head = ["further figures", "program", "best / median"]
    cells, reasons = [], []
    for title, figure, key, unit, peers in rows:
        for peer in peers:
            values = results.values(figure, peer, key)
            if not values and results.why_not(figure, peer) == NOT_RUN:
                continue
            lower = unit in ("lat", "ns", "cpu", "x", "kib", "fds", "n")
            cells.append(number_reasons([title, peer, pair(values, unit, lower) if values else
                                         ABSENT + results.why_not(figure, peer)], reasons))
            title = ""
    return ruled([head] + cells) + numbered(reasons) if cells else []


def size_table(results, figure, unit, peers):
    """Medians over size, one column per peer."""
    keys = sorted({k for p in peers for k in results.keys(figure, p)})
    if not keys:
        return []
    rows = [["%s, median, %s" % (figure, UNITS[unit])] + list(peers)]
    for key in keys:
        row = [size_name(key)]
        for peer in peers:
            values = results.values(figure, peer, key)
            row.append(number(median(values)) if values else "-")
        rows.append(row)
    return ruled(rows)


def failure_notes(results):
    """Measurements that failed in some rounds only: the table does not show them, so this must."""
    notes = []
    for (figure, peer), reasons in results.failures.items():
        if results.keys(figure, peer):
            notes += textwrap.wrap("%s, %s: failed in %s: %s" % (figure, peer, rounds(len(reasons)), reasons[-1]), 110)
    return notes
