# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
"""migrate.py FOLDER PORT on|off: has the qemu behind FOLDER/src.sock move its guest to the one behind FOLDER/dst.sock by RDMA."""

import json
import socket
import sys
import time


class Monitor:
    """A connection to a qemu that may still be starting."""

    def __init__(self, path):
        for _ in range(600):
            try:
                link = socket.socket(socket.AF_UNIX)
                link.connect(path)
                break
            except OSError:
                time.sleep(0.05)
        self.file = link.makefile("rw")
        self.file.readline()
        self("qmp_capabilities")

    def __call__(self, command, **arguments):
        self.file.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self.file.flush()
        while True:  # events come in between
            answer = json.loads(self.file.readline())
            if "error" in answer:
                sys.exit(f"{command}: {answer['error']['desc']}")
            if "return" in answer:
                return answer["return"]


folder, port, pin = sys.argv[1:]
target, source = Monitor(folder + "/dst.sock"), Monitor(folder + "/src.sock")
for end in target, source:
    end("migrate-set-capabilities", capabilities=[{"capability": "rdma-pin-all", "state": pin == "on"}])
uri = "rdma:127.0.0.1:" + port
target("migrate-incoming", uri=uri)
source("migrate", uri=uri)
while True:
    state = source("query-migrate")
    if state.get("status") in ("completed", "failed", "cancelled"):
        break
    time.sleep(0.05)
while state["status"] == "completed" and target("query-status")["status"] == "inmigrate":
    time.sleep(0.05)
print(f"{state['status']}, {state.get('ram', {}).get('transferred', 0)} bytes, "
      f"{source('query-status')['status']} to {target('query-status')['status']}")
