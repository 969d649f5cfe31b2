#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
#
# What containers take away, one thing after the other: each line of the table in docs/containers.md is a case here. The walls are those that container
# runtimes build with, made by unshare(1), mount(8) and a filter of system calls. Both programs check their data.
# shellcheck disable=SC2016 # what a shell inside expands
# shellcheck source=tests/clients/lib.sh
. "$(dirname "$0")/lib.sh" "$@"
need unshare mount ip ss setpriv fi_pingpong ibv_rc_pingpong

unshare --user --map-root-user --mount --pid --fork --mount-proc true 2>"$scratch/log" || {
	skip "containers" "run as root, or allow user namespaces (sysctl user.max_user_namespaces): $(head -n 1 "$scratch/log")"
	finish
}

# What runs inside: both ends, or one of them, of a program. Files are written to $out, which stays writable.
cat >"$scratch/inside" <<'END'
#!/usr/bin/env bash
# inside TRANSPORT both|server|client PROGRAM
run=("$BUILD/heddle" run "--transport=$1" --)
case $3 in
verbs) program=(ibv_rc_pingpong -c -s 200000 -n 50) here=-p there=-p ;;
libfabric) program=(fi_pingpong -e rdm -c -I 5 -S 1000000) here=-B there=-P ;;
big) program=(fi_pingpong -e rdm -c -I 1 -S 100000000) here=-B there=-P ;;
esac
serve() {
	$under timeout -k 5 60 "${run[@]}" "${program[@]}" $here "$port_last" >"$out/server" 2>&1
}
call() {
	for _ in $(seq 400); do
		! ss -Hltn "sport = :$port_last" | grep -q . || break
		sleep 0.05
	done
	$under timeout -k 5 60 "${run[@]}" "${program[@]}" $there "$port_last" 127.0.0.1 >"$out/client" 2>&1
}
case $2 in
server) serve ;;
client) call ;;
both)
	serve &
	call
	status=$?
	wait $! || status=$?
	exit $status
	;;
esac
END
chmod +x "$scratch/inside"
export BUILD port_last out=$scratch under=
chmod 755 "$scratch"

more=() # options of unshare
# room COMMANDS INSIDE'S ARGUMENTS…: one rootless container, with these commands of root's in it first
room() {
	free_port
	timeout -k 5 100 unshare --user --map-root-user --mount --pid --fork --mount-proc --ipc --uts ${more[@]+"${more[@]}"} \
		bash -c "$1"' || exit 3; shift; exec "$@"' room x "$scratch/inside" "${@:2}" >"$scratch/room" 2>&1
}

# case_of NAME COMMANDS [transport…]: both interfaces in one container
case_of() {
	local t p
	for t in "${@:3}"; do
		for p in verbs libfabric; do
			rm -f "$scratch"/{server,client,log}
			room "$2" "$t" both $p
			local status=$?
			cat "$scratch"/{room,server,client} >"$scratch/log" 2>/dev/null
			[ $status -eq 0 ]
			judge "$1: $p, $t" "it does not work (status $status)"
		done
	done
}

# two_rooms NAME TRANSPORT PROGRAM unshare's options…: each end in a container of its own, in one network namespace
two_rooms() {
	local server status
	free_port
	rm -f "$scratch"/{server,client,log}
	timeout -k 5 100 unshare "${@:4}" "$scratch/inside" "$2" server "$3" &
	server=$!
	timeout -k 5 100 unshare "${@:4}" "$scratch/inside" "$2" client "$3"
	status=$?
	wait $server || status=$?
	cat "$scratch"/{server,client} >"$scratch/log" 2>/dev/null
	[ $status -eq 0 ]
	judge "$1: $3, $2" "it does not work (status $status)"
}

case_of "a rootless container" true shm tcp
more=(--net)
case_of "no network but lo" 'ip link set lo up' shm tcp
more=()
case_of "a read-only root" 'mount --bind "$out" "$out" && mount -o remount,bind,ro / && ! touch /heddle-was-here 2>/dev/null' shm tcp
case_of "no /proc at all" 'mount -t tmpfs none /proc' shm tcp
case_of "/dev/shm of 64 MB" 'mount -t tmpfs -o size=64m none /dev/shm' shm
room 'mount -t tmpfs -o size=64m none /dev/shm' shm both big
judge "/dev/shm of 64 MB, messages of 100 MB" "it does not work"
case_of "no /dev/shm" 'mount -t tmpfs -o size=4k,mode=000 none /dev/shm' shm

pod=(--user --map-root-user --mount --pid --fork --mount-proc --ipc --uts)
for p in verbs libfabric; do
	two_rooms "two containers of a pod, each with a user namespace of its own" auto $p "${pod[@]}"
	two_rooms "two containers of a pod, run by root" shm $p "${pod[@]:2}"
done

# Filters of calls, as runtimes have them and stricter. Shared memory is asked for where it is to work still; where it is not, the log says so.
without=$BUILD/tests/e2e/without
ring=io_uring_setup,io_uring_enter,io_uring_register
calls=(process_vm_readv process_vm_writev ptrace "$ring" pidfd_open)
runtime=$ring,ptrace,process_vm_readv,process_vm_writev,kcmp,userfaultfd,perf_event_open,bpf,keyctl
# without_memory NAME COMMANDS: as case_of, where no memory can be shared
without_memory() {
	HEDDLE_LOG=info case_of "$1" "$2" auto
	grep -q 'no shared memory' "$scratch/log"
	judge "$1: the log says that there is no shared memory" "it does not"
}
if [ -x "$without" ] && "$without" ptrace EPERM true; then
	under="$without $runtime EPERM"
	case_of "calls that older runtimes refuse" true shm
	for call in "${calls[@]}"; do
		under="$without $call EPERM"
		case_of "without $call" true shm
	done
	under="$without memfd_create EPERM"
	without_memory "without memfd_create" true
	under="$without memfd_create,$(IFS=, && echo "${calls[*]}"),$runtime EPERM"
	without_memory "without all of these" true
	without_memory "without all of these, a read-only root and no /proc" \
		'mount --bind "$out" "$out" && mount -o remount,bind,ro / && mount -t tmpfs none /proc'
	under=
else
	skip "calls that are refused" "filters of system calls cannot be made here: install libseccomp-dev before building, and let seccomp(2) through"
fi

finish
