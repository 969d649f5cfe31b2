#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
#
# Each message that a user can cause with the command line, the environment or files says what to do next: a row of these tables provokes one, and has the
# words that tell it. HD_BUILD is the build folder.
# shellcheck disable=SC2016 # what the shell of a row expands
set -uo pipefail
cd "$(dirname "$0")" || exit 1
# shellcheck source=tests/tap.sh
. ../tap.sh
# shellcheck source=tests/ports.sh
. ../ports.sh

export B=${HD_BUILD:?the build folder} S=$tap_scratch
export P=$B/tests/e2e/e2e-peer W=$B/tests/e2e/without FI_PROVIDER_PATH=$B FI_PROVIDER=heddle # others look at the processor for seconds
unset HEDDLE_TRANSPORT HEDDLE_LOG HEDDLE_ADDR HEDDLE_PORTS HEDDLE_KEY_FILE LD_PRELOAD
heddle() { timeout 20 "$B/heddle" "$@"; }
serve() { timeout 20 env "$@" "$P" serve; }
bare() { timeout 20 setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; } # another user
export -f heddle serve bare

# rows: lines of "what is wrong | the words that are looked for | a command"
rows() {
	local name words command
	while IFS='|' read -r name words command; do
		[ -z "$name" ] || check_output "${name% }" "$(sed 's/^ //; s/ $//' <<<"$words")" bash -c "$command"
	done
}

printf '#!/bin/sh\n' >"$S/no-program"
printf '#!/nonexistent/interpreter\n' >"$S/no-interpreter"
chmod +x "$S/no-interpreter"
mkdir -p "$S/bare" "$S/a:b" "$S/a b/preload"
for folder in bare a:b "a b"; do cp "$B/heddle" "$S/$folder"; done
: >"$S/empty-file"
touch "$S/a:b/libheddle-fi.so" "$S/a b/libheddle-fi.so" "$S/a b/preload/libheddle-verbs.so"

# The command.
rows <<'END'
no command | a command is missing | heddle
an unknown command | no command .rum.; there are .run., .info. and .key. | heddle rum
an unknown command to help with | no command .rum.; there are .run., .info. and .key. | heddle help rum
an unknown option | --foo | heddle --foo
with where to look | ^Try .heddle --help.[.]$ | heddle --foo
an unknown option of run | ^Try .heddle run --help.[.]$ | heddle run -Z true
an option without its value | option --set needs a value | heddle run --set
a value where none belongs | a value where none belongs: --verbose=3 | heddle run --verbose=3 true
no program | which program[?] | heddle run
a setting without a value | takes NAME=VALUE such as EAGER_SHM=64K.* .heddle info. lists all | heddle run -s FOO true
an unknown setting | no setting NONSENSE: .heddle info. lists all | heddle run -s NONSENSE=1 true
a misspelt setting | is it HEDDLE_TRANSPORT[?] | heddle run -s TRANSPROT=shm true
an unknown transport | it takes one of auto, shm, tcp | heddle run -t udp true
a number that is none | it takes a size in bytes, or with K, M or G, from 0 to 1G | heddle run -s EAGER_SHM=abc true
a program that is not in PATH | no such program in PATH: install it, or give its path | heddle run no-such-program
a path to nothing | /nonexistent/program: there is no such program | heddle run /nonexistent/program
a file that is no program | chmod [+]x makes it a program | heddle run "$S/no-program"
a folder | name a program in it | heddle run "$S"
a missing interpreter | the interpreter that it names is missing: see its first line | heddle run "$S/no-interpreter"
no libraries | looked in .*: install Heddle whole | "$S/bare/heddle" run true
a folder with a colon | has a colon in its name: .* install Heddle somewhere else | "$S/a:b/heddle" run true
a folder with a space | has a colon or a space in its name: .* install Heddle somewhere else | "$S/a b/heddle" run true
an argument to info | ^heddle: info takes options alone, not foo | heddle info foo
a full disk | cannot write: No space left on device: make room there | heddle info >/dev/full
no file for a key | say in which file the key shall be | heddle key
two files for a key | one file is enough | heddle key a b
a key that is there | a key is not written over; remove it first | touch "$S/there"; heddle key "$S/there"
a folder that is not there | make its folder first | heddle key "$S/none/key"
a file for its folder | make its folder first | heddle key "$S/empty-file/key"
a very long name | choose a shorter name | heddle key "$S/$(printf %0300d 0)"
no standard output | cannot write: .*: leave standard output open | heddle info 2>&1 >&-
END

