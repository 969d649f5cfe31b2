#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
#
# heddle run: run.sh HEDDLE FAKE_NODE STATIC_PROGRAM
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/tap.sh
. "$root/tests/tap.sh"
static_program=$3
unset FI_PROVIDER FI_PROVIDER_PATH DAT_OVERRIDE HEDDLE_TRANSPORT HEDDLE_LOG IPATH_NO_BACKTRACE

# A build folder and an installed tree, with a file where the provider would be.
tree=$(realpath "$tap_scratch")
mkdir -p "$tree"/{build,usr/bin,usr/lib/heddle,bare}
cp "$1" "$tree/build/heddle"
cp "$1" "$tree/usr/bin/heddle"
cp "$1" "$tree/bare/heddle"
touch "$tree/build/libheddle-fi.so" "$tree/usr/lib/heddle/libheddle-fi.so"
heddle=$tree/build/heddle

printf '#!/nonexistent/interpreter\n' >"$tree/no-interpreter"
printf '#!/bin/sh\nexit 7\n' >"$tree/script"
printf '#!/bin/sh\n' >"$tree/not-executable"
chmod +x "$tree/no-interpreter" "$tree/script"

check_output "prints help" '^Usage: heddle run ' "$heddle" run --help
check_status "help is a success" 0 "$heddle" run --help
check_status "a program is needed" 125 "$heddle" run
check_status "an unknown option is refused" 125 "$heddle" run --nonsense true
check_output "and named" '^heddle: .*--nonsense' "$heddle" run --nonsense true
check_output "a short one too" '^heddle: unknown option -Z' "$heddle" run -Z true
check_output "an option without its value" '^heddle: option --transport needs a value' "$heddle" run --transport

check_status "the exit status is the program's" 3 "$heddle" run -- sh -c 'exit 3'
check_status "a signal ends it as it would the program" 143 sh -c "$heddle run -- sh -c 'kill -TERM \$\$'"
check_output "the process is the program" '^same$' sh -c \
	"sh -c 'echo \$\$; exec $heddle run -- sh -c \"echo \\\$\\\$\"' | uniq | wc -l | sed 's/^1\$/same/'"
check_output "options after the program are the program's" '^--help$' "$heddle" run printf '%s\n' --help
check_status "a script runs, with its exit status" 7 "$heddle" run "$tree/script"

show='echo path=$FI_PROVIDER_PATH provider=${FI_PROVIDER-unset} transport=${HEDDLE_TRANSPORT-unset}'
check_output "the provider beside heddle is found" "path=.*:$tree/build provider=heddle transport=unset" \
	"$heddle" run sh -c "$show"
check_output "the installed one too" "path=.*:$tree/usr/lib/heddle provider=heddle" "$tree/usr/bin/heddle" run sh -c "$show"
check_status "without a provider nothing runs" 125 "$tree/bare/heddle" run true
check_output "and the places are named" "cannot find libheddle-fi.so .*looked in $tree/bare, " "$tree/bare/heddle" run true
check_output "a provider path that was set is kept" "path=/opt/fi:$tree/build " \
	env FI_PROVIDER_PATH=/opt/fi "$heddle" run sh -c "$show"
check_output "with its mark of preference" "path=@/opt/fi:$tree/build " \
	env FI_PROVIDER_PATH=@/opt/fi "$heddle" run sh -c "$show"
check_output "and is not added to twice" "path=/opt/fi:$tree/build " \
	env FI_PROVIDER_PATH=/opt/fi "$heddle" run "$heddle" run sh -c "$show"
