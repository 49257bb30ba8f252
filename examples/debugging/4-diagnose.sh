#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Roy: first aid for somebody else's pod, in one command and without rights on the node: whatever state it is in, say what is wrong.
# The checks come from standard input, so that they may live anywhere.
set -euo pipefail
wherry=${WHERRY:-wherry}
pod=${1:-broken}

"$wherry" debug -n "${NAMESPACE:-default}" -q "$pod" <<'CHECKS'
if [ -d /c ]; then
	for c in /c/.wherry/*; do
		[ -f "$c/status.json" ] || continue # notes, for example
		echo "== container $(basename "$c") is dead: $(grep exitCode "$c/status.json")"
		tail -n 5 "$c/log"
	done
else
	echo "== listening"; ss -tln
	echo "== memory";    free
	echo "== disk";      df -h /
	ps aux | grep -v 'ps aux' | tail -n +2 | wc -l | sed 's/^/processes: /'
fi
CHECKS
