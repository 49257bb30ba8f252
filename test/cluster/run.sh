#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs Wherry's debugging in a cluster of Kubernetes' own programs (kube-apiserver, scheduler, controller manager,
# kubelet, containerd; none of Wherry's) and runs this package's tests against it (make test-cluster-debug). As root.
#   RUN    the tests to run (-run); default: all
#   BENCH  the benchmarks to run (-bench) in place of tests; N how often (default 5)
#   KEEP   1: leave the cluster running until return is pressed, to look at it
#   OUT    folder of the build and of the logs (bin/conformance, which it shares with the conformance suite)
# Ports 6443, 2379, 2380, 10250, 10257 and 10259 must be free.
set -euo pipefail
cd "$(dirname "$0")"
repo=$(cd ../.. && pwd)
out=$(mkdir -p "${OUT:-$repo/bin/conformance}" && cd "${OUT:-$repo/bin/conformance}" && pwd)
bin=$out/bin data=$(mktemp -d /tmp/wh-cluster-XXXXXX) pki=$data/pki node=node-1 bridge=whcluster0 subnet=10.241.0.0/24
version=$(sed -n 's/^\tk8s.io\/kubernetes \(v[0-9.]*\)$/\1/p' ../conformance/go.mod | head -1)
mkdir -p "$bin" "$pki" "$data/cni" "$data/kubelet"
[ "$(id -u)" -eq 0 ] || { echo "test-cluster-debug: run it as root" >&2; exit 1; }
stamp="-s -w"
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
	stamp+=" -X $package.gitVersion=$version -X $package.gitMajor=1 -X $package.gitMinor=$(cut -d. -f2 <<<"$version") -X $package.gitTreeState=clean"
done
server=
. ../conformance/cluster.sh

build() {
	(cd ../conformance && cluster_build && go build -ldflags "$stamp" -o "$bin/kubectl" k8s.io/kubernetes/cmd/kubectl &&
		go build -ldflags "$stamp" -o "$bin/kubelet" k8s.io/kubernetes/cmd/kubelet)
	(cd containerd && go build -ldflags '-s -w' -o "$bin/" github.com/containerd/containerd/v2/cmd/{containerd,ctr})
}

finish() {
	local code=$? id
	set +e # what is not there, as not all was started, keeps nothing of the rest
	[ -z "${kubelet:-}" ] || { kill "$kubelet"; wait "$kubelet" || true; }
	for id in $(ctr tasks list -q 2>/dev/null); do ctr tasks kill -s KILL "$id" || true; done
	sleep 1
	for id in $(ctr tasks list -q 2>/dev/null); do ctr tasks delete -f "$id" || true; done
	cluster_stop
	iptables -t nat -D PREROUTING -d 10.240.0.1/32 -p tcp --dport 443 -j REDIRECT --to-ports 6443
	iptables -t nat -D POSTROUTING -s "$subnet" ! -o "$bridge" -j MASQUERADE
	ip address del 10.240.0.1/32 dev lo
	ip link del "$bridge"
	ip netns list | sed -n 's/^\(cni-[^ ]*\).*/\1/p' | while read -r id; do ip netns del "$id"; done
	grep " $data/" /proc/mounts | cut -d' ' -f2 | sort -r | while read -r id; do umount -l "$id"; done
	rm -rf "$data"
	exit $code
} >/dev/null 2>&1

ctr() { "$bin/ctr" -a "$data/containerd.sock" -n k8s.io "$@"; }

