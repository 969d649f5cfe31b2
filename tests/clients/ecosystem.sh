#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
#
# What else stands on verbs and rdma_cm: UCX, MPI libraries on it and on verbs themselves, libfabric's verbs provider, an iSER target with its
# initiators, and, in the long selection, OpenSHMEM, librpma, rdma-core's own tests of devices in Python and the migration of a virtual
# machine. Judged by figures and data.
# shellcheck source=tests/clients/lib.sh
. "$(dirname "$0")/lib.sh" "$@"
# shellcheck source=tests/clients/mpi.sh
. "$(dirname "$0")/mpi.sh"
# shellcheck source=tests/clients/services.sh
. "$(dirname "$0")/services.sh"
need ucx_info ucx_perftest mpirun mpicc fi_pingpong tgtd tgtadm iscsi-inq iscsi-readcapacity16 iscsi-test-cu ss
export UCX_WARN_UNUSED_ENV_VARS=n

# stop PID…: they were started here
stop() {
	kill "$@" 2>/dev/null
	wait "$@" 2>/dev/null
}

# ---- UCX ------------------------------------------------------------------------------------------------------------------------------

ucx_finds() {
	local d t
	over "${transports[0]}" 60 ucx_info -d >"$scratch/log" 2>&1 || return
	for t in rc_verbs ud_verbs; do
		for d in heddle0:1 heddle1:1; do
			grep -A2 "Transport: $t" "$scratch/log" | grep -q "Device: $d" || return
		done
	done
}

# ucx_alone TRANSPORT client's arguments…: a server, and its client
ucx_alone() {
	local transport=$1 pid status
	shift
	free_port
	over "$transport" 100 ucx_perftest -p "$port_last" >"$scratch/server" 2>&1 &
	pid=$!
	wait_listen "$port_last" $pid
	over "$transport" 100 ucx_perftest 127.0.0.1 -p "$port_last" "$@" >"$scratch/log" 2>&1
	status=$?
	wait $pid || status=$?
	return $status
}

# ucx_ranks TRANSPORT arguments…: where it was built with an MPI library it is two ranks of that, which is to stay out of the way
ucx_ranks() {
	over "$1" 100 mpirun --allow-run-as-root --oversubscribe -np 2 --mca pml ob1 --mca btl self,sm -x UCX_TLS -x UCX_NET_DEVICES \
		ucx_perftest "${@:2}" >"$scratch/log" 2>&1
}

# ucx_pair NAME TRANSPORT ITERATIONS client's arguments…: its last line has the iterations, and times that are none of them zero
ucx_pair() {
	local name=$1 transport=$2 n=$3 way=ucx_alone status=0
	shift 3
	! ldd "$(command -v ucx_perftest)" | grep libmpi >/dev/null || way=ucx_ranks
	$way "$transport" -n "$n" -w 10 "$@" || status=$?
	[ $status -eq 0 ] && awk -v n="$n" '$1 == "Final:" && $2 == n && $4 > 0 && $NF > 0 { good = 1 } / ERROR | Fatal/ { bad = 1 } END { exit !good || bad }' "$scratch/log"
	judge "$name, $transport" "no figures"
}

# ucx TRANSPORT TLS DEVICE ITERATIONS test args…
ucx() {
	local -x UCX_TLS=$2,self UCX_NET_DEVICES=$3:1
	ucx_pair "UCX ${*:2:2} ${*:5}" "$1" "$4" -t "${@:5}"
}

# uct TRANSPORT TL DEVICE test args…: without protocols above, each of the operations that they are made of
uct() {
	ucx_pair "UCT ${*:2}" "$1" 300 -x "$2" -d "$3:1" -t "${@:4}"
}

# ---- MPI ------------------------------------------------------------------------------------------------------------------------------

# exchange NAME TRANSPORT RANKS messages mpirun's arguments…
exchange() {
	over "$2" 200 mpirun --allow-run-as-root --oversubscribe --mca mpi_yield_when_idle 1 -np "$3" "${@:5}" \
		"$scratch/exchange" "$4" >"$scratch/log" 2>&1 && grep -q "^exchange: ok, $3 ranks" "$scratch/log"
	judge "Open MPI $1, $3 ranks, $2" "the exchange went wrong"
}

