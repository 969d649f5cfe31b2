# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
"""Curves over message size, drawn by gnuplot into SVG files."""

import os
import shutil
import subprocess

from programs import NotMeasured
from results import median

COLOURS = ("#c0392b", "#2980b9", "#27ae60", "#7f8c8d", "#8e44ad")
TICKS = ", ".join('"%s" %d' % t for t in (
    ("1 B", 1), ("8 B", 8), ("64 B", 64), ("512 B", 512), ("4 KiB", 4096), ("32 KiB", 32768), ("256 KiB", 262144),
    ("2 MiB", 2097152), ("16 MiB", 16777216)))

SCRIPT = """set terminal svg size 900,560 font "sans,13" background "#ffffff"
set output "{output}"
set title "{title}"
set xlabel "message size"
set ylabel "{ylabel}"
set logscale x 2
set logscale y 10
set xrange [0.8:24000000]
set xtics ({ticks})
set mytics 10
set grid xtics ytics mytics lt 1 lc rgb "#cccccc", lt 1 lc rgb "#eeeeee"
set key {key} box lc rgb "#d0d0d0" opaque
{blocks}
plot {plots}
"""


def draw(results, figure, peers, title, ylabel, output, key):
    """Write one SVG with the medians of `figure` for those of `peers` that were measured; False when none was."""
    if not shutil.which("gnuplot"):
        raise NotMeasured("gnuplot is not there")
    blocks, plots = [], []
    for i, peer in enumerate(peers):
        points = [(k, median(results.values(figure, peer, k))) for k in results.keys(figure, peer)]
        if not points:
            continue
        blocks.append("$d%d << EOD\n%s\nEOD" % (i, "\n".join("%d %.6g" % p for p in points)))
        plots.append('$d%d using 1:2 with linespoints lw %d pt 7 ps 0.5 dt %d lc rgb "%s" title "%s"'
                     % (i, 3 if i == 0 else 2, 2 if peer.startswith("raw") else 1, COLOURS[i], peer))
    if not plots:
        return False
    script = SCRIPT.format(output=os.path.basename(output), title=title, ylabel=ylabel, ticks=TICKS, key=key,
                           blocks="\n".join(blocks), plots=", \\\n     ".join(plots))
    done = subprocess.run(["gnuplot"], input=script, text=True, capture_output=True, cwd=os.path.dirname(output),
                          check=False)
    if done.returncode:
        raise NotMeasured("gnuplot: " + done.stderr.strip())
    return True
