#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the end-to-end tests.
set -euo pipefail
cd "$(dirname "$0")/.."

# The same portion every time, so that what passes passes again: another seed tries others.
export FAILPOINTS=${FAILPOINTS:-40s} FAILPOINTS_SEED=${FAILPOINTS_SEED:-202}
echo "failpoints: FAILPOINTS=$FAILPOINTS FAILPOINTS_SEED=$FAILPOINTS_SEED"
exec tools/gotest.sh -count=1 -p 1 -timeout 20m ./test/...