check_output "libfabric's libraries leave faults alone" "^1$" "$heddle" run printenv IPATH_NO_BACKTRACE
check_output "if nobody has said so otherwise" "^$" env IPATH_NO_BACKTRACE= "$heddle" run printenv IPATH_NO_BACKTRACE
check_output "a provider that was chosen is kept" "provider=tcp" env FI_PROVIDER=tcp "$heddle" run sh -c "$show"
touch "$tree/build/libdaplheddle.so.2"
# shellcheck disable=SC2016 # the shell that heddle starts is to expand it
conf='echo "conf=$DAT_OVERRIDE."'
check_output "uDAPL programs get our adapter" "conf=$tree/build/dat.conf\." "$heddle" run sh -c "$conf"
check_output "or the one of a file of their own" 'conf=my\.conf\.' env DAT_OVERRIDE=my.conf "$heddle" run sh -c "$conf"
check_output "--any-provider chooses none" "provider=unset" "$heddle" run --any-provider sh -c "$show"
check_output "--transport" "transport=shm" "$heddle" run --transport=shm sh -c "$show"
check_output "-t" "transport=tcp" "$heddle" run -t tcp sh -c "$show"
check_output "--set takes any setting" "^32K$" "$heddle" run -s EAGER_SHM=32K printenv HEDDLE_EAGER_SHM
check_output "--addr" "^lo,eth0$" "$heddle" run --addr lo,eth0 printenv HEDDLE_ADDR
check_output "--log" "^debug$" "$heddle" run --log debug printenv HEDDLE_LOG
check_status "a bad value is refused" 125 "$heddle" run -t udp true
check_output "and what is allowed is said" 'HEDDLE_TRANSPORT cannot be "udp": it takes one of auto, shm, tcp' "$heddle" run -t udp true
check_output "an unknown setting is refused" 'no setting NONSENSE' "$heddle" run -s NONSENSE=1 true
check_output "a misspelt one is told from it" 'no setting TRANSPROT: is it HEDDLE_TRANSPORT[?]' "$heddle" run -s TRANSPROT=shm true
ln -s "/bin/true" "$tree/ibping"
ln -s "/bin/true" "$tree/ibacm"
ln -s "/bin/true" "$tree/rdma"
ln -s "/bin/true" "$tree/ibstat"
check_output "who sends management datagrams is warned" '^heddle: warning: .*/ibping sends management datagrams' \
	"$heddle" run "$tree/ibping"
check_output "so is who resolves addresses by them" '^heddle: warning: .*/ibacm sends management datagrams' \
	"$heddle" run "$tree/ibacm"
check_output "so is who asks by netlink" '^heddle: warning: .*/rdma asks the kernel' "$heddle" run "$tree/rdma"
check_output "who looks at files is not" '^$' sh -c "$heddle run -- $tree/ibstat; echo"
check_output "--verbose prints what is set" '^heddle: FI_PROVIDER=heddle$' "$heddle" run -v true

check_status "no such program" 127 "$heddle" run -- no-such-program
check_output "is named" '^heddle: no-such-program: there is no such program' "$heddle" run -- no-such-program
check_status "no such path" 127 "$heddle" run -- /nonexistent/program
check_status "a file that is not executable" 126 "$heddle" run -- "$tree/not-executable"
check_status "a folder" 126 "$heddle" run -- "$tree"
check_status "a missing interpreter" 126 "$heddle" run -- "$tree/no-interpreter"
check_output "is told from a missing program" 'interpreter that it names is missing' "$heddle" run -- "$tree/no-interpreter"

check_status "a static program runs" 42 "$heddle" run -- "$static_program"
check_output "with a warning" 'is statically linked, so it cannot load Heddle' "$heddle" run -- "$static_program"
check_output "a dynamic one has none" '^$' sh -c "$heddle run -- true; echo"
if [ "$(id -u)" -eq 0 ]; then
	cp "$(type -P true)" "$tree/set-uid"
	chown 65534 "$tree/set-uid"
	chmod u+s "$tree/set-uid"
	check_output "a set-uid program has a warning" 'runs with more rights than yours' "$heddle" run -- "$tree/set-uid"
else
	skip "a set-uid program has a warning" "run it as root: only root can make one of another user"
fi

check_status "an unknown command is refused" 125 "$heddle" nonsense
check_output "and the others are named" "no command 'rum'; there are 'run', 'info' and 'key'" "$heddle" rum
check_output "heddle help is heddle --help" '^  info ' "$heddle" help
check_output "heddle help run is heddle run --help" '^Usage: heddle run ' "$heddle" help run
check_status "a command is needed" 125 "$heddle"
check_output "heddle --help lists the commands" '^  info ' "$heddle" --help
check_output "heddle --version" '^heddle [0-9]+\.[0-9]+\.[0-9]+$' "$heddle" --version
finish
