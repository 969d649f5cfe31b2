#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
#
# Debian's programs of rdma_cm: rping, ucmatose, udaddy, rdma_server, cmtime, fio's rdma engine, perftest with -R; on one host, and
# between two network namespaces. Judged by what they print.
# shellcheck source=tests/clients/lib.sh
. "$(dirname "$0")/lib.sh" "$@"
# shellcheck source=tests/clients/netns.sh
. "$(dirname "$0")/netns.sh"
# shellcheck source=tests/clients/services.sh
. "$(dirname "$0")/services.sh"
# shellcheck source=tests/clients/verbs.sh
. "$(dirname "$0")/verbs.sh"
need rping ucmatose udaddy mckey rdma_server cmtime fio ib_send_lat

seconds=60
to=127.0.0.1   # where the client calls
bound=()       # and the server is to be, where it would not listen for both families
where1=(env)   # where the client does
again=0        # how often the client calls again when nobody listens yet
stays=no       # the server does not end by itself

# both TRANSPORT server… -- client…: their output is in $scratch/server and $scratch/log
both() {
	local transport=$1 server=() pid status i
	shift
	while [ "$1" != -- ]; do server+=("$1") && shift; done
	shift
	over "$transport" "$seconds" "${where0[@]}" "${server[@]}" >"$scratch/server" 2>&1 &
	pid=$!
	wait_service $pid || { kill $pid 2>/dev/null; cp "$scratch/server" "$scratch/log"; return 1; }
	for ((i = 0; i <= again; i++)); do
		over "$transport" "$seconds" "${where1[@]}" "$@" >"$scratch/log" 2>&1
		status=$?
		grep -q 'REJECTED; error: 8' "$scratch/log" || break
		sleep 0.1
	done
	[ $stays = no ] || kill $pid 2>/dev/null
	wait $pid || [ $stays = yes ] || { status=1 && sed 's/^/server: /' "$scratch/server" >>"$scratch/log"; }
	return $status
}

says() {
	local file=$1 pattern
	shift
	for pattern; do grep -qE "$pattern" "$scratch/$file" || { echo "missing in $file: $pattern" >>"$scratch/log" && return 1; }; done
}

# rping sees in what it gets that nothing is missing: it compares every byte (-V), and prints it (-v).
rpings() {
	next_port
	both "$1" rping -s -a "$to" -p $port -v -V "${@:3}" -- rping -c -a "$to" -p $port -v -V "${@:3}" &&
		[ "$(grep -c '^ping data: rdma-ping-' "$scratch/log")" -eq 20 ] &&
		[ "$(grep -c '^server ping data: rdma-ping-' "$scratch/server")" -eq 20 ] && ! grep -qi mismatch "$scratch/log"
	judge "rping${2:+ $2}, $1" "not all pings"
}

# many TRANSPORT CLIENTS: a server for many at once (-P). It takes one request at a time: another that comes meanwhile takes the first one's
# place, so each comes when the one before has been served something.
many() {
	local transport=$1 n=$2 pid i status=0 clients=()
	next_port
	"$BUILD/heddle" run "--transport=$transport" -- rping -s -P -a "$to" -p $port -V -S 6000 >"$scratch/server" 2>&1 &
	pid=$!
	wait_service $pid
	for ((i = 0; i < n; i++)); do
		over "$transport" "$seconds" rping -c -a "$to" -I "$to" -p $port -v -V -S 6000 -C 3000 >"$scratch/client.$i" 2>&1 &
		clients+=($!)
		moves "client.$i" $!
	done
	for i in "${clients[@]}"; do wait "$i" || status=1; done
	: >"$scratch/log"
	for ((i = 0; i < n; i++)); do
		[ "$(grep -c '^ping data: rdma-ping-' "$scratch/client.$i")" -eq 3000 ] || { status=1 && tail -n 1 "$scratch/client.$i" >>"$scratch/log"; }
	done
	kill $pid
	wait $pid 2>/dev/null
	[ $status -eq 0 ]
	judge "$n clients of rping -P, $transport" "not all pings"
}

ucmatoses() {
	next_port
	[[ " ${*:3} " != *" -P ib "* ]] || space=13f
	both "$1" ucmatose "${bound[@]}" -p $port "${@:3}" -- ucmatose -s "$to" -p $port "${@:3}" &&
		says log 'data transfers complete' 'return status 0' && says server 'data transfers complete' 'return status 0'
	judge "ucmatose${2:+ $2}, $1" "it does not end well"
}

