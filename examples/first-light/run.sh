#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# First light: a server, one real pod from creation to deletion, and everything taken down again. `make run` calls it.
# KEEP=1 leaves the server and the pod up. WHERRY names the binary (default bin/wherry).
set -euo pipefail
cd "$(dirname "$0")/../.."

wherry=$(realpath "${WHERRY:-bin/wherry}")
here=examples/first-light
data=${DATA_DIR:-$(mktemp -d /tmp/wherry-first-light.XXXXXX)}
export WHERRY_DATA_DIR=$data
server=

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
seconds() { awk -v a="$1" -v b="$(date +%s.%N)" 'BEGIN { printf "%.2f s", b - a }'; }
kubectl() { "$wherry" kubectl --kubeconfig "$data/kubeconfig" "$@"; }

stop_server() {
	[ -n "$server" ] || return 0
	kill -TERM "$server" 2>/dev/null || true
	wait "$server" || true
	server=
}

clean_up() {
	status=$?
	trap - EXIT INT TERM
	if [ $status -ne 0 ]; then
		say "It failed (exit code $status). The end of the server's log:"
		tail -n 40 "$data/server.log" 2>/dev/null || true
	fi
	stop_server
	if [ -e "$data/version" ]; then
		"$wherry" purge --data-dir "$data" --yes || status=1
	fi
	rm -rf "$data"
	exit $status
}
trap clean_up EXIT
trap 'exit 130' INT TERM

if [ "$(id -u)" -ne 0 ]; then
	echo "making containers needs root: run it with sudo" >&2
	exit 10
fi

say "Starting a server in $data"
began=$(date +%s.%N)
# The server gets a session of its own, so that Ctrl-C here reaches this script alone, and KEEP=1 outlives it.
setsid "$wherry" server --data-dir "$data" --secure-port 0 --kubelet-port 0 >"$data/server.log" 2>&1 </dev/null &
server=$!
until [ -S "$data/wherry.sock" ]; do
	kill -0 "$server" 2>/dev/null || { wait "$server" || exit $?; exit 1; }
	sleep 0.05
done
until [ -n "$(kubectl get nodes -o name 2>/dev/null)" ]; do # the agent comes last
	kill -0 "$server" 2>/dev/null || { wait "$server" || exit $?; exit 1; }
	sleep 0.05
done
kubectl wait --for=condition=Ready node --all --timeout=60s
echo "up after $(seconds "$began")"

say "Importing the example's images"
"$wherry" image import bin/images/first-light-page.tar bin/images/first-light-web.tar

say "Running the pod of $here/pod.yaml"
"$wherry" run --detach --timeout 2m -f $here/pod.yaml

say "Calling its HTTP port"
ip=$(kubectl get pod first-light -o 'jsonpath={.status.podIP}')
echo "GET http://$ip:8080/"
exec 3<>"/dev/tcp/$ip/8080"
printf 'GET / HTTP/1.0\r\nHost: first-light\r\n\r\n' >&3
answer=$(cat <&3)
exec 3>&-
echo "${answer##*$'\r\n\r\n'}"
[[ $answer == *"First light of pod first-light"* ]] || { echo "that is not the page: $answer" >&2; exit 1; }

say "kubectl logs first-light --all-containers --prefix"
kubectl logs first-light --all-containers --prefix

say "kubectl get pods -o wide"
kubectl get pods -o wide

if [ "${KEEP:-}" = 1 ]; then
	trap - EXIT INT TERM
	say "The server is left up (pid $server). To use it:"
	cat <<-TEXT
	  export KUBECONFIG=$data/kubeconfig

	Three things to try:
	  $wherry kubectl port-forward pod/first-light 8080     # then open http://localhost:8080
	  $wherry kubectl get events --watch
	  $wherry kubectl delete pod first-light

	To end it and remove everything:
	  sudo kill $server && sudo $wherry purge --data-dir $data --yes
	TEXT
	exit 0
fi

say "Taking it all down"
began=$(date +%s.%N)
kubectl delete pod first-light
stop_server
"$wherry" purge --data-dir "$data" --yes
echo "down after $(seconds "$began")"
