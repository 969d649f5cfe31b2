#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
#
# The program of docs/first.md does what that page says: first.sh HEDDLE …; reads HD_BUILD.
set -euo pipefail
heddle=$(realpath "$1")
cd "$(dirname "$0")/../.."
# shellcheck source=tests/tap.sh
. tests/tap.sh
# shellcheck source=tests/ports.sh
. tests/ports.sh
unset FI_PROVIDER FI_PROVIDER_PATH

first=$HD_BUILD/examples/first
free_port

sends() {
	timeout 20 "$heddle" run -t "$1" "$first" "$port_last" 127.0.0.1
}

# Both ends; what they say is in $said afterwards. The sender is refused until the receiver listens.
said=$tap_scratch/said
talk() {
	local receiver sent=1
	free_port
	rm -f "$said"
	timeout 20 "$heddle" run -t "$1" "$first" "$port_last" >>"$said" &
	receiver=$!
	for _ in {1..100}; do
		sends "$1" >>"$said" 2>/dev/null && sent=0 && break
		sleep 0.1
	done
	wait "$receiver" && return "$sent"
}

check_status "without a receiver the sender fails" 1 sends auto
check_output "and says why" '^first: sending: Connection refused$' sends auto
for transport in auto shm tcp; do
	check "both ends succeed: $transport" talk $transport
	check_output "one says that it has sent: $transport" '^sent: hello over a fabric$' cat "$said"
	check_output "the other that it has received: $transport" '^received: hello over a fabric$' cat "$said"
done
finish
