#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs SEEDS simulated worlds from FIRST on, as many at a time as there are processors (JOBS), each in a process of its own: what libraries keep
# of a world in global variables (some 250 MB) goes with it, and one that ends in a panic ends no other.
#
# A seed reproduces its run: the world's program is started by tools/alike, which leaves nothing to chance in Go's runtime, and on a machine of
# its own as far as it looks at one: without a network, with no other processes, with the same memory and mounts (docs/reliability.md). What fails
# is told with its seed, and has its log in bin/simulate; `SEEDS=1 FIRST=seed tools/simulate.sh` runs it again (LOG=1 leaves the logs of worlds that
# do not fail, too; they are always written, as writing them is a part of the run). Every seed that TWICE (7) divides is run twice, and it is a
# failure if the runs of none of these are the same (AGAIN=0: of any one), and told if those of one are not. Without root, or where alike cannot be used, it says so, and two runs of a seed are only similar.
set -uo pipefail
cd "$(dirname "$0")/.."

seeds=${SEEDS:-200}
first=${FIRST:-1}
export twice=${TWICE:-7} out=$PWD/bin/simulate
rm -rf "$out"
mkdir -p "$out"
export CGO_ENABLED=0 # with C's library there are more threads, whose races a world would see
go test -vet=off -c -o "$out/test" ./test/simulate || exit 1
go build -o "$out/alike" ./tools/alike || exit 1

# world runs one world. One that fails does so once more: where seeds do not reproduce their worlds, what does not fail twice is told, but does
# not refuse a change that may have nothing to do with it (docs/decisions/042-what-refuses-a-change.md). The same goes for one whose runs differ.
world() {
	if once "$1" || again "$1" "failed" once; then
		! double "$1" || same "$1" || again "$1" "had runs that were not the same" same || unlike "$1"
	else
		return 1
	fi
}

# double says whether a seed is to be run twice.
double() { [ "$alike$own" = yesyes ] && [ $(($1 % twice)) -eq 0 ]; }

again() {
	[ "${AGAIN:-1}" = 0 ] && return 1
	mv "$out/$1.log" "$out/$1.first.log"
	"$3" "$1" || return 1
	echo "SEEN ONCE: seed $1 $2, and not when run again (logs: $out)"
	echo "simulated world, seed $1" >>"$out/../seen-once"
}

# unlike notes a seed whose runs were never the same.
unlike() { [ "${AGAIN:-1}" != 0 ] && echo "$1" >>"$out/unlike"; }

# same runs a world again, and holds its trace against the one before. The logs of runs that differ stay.
same() {
	local trace
	trace=$(cat "$out/$1.trace")
	[ ! -e "$out/$1.log" ] || mv "$out/$1.log" "$out/$1.before.log" # it is not there when two runs differed: that of the one is, still
	once "$1" || return 1
	if [ "$trace" = "$(cat "$out/$1.trace")" ]; then
		echo "$1" >>"$out/reproduced"
		[ -n "${LOG:-}" ] || [ -e "$out/$1.first.log" ] || rm "$out/$1.before.log" "$out/$1.log"
		return
	fi
	echo "FAIL seed $1 does not reproduce its run: $trace, then $(cat "$out/$1.trace"): $out/$1.before.log, $out/$1.log"
	return 1
}

once() {
	local log=$out/$1.log
	# shellcheck disable=SC2086 # words
	if timeout --foreground -k 10 31m $apart bash -c 'machine "$1" && run "$1"' once "$1" >"$log" 2>&1; then
		grep -hm1 '^the worlds have no' "$log" >>"$out/note" # why they have no faulty disks
		if ! grep -hom1 '[0-9]* operations, trace .*' "$log" >"$out/$1.trace"; then # two of nothing would be the same
			echo "FAIL seed $1 does not say its trace: $log"
			return 1
		fi
		[ -n "${LOG:-}" ] || double "$1" || rm "$log"
	else
		echo "FAIL seed $1: $log"
		grep -hE '^ +[a-z_]+_test.go|^panic|^fatal|^alike' "$log" | head -20
		return 1
	fi
}

# machine makes what a world sees of its machine alike each time: nothing is mounted but what it needs, its memory and load are always the same,
# and its folder is in memory and has always the same name. It is in namespaces of its own then, and nobody else sees any of it.
machine() {
	local at dir=/mnt
	[ "$own" = yes ] || return 0
	tac /proc/self/mountinfo | cut -d' ' -f5 | while read -r at; do
		case $PWD/ in "${at%/}"/*) continue ;; esac
		case $at in / | /proc | /sys | /dev) ;; *) umount -l "$at" 2>/dev/null ;; esac
	done
	mount -t tmpfs -o size=1G simulate "$dir" || return
	printf '%s kB\n' 'MemTotal: 8388608' 'MemFree: 4194304' 'MemAvailable: 6291456' 'SwapTotal: 0' 'SwapFree: 0' >"$dir/meminfo"
	echo '0.10 0.10 0.10 1/100 1000' >"$dir/loadavg"
	printf '%s\n' '2 1 8:1 / / rw - ext4 /dev/root rw' '3 2 0:1 / /mnt rw - tmpfs simulate rw' >"$dir/mountinfo"
	mkdir "$dir/none" # tests beside it set huge pages aside, which the node of a world would have
	[ ! -d /sys/kernel/mm/hugepages ] || mount --bind "$dir/none" /sys/kernel/mm/hugepages || return
	mount --bind "$dir/meminfo" /proc/meminfo && mount --bind "$dir/loadavg" /proc/loadavg
}

# run runs one world, of whose environment nothing must reach it that is not always the same.
run() {
	local how=(env GODEBUG=asyncpreemptoff=1) dir=/mnt
	[ "$alike" = no ] || how=("$out/alike" -seed "$1")
	[ "$alike$own" != yesyes ] || how+=(-mounts "$dir/mountinfo")
	[ "$own" = yes ] || dir=$(mktemp -d)
	cd test/simulate
	env -i PATH="$PATH" HOME=/ TMPDIR="$dir" "${how[@]}" "$out/test" -test.run '^TestWorlds$' -test.v -test.timeout 30m -seed "$1" -seeds 1 -log
	local status=$?
	[ "$own" = yes ] || rm -rf "$dir"
	return "$status"
}
export -f world double again unlike same once machine run

export own=yes alike=yes apart="unshare --mount --net --pid --fork --mount-proc --kill-child"
why=$($apart bash -c machine 2>&1) || { own=no; apart=; echo "worlds see this machine as it is, and a seed may not reproduce its run: $why"; }
why=$("$out/alike" "$out/test" -test.run '^$' 2>&1) || { alike=no; echo "a seed does not reproduce its run here: $why"; }
seq "$first" $((first + seeds - 1)) | xargs -P "${JOBS:-$(nproc)}" -n1 bash -c 'world "$1"' world || exit 1
if [ -s "$out/unlike" ]; then
	[ -s "$out/reproduced" ] || { echo "FAIL no seed reproduces its run"; exit 1; }
	echo "simulated worlds that do not reproduce their runs, as others do: seeds $(paste -sd ' ' "$out/unlike")" | tee -a "$out/../seen-once"
fi
[ ! -s "$out/note" ] || head -1 "$out/note"
echo "ok   $seeds simulated worlds, seeds $first to $((first + seeds - 1)), in $SECONDS s"
