#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the end-to-end tests: e2e.sh [PACKAGE...], all by default.
set -euo pipefail
cd "$(dirname "$0")/.."

# The same portion every time, so that what passes passes again: another seed tries others.
export FAILPOINTS=${FAILPOINTS:-40s} FAILPOINTS_SEED=${FAILPOINTS_SEED:-202}
echo "failpoints: FAILPOINTS=$FAILPOINTS FAILPOINTS_SEED=$FAILPOINTS_SEED"
[ $# -gt 0 ] || set -- ./test/...
# They wait for servers and containers more than they compute.
exec tools/gotest.sh -count=1 -p 1 -parallel 4 -timeout 70m "$@"
