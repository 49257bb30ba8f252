#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs a command that asks the network for something, and once more after a pause if it fails, five times in all: retry.sh COMMAND... A proxy of
# modules that refuses for a moment must not fail a run of an hour. What can fail for other reasons too, as a build, is not run by this.
set -uo pipefail

for pause in 2 5 15 30 last; do
	"$@" && exit 0
	[ "$pause" != last ] || break
	echo "retry: \"$*\" failed in $PWD; trying again in $pause s" >&2
	sleep "$pause"
done
echo "retry: \"$*\" failed five times; is what it asks within reach (the module proxy is ${GOPROXY:-$(go env GOPROXY)})?" >&2
exit 1
