#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs all tests (make test): what waits for servers beside what computes (docs/decisions/056-what-runs-beside-what.md). Everything has been
# built before. A step's log is printed whole when the step has ended, those of steps that failed last; all are kept in bin/test. Once a
# minute it is said what is running.
#   BESIDE   further targets of the Makefile, which compute and measure no time (lint vulnerabilities fuzz)
#   SLICES   1: a slice of Kubernetes' own conformance specs too, against a server and against an agent in a cluster (docs/conformance.md)
set -uo pipefail
cd "$(dirname "$0")/.."

logs=$PWD/bin/test
rm -rf bin/seen-once "$logs"
mkdir -p "$logs"

# What is built once is not built again under those who use it.
built="-o build -o bin/wherry -o helpers -o bin/.failpoints/wherry"

# step runs a command: step NAME COMMAND...
step() {
	local name=$1 log="$logs/$1.log" began=$SECONDS status=0 used word=passed
	shift
	: >"$log.runs"
	("$@" >"$log" 2>&1 9>&-; status=$?; times >"$log.used"; exit $status) || status=$?
	rm -f "$log.runs"
	used=$(sed -n 2p "$log.used")
	exec 9>"$logs/lock"
	flock 9 # one log at a time
	[ "$status" -eq 0 ] || word="FAILED, see the end,"
	printf '\n=== %s: %s after %s s (processors: %s), %s s since the beginning\n' "$name" "$word" $((SECONDS - began)) "$used" "$SECONDS"
	if [ "$status" -eq 0 ]; then cat "$log"; else echo "$name" >>"$logs/failed"; fi
	exec 9>&-
	return "$status"
}

# behind runs a command that has the processors when nobody else wants them: below all others of its session, and in a session of its own,
# which the kernel may weigh as a whole.
behind() {
	setsid bash -c 'echo $$ >"$0/behind"; (echo 19 >/proc/self/autogroup) 2>/dev/null; exec nice -n 19 "$@"' "$logs" "$@"
}

# compiled compiles all that is going to be checked and tested: two who want a package at once would both compile it.
compiled() {
	local module
	for module in . toolbox test/agree; do
		(cd "$module" && GOGC=400 GOMEMLIMIT=4GiB go list -export -test -deps ./... >/dev/null) || return
	done
}

# A lane is steps one after another; a lane goes on after a step that failed, and the run fails. It leaves a mark at its end: one without it was
# killed, and its steps were not all run.
lane() { "$1" || true; : >"$logs/$1.ended"; }

tests() {
	step unit make $built test-packages
	step page make $built test-page
	step end-to-end tools/e2e.sh $(go list ./test/... | grep -vE '/test/(chaos|failpoints|soak)$')
}

storms() {
	step storm tools/e2e.sh ./test/chaos
	step failpoints tools/e2e.sh ./test/failpoints
	step race make $built test-race
	step servers make $built test-servers # one package after another, each with servers in it: most of the time they wait
	[ -n "${SLICES:-}" ] || return 0
	step conformance env SLICE=1 PROCS=3 make $built conformance
	step cluster env SLICE=1 PROCS=3 make $built test-cluster
}

checks() {
	local target
	step simulation behind make $built test-simulate
	for target in ${BESIDE:-}; do
		if [ "$target" = fuzz ]; then step fuzz fuzz; else step "$target" behind make $built "$target"; fi
	done
}

# fuzz: what it finds by chance is a fault of the program that was there before. It is told, with its input, and mended next; what it found
# before is in testdata and refuses a change like any other test.
fuzz() {
	behind make $built fuzz || { echo "fuzzing:" && grep -v '^ok ' "$logs/fuzz.log" | cut -c1-400 | head -80; } >>bin/seen-once
}

# pulse says what is running: a log is printed when its step ends.
pulse() {
	local running
	while sleep 60 >/dev/null 2>&1; do
		running=$(find "$logs" -name '*.log.runs' -printf '%f\n' | sed 's/\.log\.runs$//' | sort | paste -sd ' ')
		printf '... %s s: %s\n' "$SECONDS" "$running"
	done
}

# finish ends the run: with the logs of what failed, and what was seen once.
finish() {
	kill "$beat" 2>/dev/null
	if [ -s bin/seen-once ]; then
		printf '\n=== seen once, to be explained (docs/decisions/042-what-refuses-a-change.md)\n'
		cat bin/seen-once
	fi
	[ -e "$logs/failed" ] || { printf '\n=== all tests passed in %s s\n' "$SECONDS"; exit 0; }
	while read -r name; do
		printf '\n=== failed: %s\n' "$name"
		cat "$logs/$name.log"
	done <"$logs/failed"
	printf '\n=== failed after %s s: %s\n' "$SECONDS" "$(paste -sd ' ' "$logs/failed")"
	exit 1
}

# What was started with a lane ends with it.
trap 'trap - INT TERM; [ ! -e "$logs/behind" ] || kill -- "-$(<"$logs/behind")" 2>/dev/null; kill 0' INT TERM

pulse &
beat=$!
step compile compiled || finish
lanes=()
for lane in tests storms checks; do
	lane $lane &
	lanes+=($!)
done
wait "${lanes[@]}"
for lane in tests storms checks; do
	[ -e "$logs/$lane.ended" ] || { echo "the lane of $lane did not come to its end" >"$logs/$lane.log"; echo "$lane" >>"$logs/failed"; }
done
finish
