#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A mutating webhook in a pod puts a sidecar first into another pod, whose init container needs it. Needs a running server and the
# example's image (`make bin/images/sidecar-injector.tar`). WHERRY names the binary, NAMESPACE where the pods live; KEEP=1 leaves
# everything there.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
images=${IMAGES:-$here/../../bin/images}
wherry=${WHERRY:-wherry}
ns=${NAMESPACE:-default}
kubectl() { "$wherry" kubectl -n "$ns" "$@"; }

manifests=$(mktemp)
clean_up() {
	status=$?
	if [ "${KEEP:-}" != 1 ]; then
		kubectl delete --ignore-not-found --wait=false -f "$here/app.yaml" || status=1
		kubectl delete --ignore-not-found -f "$manifests" || status=1
	fi
	rm -f "$manifests" # it has the key
	exit $status
}
trap clean_up EXIT

echo "== the webhook, as a pod behind a service"
"$wherry" image import "$images/sidecar-injector.tar"
"$images/sidecar-injector" manifests -namespace "$ns" >"$manifests"
kubectl apply -f "$manifests"
kubectl wait --for=condition=Ready pod/sidecar-injector --timeout=60s

echo "== what it would do to the app"
# The server has heard of the webhook a moment after its creation was answered.
sidecar() { kubectl apply --dry-run=server -f "$here/app.yaml" -o jsonpath='{.spec.initContainers[0].name}'; }
tries=0
until [ "$(sidecar)" = injected-sidecar ]; do
	tries=$((tries + 1))
	[ $tries -lt 50 ]
	sleep 0.1
done
echo "injected-sidecar comes first"

echo "== the app"
kubectl apply -f "$here/app.yaml"
kubectl wait --for=condition=Ready pod/app --timeout=60s
kubectl get pod app -o jsonpath='{range .spec.initContainers[*]}{.name}{"\n"}{end}'
kubectl logs app -c init