# natives TRANSPORT DEVICE: addresses are GIDs, in the port space for all kinds of services.
natives() {
	local gid
	next_port
	space=13f
	gid=$(over "$1" 20 ibv_devinfo -v -d "$2" 2>/dev/null | sed -n 's/.*GID\[ *0\]:[[:space:]]*//; T; s/,.*//; p; q')
	both "$1" ucmatose -P ib -f gid -b "$gid" -p $port -- ucmatose -P ib -f gid -s "$gid" -p $port &&
		says log 'data transfers complete' 'return status 0' && says server 'data transfers complete' 'return status 0'
	judge "ucmatose with the GID of $2, $1" "it does not end well"
}

udaddies() { # their port cannot be chosen
	port=7174 space=111
	[[ " ${*:3} " != *" ipoib "* ]] || space=2
	both "$1" udaddy "${bound[@]}" "${@:3}" -- udaddy -s "$to" "${@:3}" &&
		says log 'data transfers complete' 'return status 0' && says server 'data transfers complete' 'return status 0'
	judge "udaddy${2:+ $2}, $1" "it does not end well"
}

# wait_member PID ADDRESS: until somebody hears what is sent to this group
wait_member() {
	local i
	for ((i = 0; i < 400; i++)); do
		! "${where0[@]}" ss -Hlun 2>/dev/null | grep -qF "$2" || return 0
		kill -0 "$1" 2>/dev/null || return 1
		sleep 0.05
	done
	return 1
}

# mckeys TRANSPORT GROUP SOCKET args…: mckey compares no data, but a receiver that misses one message, or sees another length, does not end.
# SOCKET is where the group's socket is; how the group is named, and what the sender alone is told, are in these.
as=-m
sender=()
mckeys() {
	local transport=$1 group=$2 socket=$3 pid status
	over "$transport" "$seconds" "${where0[@]}" mckey $as "$group" -b "$to" "${@:4}" >"$scratch/server" 2>&1 &
	pid=$!
	wait_member $pid "$socket"
	over "$transport" "$seconds" "${where1[@]}" mckey $as "$group" -b "${from:-$to}" -s "${sender[@]}" "${@:4}" >"$scratch/log" 2>&1
	status=$?
	wait $pid && [ $status -eq 0 ] && says log 'data transfers complete' 'return status 0' &&
		says server 'data transfers complete' 'return status 0'
	judge "mckey $as $group ${*:4} ${sender[*]}, $transport" "it does not end well"
}

rdma_servers() {
	next_port
	both "$1" rdma_server -p $port -- rdma_client -s "$to" -p $port && says log 'rdma_client: end 0' && says server 'rdma_server: end 0'
	judge "rdma_server and rdma_client, $1" "one of them fails"
}

# xservers TRANSPORT [r]: of rdma_cm's own examples, those that know XRC; its service has a port space of its own
xservers() {
	local kind=${2:-x}
	next_port
	[ "$kind" = r ] || space=13f
	both "$1" rdma_xserver -c "$kind" -p $port -- rdma_xclient -c "$kind" -s "$to" -p $port && says log 'rdma_xclient: end 0' &&
		says server 'rdma_xserver: end 0'
	judge "rdma_xserver and rdma_xclient -c $kind, $1" "one of them fails"
}

# Every step takes some time, and there is a line for each.
cmtimes() {
	next_port
	stays=yes
	both "$1" cmtime -p $port -c 100 -- cmtime -s "$to" -p $port -c 100 &&
		[ "$(awk 'NF > 4 && $(NF-4) ~ /:$/ && $NF > 0 { n++ } END { print n + 0 }' "$scratch/log")" -eq 7 ]
	judge "cmtime, 100 connections, $1" "figures are missing"
	stays=no
}

# fios VERB TRANSPORT [BLOCK]: what is sent is verified by the receiver; what is read or written has arrived when so many bytes are counted. fio
# asks for no retries when there is no receive, so the receiver has one for every message; it knows no more than 512.
fios() {
	local check=() block=${3:-64k} size=8192 count
	next_port
	[ "$block" != 4k ] || size=1024
	count=$((size / ${block%k}))
	[ "$1" != send ] || check=(--verify=crc32c --verify_state_save=0)
	both "$2" fio --name=server --ioengine=rdma --port=$port --bs=$block --size=${size}k --iodepth=$count --rw=read --verb=recv --thread "${check[@]}" \
		-- fio --name=client --ioengine=rdma --hostname="$to" --port=$port --bs=$block --size=${size}k --iodepth=4 --rw=write \
		--verb="$1" --thread "${check[@]}" ${check[0]+--do_verify=0} &&
		says log 'err= 0:' "WRITE:.*io=${size}KiB" "total=0,$count,0,0 short=0,0,0,0 dropped=0,0,0,0" && says server 'err= 0:' &&
		{ [ "$1" != send ] || says server "READ:.*io=${size}KiB"; }
	judge "fio $1 of $block, $2" "not all bytes, or not the right ones"
}

