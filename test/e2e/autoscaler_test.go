// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherryproject/wherry/test/images"
)

// WL-01, WL-05, PL-10: a Deployment whose pods are busy gets more of them from the node's own figures, and a budget
// keeps an eviction from taking them all.
func TestAutoscaler(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.objects(strings.NewReplacer("BUSYBOX", images.BusyboxRef).Replace(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: hot}
spec:
  selector: {matchLabels: {app: hot}}
  template:
    metadata: {labels: {app: hot}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
      - name: c
        image: BUSYBOX
        command: [sh, -c, "while :; do :; done"]
        resources: {requests: {cpu: 20m}, limits: {cpu: 60m}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: hot}
spec:
  maxReplicas: 2
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: hot}
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: hot}
spec: {maxUnavailable: 0, selector: {matchLabels: {app: hot}}}
`))
	k.Kubectl("wait", "deployment/hot", "--for=jsonpath={.status.readyReplicas}=2", "--timeout=90s")
	k.Kubectl("wait", "pdb/hot", "--for=jsonpath={.status.currentHealthy}=2", "--timeout=30s")
	pod := strings.Fields(k.Kubectl("get", "pods", "-l", "app=hot", "-o", "jsonpath={.items[*].metadata.name}").Out)[0]
	err := k.Client.CoreV1().Pods(k.Namespace).EvictV1(k.Context(),
		&policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod}})
	if !apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause) {
		t.Errorf("PL-10 eviction: %v", err)
	}
}