# Settings and files.
heddle key "$S/open" && chmod 644 "$S/open"
: >"$S/empty" && chmod 600 "$S/empty"
mkdir -p "$S/part" && cp "$B/heddle" "$B/libheddle-fi.so" "$S/part" && heddle key "$S/key"
rows <<'END'
a value that is not understood | HEDDLE_EAGER_SHM="abc" is not understood: it takes a size in bytes.* using the default, 32K | HEDDLE_EAGER_SHM=abc heddle info
a variable that is no setting | HEDDLE_TRANSPROT is no setting: is it HEDDLE_TRANSPORT[?] | HEDDLE_TRANSPROT=shm heddle info
one that is like none | HEDDLE_NONSENSE is no setting: .* .heddle info. lists all | HEDDLE_NONSENSE=1 heddle info
a subnet that is none | HEDDLE_ALLOW: "10.0.0.0/99" is no subnet such as 10.0.0.0/8 | HEDDLE_ALLOW=10.0.0.0/99 heddle info
a very long one | HEDDLE_ALLOW: "0{100,}" is no subnet | HEDDLE_ALLOW=$(printf %0200d 0) heddle info
an interface that is not there | there is no interface nix0: .ip address. lists what there is | HEDDLE_ADDR=nix0,lo heddle info
it alone | names no address of this host that is up: see .ip address. | HEDDLE_ADDR=nix0 heddle info
an address of another host | this host has no address 203.0.113.7: .ip address. lists | HEDDLE_ADDR=203.0.113.7,lo heddle info
no key file | it is not there: make it with .heddle key., once, and copy it to each host | HEDDLE_KEY_FILE=$S/none heddle info
a file for the folder of a key | it is not there: make it with .heddle key. | HEDDLE_KEY_FILE=$S/empty/key heddle info
a name for a key that none can have | it cannot be opened by that name: name one that .heddle key. has made | HEDDLE_KEY_FILE=$S/$(printf %0300d 0) heddle info
a folder for a key | it is not a regular file: name one that .heddle key. has made | HEDDLE_KEY_FILE=$S heddle info
an empty key file | there is no key in it: make one with .heddle key. | HEDDLE_KEY_FILE=$S/empty heddle info
a key that others may open | others may open it: chmod 600 | serve HEDDLE_KEY_FILE=$S/open
info with a key that cannot be used | ^  tcp .* no program can use it: see HEDDLE_KEY_FILE | HEDDLE_KEY_FILE=$S/open heddle info
info with a part of Heddle | ^  tcp .* no program can use it: see HEDDLE_KEY_FILE | HEDDLE_KEY_FILE=$S/key "$S/part/heddle" info
it says which part | libheddle-tls.so is not beside | HEDDLE_KEY_FILE=$S/key "$S/part/heddle" info
a part of Heddle | what seals connections cannot be loaded: .*: install Heddle whole | serve FI_PROVIDER_PATH=$S/part HEDDLE_KEY_FILE=$S/key
END

# A library that the module wants is not there: it is named.
if command -v gcc >/dev/null && [ -e "$B/libheddle-tls.so" ]; then
	echo 'int hd_nowhere(void); int hd_here(void) { return hd_nowhere(); }' >"$S/want.c"
	echo 'int hd_nowhere(void) { return 0; }' >"$S/nowhere.c"
	gcc -shared -fPIC -Wl,-soname,libnowhere.so.3 -o "$S/libnowhere.so" "$S/nowhere.c" &&
		gcc -shared -fPIC -o "$S/part/libheddle-tls.so" "$S/want.c" "$S/libnowhere.so"
	rows <<'END'
a library that the module wants | cannot be loaded: libnowhere.so.3: .* OpenSSL 3 .libssl3. | HEDDLE_KEY_FILE=$S/key "$S/part/heddle" info
END
else
	skip "a library that the module wants" "install gcc"
fi

# few LIMIT: with so many descriptors the program says what to do, if it cannot run
few() {
	local status=0
	bash -c "ulimit -n $1; exec timeout 5 \"\$P\" serve" >"$S/few" 2>&1 || status=$?
	cat "$S/few"
	[ $status -eq 124 ] || grep -q 'raise .*ulimit -n' "$S/few"
}
for limit in 6 7 8 9 10 11; do check "$limit descriptors" few $limit; done

# taken: a program that may listen at one port alone, which another has
taken() {
	python3 -c 'import os, socket, subprocess, sys
s = socket.socket()
s.bind(("", 0))
s.listen()
os.environ["HEDDLE_PORTS"] = str(s.getsockname()[1])
subprocess.run(sys.argv[1:])' timeout 20 "$P" serve
}
check_output "a port that is taken" 'widen HEDDLE_PORTS, or end the program that has them, as .ss -tlnp. shows' taken
said_of_ports() { taken 2>&1 | grep 'cannot enable'; }
check_output "and nothing is said of a port that nobody asked for" 'at any address: Address already in use$' said_of_ports

