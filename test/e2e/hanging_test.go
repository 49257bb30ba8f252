// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestHangingPrograms proves RS-05: programs in containers that hang, in probes, in hooks, at their end, or in the termination message that they
// write, hold up nothing of other pods: those start, are entered, end, are evicted and have figures while all of the former hang.
func TestHangingPrograms(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	k := kitOn(t, own(t))
	k.pod("metadata: {name: probe}\nspec: {containers: [{name: c, command: [sh, -c, IDLE], " +
		"readinessProbe: {exec: {command: [sleep, '4321']}, timeoutSeconds: 3600, periodSeconds: 1}, startupProbe: {exec: {command: [sleep, '4321']}, timeoutSeconds: 3600}}]}")
	k.pod("metadata: {name: post}\nspec: {containers: [{name: c, command: [sh, -c, IDLE], lifecycle: {postStart: {exec: {command: [sleep, '4321']}}}}]}")
	k.up("metadata: {name: pre}\nspec: {terminationGracePeriodSeconds: 3600, containers: [{name: c, command: [sh, -c, IDLE], lifecycle: {preStop: {exec: {command: [sleep, '4321']}}}}]}")
	k.up("metadata: {name: deaf}\nspec: {terminationGracePeriodSeconds: 3600, containers: [{name: c, command: [sh, -c, 'trap \"\" TERM; while :; do sleep 1; done']}]}")
	k.up("metadata: {name: fifo}\nspec: {containers: [{name: c, command: [sh, -c, 'mkfifo /v/fifo; IDLE'], terminationMessagePath: /v/fifo, " +
		"volumeMounts: [{name: v, mountPath: /v}]}], volumes: [{name: v, emptyDir: {}}]}")
	for _, name := range []string{"pre", "deaf"} {
		k.must(k.Client.CoreV1().Pods(k.Namespace).Delete(k.ctx(), name, metav1.DeleteOptions{}))
	}

	well := k.up("metadata: {name: well}\nspec: {terminationGracePeriodSeconds: 1, containers: [{name: c, command: [sh, -c, 'echo hello; IDLE']}]}")
	k.says("well", "c", "echo here", "here")
	k.awaitLog("well", "c", "hello")
	k.ran("{metadata: {name: short}, spec: {restartPolicy: Never, containers: [{name: c, command: [sh, -c, 'true']}]}}")
	k.pod("metadata: {name: over}\nspec: {containers: [{name: c, command: [sh, -c, 'dd if=/dev/zero of=/v/f bs=1M count=8 && IDLE'], " +
		"volumeMounts: [{name: v, mountPath: /v}]}], volumes: [{name: v, emptyDir: {sizeLimit: 1Mi}}]}")
	k.evicted("over", `Usage of EmptyDir volume "v" exceeds the limit "1Mi".`)
	k.figures("well", "probe", "pre", "deaf")
	k.Delete("well")
	k.WaitGone(well)

	for _, name := range []string{"pre", "deaf"} { // else this proves nothing
		if p := k.Get(name); p.DeletionTimestamp == nil || p.Status.ContainerStatuses[0].State.Running == nil {
			t.Errorf("pod %s no longer hangs: %+v", name, p.Status)
		}
	}
	for _, name := range []string{"probe", "post"} {
		if p := k.Get(name); len(p.Status.ContainerStatuses) != 1 || p.Status.ContainerStatuses[0].Ready {
			t.Errorf("pod %s no longer hangs: %+v", name, p.Status)
		}
	}
	for _, name := range []string{"pre", "deaf", "post", "probe", "fifo"} { // each can be ended at once
		p := k.Get(name)
		k.must(k.Client.CoreV1().Pods(k.Namespace).Delete(k.ctx(), name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(1))}))
		k.WaitGone(p)
	}
}