# mpi_on TRANSPORT TLS DEVICE RANKS messages: nothing but UCX over that device
mpi_on() {
	UCX_TLS=$2,self UCX_NET_DEVICES=$3:1 exchange "over UCX $2 $3" "$1" "$4" "$5" --mca pml ucx --mca osc ucx --mca btl '^vader,tcp,openib,ofi'
}

# mpich TRANSPORT TLS DEVICE RANKS: its own library, which has no other way than UCX
mpich() {
	UCX_TLS=$2,self UCX_NET_DEVICES=$3:1 over "$1" 200 mpirun.mpich -np "$4" "$scratch/exchange.mpich" 100 >"$scratch/log" 2>&1 &&
		grep -q "^exchange: ok, $4 ranks" "$scratch/log"
	judge "MPICH over UCX $2 $3, $4 ranks, $1" "the exchange went wrong"
}

# shmems TRANSPORT TLS DEVICE PES: OpenSHMEM, which is one-sided and atomic operations. Its shmem_finalize reads keys that it has freed, and
# where Meson has freed memory overwritten it ends by SIGSEGV, over any transport of UCX's.
shmems() {
	local -x MALLOC_PERTURB_=0
	UCX_TLS=$2,self UCX_NET_DEVICES=$3:1 over "$1" 200 oshrun --allow-run-as-root --oversubscribe --mca mpi_yield_when_idle 1 -np "$4" \
		--mca spml ucx --mca pml ucx --mca osc ucx --mca btl '^vader,tcp,openib,ofi' "$scratch/shmem" >"$scratch/log" 2>&1 &&
		grep -qx "shmem: ok, $4 PEs" "$scratch/log"
	judge "OpenSHMEM over UCX $2 $3, $4 PEs, $1" "not all data"
}

# Open MPI's module has two faults that end MPI_Finalize by SIGSEGV, and what docs/programs.md has the reader preload keeps both away. Memory that is freed
# is overwritten here, so that the second, an event that is used after that, is seen.
mpi_openib() {
	local -x MALLOC_PERTURB_=255
	ompi_info | grep 'btl: openib' >/dev/null || {
		skip "Open MPI btl openib $2, $3 ranks, $1" "install Open MPI 4, the last to have it"
		return
	}
	gcc -O1 -Wall -shared -fPIC -o "$scratch/openib_end.so" "$root/examples/openib_end.c" -levent_core || exit 2
	LD_PRELOAD=$scratch/openib_end.so exchange "btl openib $2" "$1" "$3" "$4" --mca pml ob1 --mca btl openib,self --mca btl_openib_allow_ib 1 \
		--mca btl_openib_if_include "$2" --mca btl_openib_warn_no_device_params_found 0
}

# ---- libfabric ---------------------------------------------------------------------------------------------------------------------------

# It skips the loopback interface: the address of another one.
address=$(ip -4 -o addr show scope global 2>/dev/null | awk '{ sub("/.*", "", $4); print $4; exit }')

# fabric TRANSPORT PROVIDER TYPE iterations: with data checks
fabric() {
	local name="libfabric $2 $3, $1" pid status
	free_port
	FI_PROVIDER=verbs over "$1" 100 fi_pingpong -B "$port_last" -p "$2" -e "$3" -c -I "$4" >"$scratch/server" 2>&1 &
	pid=$!
	wait_listen "$port_last" $pid
	FI_PROVIDER=verbs over "$1" 100 fi_pingpong -P "$port_last" -p "$2" -e "$3" -c -I "$4" "$address" >"$scratch/log" 2>&1
	status=$?
	wait $pid || status=$?
	[ $status -eq 0 ] && awk -v n="$4" '$2 == n && $3 == "=" n { rows++ } /rror/ { bad = 1 } END { exit rows < 4 || bad }' "$scratch/log"
	judge "$name" "lines are missing"
}

# ---- librpma ----------------------------------------------------------------------------------------------------------------------------

rpmas() {
	local pid status
	next_port
	over "$1" 60 "$scratch/rpma" server 127.0.0.1 $port >"$scratch/server" 2>&1 &
	pid=$!
	wait_service $pid
	over "$1" 60 "$scratch/rpma" client 127.0.0.1 $port >"$scratch/log" 2>&1
	status=$?
	wait $pid || status=$?
	cat "$scratch/server" >>"$scratch/log"
	[ $status -eq 0 ] && [ "$(grep -cx 'rpma: ok' "$scratch/log")" -eq 2 ]
	judge "librpma, $1" "not all data"
}