# beside COMMAND…: while a program of ours runs
beside() {
	local server ip port
	timeout 20 "$P" serve >"$S/beside" &
	server=$!
	address_in "$S/beside" "$server" && "$@"
	kill "$server"
	wait "$server"
}
export -f beside address_in
# What kernels and containers refuse.
"$W" ptrace EPERM true
if [ $? -eq 77 ]; then
	skip "refused calls" "run on a kernel with seccomp filters (CONFIG_SECCOMP_FILTER)"
else
	rows <<'END'
no memfd_create | no shared memory: memfd_create: .*: let the filter of system calls .* allow that; without it TCP alone | "$W" memfd_create EPERM "$B/heddle" info
info without it | ^  shm .* no shared memory: memfd_create: .* allow that | "$W" memfd_create EPERM "$B/heddle" info
info without copies | no direct copies: process_vm_readv: .* allow that | "$W" process_vm_readv EPERM "$B/heddle" info
info of a program without them | not shown: process_vm_readv: Operation not permitted: let the filter of system calls .* allow that | beside "$W" process_vm_readv EPERM "$B/heddle" info --links
the same on an old kernel | not shown: process_vm_readv: Function not implemented: let the filter of system calls .* allow that | beside "$W" process_vm_readv ENOSYS "$B/heddle" info --links
info where no program can run | no program can use Heddle here: Operation not permitted: let the filter of system calls .* allow that | "$W" epoll_create1 EPERM "$B/heddle" info
no domain | cannot open a domain: Operation not permitted: let the filter of system calls .* allow that | "$W" epoll_create1 EPERM timeout 20 "$P" serve
a firewall that lets nobody out | cannot connect: .*: a firewall here lets nobody out to it | "$W" connect EPERM timeout 20 "$P" call 127.0.0.1 9
and whom it was to reach | 127.0.0.1 port 9 cannot be reached: .*: a firewall here lets nobody out to it | HEDDLE_LOG=info "$W" connect EPERM timeout 20 "$P" call 127.0.0.1 9
no epoll | what it sleeps on [(]epoll, eventfd, timerfd[)]: .* allow that | "$W" epoll_create1 EPERM timeout 20 "$P" serve
no eventfd | what it sleeps on [(]epoll, eventfd, timerfd[)]: .* allow that | "$W" eventfd2 ENOSYS timeout 20 "$P" serve
no timerfd | what it sleeps on [(]epoll, eventfd, timerfd[)]: .* allow that | "$W" timerfd_create EPERM timeout 20 "$P" serve
no getrandom | for want of the page that others see of it [(]mmap, getrandom[)] | "$W" getrandom EPERM timeout 20 "$P" serve
no listen | cannot enable an endpoint at any address: .* allow that | "$W" listen EPERM timeout 20 "$P" serve
no addresses | the addresses of this host cannot be read .* allow that | "$W" netlink,ioctl EPERM "$B/heddle" info
END
fi
# routed ROUTE: calls where this host has such a route
routed() {
	unshare -Urn bash -c 'ip link set lo up && ip route add $0 && HEDDLE_LOG=info exec timeout 20 "$P" call "${0##* }" 9' "$1"
}
export -f routed
if unshare -Urn true 2>/dev/null; then
	rows <<'END'
no network at all | this host has no address that is up: .* .ip link set lo up. will do | unshare -Urn timeout 20 "$P" serve
a route that prohibits | cannot be reached: Permission denied: .*; or a route here prohibits it: .ip route get. | routed "prohibit 10.9.9.9"
one into nothing | cannot be reached: Invalid argument: .ip route get. says | routed "blackhole 10.9.9.9"
one that leads nowhere | cannot be reached: No route to host: .ip route get. says | routed "unreachable 10.9.9.9"
END
else
	skip "no network at all" "allow user namespaces: sysctl user.max_user_namespaces"
fi
# mounted COMMAND: with a folder of its own, M, that can be written to and not executed from, and with that scope of ptrace where SCOPE is set
mounted() {
	unshare -Urm bash -c 'mkdir -p "$M" && mount -t tmpfs -o noexec none "$M" && cp "$(type -P true)" "$M" || exit
if [ -n "${SCOPE:-}" ]; then
	mount -t tmpfs none /proc/sys/kernel && mkdir /proc/sys/kernel/yama && echo "$SCOPE" >/proc/sys/kernel/yama/ptrace_scope || exit
fi
eval "$1"' sh "$1"
}
export -f mounted
export M=$S/mounted
if SCOPE=1 mounted true 2>/dev/null; then
	rows <<'END'
