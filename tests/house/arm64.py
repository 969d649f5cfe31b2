#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
"""
arm64.py BUILD: each source file of the libraries and of `heddle` can be compiled for 64-bit ARM, without a warning, by the commands that compile it
for this machine. Nothing is linked or run: the libraries that Heddle uses are only here for this machine, whose headers serve both.
"""
import json
import os
import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

COMPILER = "aarch64-linux-gnu-gcc"
HEADERS = ["-idirafter", "/usr/include", "-idirafter", "/usr/include/x86_64-linux-gnu"]
WITH_A_NAME = ("-o", "-MQ", "-MF", "-MT")  # options that go with the word behind them
NOT_HERE = ("-fsanitize", "-m", "-M", "-O", "-W", "-g", "-fdiagnostics")


def command(entry):
    """What compiles this file for the other machine, to nowhere."""
    words, out = iter(shlex.split(entry["command"])[1:]), [COMPILER]
    for word in words:
        if word in WITH_A_NAME:
            next(words)
        elif not word.startswith(NOT_HERE):
            out.append(word)
    return out + HEADERS + ["-O1", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Wno-missing-field-initializers",
                            "-Werror", "-o", "/dev/null"]


def compile_one(entry):
    done = subprocess.run(command(entry), cwd=entry["directory"], capture_output=True, text=True)
    return None if done.returncode == 0 else done.stderr


def sources(build):
    """One command for each file: those that are compiled twice differ in names alone."""
    with open(os.path.join(build, "compile_commands.json")) as f:
        entries = json.load(f)
    return {e["file"]: e for e in entries if e["file"].startswith("../src/") and not e["file"].endswith("_test.c")}


def main():
    name = "every source file compiles for 64-bit ARM"
    print("1..1")
    if not shutil.which(COMPILER):
        print(f"ok 1 - {name} # SKIP install gcc-aarch64-linux-gnu and libc6-dev-arm64-cross")
        return 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        faults = [fault for fault in pool.map(compile_one, sources(sys.argv[1]).values()) if fault]
    print(f"{'not ' if faults else ''}ok 1 - {name}")
    for fault in faults:
        print("\n".join("#   " + line for line in fault.splitlines()[:20]))
    return 1 if faults else 0


sys.exit(main())