# network gives pods a bridge, and the API server's service address to the machine: there is no kube-proxy.
network() {
	ip link add "$bridge" type bridge
	ip address add 10.240.0.1/32 dev lo
	iptables -t nat -A PREROUTING -d 10.240.0.1/32 -p tcp --dport 443 -j REDIRECT --to-ports 6443
	iptables -t nat -A POSTROUTING -s "$subnet" ! -o "$bridge" -j MASQUERADE
	cat >"$data/cni/10-bridge.conflist" <<-END
		{"cniVersion": "1.0.0", "name": "cluster", "plugins": [{"type": "bridge", "bridge": "$bridge", "isGateway": true,
		 "ipam": {"type": "host-local", "dataDir": "$data/ipam", "ranges": [[{"subnet": "$subnet"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
		 {"type": "portmap", "capabilities": {"portMappings": true}}]}
	END
}

containerd_start() {
	mkdir -p "$data/bin"
	ln -s "$repo/bin/.helpers/runc" "$repo/bin/.helpers/containerd-shim-runc-v2" "$data/bin/"
	cat >"$data/containerd.toml" <<-END
		version = 3
		root = "$data/root"
		state = "$data/state"
		[grpc]
		  address = "$data/containerd.sock"
		[ttrpc]
		  address = "$data/ttrpc.sock"
		[plugins."io.containerd.cri.v1.runtime"]
		  restrict_oom_score_adj = true
		  [plugins."io.containerd.cri.v1.runtime".cni]
		    bin_dirs = ["$repo/bin/debian/usr/lib/cni"]
		    conf_dir = "$data/cni"
		  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
		    runtime_type = "io.containerd.runc.v2"
		    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
		      Root = "$data/runc"
		[plugins."io.containerd.cri.v1.images".pinned_images]
		  sandbox = "wherry.dev/pause:build"
	END
	PATH=$data/bin:$PATH "$bin/containerd" --config "$data/containerd.toml" >"$out/containerd.log" 2>&1 &
	plane+=($!)
	until_true "containerd answers" ctr version
	ctr images import "$repo/internal/runtime/bundle/bin/pause.tar"
	ctr images import "$data/wherry.tar"
	ctr images import "$data/busybox.tar"
	ctr images import "$data/tools.tar"
} >/dev/null

kubelet_start() {
	certificate "node" "/O=system:nodes/CN=system:node:$node"
	certificate kubelet "/CN=$node" "subjectAltName=DNS:$node,IP:10.240.0.1"
	kubeconfig node
	cat >"$data/kubelet.yaml" <<-END
		apiVersion: kubelet.config.k8s.io/v1beta1
		kind: KubeletConfiguration
		cgroupDriver: cgroupfs
		failCgroupV1: false
		failSwapOn: false
		cgroupRoot: /whcluster
		enforceNodeAllocatable: []
		containerRuntimeEndpoint: unix://$data/containerd.sock
		authentication: {x509: {clientCAFile: $pki/ca.crt}, anonymous: {enabled: false}}
		authorization: {mode: AlwaysAllow}
		tlsCertFile: $pki/kubelet.crt
		tlsPrivateKeyFile: $pki/kubelet.key
		clusterDomain: cluster.local
		evictionHard: {imagefs.available: "1%", nodefs.available: "1%"}
		imageGCHighThresholdPercent: 100
		podLogsDir: $data/pods
		oomScoreAdj: 0
	END
	local controller
	for controller in /sys/fs/cgroup/*/; do mkdir -p "$controller/whcluster"; done
	# what a cpuset's child may use is copied by nobody on cgroup v1
	[ ! -f /sys/fs/cgroup/cpuset/cpuset.cpus ] || for file in cpuset.mems cpuset.cpus; do cat "/sys/fs/cgroup/cpuset/$file" >"/sys/fs/cgroup/cpuset/whcluster/$file"; done
	"$bin/kubelet" --config="$data/kubelet.yaml" --kubeconfig="$pki/node.kubeconfig" --root-dir="$data/kubelet" \
		--hostname-override="$node" --node-ip=10.240.0.1 >"$out/kubelet.log" 2>&1 &
	kubelet=$!
	until_true "the node joins" k get node "$node"
	k wait --for=condition=Ready --timeout=2m "node/$node" >/dev/null
	until_true "there is a default service account" k get serviceaccount default
}

if [ "$(cat "$out/version-debug" 2>/dev/null)" != "$version" ]; then
	echo "test-cluster-debug: building Kubernetes $version (some minutes)"
	build
	echo "$version" >"$out/version-debug"
fi
"$repo/bin/wherry" cluster image -o "$data/wherry.tar" >/dev/null
busybox=$(command -v busybox)
(cd "$repo" && go run ./tools/mkimage -o "$data/busybox.tar" -ref test.wherry.dev/busybox:1 -file "$busybox=/bin/busybox" -entrypoint /bin/busybox &&
	go run ./tools/mkimage -o "$data/tools.tar" -ref registry.example.com/tools:1 -file "$busybox=/bin/busybox" \
		-file test/cluster/testdata/audit.sh=/audit.sh:755)
trap finish EXIT
trap 'exit 130' INT TERM
cat >"$data/audit.yaml" <<-END
	apiVersion: audit.k8s.io/v1
	kind: Policy
	rules: [{level: Metadata, resources: [{group: debug.wherry.dev}]}, {level: None}]
END
APISERVER_FLAGS="--enable-aggregator-routing --audit-policy-file=$data/audit.yaml --audit-log-path=$data/audit.log --advertise-address=10.240.0.1"
network
cluster_pki
control_plane
containerd_start
kubelet_start
export WHERRY=$repo/bin/wherry KUBECTL=$bin/kubectl HELM=$repo/bin/helm CTR=$bin/ctr KUBECONFIG=$pki/admin.kubeconfig CLUSTER_NODE=$node \
	CLUSTER_CRI=$data/containerd.sock CLUSTER_AUDIT=$data/audit.log CLUSTER_PKI=$pki CLUSTER_KUBELET=$kubelet
code=0
what=(-v ${RUN:+-run "$RUN"})
[ -z "${BENCH:-}" ] || what=(-run '^$' -bench "$BENCH" -benchtime "${N:-5}x" -timeout 30m)
(cd "$repo" && go test -count=1 -timeout 20m "${what[@]}" ./test/cluster) || code=$?
[ -z "${KEEP:-}" ] || { echo "KUBECONFIG=$KUBECONFIG; press return to end it"; read -r _; }
exit $code
