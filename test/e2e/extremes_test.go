// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/test/images"
)

// TestExtremeNumbers proves RS-01: objects with the largest numbers that the API takes are worked on as others are: nothing overflows into
// an end at once, and no controller panics.
// ATTACK C39.
func TestExtremeNumbers(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	k := kitOn(t, own(t))
	k.objects(strings.NewReplacer("IMAGE", images.BusyboxRef, "LONGEST", "9223372036", "MAX64", "9223372036854775807", "MAX32", "2147483647", "MOST32", "2147483646").Replace(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: deployment}
spec:
  revisionHistoryLimit: MAX32
  progressDeadlineSeconds: MAX32
  selector: {matchLabels: {app: deployment}}
  template:
    metadata: {labels: {app: deployment}}
    spec:
      terminationGracePeriodSeconds: MAX64
      tolerations: [{key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: MAX64}]
      containers: [{name: c, image: IMAGE, command: [sh, -c, "trap 'exit 0' TERM; while :; do sleep 1; done"], volumeMounts: [{name: t, mountPath: /t}]}]
      volumes: [{name: t, projected: {sources: [{serviceAccountToken: {path: token, expirationSeconds: 4294967296}}]}}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: slow}
spec:
  minReadySeconds: MOST32
  progressDeadlineSeconds: MAX32
  selector: {matchLabels: {app: slow}}
  template:
    metadata: {labels: {app: slow}}
    spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: IMAGE, command: [sleep, "1000"]}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: set}
spec:
  ordinals: {start: MAX32}
  revisionHistoryLimit: MAX32
  selector: {matchLabels: {app: set}}
  template:
    metadata: {labels: {app: set}}
    spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: IMAGE, command: [sleep, "1000"]}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: job}
spec:
  activeDeadlineSeconds: LONGEST
  backoffLimit: MAX32
  ttlSecondsAfterFinished: MAX32
  template: {spec: {restartPolicy: Never, containers: [{name: c, image: IMAGE, command: [sleep, "1"]}]}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: cron}
spec:
  schedule: "* * * * *"
  startingDeadlineSeconds: LONGEST
  successfulJobsHistoryLimit: MAX32
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: IMAGE, command: ["true"]}]}}}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: budget}
spec: {minAvailable: MAX32, selector: {matchLabels: {app: slow}}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: scaler}
spec:
  minReplicas: 1
  maxReplicas: MAX32
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: slow}
  metrics: [{type: Resource, resource: {name: cpu, target: {type: AverageValue, averageValue: 9E}}}]
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: lease}
spec: {holderIdentity: x, leaseDurationSeconds: MAX32, renewTime: "2030-01-01T00:00:00.000000Z"}
`))
	k.Kubectl("wait", "deployment/deployment", "--for=condition=Available", "--timeout=60s")
	k.Kubectl("wait", "pods", "-l", "app=set", "--for=condition=Ready", "--timeout=60s")
	k.Kubectl("wait", "job/job", "--for=condition=Complete", "--timeout=60s")
	k.Kubectl("wait", "pdb/budget", "--for=jsonpath={.status.expectedPods}=1", "--timeout=60s")
	k.Kubectl("wait", "cronjob/cron", "--for=jsonpath={.status.lastSuccessfulTime}", "--timeout=85s")
	if got := k.Kubectl("get", "deployment/slow", "-o", "jsonpath={.status.readyReplicas}/{.status.availableReplicas}").Out; got != "1/" {
		t.Errorf("a pod that is to be ready for 68 years first: ready/available %s", got)
	}
	pod := strings.TrimSpace(k.Kubectl("get", "pods", "-l", "app=deployment", "-o", "jsonpath={.items[0].metadata.name}").Out)
	p := k.Get(pod)
	k.Kubectl("delete", "pod", pod, "--wait=false")
	k.WaitGone(p) // it ends by itself on SIGTERM, and would have all the time it wants
	k.Kubectl("wait", "deployment/deployment", "--for=condition=Available", "--timeout=60s")
	for _, bad := range k.Server.Complaints() {
		t.Error(bad)
	}
	if p := k.Wait("set-2147483647", "running", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning }); p == nil {
		t.Error("no pod")
	}
}
