// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// all is a restart rule: exit code 42 starts all containers again.
const all = "restartPolicyRules: [{action: RestartAllContainers, exitCodes: {operator: In, values: [42]}}]"

// once is a script that ends with 42 the first time it runs, as the volume remembers, and does what comes next the second time.
func once(then string) string {
	return fmt.Sprintf("[sh, -c, 'if [ -f /mnt/done ]; then %s; fi; touch /mnt/done; exit 42']", then)
}

// PL-28: an exit code of a main, of a sidecar and of an init starts all containers again, in order, with the volumes they had, whatever
// the pod's restart policy; each has its count and its last end.
func TestRestartAllContainers(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	const idle = "trap \"exit 0\" TERM; while :; do sleep 3600 & wait; done"
	mount := ", volumeMounts: [{name: w, mountPath: /mnt}]"
	for name, c := range map[string]struct {
		inits, mains string
		again        []string
	}{
		"main": {
			"[{name: i, command: [sh, -c, 'echo i >> /mnt/log']" + mount + "}, {name: s, restartPolicy: Always, command: [sh, -c, 'echo s >> /mnt/log; " + idle + "']" + mount + "}]",
			"[{name: source, restartPolicy: Never, " + all + ", command: " + once(idle) + mount + "}, {name: other, command: [sh, -c, IDLE]}]",
			[]string{"i", "s", "source", "other"}},
		"sidecar": {
			"[{name: i, command: [sh, -c, 'echo i >> /mnt/log']" + mount + "}, {name: s, restartPolicy: Always, " + all + ", command: [sh, -c, 'echo s >> /mnt/log; if [ ! -f /mnt/done ]; then while [ ! -f /mnt/up ]; do sleep 0.1; done; touch /mnt/done; exit 42; fi; " + idle + "']" + mount + "}]",
			"[{name: main, command: [sh, -c, 'touch /mnt/up; " + idle + "']" + mount + "}]",
			[]string{"i", "s", "main"}},
		"init": {
			"[{name: s, restartPolicy: Always, command: [sh, -c, 'echo s >> /mnt/log; " + idle + "']" + mount + "}, {name: i, restartPolicy: Never, " + all + ", command: " + once("echo i >> /mnt/log; exit 0") + mount + "}]",
			"[{name: main, command: [sh, -c, IDLE]" + mount + "}]",
			[]string{"s", "i"}},
	} {
		k.pod("metadata: {name: " + name + "}\nspec: {restartPolicy: Never, volumes: [{name: w, emptyDir: {}}], initContainers: " + c.inits + ", containers: " + c.mains + "}")
		counts := func(p *corev1.Pod) map[string]*corev1.ContainerStatus {
			out := map[string]*corev1.ContainerStatus{}
			for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
				for i := range list {
					out[list[i].Name] = &list[i]
				}
			}
			return out
		}
		pod := k.Wait(name, "restarted as a whole, and ready", func(p *corev1.Pod) bool {
			for _, n := range c.again {
				if s := counts(p)[n]; s == nil || s.RestartCount != 1 || s.LastTerminationState.Terminated == nil {
					return false
				}
			}
			return Condition(p, corev1.PodReady) == corev1.ConditionTrue
		})
		if len(pod.Status.ContainerStatuses) == 0 || pod.Status.Phase != corev1.PodRunning {
			t.Errorf("PL-28 %s: %s", name, pod.Status.Phase)
		}
	}
	k.says("main", "source", "echo $(cat /mnt/log)", "i s i s")
	k.says("sidecar", "main", "echo $(cat /mnt/log)", "i s i s")
	k.says("init", "main", "echo $(cat /mnt/log)", "s s i")
}
