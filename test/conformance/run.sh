#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds Kubernetes' conformance suite and runs it against a bin/wherry server of its own (make conformance), or against
# a control plane of Kubernetes' own programs whose node is a bin/wherry agent (make test-cluster). As root.
#   CLUSTER  1: the latter; the default is then the specs of nodes and of their storage
#   DEBIAN   1: with CLUSTER, Debian's containerd is the agent's runtime
#   PLAIN    1: the specs that are not conformance, without those of features that are off by default, of other machines' storage and
#            providers, and without slow, flaky and serial ones; most of those that need two nodes skip themselves
#   SLICE    1: the specs of slice.txt, with CLUSTER of slice-cluster.txt: what each change must pass (.ci/run)
#   FOCUS    regular expression: run only specs whose names match it; default: all conformance specs
#   SKIP     regular expression: leave those out
#   PROCS    how many specs run at once (4); those marked [Serial] or [Disruptive] always run one by one, after the others
#   OUT      folder of the results (bin/conformance)
#   CACHE    folder of what is built, which is kept until the release of Kubernetes, or how it is built, is another
#            (~/.cache/wherry/conformance)
# Ports 6443, 10250 and 5000 must be free, with CLUSTER also 2379, 2380, 10257 and 10259. The exit code is that of the
# comparison with known.txt, with CLUSTER known-cluster.txt, with DEBIAN known-debian.txt, with PLAIN known-plain.txt.
set -euo pipefail
cd "$(dirname "$0")"
repo=$(cd ../.. && pwd)
out=$(mkdir -p "${OUT:-$repo/bin/conformance}" && cd "${OUT:-$repo/bin/conformance}" && pwd)
data=$out/data version=$(sed -n 's/^\tk8s.io\/kubernetes \(v[0-9.]*\)$/\1/p; s/^require k8s.io\/kubernetes //p' go.mod | head -1)
cache=$(mkdir -p "${CACHE:=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/wherry/conformance}" && cd "$CACHE" && pwd)
built=$cache/$version-$(cat go.mod go.sum suite.go images.sh etcd/*.go | sha256sum | cut -c1-12)
bin=$built/bin tools=$out/bin
mkdir -p "$bin" "$tools"
find "$cache" -mindepth 1 -maxdepth 1 ! -path "$built" -exec rm -rf {} + # of a release before
[ "$(id -u)" -eq 0 ] || { echo "conformance: run it as root: a server is started" >&2; exit 1; }

known=known.txt folder=$data
if [ -n "${CLUSTER:-}" ]; then
	known=known-cluster.txt folder=$data/agent
	[ -z "${DEBIAN:-}" ] || known=known-debian.txt
	FOCUS=${FOCUS:-'^\[sig-(node|storage)\]'}
fi

# kept tells which specs are meant.
kept() { grep -F '[Conformance]'; }
if [ -n "${PLAIN:-}" ]; then
	known=known-plain.txt
	kept() {
		grep -vE '\[(Conformance|Slow|Serial|Disruptive|Flaky)\]|\[(Feature|FeatureGate|Provider):|^\[sig-(windows|cloud|autoscaling|scalab)' |
			grep -vE '\[Driver: (csi-hostpath|local|nfs|nfs3)\]|CSI|csi|DRA|NFS|Volume metrics|PersistentVolumes|Mount propagation'
	}
fi

# meant leaves those of the slice, all of which must be there.
meant() { cat; }
if [ -n "${SLICE:-}" ]; then
	slice=slice${CLUSTER:+-cluster}.txt FOCUS=.
	meant() { grep -Fx -f <(grep -v '^#' "$slice"); }
fi

stamp="-s -w"
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
	stamp+=" -X $package.gitVersion=$version -X $package.gitMajor=1 -X $package.gitMinor=$(cut -d. -f2 <<<"$version")"
	stamp+=" -X $package.gitTreeState=clean"
done
. ./cluster.sh

build() {
	go test -c -vet=off -ldflags "$stamp" -o "$bin/e2e.test" k8s.io/kubernetes/test/e2e
	go build -ldflags "$stamp" -o "$bin/kubectl" k8s.io/kubernetes/cmd/kubectl
	go build -ldflags '-s -w' -o "$bin/agnhost" k8s.io/kubernetes/test/images/agnhost
	go build -ldflags '-s -w' -o "$bin/ginkgo" github.com/onsi/ginkgo/v2/ginkgo
	./images.sh "$built"
	: >"$built/suite"
}

server=
import=("$repo/bin/wherry" image import --data-dir "$folder")
finish() {
	local code=$?
	[ -z "${images_PID:-}" ] || kill "$images_PID" 2>/dev/null || true
	if [ -n "$server" ]; then
		kill "$server" 2>/dev/null || true
		wait "$server" 2>/dev/null || true
		"$repo/bin/wherry" purge --data-dir "$folder" --yes >>"$out/server.log" 2>&1 || echo "conformance: see $out/server.log: not all was removed" >&2
	fi
	debian_stop >>"$out/server.log" 2>&1
	cluster_stop
	[ -z "${CLUSTER:-}" ] || rm -rf "$data"
	exit $code
}

# registry serves the stand-ins as registry.k8s.io to pods that always pull. It ends with this script.
registry() {
	local address
	coproc images { exec "$tools/serveimages" "$built"/images/*.tar; }
	read -r address <&"${images[0]}"
	mkdir -p "$folder/registries/registry.k8s.io"
	printf 'server = "http://%s"\n' "$address" >"$folder/registries/registry.k8s.io/hosts.toml"
}

server_start() {
	"$repo/bin/wherry" server --data-dir "$data" >"$out/server.log" 2>&1 &
	server=$!
	until grep -q 'server is ready' "$out/server.log"; do
		kill -0 "$server" 2>/dev/null || { tail -3 "$out/server.log" >&2; exit 1; }
		sleep 0.2
	done
}

start() {
	trap finish EXIT
	trap 'exit 130' INT TERM
	if [ -n "${CLUSTER:-}" ]; then cluster_start; else server_start; fi
	registry
	for archive in "$built"/images/*.tar; do
		"${import[@]}" "$archive" >/dev/null
	done
}

# specs RESULTS PROCS NAME…: runs specs by their names, which are taken literally.
specs() {
	local results=$1 procs=$2 focus=()
	shift 2
	mapfile -t focus < <(printf '%s\n' "$@" | sed -E 's/[][\.*^$+?(){}|/]/\\&/g; s/^/--focus=/; s/$/$/')
	mkdir -p "$results"
	"$bin/ginkgo" run --procs="$procs" --no-color --keep-going -v --timeout=4h --json-report=report.json \
		--output-dir="$results" "${focus[@]}" "$bin/e2e.test" -- --kubeconfig="$data/kubeconfig" \
		--kubectl-path="$bin/kubectl" --provider=skeleton --num-nodes=1 --disable-log-dump \
		--dump-logs-on-failure=false --node-schedulable-timeout=1m --system-pods-startup-timeout=30s \
		>"$results/log" 2>&1 || true # what failed is judged below
}

exec 8>"$built/lock"
flock 8 # one builds at a time
if [ ! -e "$built/suite" ]; then
	echo "conformance: building the suite of Kubernetes $version (some minutes)"
	build
fi
if [ -n "${CLUSTER:-}" ] && [ ! -e "$built/cluster" ]; then
	echo "conformance: building the control plane of Kubernetes $version (some minutes)"
	cluster_build
	: >"$built/cluster"
fi
exec 8>&-
(cd "$repo" && go build -o "$tools/" ./tools/conformance ./tools/serveimages)
mapfile -t names < <("$bin/e2e.test" --list-tests 2>/dev/null | sed -nE 's/^ *[^ ]*:[0-9]+: //; /^\[sig/p' |
	kept | sort -u | meant | grep -E -- "${FOCUS:-.}" | { [ -z "${SKIP:-}" ] && cat || grep -vE -- "$SKIP"; })
mapfile -t alone < <(printf '%s\n' "${names[@]}" | grep -E '\[(Serial|Disruptive)\]')
mapfile -t others < <(printf '%s\n' "${names[@]}" | grep -vE '\[(Serial|Disruptive)\]')
[ "${#names[@]}" -gt 0 ] || { echo "conformance: no spec is called so" >&2; exit 1; }
[ -z "${SLICE:-}" ] || [ "${#names[@]}" -eq "$(grep -cv '^#' "$slice")" ] || { echo "conformance: some specs of $slice are called otherwise now" >&2; exit 1; }
echo "conformance: ${#names[@]} specs, ${#alone[@]} of them one by one; logs and reports: $out/results"
rm -rf "$out/results"
start
reports=()
if [ "${#others[@]}" -gt 0 ]; then
	specs "$out/results/parallel" "${PROCS:-4}" "${others[@]}"
	reports+=("$out/results/parallel/report.json")
fi
if [ "${#alone[@]}" -gt 0 ]; then
	specs "$out/results/serial" 1 "${alone[@]}"
	reports+=("$out/results/serial/report.json")
fi
"$tools/conformance" "$known" "${reports[@]}" # one that is missing is an error: that run did not end by itself
