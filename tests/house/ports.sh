#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
#
# Scripts get ports that nobody else has or may get meanwhile (tests/ports.sh), and none of them names one that connections get.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/tap.sh
. tests/tap.sh

# A kernel's files, in which all is free but what a check writes there.
proc=$tap_scratch/proc
kernel() {
	rm -rf "$proc"
	mkdir -p "$proc/net" "$proc/sys/net/ipv4"
	echo "$1" >"$proc/sys/net/ipv4/ip_local_port_range"
	: >"$proc/net/tcp" && : >"$proc/net/tcp6" && : >"$proc/net/udp" && : >"$proc/net/unix"
}

# ports COMMAND…: in a script of its own, whose locks nobody else has
ports() {
	HD_PORTS_PROC=${at:-$proc} HD_PORTS_LOCKS=$tap_scratch/locks bash -euo pipefail -c '. tests/ports.sh; eval "$1"' x "$*"
}

# holder COMMAND…: the same beside us, until $held is closed; it has written a line when this returns
holder() {
	coproc { ports "$* && echo \$ports_first && read -r _"; }
	read -r first <&"${COPROC[0]}"
	held=${COPROC[1]}
}

# let_go: it has ended when this returns
let_go() {
	local pid=$COPROC_PID
	exec {held}>&-
	wait "$pid" || true
}

# Two blocks are left by this range.
two='2000 65299'
# shellcheck disable=SC2317 # check calls these
shared_out() {
	kernel "$two"
	holder ports_take
	ports "ports_take && echo \$ports_first" >"$tap_scratch/second"
	let_go
	echo "$first and $(cat "$tap_scratch/second")"
	[ "$(printf '%s\n' "$first" "$(cat "$tap_scratch/second")" | sort)" = $'65300\n65400' ]
}
# shellcheck disable=SC2317
given_back() {
	kernel '2000 65399'
	holder ports_take
	! ports 'ports_lock 65400' || return
	let_go
	ports 'ports_lock 65400'
}
# by_what_it_started: a server outlives its script, and keeps the block
# shellcheck disable=SC2317
by_what_it_started() {
	local server
	kernel '2000 65399'
	server=$(ports 'ports_take; sleep 100 >/dev/null 2>&1 & echo $!')
	! ports 'ports_lock 65400' || { kill "$server" && return 1; }
	kill "$server"
}
check "two scripts at once get different blocks" shared_out
check "a block is free again when its script has ended" given_back
check "and not before what it has started" by_what_it_started

# passed_over FILE LINE: port 65433 is taken in this way, so its block is not given
# shellcheck disable=SC2317
passed_over() {
	kernel "$two"
	echo "$2" >"$proc/net/$1"
	for _ in 1 2 3 4; do
		[ "$(ports "ports_take && echo \$ports_first")" = 65300 ] || return
	done
}
# 0xff99; the state behind it is that of a listener, or of an ended connection
check "a block with a listener is passed over" passed_over tcp '   0: 0100007F:FF99 00000000:0000 0A 00000000:00000000'
check "one of IPv6" passed_over tcp6 '   0: 00000000000000000000000000000000:FF99 00000000000000000000000000000000:0000 0A'
check "an ended connection" passed_over tcp '  71: 0100007F:FF99 0100007F:8001 06 00000000:00000000'
check "a socket of UDP" passed_over udp ' 9171: 00000000:FF99 00000000:0000 07 00000000:00000000'
check "a service of rdma_cm" passed_over unix '0000000000000000: 00000002 00000000 00010000 0001 01 12345 @heddle/service/106/ff99/1'

# Real sockets, of this kernel
# shellcheck disable=SC2317
real() {
	local at=/proc
	ports "$@"
}
# shellcheck disable=SC2317
real_listener() {
	real 'free_port
	python3 -c "import socket, sys; s = socket.socket(); s.bind((\"127.0.0.1\", int(sys.argv[1]))); s.listen(); print(); sys.stdout.flush(); sys.stdin.read()" "$port_last" \
		< <(sleep 100) > >(read -r _ && touch "$HD_PORTS_LOCKS/listens") &
	mine=$port_last
	for _ in $(seq 200); do [ ! -e "$HD_PORTS_LOCKS/listens" ] || break; sleep 0.05; done
	ports_blocks >"$HD_PORTS_LOCKS/blocks"
	port_last=$((mine - 1))
	free_port
	kill $!
	[ -s "$HD_PORTS_LOCKS/blocks" ]
	[ $port_last -eq $((mine + 1)) ]
	! grep -qx $((mine / 100 * 100)) "$HD_PORTS_LOCKS/blocks"'
}
check "a listener of this host is seen, by its block and by its port" real_listener