# memories write|read TRANSPORT: the memory of the side that fio's own verification does not know is a file, of which blocks are as the
# other side has them. fio picks any of the receiver's 128 blocks for each request.
memories() {
	local disk=$scratch/blocks
	next_port
	if [ "$1" = write ]; then
		head -c 8M /dev/zero >"$disk"
		head -c 64k < <(while printf 'heddle!\n'; do :; done) >"$scratch/block"
		both "$2" fio --name=server --ioengine=rdma --port=$port --bs=64k --size=8192k --iodepth=128 --rw=read --verb=recv --thread \
			--mem="mmapshared:$disk" -- fio --name=client --ioengine=rdma --hostname="$to" --port=$port --bs=64k --size=8192k \
			--iodepth=4 --rw=write --verb=write --thread --buffer_pattern='"heddle!"0x0a'
	else
		head -c 256k /dev/zero >"$disk"
		head -c 8M < <(while printf 'heddle!\n'; do :; done) >"$scratch/theirs"
		head -c 64k "$scratch/theirs" >"$scratch/block"
		both "$2" fio --name=server --ioengine=rdma --port=$port --bs=64k --size=8192k --iodepth=128 --rw=read --verb=recv --thread \
			--mem="mmapshared:$scratch/theirs" -- fio --name=client --ioengine=rdma --hostname="$to" --port=$port --bs=64k \
			--size=8192k --iodepth=4 --rw=write --verb=read --thread --zero_buffers --mem="mmapshared:$disk"
	fi && python3 "$(dirname "$0")/blocks.py" "$disk" "$scratch/block" >>"$scratch/log"
	judge "fio $1, its data, $2" "it has not arrived"
}

# perfs TRANSPORT program…: a line of figures. Its server has its port a good while before it listens.
perfs() {
	local transport=$1 again=100 why=
	next_port
	shift
	both "$transport" "$@" -R -d heddle1 -F -p $port -- "$@" -R -d heddle1 -F -p $port "$to" && why=$(figures "$scratch/log" 1)
	judge "$* -R, $transport" "${why:-it ended badly}"
}

# Nobody listens: the client says so, and does not wait.
nobodies() {
	next_port
	! over "$1" 20 rping -c -a "$to" -p $port -C 1 >"$scratch/log" 2>&1 && says log 'REJECTED'
	judge "rping calls nobody, $1" "it does not hear of it"
}

# A server that listens everywhere is called at an address that its host has got after it was started.
late_addresses() {
	local pid late=10.213.7.77 status=1
	next_port
	over auto "$seconds" "${where0[@]}" rping -s -a 0.0.0.0 -p $port -C 20 -V >"$scratch/server" 2>&1 &
	pid=$!
	if wait_service $pid; then
		"${where0[@]}" ip address add $late/24 dev v0
		over auto "$seconds" "${where1[@]}" rping -c -a $late -p $port -C 20 -V >"$scratch/log" 2>&1
		status=$?
		"${where0[@]}" ip address del $late/24 dev v0
	fi
	wait $pid && [ $status -eq 0 ]
	judge "rping at an address that came later" "nobody is there"
}

# What is posted at once leaves by a network that takes it in slowly: nothing of it is lost at the sender.
slow_group() {
	if "${where1[@]}" tc qdisc add dev v0 root tbf rate 200mbit burst 20k limit 4m 2>"$scratch/log"; then
		mckeys auto 239.255.72.75 239.255.72.75: -C 128 -S 4096
		"${where1[@]}" tc qdisc del dev v0 root
	else
		skip "mckey over a slow network" "a kernel with sch_tbf (\`modprobe sch_tbf\`) would do: $(head -n 1 "$scratch/log")"
	fi
}

