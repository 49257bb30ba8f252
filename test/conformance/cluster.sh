# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# What run.sh does otherwise with CLUSTER=1: a control plane of Kubernetes' own programs, which `wherry agent` joins as
# worker by a bootstrap token. Uses $bin, $data, $out, $repo and $stamp of run.sh. The processes of the control plane are
# in $plane and end with run.sh.

plane=()

# cluster_build builds the control plane.
cluster_build() {
	local part
	for part in kube-apiserver kube-controller-manager kube-scheduler; do
		go build -ldflags "$stamp" -o "$bin/$part" "k8s.io/kubernetes/cmd/$part"
	done
	go build -ldflags '-s -w' -o "$bin/etcd" ./etcd
}

# certificate NAME SUBJECT [EXTENSION]: $pki/NAME.crt and .key, signed by the cluster's CA.
certificate() {
	openssl req -newkey rsa:2048 -nodes -keyout "$pki/$1.key" -subj "$2" 2>/dev/null |
		openssl x509 -req -CA "$pki/ca.crt" -CAkey "$pki/ca.key" -days 2 -out "$pki/$1.crt" \
			-extfile <(echo "extendedKeyUsage=serverAuth,clientAuth${3:+$'\n'$3}") 2>/dev/null
}

# kubeconfig NAME: $pki/NAME.kubeconfig for who has the certificate of that name.
kubeconfig() {
	"$bin/kubectl" config --kubeconfig="$pki/$1.kubeconfig" set-cluster c --server=https://127.0.0.1:6443 \
		--certificate-authority="$pki/ca.crt" --embed-certs >/dev/null
	"$bin/kubectl" config --kubeconfig="$pki/$1.kubeconfig" set-credentials u --client-certificate="$pki/$1.crt" \
		--client-key="$pki/$1.key" --embed-certs >/dev/null
	"$bin/kubectl" config --kubeconfig="$pki/$1.kubeconfig" set-context c --cluster=c --user=u >/dev/null
	"$bin/kubectl" config --kubeconfig="$pki/$1.kubeconfig" use-context c >/dev/null
}

cluster_pki() {
	local name
	openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=test-cluster -keyout "$pki/ca.key" -out "$pki/ca.crt" 2>/dev/null
	openssl genrsa -out "$pki/sa.key" 2048 2>/dev/null
	certificate apiserver /CN=kube-apiserver \
		subjectAltName=IP:127.0.0.1,IP:10.240.0.1,DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc
	certificate admin /O=system:masters/CN=admin
	certificate controllers /CN=system:kube-controller-manager
	certificate scheduler /CN=system:kube-scheduler
	certificate front-proxy /CN=front-proxy
	for name in admin controllers scheduler; do kubeconfig $name; done
}

# part NAME FLAGS…: starts a program of the control plane.
part() {
	"$bin/$1" "${@:2}" >"$out/$1.log" 2>&1 &
	plane+=($!)
}

# until_true WHAT COMMAND…: what has no event to wait for, once every half second for two minutes.
until_true() {
	local what=$1 i
	shift
	for ((i = 0; i < 240; i++)); do
		! "$@" >/dev/null 2>&1 || return 0
		sleep 0.5
	done
	echo "conformance: $what: not within two minutes; logs: $out/*.log" >&2
	exit 1
}

k() { "$bin/kubectl" --kubeconfig="$pki/admin.kubeconfig" "$@"; }

control_plane() {
	part etcd --data-dir="$data/etcd" --listen-client-urls=http://127.0.0.1:2379 --advertise-client-urls=http://127.0.0.1:2379 \
		--listen-peer-urls=http://127.0.0.1:2380 --unsafe-no-fsync
	part kube-apiserver --etcd-servers=http://127.0.0.1:2379 --secure-port=6443 --service-cluster-ip-range=10.240.0.0/16 \
		--tls-cert-file="$pki/apiserver.crt" --tls-private-key-file="$pki/apiserver.key" --client-ca-file="$pki/ca.crt" \
		--kubelet-client-certificate="$pki/admin.crt" --kubelet-client-key="$pki/admin.key" \
		--kubelet-preferred-address-types=InternalIP --authorization-mode=Node,RBAC \
		--enable-admission-plugins=NodeRestriction --enable-bootstrap-token-auth --allow-privileged \
		--requestheader-client-ca-file="$pki/ca.crt" --requestheader-allowed-names=front-proxy \
		--requestheader-username-headers=X-Remote-User --requestheader-group-headers=X-Remote-Group \
		--requestheader-extra-headers-prefix=X-Remote-Extra- \
		--proxy-client-cert-file="$pki/front-proxy.crt" --proxy-client-key-file="$pki/front-proxy.key" \
		--service-account-issuer=https://kubernetes.default.svc.cluster.local \
		--service-account-key-file="$pki/sa.key" --service-account-signing-key-file="$pki/sa.key" ${APISERVER_FLAGS:-}
	until_true "the API server is ready" k get --raw /readyz
	# Networks that no server chooses by itself, nor has by default (10.96.0.0/12): others may run beside it.
	part kube-controller-manager --kubeconfig="$pki/controllers.kubeconfig" --use-service-account-credentials \
		--authentication-kubeconfig="$pki/controllers.kubeconfig" --authorization-kubeconfig="$pki/controllers.kubeconfig" \
		--root-ca-file="$pki/ca.crt" --service-account-private-key-file="$pki/sa.key" --leader-elect=false \
		--cluster-signing-cert-file="$pki/ca.crt" --cluster-signing-key-file="$pki/ca.key" \
		--allocate-node-cidrs --cluster-cidr=10.241.0.0/16 --service-cluster-ip-range=10.240.0.0/16
	part kube-scheduler --kubeconfig="$pki/scheduler.kubeconfig" --leader-elect=false \
		--authentication-kubeconfig="$pki/scheduler.kubeconfig" --authorization-kubeconfig="$pki/scheduler.kubeconfig"
}

