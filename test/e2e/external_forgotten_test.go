// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// RS-07, PL-10: a container that runs although containerd's CRI says that it could not be started, as 1.6 does when whoever asked for the
// start was killed meanwhile: its pod can be deleted, and nothing of it is left. Here the process is started past the CRI.
func TestExternalForgottenProcess(t *testing.T) {
	t.Parallel()
	k, _, d := onDebian(t)
	k.pod(`
metadata: {name: p}
spec:
  hostNetwork: true
  restartPolicy: Never
  containers:
  - {name: main, command: [sh, -c, IDLE], volumeMounts: [{name: v, mountPath: /v}]}
  - {name: late, command: [/v/sleep, "100000"], volumeMounts: [{name: v, mountPath: /v}]}
  volumes: [{name: v, emptyDir: {}}]
`)
	pod := k.Wait("p", "have a container that could not be started", func(p *corev1.Pod) bool {
		end, main := Ended(p, "late"), Status(p, "main")
		return end != nil && end.Reason == "StartError" && main != nil && main.State.Running != nil
	})
	k.sh("p", "main", "cp /bin/sh /v/sleep")
	_, id, _ := strings.Cut(Status(pod, "late").ContainerID, "://")
	// The CRI may hear late, on a busy machine, of the end of the process that could not be started: it kills what there
	// is by then, and until it has heard, the folder of that process is in the way.
	late := regexp.MustCompile("container that has stopped|process is already dead|file exists")
	for ctx := k.ctx(); ; {
		_, err := d.tryCtr("tasks", "start", "--detach", "--null-io", id)
		if err == nil {
			break
		}
		if ctx.Err() != nil || !late.MatchString(err.Error()) {
			t.Fatal(err)
		}
	}
	k.Delete("p")
	k.must(k.awaitGone(k.ctx(), "pods", k.Namespace, "p"))
	if left := d.left(t, k, pod); len(left) > 0 {
		t.Errorf("PL-10 left:\n  %s", strings.Join(left, "\n  "))
	}
}
