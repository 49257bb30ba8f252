#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Jonas: a service from a distroless image has trouble with another one. Look at its processes and files, and make requests from its
# network, without restarting it and without a shell in its image. WHERRY names the binary, NAMESPACE the pods' namespace.
set -euo pipefail
wherry=${WHERRY:-wherry}
pod=${1:-neato}

"$wherry" debug -n "${NAMESPACE:-default}" "$pod" -- sh -ec '
	echo "== processes";    ps aux
	echo "== its files";    ls -l /proc/1/root/site
	echo "== its resolver"; cat /proc/1/root/etc/resolv.conf
	echo "== listening";    ss -tln
	echo "== a name, from its network"
	wget -q -O - http://backend.internal:8080/
'