# ---- iSER ------------------------------------------------------------------------------------------------------------------------------

target=iqn.2026-11.org.heddle:disk
initiator=iqn.2026-11.org.heddle:test
control=$((4000 + $$ % 20000)) # in the name of a socket

admin() {
	tgtadm -C $control --lld iser --mode "$2" --op "$1" "${@:3}" >>"$scratch/admin" 2>&1
}

# libiscsi 1.19 looks at memory that it has not set: not with what fills fresh memory with a pattern, as Meson does.
initiate() {
	local -x MALLOC_PERTURB_=0
	over "$1" 60 "$2" -i $initiator "${@:3}" "iser://127.0.0.1:3260/$target/1" >"$scratch/log" 2>&1
}

# It binds its port for each family, waits at its event channel with epoll, and does all its transfers by RDMA.
iser() {
	local pid disk=$scratch/disk
	export TGT_IPC_SOCKET=$scratch/tgtd
	head -c 8M /dev/zero >"$disk"
	timeout -k 5 120 "$BUILD/heddle" run -t "$1" -- tgtd -f -C $control --iser pool_sz_mb=16 >"$scratch/server" 2>&1 &
	pid=$!
	port=3260 wait_service $pid
	for _ in $(seq 100); do
		! admin show system || break
		sleep 0.1
	done
	admin new target --tid 1 -T $target && admin new logicalunit --tid 1 --lun 1 -b "$disk" && admin bind target --tid 1 -I ALL &&
		admin bind target --tid 1 -Q $initiator
	judge "tgtd is an iSER target, $1" "it cannot be set up"
	initiate "$1" iscsi-inq && grep -q 'Product:VIRTUAL-DISK' "$scratch/log"
	judge "iscsi-inq over iSER, $1" "no answer"
	initiate "$1" iscsi-readcapacity16 && grep -qx 'Total size:8388608' "$scratch/log"
	judge "iscsi-readcapacity16 over iSER, $1" "another size"
	initiate "$1" iscsi-test-cu -d -n --test=ALL.Write10.Simple && grep -qE 'tests +1 +1 +1 +0' "$scratch/log" &&
		! cmp -s "$disk" <(head -c 8M /dev/zero)
	judge "an iSER initiator writes, $1" "the disk is as it was"
	initiate "$1" iscsi-test-cu -d -n --test=ALL.Read10.Simple && grep -qE 'tests +1 +1 +1 +0' "$scratch/log"
	judge "an iSER initiator reads, $1" "the test failed"
	pkill -KILL -P $pid tgtd # it ends badly, or not at all, when it is asked while initiators have only just left
	{ wait $pid; } 2>/dev/null
}

# ---- rdma-core's tests of devices ----------------------------------------------------------------------------------------------------------

# pyverbs TRANSPORT DEVICE: python3-pyverbs brings the tests as documents
pyverbs() {
	over "$1" 1500 /usr/bin/python3 "$scratch/tests/run_tests.py" --dev "$2" -v >"$scratch/pyverbs" 2>&1
	grep -aE '^(ERROR|FAIL): ' "$scratch/pyverbs" >"$scratch/log"
	[ ! -s "$scratch/log" ] && [ "$(grep -acE '\.\.\. ok$' "$scratch/pyverbs")" -ge 100 ]
	judge "rdma-core's tests of $2, $1" "$(tail -n 1 "$scratch/pyverbs")"
}

# ---- a virtual machine ---------------------------------------------------------------------------------------------------------------------

# migrate TRANSPORT on|off: a guest without a disk moves from one qemu to another; its memory pinned as a whole, or as it is used
migrate() {
	local pids=() machine=(qemu-system-x86_64 -nodefaults -display none -accel tcg -m 64)
	free_port
	over "$1" 200 "${machine[@]}" -qmp "unix:$scratch/dst.sock,server=on,wait=off" -incoming defer >"$scratch/dst.log" 2>&1 &
	pids+=($!)
	over "$1" 200 "${machine[@]}" -qmp "unix:$scratch/src.sock,server=on,wait=off" >"$scratch/src.log" 2>&1 &
	pids+=($!)
	timeout -k 5 150 python3 "$here/migrate.py" "$scratch" "$port_last" "$2" >"$scratch/log" 2>&1 &&
		grep -qE '^completed, [1-9][0-9]* bytes, postmigrate to running$' "$scratch/log"
	judge "qemu migrates, rdma-pin-all $2, $1" "it did not"
	stop "${pids[@]}"
}