a folder without programs | this user may not: see .* how that is mounted | mounted 'heddle run "$M/true"'
a folder that is read-only | Read-only file system: choose a folder that can be written to | mounted 'mount -o remount,ro "$M" && heddle key "$M/key"'
a /proc without processes | cannot look for running programs: .*: mount /proc | mounted 'mount -t tmpfs none /proc && heddle info'
programs that must ask for copies | ptrace_scope is 1 and HEDDLE_PTRACER is off: set it to yes | SCOPE=1 HEDDLE_PTRACER=off mounted 'heddle info'
copies for some | with CAP_SYS_PTRACE only: kernel.yama.ptrace_scope is 2: .sysctl kernel.yama.ptrace_scope=1. allows all | SCOPE=2 mounted 'heddle info'
copies for nobody | no direct copies: kernel.yama.ptrace_scope is 3: have it be 1 when the host starts | SCOPE=3 mounted 'heddle info'
END
else
	skip "what is mounted" "allow user namespaces: sysctl user.max_user_namespaces"
fi

# shm_alone SERVER'S-TRANSPORT CALLER…: what a caller says that may use shared memory alone
shm_alone() {
	local server ip port
	: >"$S/alone" # by this shell, or the last server's address may be read, and this one be ended while libraries' handlers of signals deadlock it
	HEDDLE_TRANSPORT=$1 timeout -k 5 20 "$P" serve >"$S/alone" &
	server=$!
	address_in "$S/alone" "$server" && HEDDLE_LOG=info HEDDLE_TRANSPORT=shm timeout 20 "${@:2}" call "$ip" "$port"
	kill "$server"
	wait "$server"
}
check_output "another end that shares no memory" 'the other end shares none with this one: .*; use HEDDLE_TRANSPORT=auto at both' shm_alone tcp "$P"
# no_routes COMMAND…: that nothing sends the reader to the routes of the host without naming the setting
no_routes() {
	"$@" >"$S/told" 2>&1 || true
	grep -F 'cannot be reached' "$S/told" && ! grep -F 'ip route get' "$S/told" | grep -vF 'HEDDLE_TRANSPORT=shm' && ! grep 'link .* closed: No route' "$S/told"
}
check "which is not said to be a matter of routes" no_routes shm_alone tcp "$P"

# narrow COMMAND: in a network whose kernel gives out one port alone, which somebody has
narrow() {
	unshare -Urn bash -c 'ip link set lo up && echo 50000 50000 >/proc/sys/net/ipv4/ip_local_port_range && exec "$@"' sh python3 -c 'import socket, subprocess, sys
s = socket.socket()
s.bind(("", 0))
s.listen()
sys.exit(subprocess.run(sys.argv[1:]).returncode)' "$@"
}
export -f narrow
if narrow true 2>/dev/null; then
	rows <<'END'
no port to listen at | the kernel has no TCP port free: set HEDDLE_PORTS, or widen sysctl net.ipv4.ip_local_port_range | narrow timeout 20 "$P" serve
no port to call from | cannot connect: .* no port left for it: .* sysctl net.ipv4.ip_local_port_range | HEDDLE_PORTS=20000-20009 narrow timeout 20 "$P" call 127.0.0.1 9
END
else
	skip "no ports" "allow user namespaces (sysctl user.max_user_namespaces), and install iproute2 and python3"
fi
if [ "$(id -u)" -eq 0 ]; then
	chmod 755 "$S" && chmod 600 "$S/key" && cp "$P" "$B/heddle" "$B/libheddle-fi.so" "$S" && cp "$S/key" "$S/others" && chown 65534 "$S/others"
	rows <<'END'
a key of another user | it belongs to another user: give the user of this process a copy of its own | HEDDLE_KEY_FILE=$S/others heddle info
a key that may not be opened | the user of this process may not open it: give him a copy | bare env HEDDLE_KEY_FILE="$S/key" "$S/heddle" info
a folder that one may not write in | choose a folder that you may write in | bare "$S/heddle" key "$S/mine"
a port that root alone has | ports below 1024 are for root: choose others, and see HEDDLE_PORTS | bare env FI_PROVIDER_PATH="$S" HEDDLE_PORTS=80 timeout 20 "$S/e2e-peer" serve
END
	check_output "another user's, by shared memory alone" 'the other end is of another user: run both as one, or use HEDDLE_TRANSPORT=auto at both' \
		shm_alone shm setpriv --reuid 65534 --regid 65534 --clear-groups env FI_PROVIDER_PATH="$S" "$S/e2e-peer"
	if bare unshare -Ur true 2>/dev/null; then
		check_output "a user's who has no number here, by shared memory alone" 'the other end is of a user who has no number in this user namespace: run both as one user' \
			shm_alone shm setpriv --reuid 65534 --regid 65534 --clear-groups unshare -Ur env FI_PROVIDER_PATH="$S" "$S/e2e-peer"
	else
		skip "users without a number" "allow user namespaces: sysctl user.max_user_namespaces"
	fi
