#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Ginger and Abe: audit every container of every pod, whatever its image is made of, in a loop. The audit runs beside the containers,
# which need not run; each container's files are under /c/NAME. The exit code is that of the worst finding.
set -euo pipefail
wherry=${WHERRY:-wherry}
ns=${NAMESPACE:-default}
worst=0

for pod in $("$wherry" kubectl -n "$ns" get pods -o name); do
	code=0
	"$wherry" exec -n "$ns" -q "$pod" -m "${IMAGE:-wherry.dev/toolbox}" -- sh -c '
		found=0
		for root in /c/*; do
			[ -d "$root" ] || { echo "  no containers to audit"; exit 1; }
			echo "  $root"
			for file in $(find "$root" -xdev -type f -perm -4000); do
				echo "  setuid: $file"; found=2
			done
		done
		exit $found
	' || code=$?
	echo "$pod: $code"
	[ "$code" -le "$worst" ] || worst=$code
done
exit "$worst"
