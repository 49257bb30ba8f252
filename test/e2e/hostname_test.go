// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// PL-26: setHostnameAsFQDN and hostnameOverride, as the kernel and the hosts file show them.
func TestHostnames(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.up(`
metadata: {name: whole}
spec:
  setHostnameAsFQDN: true
  hostname: h
  subdomain: s
  containers: [{name: c, command: [sh, -c, IDLE]}]
`)
	want := "h.s." + k.Namespace + ".svc.cluster.local"
	if got := strings.TrimSpace(k.sh("whole", "c", "hostname")); got != want {
		t.Errorf("PL-26 the kernel says %q, want %q", got, want)
	}
	if got := k.sh("whole", "c", "cat /etc/hosts"); !strings.Contains(got, "\t"+want+"\th") {
		t.Errorf("PL-26 the hosts file is\n%s", got)
	}
	k.up(`
metadata: {name: other}
spec:
  hostname: h
  subdomain: s
  hostnameOverride: o.example
  containers: [{name: c, command: [sh, -c, IDLE]}]
`)
	if got := strings.TrimSpace(k.sh("other", "c", "hostname")); got != "o.example" {
		t.Errorf("PL-26 the kernel says %q with an override", got)
	}
	if got := k.sh("other", "c", "cat /etc/hosts"); !strings.Contains(got, "\to.example") {
		t.Errorf("PL-26 the hosts file is\n%s", got)
	}
}

// PL-26: a whole name that no kernel can hold keeps the pod waiting, and an event says why.
func TestHostnameTooLong(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.pod(`
metadata: {name: long}
spec:
  setHostnameAsFQDN: true
  hostname: ` + strings.Repeat("h", 50) + `
  subdomain: s
  containers: [{name: c, command: [sh, -c, IDLE]}]
`)
	k.WaitEvent("long", "FailedCreatePodSandBox", "too long for a kernel")
	k.Wait("long", "PL-26 pending, and its status says why", func(pod *corev1.Pod) bool {
		if len(pod.Status.ContainerStatuses) == 0 {
			return false
		}
		w := pod.Status.ContainerStatuses[0].State.Waiting
		return pod.Status.Phase == corev1.PodPending && w != nil && strings.Contains(w.Message, "at most 64")
	})
}