else
	skip "other users" "run it as root: only root can become another user"
fi

# What libfabric's programs ask for, and rdma_cm's.
if command -v fi_info >/dev/null && command -v fi_pingpong >/dev/null; then
	# passive: no endpoint that listens can be had, which the other end only asks for by a socket of its own
	passive() {
		local server
		timeout 20 "$W" timerfd_create EPERM fi_pingpong -p heddle -e msg -B "$port_last" &
		server=$!
		while kill -0 "$server" 2>/dev/null; do
			timeout 20 fi_pingpong -p heddle -e msg -P "$port_last" 127.0.0.1 >"$S/passive" 2>&1
			sleep 0.1
		done
	}
	free_port
	export -f passive
	export port_last
	rows <<'END'
a host without an address | no address for node no.such.host.invalid, service 5: .*: .getent ahosts. asks the same | HEDDLE_LOG=info fi_info -p heddle -n no.such.host.invalid -P 5
another domain | hints ask for domain foo: ask for heddle0, or for none | HEDDLE_LOG=info fi_info -p heddle -d foo
another fabric | hints ask for fabric foo: ask for heddle, or for none | HEDDLE_LOG=info fi_info -p heddle -f foo
what is not offered | not offered: capabilities 0x[0-9a-f]+: .fi_info -p heddle -v. shows what is | HEDDLE_LOG=info fi_info -p heddle -c FI_HMEM
no passive endpoint | cannot open a passive endpoint: Operation not permitted: let the filter of system calls .* allow that | passive
END
else
	skip "what programs of libfabric ask for" "install libfabric-bin"
fi

# Devices of verbs.
if [ -e "$B/preload/libheddle-verbs.so" ] && command -v ibv_devinfo >/dev/null && command -v rping >/dev/null; then
	# alone: in a network of one's own, where groups can be joined
	alone() { unshare -Urn bash -c 'ip link set lo multicast on up && ip route add 224.0.0.0/4 dev lo && eval "$1"' sh "$1"; }
	export -f alone
	if alone true 2>/dev/null; then
		rows <<'END'
a port of groups that is taken | the group 239.7.7.7 cannot be joined: .*: HEDDLE_GROUP_PORT chooses another | alone 'python3 -c "import socket, time; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind((\"\", 30791)); time.sleep(20)" & while kill -0 $! && ! ss -Hlun "sport = :30791" | grep -q .; do sleep 0.05; done; heddle run mckey -b 127.0.0.1 -m 239.7.7.7; kill $!'
too many groups | the group 239.7.7.7 cannot be joined: .*: raise sysctl net.ipv4.igmp_max_memberships | alone 'sysctl -qw net.ipv4.igmp_max_memberships=0; heddle run mckey -b 127.0.0.1 -m 239.7.7.7'
END
	else
		skip "groups" "allow user namespaces (sysctl user.max_user_namespaces), and install iproute2"
	fi
	rows <<'END'
a subnet of LIDs that is none | HEDDLE_LID_SUBNET="abc" is not understood: it takes an IPv4 subnet such as 10.1.0.0/16; using the default, which is empty | HEDDLE_LID_SUBNET=abc heddle run ibv_devinfo
one that this host is not in | no IPv4 address in HEDDLE_LID_SUBNET=203.0.113.0/24: set it to one of .heddle info., or use heddle1 | heddle run -s LID_SUBNET=203.0.113.0/24 ibv_devinfo
one that is too great | is no LID [(]1 to 49151[)]: set HEDDLE_LID_SUBNET to a smaller one, or use heddle1 | heddle run -a lo -s LID_SUBNET=0.0.0.0/1 ibv_devinfo
nobody who listens | no connection, it was .*: is the other program running, and is that its address and port | heddle run -l info rping -c -a 127.0.0.1 -p 9
no address of IPv4 | HEDDLE_ADDR chooses no IPv4 address: set HEDDLE_ADDR to one of .heddle info., or use heddle1 | heddle run -a ::1 ibv_devinfo
END
else
	skip "devices of verbs" "build with rdma-core, and install ibverbs-utils and rdmacm-utils"
fi
finish