# ----------------------------------------------------------------------------------------------------------------------------------------------

if [ "$fast" = no ]; then
	need qemu-system-x86_64 python3 mpirun.mpich mpicc.mpich oshcc oshrun
	oshcc -O1 -w -o "$scratch/shmem" "$here/shmem.c" && gcc -O1 -w -o "$scratch/rpma" "$here/rpma.c" -lrpma || exit 2
	mpicc.mpich -O1 -w -o "$scratch/exchange.mpich" "$here/exchange.c" || exit 2
	/usr/bin/python3 -c 'import pyverbs' || exit 2
	mkdir "$scratch/tests"
	for f in /usr/share/doc/rdma-core/tests/*.py*; do
		case $f in
		*.gz) gzip -dc "$f" >"$scratch/tests/$(basename "$f" .gz)" ;;
		*) cp "$f" "$scratch/tests/" ;;
		esac
	done
fi
build_mpi

ucx_finds
judge "UCX finds both devices" "something is missing"
for t in "${transports[@]}"; do
	ucx "$t" rc_v heddle0 200 tag_lat -s 64
	ucx "$t" ud_v heddle1 200 tag_lat -s 64
	ucx "$t" rc_v heddle1 50 ucp_put_lat -s 4096
	mpi_on "$t" rc_v heddle0 2 100
	mpi_openib "$t" heddle0 2 100
	[ -z "$address" ] || fabric "$t" verbs msg 10
	one_at_a_time iser iser "$t"
	[ "$fast" = no ] || continue
	# Each test over each kind of transport of UCX's, each of these over each device and each of ours, and each device over both: a device has one
	# kind over shared memory, and the other over TCP.
	for kind in rc ud; do
		if [ $kind-"$t" = rc-tcp ] || [ $kind-"$t" = ud-shm ]; then d=heddle1; else d=heddle0; fi
		tls=${kind}_v
		for test in tag_lat tag_bw tag_sync_lat ucp_put_lat ucp_put_bw ucp_get stream_lat stream_bw ucp_am_lat ucp_am_bw; do
			ucx "$t" $tls $d 300 $test -s 64
		done
		for test in add fadd swap cswap; do
			ucx "$t" $tls $d 200 ucp_$test -s 8
		done
		ucx "$t" $tls $d 30 tag_lat -s 100000
		ucx "$t" $tls $d 20 ucp_am_lat -s 1000000
		ucx "$t" $tls $d 200 tag_lat -s 64 -E sleep
		ucx "$t" $tls $d 30 tag_lat -s 3000,5000,70000 -D iov,contig
		ucx "$t" $tls $d 30 tag_bw -s 300000 -T 2 -M multi
		ucx "$t" $tls $d 20 tag_bw -s 10000000 -e
		ucx "$t" $tls $d 200 tag_lat -s 100 -U
		shmems "$t" $tls $d 3
		for test in "am_lat -s 32 -D short" "am_lat -s 64 -D bcopy" "am_bw -s 4000 -D zcopy" "am_lat -s 32 -A signal"; do
			# shellcheck disable=SC2086
			uct "$t" ${kind}_verbs $d $test
		done
		mpi_on "$t" $tls $d 4 300
		[ $kind = rc ] || continue
		for test in "put_lat -s 8 -D short" "put_bw -s 8000 -D bcopy" "put_bw -s 1000000 -D zcopy" "get -s 8000 -D bcopy" \
			"get -s 1000000 -D zcopy" "add_lat -s 8" "add_mr -s 8" "fadd -s 8" "cswap -s 8"; do
			# shellcheck disable=SC2086
			uct "$t" rc_verbs $d $test
		done
		mpich "$t" rc_v $d 3
		pyverbs "$t" $d
	done
	# one message over both devices
	ucx "$t" rc_v heddle0:1,heddle1 30 tag_bw -s 10000000
	rpmas "$t"
	mpi_openib "$t" heddle0 4 1000
	if [ -n "$address" ]; then
		fabric "$t" verbs dgram 20
		fabric "$t" 'verbs;ofi_rxm' rdm 20
	fi
	migrate "$t" off
	migrate "$t" on
done
finish
