#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the tests again and again (make test-repeat), to see whether they can be trusted: the unit tests twice in each round in an order of
# chance, then the end-to-end tests. What passes only when it is run again fails the round, with its name (STRICT in tools/gotest.sh): see
# docs/decisions/068-tests-repeated.md. All rounds are run, whatever fails.
#   REPEAT   how many rounds (10)
#   PARTS    of a round: "unit e2e"
#   RUN      only end-to-end tests whose names match this regular expression
# In bin/repeat: results.txt with a line for each part of a round, and the log of each that failed.
set -uo pipefail
cd "$(dirname "$0")/.."

rounds=${REPEAT:-10}
[[ $rounds =~ ^[1-9][0-9]*$ ]] || { echo "test-repeat: REPEAT=$rounds: it is the number of rounds, 1 or more" >&2; exit 2; }
for part in ${PARTS:=unit e2e}; do
	[[ $part = unit || $part = e2e ]] || { echo "test-repeat: PARTS=$PARTS: there are unit and e2e" >&2; exit 2; }
done
out=bin/repeat
rm -rf "$out"
mkdir -p "$out"
export STRICT=1

unit() { TESTFLAGS='-count=2 -shuffle=on' make -o build -o bin/wherry -o helpers test-unit; }
e2e() { TESTFLAGS=${RUN:+-run=$RUN} tools/e2e.sh ${RUN:+./test/e2e}; }

failed=0
for ((round = 1; round <= rounds; round++)); do
	for part in $PARTS; do
		log=$out/$round-$part.log began=$SECONDS word=passed names=
		rm -f bin/seen-once
		if "$part" >"$log" 2>&1; then
			rm "$log"
		else
			word=FAILED failed=$((failed + 1))
			names=" $(sed -n 's/^--- FAIL: \([^ ]*\).*/\1/p' "$log" | sort -u | paste -sd ' ')"
			[ ! -s bin/seen-once ] || names+=" (not when run again: $(paste -sd ';' bin/seen-once))"
		fi
		printf 'round %d %s %s %d s%s\n' "$round" "$part" "$word" $((SECONDS - began)) "$names" | tee -a "$out/results.txt"
	done
done
echo "$rounds rounds in $SECONDS s, $failed parts failed: $out/results.txt" | tee -a "$out/results.txt"
[ "$failed" -eq 0 ]
