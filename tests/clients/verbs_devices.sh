#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
#
# Debian's ibv_devices, ibv_devinfo and ibv_asyncwatch find both devices, with figures that programs rely on, through the preload and
# through the drop-in; programs that look for the devices' files find those.
# shellcheck source=tests/clients/lib.sh
. "$(dirname "$0")/lib.sh" "$@"
need ibv_devices ibv_devinfo ibv_asyncwatch

# both NAME command…: under the preload, then with the drop-in in the library path
both() {
	local name=$1
	shift
	over "${transports[0]}" 60 "$@" >"$scratch/log" 2>&1 && "check_${name//-/_}"
	judge "$name, preloaded" "wrong output of $*"
	LD_LIBRARY_PATH=$BUILD/compat timeout -k 5 60 "$@" >"$scratch/log" 2>&1 && "check_${name//-/_}"
	judge "$name, by the drop-in" "wrong output of $*"
	LD_LIBRARY_PATH=$BUILD/compat over "${transports[0]}" 60 "$@" >"$scratch/log" 2>&1 && "check_${name//-/_}"
	judge "$name, by both" "wrong output of $*"
}

has() {
	local pattern
	for pattern; do grep -qE "$pattern" "$scratch/log" || return; done
}

# shellcheck disable=SC2317 # called by name
check_ibv_devices() {
	has '^\s*heddle0\s+[0-9a-f]{16}$' '^\s*heddle1\s+[0-9a-f]{16}$' && [ "$(grep -c heddle "$scratch/log")" = 2 ] &&
		! grep -q 0000000000000000 "$scratch/log"
}
both ibv_devices ibv_devices

# shellcheck disable=SC2317
check_heddle0() {
	has 'node_guid:' 'link_layer:.*InfiniBand' 'PORT_ACTIVE' 'port_lid:.*[1-9]' 'atomic_cap:.*ATOMIC_HCA' 'GID\[ *0\]:.*fe80:' \
		'max_qp:.*[1-9]' 'max_sge:.*[1-9]' 'max_mr_size:.*0x' 'max_cqe:.*[1-9]' 'max_srq:.*[1-9]' 'active_mtu:.*4096'
}
both heddle0 ibv_devinfo -v -d heddle0
# shellcheck disable=SC2317
check_heddle1() {
	has 'link_layer:.*Ethernet' 'PORT_ACTIVE' 'GID\[ *[0-9]+\]:.*::ffff:.*RoCE v2'
}
both heddle1 ibv_devinfo -v -d heddle1
! over "${transports[0]}" 60 ibv_devinfo -d nosuch >"$scratch/log" 2>&1 && ! grep -q hca_id "$scratch/log"
judge "a device that is not there" "ibv_devinfo found it"

# it sleeps until an event comes; nothing does
over "${transports[0]}" 2 ibv_asyncwatch -d heddle0 >"$scratch/log" 2>&1
[ $? -eq 124 ] && has '^heddle0: async event FD [0-9]+'
judge "ibv_asyncwatch" "it does not wait"

run() {
	over "${transports[0]}" 60 "$@" >"$scratch/log" 2>&1
}
run stat -c %F /dev/infiniband/heddle0 && has '^character special file$'
judge "stat of the device" "it is no character device"
run ls /sys/class/infiniband && has '^heddle0$' '^heddle1$'
judge "ls of the class" "the devices are not listed"
run cat /sys/class/infiniband/heddle1/ports/1/gid_attrs/types/0 && has '^RoCE v2$'
judge "cat of a GID's type" "it cannot be read"
run ls /sys/class/infiniband/heddle1/device/net && has "^$(ip -4 route show default 2>/dev/null | sed -n 's/.* dev \([^ ]*\).*/\1/p;q')" &&
	run stat -c %F "/sys/class/infiniband/heddle1/device/net/$(head -n 1 "$scratch/log")" && has '^directory$'
judge "ls of the interfaces" "they are not listed"
# what goes through the folders, by name or by descriptor
run ls -lR /sys/class/infiniband && has '^/sys/class/infiniband/heddle1/ports/1/gid_attrs/ndevs:$' && ! has 'ls:'
judge "ls -lR" "it does not get through"
run find /sys/class/infiniband /sys/class/infiniband_verbs/ -name node_desc -o -name ibdev &&
	has '^/sys/class/infiniband/heddle0/node_desc$' '^/sys/class/infiniband_verbs/heddle1/ibdev$' && ! has 'find:'
judge "find" "it does not get through"
run bash -c 'cd /sys/class/infiniband/heddle0 && pwd && cat ports/1/link_layer && cd ../heddle1/ports && echo * && cat */link_layer' &&
	[ "$(tr '\n' ' ' <"$scratch/log")" = '/sys/class/infiniband/heddle0 InfiniBand 1 Ethernet ' ]
