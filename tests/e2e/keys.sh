#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
#
# HEDDLE_KEY_FILE, as programs see it: who has the key talks over every path, who has not gets nothing. HD_BUILD is the build folder.
set -uo pipefail
cd "$(dirname "$0")" || exit 1
# shellcheck source=tests/tap.sh
. ../tap.sh

build=${HD_BUILD:?the build folder}
heddle=$build/heddle
peer=$build/tests/e2e/e2e-peer
scratch=$(mktemp -d)
servers=()
trap 'kill "${servers[@]}" 2>/dev/null; rm -rf "$scratch" "$tap_scratch"' EXIT
if [ ! -e "$build/libheddle-tls.so" ]; then
	skip "keys" "build with OpenSSL 3 and its headers (libssl-dev)"
	finish
fi

"$heddle" key "$scratch/key" && "$heddle" key "$scratch/other" || exit 1

# serve KEY [VAR=VALUE…]: starts a server with this key file; sets $ip and $port
serve() {
	local log=$scratch/server.${#servers[@]} key=$1
	shift
	env HEDDLE_KEY_FILE="$key" "$@" "$heddle" run -- "$peer" serve >"$log" 2>&1 </dev/null &
	server=$!
	servers+=("$server")
	server_log=$log
	address_in "$log" "$server" || ip=127.0.0.1 port=1
}

# call KEY [ARGUMENT…]
call() {
	local key=$1
	shift
	HEDDLE_KEY_FILE=$key timeout 60 "$heddle" run -- "$peer" call "$ip" "$port" "$@"
}

uses_openssl() {
	grep -q libssl "/proc/$server/maps"
}

for transport in tcp shm; do
	export HEDDLE_TRANSPORT=$transport
	for size in 8 5000 100000 3000000; do
		serve "$scratch/key"
		check "$size bytes with the same key, over $transport" call "$scratch/key" --count 20 --size $size
	done
done
export HEDDLE_TRANSPORT=auto

serve "$scratch/key"
check "OpenSSL is there with a key" uses_openssl
check_status "another key is turned away" 3 call "$scratch/other"
check_status "none, too" 3 call ""
check "and the log of the server does not tell of each" bash -c "! grep -v '^address' '$server_log'"
check "who has it is served afterwards" call "$scratch/key" --count 5
serve ""
check_status "who has a key does not talk to who has none" 3 call "$scratch/key"
check "OpenSSL is not there without a key" eval '! uses_openssl'
check "and others are served" call "" --count 5

# gone PROGRAM ARGUMENT…: cases of memory that has been unmapped, in sealed connections; none of them fails
gone() {
	local out
	out=$(HEDDLE_KEY_FILE=$scratch/key timeout 120 "$heddle" run --transport=tcp -- "$@" 2>&1)
	echo "$out"
	grep -qE '^[1-9][0-9]* passed, 0 failed, 0 unsupported' <<<"$out"
}
check "memory that has gone, sealed, libfabric" gone "$build/tests/conformance/ofi-conformance" -p heddle -t "MR mr-unmapped"
if [ -x "$build/tests/conformance/verbs-conformance" ]; then
	check "memory that has gone, sealed, verbs" gone "$build/tests/conformance/verbs-conformance" -d heddle0 -t "V7 region-unmapped" \
		-t "V11 unmapped-that-is-sent" -t "V11 unmapped-that-receives" -t "V11 unmapped-that-is-written-from" -t "V11 unmapped-that-is-read-into"
fi

chmod 640 "$scratch/key"
check_output "a key that others may read is refused, with what to do" 'others may open it: chmod 600' \
	env HEDDLE_KEY_FILE="$scratch/key" "$heddle" run -- "$peer" serve
check_output "a key file that is not there too" 'make it with .heddle key.' \
	env HEDDLE_KEY_FILE="$scratch/none" "$heddle" run -- "$peer" serve
finish
