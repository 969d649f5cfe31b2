#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
#
# Two processes where the kernel refuses calls, one by one and all together, as the filters of containers do: without.sh [--fast], the short selection.
# HD_BUILD is the build folder.
set -uo pipefail
cd "$(dirname "$0")" || exit 1
# shellcheck source=tests/tap.sh
. ../tap.sh

build=${HD_BUILD:?the build folder}
fast=no
[ "${1:-}" != --fast ] || fast=yes
without=$build/tests/e2e/without peer=$build/tests/e2e/e2e-peer verbs=$build/tests/conformance/verbs-conformance
export FI_PROVIDER_PATH=$build HEDDLE_LOG=warn FI_PROVIDER=heddle # others look at the processor for seconds
unset HEDDLE_TRANSPORT HEDDLE_DIRECT_COPY HEDDLE_PTRACER

"$without" ptrace EPERM true
if [ $? -eq 77 ]; then
	skip "refused calls" "run on a kernel with seccomp filters (CONFIG_SECCOMP_FILTER)"
	finish
fi

scratch=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$scratch" "$tap_scratch"' EXIT

calls=(netlink memfd_create process_vm_readv process_vm_writev pidfd_open pidfd_getfd ptrace membarrier io_uring_setup)
all=$(IFS=, && echo "${calls[*]},io_uring_enter,io_uring_register,kcmp,userfaultfd,perf_event_open,bpf,keyctl,process_madvise,pidfd_send_signal")

# talk SERVER CLIENT: either runs under that, a command before its own, and both are content
talk() {
	local ip port status=0 first second
	read -ra first <<<"$1"
	read -ra second <<<"$2"
	: >"$scratch/server" # by this shell: the next line may come to it later than we read, and the last server's address still stand there
	"${first[@]}" "$peer" serve >"$scratch/server" 2>&1 </dev/null &
	server=$!
	address_in "$scratch/server" "$server" || ip=127.0.0.1 port=1
	timeout 120 "${second[@]}" "$peer" call "$ip" "$port" --count 6 --size 300000 \
		>"$scratch/client" 2>&1 || status=$?
	[ $status -eq 0 ] || kill -9 "$server"
	timeout 60 tail --pid="$server" -f /dev/null || kill -9 "$server"
	wait "$server" || status=$((status ? status : $?))
	server=
	cat "$scratch/server" "$scratch/client"
	return $status
}

for error in EPERM ENOSYS; do
	for call in "${calls[@]}"; do
		[ $fast = no ] || [ $error = EPERM ] || [ "$call" = memfd_create ] || continue
		check "libfabric without $call ($error)" talk "$without $call $error" "$without $call $error"
	done
	check "libfabric without any of them ($error)" talk "$without $all $error" "$without $all $error"
done
check "libfabric, the server alone without any of them" talk "$without $all EPERM" env
check "libfabric, the client alone without any of them" talk env "$without $all EPERM"

# nowhere: the command runs where /proc has nothing; both ends do, so that they still are of one user
nowhere=(unshare -Urm bash -c 'mount -t tmpfs none /proc && exec "$@"' bash)
if "${nowhere[@]}" true 2>/dev/null; then
	printf '#!/bin/bash\nexec unshare -Urm bash -c "mount -t tmpfs none /proc && exec \"\$@\"" bash "$@"\n' >"$scratch/nowhere"
	chmod +x "$scratch/nowhere"
	check "libfabric where /proc has nothing" talk "$scratch/nowhere" "$scratch/nowhere"
	check "libfabric where /proc has nothing, and no call works" talk "$scratch/nowhere $without $all EPERM" "$scratch/nowhere $without $all EPERM"
else
	skip "libfabric where /proc has nothing" "allow user namespaces: sysctl user.max_user_namespaces"
fi

# What is gone is said once by each process, and by heddle info.
said() {
	talk "$1" "$1" >/dev/null || return
	[ "$(grep -c "$2" "$scratch/server")" -eq 1 ] && [ "$(grep -c "$2" "$scratch/client")" -eq 1 ] && return
	cat "$scratch/server" "$scratch/client"
	return 1
}
check "it is said once that there is no shared memory" said "$without memfd_create EPERM" \
	'no shared memory: memfd_create: Operation not permitted'
check_output "heddle info says it" '^  shm .*no shared memory: memfd_create: Operation not permitted' \
	"$without" memfd_create EPERM "$build/heddle" info
check_output "and what is refused to copies" '^  shm .*no direct copies: process_vm_writev: Function not implemented' \
	"$without" process_vm_writev ENOSYS "$build/heddle" info

# verbs CALLS ERROR: cases of all kinds of operations, of device memory and of a domain with an inode
verbs() {
	local out status
	out=$("$without" "$1" "$2" "$build/heddle" run -- "$verbs" -d heddle0 -t "V4 lengths-rc" -t "V7 again" -t "V10 device-memory" -t "V10 port" \
		-t "IMPORT regions" -t "IMPORT device-memory" -t "XRC domain" -t "XRC messages" -t "WR whole-rc" 2>&1)
	status=$?
	echo "$out"
	[ $status -eq 0 ] && ! grep -qE '^[A-Z0-9]+ [^ ]+ +(fail|unsupported)' <<<"$out" && grep -q '^9 passed' <<<"$out"
}
if [ -x "$verbs" ]; then
	for error in EPERM ENOSYS; do
		for call in memfd_create "$all"; do
			[ $fast = no ] || [ $error = EPERM ] || continue
			check "verbs without ${call/$all/any of them} ($error)" verbs "$call" "$error"
		done
	done
fi
finish
