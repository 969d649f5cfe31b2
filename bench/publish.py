# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
"""What the README shows of a run: a table between two marks, and two curves beside the documents."""

import os
import shutil

import report
from plan import BARE_WAKE, UCX_TCP
from report import BARE_COPY, MIB, RAW, SHM, TCP, UCX
from results import median

MARKS = ("<!-- measured -->", "<!-- end of what was measured -->")
CURVES = ("shm-latency.svg", "shm-bandwidth.svg")
FOLDER = os.path.join("docs", "figures")

COLUMNS = ("heddle", "libfabric", "UCX", "the kernel alone")
# (title, unit, key, one (figure, program) for each column, or None)
ROWS = [
    ("shared memory: half a round trip, 8 B", "lat", 8,
     [("shm latency", "heddle"), ("shm latency", SHM), ("shm latency", UCX), None]),
    ("the same, both ends on one processor", "lat", 8,
     [("one processor, shm", "heddle"), ("one processor, shm", SHM), None, None]),
    ("shared memory: half a round trip, 4 KiB", "lat", 4096,
     [("shm latency", "heddle"), ("shm latency", SHM), ("shm latency", UCX), None]),
    ("shared memory: messages of 8 B", "rate", 8,
     [("shm rate", "heddle"), ("shm rate", SHM), ("shm rate", UCX), None]),
    ("shared memory: bandwidth, 1 MiB", "bw", MIB,
     [("shm bandwidth", "heddle"), ("shm bandwidth", SHM), ("shm bandwidth", UCX), None]),
    ("a wake from fi_cq_sread, and the answer", "lat", 8,
     [("wake", "heddle"), ("wake", TCP), None, ("wake", BARE_WAKE)]),
    ("TCP over loopback: half a round trip, 8 B", "lat", 8,
     [("tcp latency", "heddle"), ("tcp latency", TCP), ("tcp latency", UCX_TCP), ("tcp latency", RAW)]),
    ("TCP over loopback: messages of 8 B", "rate", 8, [("tcp rate", "heddle"), ("tcp rate", TCP), None, None]),
    ("TCP over loopback: bandwidth, 1 MiB", "bw", MIB,
     [("tcp bandwidth", "heddle"), ("tcp bandwidth", TCP), ("tcp bandwidth", UCX_TCP), ("tcp bandwidth", RAW)]),
    ("ib_send_lat over shared memory, 8 B", "lat", 8, [("verbs send latency", "heddle"), None, None, None]),
    ("ib_write_lat over shared memory, 8 B", "lat", 8,
     [("verbs write latency", "heddle"), None, None, ("bare write, asleep", BARE_COPY)]),
    ("ib_send_bw over shared memory, messages of 8 B", "rate", 8, [("verbs rate, shm", "heddle"), None, None, None]),
    ("ib_write_bw over shared memory, 1 MiB", "bw", MIB,
     [("verbs write bandwidth", "heddle"), None, None, None]),
]


def cell(results, source, key, unit):
    values = source and results.values(*source, key)
    return "%s %s" % (report.number(median(values)), report.UNITS[unit]) if values else ""


def table(results, about):
    lines = ["| median | %s |" % " | ".join(COLUMNS), "|---" * (len(COLUMNS) + 1) + "|"]
    for title, unit, key, sources in ROWS:
        lines.append("| %s | %s |" % (title, " | ".join(cell(results, s, key, unit) for s in sources)))
    return lines + ["", about + "."]


def publish(results, about, root, out):
    """Write the table into the README of `root`, and the curves of `out` into its documents."""
    path = os.path.join(root, "README.md")
    with open(path, encoding="utf-8") as file:
        whole = file.read()
    begin, end = whole.index(MARKS[0]) + len(MARKS[0]), whole.index(MARKS[1])
    with open(path, "w", encoding="utf-8") as file:
        file.write(whole[:begin] + "\n" + "\n".join(table(results, about)) + "\n" + whole[end:])
    os.makedirs(os.path.join(root, FOLDER), exist_ok=True)
    for name in CURVES:
        shutil.copy(os.path.join(out, name), os.path.join(root, FOLDER, name))
