#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Thurston: something that is hard to reproduce. Look into the process with ptrace, then enter its mount namespace: the image has no
# program to run there, so the toolbox, one static file, is copied in, used, and taken away again.
set -euo pipefail
wherry=${WHERRY:-wherry}
pod=${1:-neato}

"$wherry" debug -n "${NAMESPACE:-default}" --profile sysadmin "$pod" -- sh -ec '
	echo "== system calls of process 1"
	timeout 5 strace -p 1 2>/tmp/trace &
	tries=0
	until grep -q "TracerPid:[^0-9]*[1-9]" /proc/1/status; do
		tries=$((tries + 1))
		[ $tries -lt 80 ] # ends the script if strace does not get there
		sleep 0.05
	done
	wget -q -O /dev/null http://localhost:8080/
	wait || true # by the timeout
	grep -m 1 write /tmp/trace
	echo "== inside its mount namespace"
	cp /bin/toolbox /proc/1/root/toolbox
	nsenter -t 1 -m -- /toolbox ls -l /web
	rm /proc/1/root/toolbox
'