# shellcheck disable=SC2317
outside() {
	local low high
	read -r low high <"${at:-$proc}/sys/net/ipv4/ip_local_port_range"
	ports ports_blocks >"$tap_scratch/blocks"
	[ -s "$tap_scratch/blocks" ] || return
	awk -v low="$low" -v high="$high" '$1 < 1024 || $1 + 99 > 65535 || ($1 <= high && $1 + 99 >= low)' "$tap_scratch/blocks" >"$tap_scratch/wrong"
	cat "$tap_scratch/wrong"
	[ ! -s "$tap_scratch/wrong" ]
}
for range in '32768 60999' '1024 4999' '15000 64000' '32850 40050' '20000 20000'; do
	kernel "$range"
	check "no block is one that connections get: $range" outside
done
at=/proc
check "none of this host's" outside
at=
kernel '1024 65535'
check_output "where they get all of them there is a block, and a warning" 'leaves no port to tests' ports 'ports_take && [ $ports_first -gt 0 ]'
# shellcheck disable=SC2317
goes_on() {
	kernel "$two"
	ports 'for ((i = 0; i < 150; i++)); do free_port; echo "$port_last"; done' | sort -u >"$tap_scratch/ports"
	[ "$(awk '$1 >= 65300 && $1 < 65500' "$tap_scratch/ports" | wc -l)" -eq 150 ]
}
check "one block after the other" goes_on
# shellcheck disable=SC2317
all_in_use() {
	kernel "$two"
	for ((i = 0; i < 656; i++)); do printf '   0: 0100007F:%04X 00000000:0000 0A\n' $((i < 655 ? i * 100 + 7 : 65535)); done >"$proc/net/tcp"
	ports 'free_port; echo "got $port_last"'
}
check_output "and where all are in use it says so" 'no hundred ports are free' all_in_use
check_status "and ends" 2 all_in_use

# named FILE…: lines of scripts that name a port of the default range, 32768 to 60999, or count one up from there: where a program is told to listen, or a
# variable is called port; and of those that count from the process id, as another script may. Where a program has a network of its own, the line says so.
named() {
	awk '
		function inside(n) { return n >= 32768 && n <= 60999 }
		/a network of its own/ || /^[[:space:]]*#/ { next }
		{
			text = $0
			if (text ~ /(port|first)[a-z_]*=\$\(\([0-9]+ \+ \$\$/) print FILENAME ":" FNR ": " $0
			while (match(text, /(--?(p|P|B|lp|port|src_port)[ =]?|[Pp][Oo][Rr][Tt][A-Za-z_0-9]*=["(\047$ ]*|HEDDLE_PORTS=|:)[0-9][0-9][0-9][0-9][0-9]/)) {
				n = substr(text, RSTART + RLENGTH - 5, 5)
				if (inside(n + 0) && substr(text, RSTART + RLENGTH, 1) !~ /[0-9]/) print FILENAME ":" FNR ": " $0
				text = substr(text, RSTART + RLENGTH)
			}
		}' "$@"
}
# shellcheck disable=SC2317
none_named() {
	local scripts
	mapfile -t scripts < <(find tests -name '*.sh' ! -path tests/house/ports.sh)
	[ ${#scripts[@]} -gt 40 ] || return
	named "${scripts[@]}" >"$tap_scratch/named"
	cat "$tap_scratch/named"
	[ ! -s "$tap_scratch/named" ]
}
check "no script names a port of those that connections get" none_named
while read -r line; do
	echo "$line" >"$tap_scratch/script"
	check_output "it is noticed in: $line" script: named "$tap_scratch/script"
done <<'END'
libfabric) port=47592 program=(fi_pingpong -e rdm) ;;
port_kept=50000
	over "$t" 60 fi_pingpong -p heddle -B 47592 &
	over "$t" 60 ucx_perftest -p 45000
	export HEDDLE_PORTS=40000-40009
	ss -Hltn "sport = :47592"
port=$((20000 + $$ % 12000))
END
finish