for t in "${transports[@]}"; do
	rpings "$t" "" -C 20
	rpings "$t" "of 60000 bytes" -C 20 -S 60000
	ucmatoses "$t" ""
	one_at_a_time udaddy udaddies "$t" ""
	mckeys "$t" 239.255.72.68 239.255.72.68: -C 20 -S 100
	rdma_servers "$t"
	xservers "$t"
	fios send "$t"
	nobodies "$t"
	[ $fast = no ] || continue
	rpings "$t" "with a queue pair of its own" -C 20 -q
	ucmatoses "$t" "with 20 connections" -c 20 -C 100 -S 5000
	many "$t" 5
	rpings "$t" "of as much as it has" -C 20 -S 65535 -q
	ucmatoses "$t" "with ids that migrate" -m -c 3
	ucmatoses "$t" "with 100 connections" -c 100 -C 2 -S 10
	ucmatoses "$t" "with long messages" -c 2 -C 3 -S 30000000
	one_at_a_time udaddy udaddies "$t" "with 5 peers" -c 5 -C 20 -S 2000
	one_at_a_time udaddy udaddies "$t" "with 30 peers" -c 30 -C 5 -S 4000
	one_at_a_time udaddy udaddies "$t" "in the port space of IPoIB" -P ipoib
	mckeys "$t" 239.255.72.69 239.255.72.69: -c 3 -C 50 -S 1000
	as=-M mckeys "$t" ff0e::ffff:efff:4846 '[ff0e::ffff:efff:4846]:' -C 20 -S 100
	sender=(-o)
	mckeys "$t" 239.255.72.72 239.255.72.72: -C 20 -S 100
	sender=(-l) # of a member on the same host, which hears it all the same
	mckeys "$t" 239.255.72.73 239.255.72.73: -C 20 -S 100
	sender=()
	xservers "$t" r
	cmtimes "$t"
	natives "$t" heddle0
	natives "$t" heddle1
	ucmatoses "$t" "in the port space of InfiniBand" -P ib
	ucmatoses "$t" "with a type of service and an ACK timeout" -t 8 -a 18
	memories write "$t"
	memories read "$t"
	# each block and each verb over both transports
	blocks=(4k 64k 1024k)
	[ "$t" = shm ] || blocks=(64k 1024k 4k)
	for v in write read send; do
		fios $v "$t" "${blocks[0]}"
		blocks=("${blocks[@]:1}" "${blocks[0]}")
	done
	for p in "ib_send_lat -n 100" "ib_send_bw -n 200" "ib_write_lat -n 100" "ib_write_bw -n 200" "ib_read_lat -n 100" \
		"ib_read_bw -n 200" "ib_atomic_lat -n 100" "ib_atomic_bw -n 200" "ib_send_lat -c UD -n 100" \
		"ib_send_bw -n 200 -q 3 -T 8 --retry_count=3" "ib_send_bw -n 200 -z" "ib_send_bw -n 200 -b -e" "ib_send_bw -n 200 -q 3 --use-srq" \
		"ib_send_bw -n 200 -c UD -q 3 -s 1024" "ib_write_bw -n 200 -b -q 16" "ib_read_bw -n 200 -q 4 -o 2" "ib_write_lat -n 100 -z"; do
		# shellcheck disable=SC2086
		perfs "$t" $p
	done
done

# ---- two hosts ----

if ! make 2>"$scratch/log"; then
	skip "rping across namespaces" "$(needs_namespaces)"
	finish
fi
where0=(ip netns exec "${names[0]}") where1=(ip netns exec "${names[1]}")
to=${address[0]}
from=${address[1]}
rpings auto "across namespaces" -C 20 -S 5000
slow_group
if [ $fast = no ]; then
	ucmatoses auto "across namespaces"
	one_at_a_time udaddy udaddies auto "across namespaces"
	mckeys auto 239.255.72.71 239.255.72.71: -C 20 -S 1000
	rdma_servers auto
	xservers auto
	cmtimes auto
	for v in write read send; do fios $v auto; done
	for p in "ib_send_lat -n 100" "ib_write_bw -n 100" "ib_read_lat -n 100" "ib_atomic_lat -n 100" "ib_send_lat -c UD -n 100"; do
		# shellcheck disable=SC2086
		perfs auto $p
	done
	late_addresses
	to=${address6[0]}
	bound=(-b "$to") # without, it asks the resolver, whose first answer may be an address of IPv4
	rpings auto "across namespaces, IPv6" -C 20
	ucmatoses auto "across namespaces, IPv6"
	from=${address6[1]}
	mckeys auto ff15::4844 '[ff15::4844]:' -C 20 -S 1000
	for i in 0 1; do ip -n "${names[$i]}" addr add fe80::$((i + 1))/64 dev v0 nodad; done
	export HEDDLE_ALLOW=fe80::/64
	to=fe80::1%v0
	bound=(-b "$to")
	rpings auto "across namespaces, by an address of their link" -C 20
	ucmatoses auto "across namespaces, by an address of their link"
	for i in 0 1; do ip -n "${names[$i]}" addr flush dev v0 scope global; done
	rpings auto "across namespaces that have addresses of their link alone" -C 20
	one_at_a_time udaddy udaddies auto "across namespaces that have addresses of their link alone"
fi
finish