judge "cd" "or what is there is not found"
run python3 - <<-'END' && [ ! -s "$scratch/log" ]
	import os
	top = "/sys/class/infiniband/"
	seen = set()
	for folder in [top] + [os.path.join(f, d) for f, ds, _ in os.walk(top) for d in ds]:
	    for slash in ("", "/"):
	        for e in os.scandir(folder + slash):
	            s = os.stat(e.path)
	            if e.is_dir(follow_symlinks=False) != os.path.isdir(e.path):
	                print(e.path, "is no longer what it was listed as")
	            if not slash and (s.st_dev, s.st_ino) in seen:
	                print(e.path, "has the number of another file")
	            seen.add((s.st_dev, s.st_ino))
	fd = os.open(top + "heddle1/", os.O_RDONLY | os.O_DIRECTORY)
	if sorted(os.listdir(fd)) != sorted(os.listdir(top + "heddle1")):
	    print("another list by the descriptor")
	if not os.path.samestat(os.fstat(fd), os.stat(top + "heddle1")):
	    print("another folder by the descriptor")
	with open(os.open("node_desc", os.O_RDONLY, dir_fd=fd)) as f:
	    if f.read() != "heddle1\n":
	        print("another file by the descriptor")
	if os.path.realpath(top + "./heddle0/ports/..//") != top + "heddle0":
	    print("another name")
END
judge "folders and files have numbers of their own" "or are found otherwise by name than by descriptor"
if command -v ibstat >/dev/null; then
	run ibstat && has "^CA 'heddle0'" "^CA 'heddle1'" 'State: Active' 'Capability mask: 0x[0-9a-f]+' && ! has ibpanic
	judge ibstat "it does not find the devices"
	run ibstatus && has "device 'heddle0' port 1 status" "device 'heddle1' port 1 status" 'ACTIVE' && ! has unknown
	judge ibstatus "it does not find the devices"
else
	skip "ibstat and ibstatus" "install infiniband-diags"
fi

! run ls /sys/class/infiniband/nosuch && [ ! -e /sys/class/infiniband/heddle0 ] && [ ! -e /dev/infiniband/heddle0 ]
judge "nothing else is there" "or something was left behind"

# a host with a real device: it is listed behind ours, what is done with it reaches the library that it is from, and all is given back
fake=$BUILD/tests/clients/fake
LD_LIBRARY_PATH=$fake run ibv_devices && has '^\s*heddle0\s' '^\s*heddle1\s' '^\s*fake0\s+1122334455667788$' && ! grep -q left "$scratch/log"
judge "a real device beside ours" "it is not listed, or its list was kept"
LD_LIBRARY_PATH=$fake run ibv_asyncwatch -d fake0
has '^fake0: async event FD 77'
judge "a real device is opened" "its library was not asked"

# programs that look functions up in a library that they load, by version
timeout -k 5 60 "$BUILD/heddle" run --drop-in -- "$fake/loader" >"$scratch/log" 2>&1 &&
	has '^heddle0 opened' '^heddle1 opened' '^rdma_cm: heddle1 used' '^mixed: heddle0 used' '^mixed: heddle1 used' \
		'^mixed rdma_cm: heddle1 used' '^round 1: opened' '^without a number: the same' && ! grep -q failed "$scratch/log" && [ "$(grep -c '^heddle' "$scratch/log")" = 2 ]
judge "heddle run --drop-in" "a program that loads libibverbs is not served"

# without --drop-in they find the library's own functions, and are told what helps: once, and only they
listed() {
	run "$@" python3 - <<-'END'
		import ctypes
		verbs = ctypes.CDLL("libibverbs.so.1")
		for _ in range(2):
		    verbs.ibv_get_device_list(None)
		ctypes.CDLL("librdmacm.so.1").rdma_get_devices(None)
	END
}
listed "$BUILD/heddle" run -- && has '^heddle.[0-9]+. warn verbs: .*libibverbs.*: try heddle run --drop-in$' && [ "$(wc -l <"$scratch/log")" = 1 ]
judge "a program that loads libibverbs is told of --drop-in" "it is not, or more than once"
run "$BUILD/heddle" run -- python3 -c 'import ctypes; ctypes.CDLL("librdmacm.so.1").rdma_get_devices(None)' &&
	has '^heddle.[0-9]+. warn verbs: .*librdmacm.*: try heddle run --drop-in$'
judge "a program that loads librdmacm is told of --drop-in" "it is not"
listed "$BUILD/heddle" run --drop-in -- && [ ! -s "$scratch/log" ]
judge "nobody is told of --drop-in who has it" "it is said all the same"
listed "$BUILD/heddle" run -l error -- && [ ! -s "$scratch/log" ]
judge "HEDDLE_LOG=error leaves that out" "it does not"
run ibv_devices && ! has drop-in
judge "nor is a program that is linked with libibverbs" "it is said all the same"

# what is preloaded already stays, and in front
LD_PRELOAD=libm.so.6 run env && has "^LD_PRELOAD=libm.so.6:$BUILD/preload/libheddle-verbs.so$"
judge "LD_PRELOAD is kept" "it is not"
run "$BUILD/heddle" run -- env && [ "$(grep -c '^LD_PRELOAD=[^:]*$' "$scratch/log")" = 1 ]
judge "heddle run in heddle run" "it is preloaded twice"
finish
