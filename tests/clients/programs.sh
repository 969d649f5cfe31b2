#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
#
# The commands of a page of docs/, as they stand there: each block between "```console" and "```" is run by a shell of its own, in a folder that has
# examples/, with `heddle` in PATH. A line behind "$ " is a command, with the lines up to the next "$ " behind it what it prints, or, after "<<'END'", its input.
# Lines may come in any order, since ranks do; "…" stands for anything. What is started with "&" is waited for until it listens, and ended with its block.
# shellcheck source=tests/clients/lib.sh
. "$(dirname "$0")/lib.sh" "$@"
page=$root/docs/programs.md
need python3 ss setsid

# blocks: writes each block to a file of its own, blocks/NN, and its heading to NN.name
blocks() {
	awk -v folder="$scratch/blocks" '
		/^#+ / { heading = $0; sub(/^#+ /, "", heading) }
		/^```console$/ { file = sprintf("%s/%02d", folder, ++n); print heading >(file ".name"); on = 1; next }
		/^```$/ { on = 0 }
		on { print >file }' "$page"
}

# Who listens, at sockets or with a service of rdma_cm: it grows when a server is there.
# shellcheck disable=SC2317 # the shell of a block calls it
listeners() {
	{
		ss -Htln
		grep -o '@heddle/service/.*' /proc/net/unix
	} | wc -l
}

# shellcheck disable=SC2317
# The shell that runs a block calls this behind each command that ends with "&": for what never listens, as a second rank, it waits in vain.
wait_server() {
	local i
	for ((i = 0; i < 200; i++)); do
		[ "$(listeners)" -le "$1" ] || return 0
		kill -0 "$!" 2>/dev/null || return 0
		sleep 0.05
	done
}

# script_of BLOCK: a shell script; the output of command N goes to the file N.out
script_of() {
	awk '
		function put(text) { print text }
		input { put($0); if ($0 == "END") { input = 0; put("} >" n ".out 2>&1 || exit 1") } next }
		!/^\$ / { next }
		{
			command = substr($0, 3); n++
			if (command ~ /&$/) put("had=$(listeners); " substr(command, 1, length(command) - 1) ">" n ".out 2>&1 </dev/null & wait_server $had")
			else if (command ~ /^export /) put(command)
			else if (command ~ /<<.END.$/) { put("{ " command); input = 1 }
			else put("{ " command "\n} >" n ".out 2>&1 || exit 1")
		}' "$1"
}

# Lines that command N is to print, of BLOCK.
expected() {
	awk -v want="$2" '
		input { if ($0 == "END") input = 0; next }
		/^\$ / { n++; input = /<<.END.$/; next }
		n == want && $0 != "…"' "$1"
}

# all_printed EXPECTED OUTPUT: each line of the first is found in the second, each in one of its own, in any order, since ranks have none. How many blanks
# there are does not count.
all_printed() {
	python3 - "$1" "$2" <<'END'
import re
import sys

def words(line):
    return " ".join(line.split())

with open(sys.argv[1], encoding="utf-8") as wanted, open(sys.argv[2], encoding="utf-8", errors="replace") as printed:
    lines = [words(line) for line in printed]
    used = [False] * len(lines)
    for line in wanted:
        pattern = ".*".join(re.escape(part) for part in words(line).split("…"))
        found = next((i for i, have in enumerate(lines) if not used[i] and re.fullmatch(pattern, have)), None)
        if found is None:
            sys.exit("nothing like this was printed: " + line.strip())
        used[found] = True
END
}

# run_block NUMBER FILE
run_block() {
	local name n status
	name="$(cat "$2.name"), block $1"
	if [[ $name = uDAPL* && ! -e $BUILD/dat.conf ]]; then
		skip "$name" "it is built where libdapl-dev is installed"
		return
	fi
	if [[ $name = gloo* && ! -e /usr/include/gloo/transport/ibverbs/device.h ]]; then
		skip "$name" "install libgloo-dev and g++, from a release whose gloo has ibverbs"
		return
	fi
	mkdir "$scratch/$1" && cd "$scratch/$1" || return
	ln -s "$root/examples" examples
	script_of "$2" >script
	export -f listeners wait_server
	setsid timeout -k 5 120 ${network[@]+"${network[@]}"} bash script >log 2>&1 &
	wait $!
	status=$?
	# what was left in the background, which may have groups of its own
	pkill -KILL --session "$!" 2>/dev/null
	cat ./*.out >>log 2>/dev/null
	cp log "$scratch/log"
	if [ $status -ne 0 ]; then
		fail "$name" "a command ended with an error"
		return
	fi
	for n in $(seq "$(grep -c '^\$ ' "$2")"); do
		expected "$2" "$n" >wanted
		[ -s wanted ] || continue
		all_printed wanted "$n.out" >>"$scratch/log" 2>&1 || {
			fail "$name, command $n" "it prints something else"
			return
		}
	done
	pass "$name"
}

# The page's commands listen at the ports that they choose by themselves, some of which the kernel gives to connections, and other users may have the same: each
# block has a network of its own where we may make one, with an address beside that of lo.
network=(unshare --net bash -c 'ip link set lo up && ip link add v0 type veth peer name v1 && ip address add 10.213.7.1/24 dev v0 && ip link set v0 up &&
	ip link set v1 up && exec "$@"' network)
"${network[@]}" true 2>/dev/null || network=()

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
export MALLOC_PERTURB_=0 # libiscsi 1.19 looks at memory that it has not set
export UCX_WARN_UNUSED_ENV_VARS=n TGT_IPC_SOCKET=$scratch/tgtd
PATH=$BUILD:/usr/bin:$PATH
mkdir "$scratch/blocks"
blocks
count=0
for block in "$scratch"/blocks/[0-9][0-9]; do
	run_block "${block##*/}" "$block"
	count=$((count + 1))
done
[ $count -ge 19 ]
judge "the page has blocks" "$count of them"

# A check that cannot fail is none.
printf 'one\ntwo …\n' >"$scratch/wanted"
printf 'two 2\n  one\n' >"$scratch/printed"
all_printed "$scratch/wanted" "$scratch/printed"
judge "lines are found" "they are not"
printf 'one\none\n' >"$scratch/wanted"
! all_printed "$scratch/wanted" "$scratch/printed" 2>/dev/null
judge "lines that are not printed are missed" "they are not"
finish
