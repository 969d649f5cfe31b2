#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
"""blocks.py FILE BLOCK: each block of the file (64 KiB) is the other one, or still empty; at least a third has come."""

import sys


def main():
    data = open(sys.argv[1], "rb").read()
    want = open(sys.argv[2], "rb").read()
    size = len(want)
    blocks = [data[at : at + size] for at in range(0, len(data), size)]
    there = sum(block == want for block in blocks)
    wrong = sum(block != want and any(block) for block in blocks)
    print(f"{there} of {len(blocks)} blocks, {wrong} wrong")
    return wrong > 0 or there * 3 < len(blocks)


sys.exit(main())