# bootstrap_token lets whoever has the token ask for a node's certificate, as kubeadm does.
bootstrap_token() {
	k create clusterrolebinding bootstrap --clusterrole=system:node-bootstrapper --group=system:bootstrappers
	k create clusterrolebinding bootstrap-approve --group=system:bootstrappers \
		--clusterrole=system:certificates.k8s.io:certificatesigningrequests:nodeclient
	k create clusterrolebinding renew --group=system:nodes \
		--clusterrole=system:certificates.k8s.io:certificatesigningrequests:selfnodeclient
	k create secret generic -n kube-system bootstrap-token-abcdef --type=bootstrap.kubernetes.io/token \
		--from-literal=token-id=abcdef --from-literal=token-secret="$1" --from-literal=usage-bootstrap-authentication=true
} >/dev/null

# debian_containerd starts Debian's containerd, with pods on a bridge by Debian's CNI plug-ins, as the agent's runtime.
debian_containerd() {
	local dir=$data/containerd from=$repo/bin/debian/usr bridge=whdebian0
	(cd "$repo" && NEEDED=1 tools/setup.sh containerd busybox)
	mkdir -p "$dir/net.d"
	cat >"$dir/config.toml" <<-END
		version = 2
		root = "$dir/root"
		state = "$dir/state"
		[grpc]
		  address = "$dir/c.sock"
		[ttrpc]
		  address = "$dir/t.sock"
		[plugins."io.containerd.grpc.v1.cri"]
		  sandbox_image = "wherry.dev/pause:build"
		  restrict_oom_score_adj = true
		  enable_unprivileged_ports = true
		  enable_unprivileged_icmp = true
		  [plugins."io.containerd.grpc.v1.cri".registry]
		    config_path = "$folder/registries"
		  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
		    runtime_type = "io.containerd.runc.v2"
		    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
		      Root = "$dir/runc"
		  [plugins."io.containerd.grpc.v1.cri".cni]
		    bin_dir = "$from/lib/cni"
		    conf_dir = "$dir/net.d"
	END
	cat >"$dir/net.d/10-bridge.conflist" <<-END
		{"cniVersion": "1.0.0", "name": "debian", "plugins": [{"type": "bridge", "bridge": "$bridge", "isGateway": true, "ipMasq": true, "hairpinMode": true,
		 "ipam": {"type": "host-local", "dataDir": "$dir/ipam", "ranges": [[{"subnet": "10.241.250.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
		 {"type": "portmap", "capabilities": {"portMappings": true}}]}
	END
	ip link add "$bridge" type bridge
	PATH=$from/bin:$from/sbin:$PATH "$from/bin/containerd" --config "$dir/config.toml" >"$out/containerd.log" 2>&1 &
	debian=$!
	import=("$from/bin/ctr" --address "$dir/c.sock" -n k8s.io images import)
	until_true "containerd answers" "$from/bin/ctr" --address "$dir/c.sock" version
	"${import[@]}" "$repo/internal/runtime/bundle/bin/pause.tar" >/dev/null
	agent_flags=(--container-runtime-endpoint "unix://$dir/c.sock" --bridge-name "$bridge")
}

# debian_stop ends it, when its pods have gone with the agent's folder.
debian_stop() {
	[ -n "${debian:-}" ] || return 0
	kill "$debian" 2>/dev/null || true
	wait "$debian" 2>/dev/null || true
	ip link del whdebian0 || true
	awk -v dir="$data/" 'index($2, dir) == 1 {print $2}' /proc/mounts | sort -r | while read -r mount; do umount -l "$mount"; done
}

# cluster_start starts control plane and agent, and waits until the node is ready.
cluster_start() {
	local secret agent_flags=()
	pki=$data/pki
	mkdir -p "$pki"
	chmod 700 "$pki"
	secret=$(openssl rand -hex 8)
	cluster_pki
	control_plane
	bootstrap_token "$secret"
	cp "$pki/admin.kubeconfig" "$data/kubeconfig"
	cp "$pki/admin.kubeconfig" "$pki/bootstrap.kubeconfig"
	"$bin/kubectl" config --kubeconfig="$pki/bootstrap.kubeconfig" unset users.u >/dev/null
	"$bin/kubectl" config --kubeconfig="$pki/bootstrap.kubeconfig" set-credentials u --token="abcdef.$secret" >/dev/null
	[ -z "${DEBIAN:-}" ] || debian_containerd
	"$repo/bin/wherry" agent --data-dir "$data/agent" --node-name worker --bootstrap-kubeconfig "$pki/bootstrap.kubeconfig" \
		"${agent_flags[@]}" >"$out/server.log" 2>&1 &
	server=$!
	until_true "the node joins" alive k get node worker
	k wait --for=condition=Ready --timeout=2m node/worker >/dev/null
	until_true "there is a default service account" k get serviceaccount default
}

# alive COMMAND…: the command, unless the agent has ended.
alive() {
	kill -0 "$server" 2>/dev/null || { tail -3 "$out/server.log" >&2; exit 1; }
	"$@"
}

# cluster_stop ends the control plane, the newest first.
cluster_stop() {
	local i
	for ((i = ${#plane[@]} - 1; i >= 0; i--)); do
		kill "${plane[i]}" 2>/dev/null || true
		wait "${plane[i]}" 2>/dev/null || true
	done
}
