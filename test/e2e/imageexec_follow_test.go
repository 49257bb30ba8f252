// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestImageExecFollows: IX-03 a container that starts while a command runs appears below /c, with its volumes; IX-09 what was shown of
// one that crashes again and again does not go from under the command, and each later attempt has a place of its own.
func TestImageExecFollows(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.pod("metadata: {name: late}\nspec: {volumes: [{name: v, emptyDir: {}}], " +
		"initContainers: [{name: first, command: [sh, -c, 'echo in the volume >/v/f; until [ -e /v/go ]; do sleep 0.1; done'], volumeMounts: [{name: v, mountPath: /v}]}], " +
		"containers: [{name: c, command: [sh, -c, 'echo mine >/f; IDLE'], volumeMounts: [{name: v, mountPath: /data}]}]}")
	started := func(pod, container string) {
		k.Wait(pod, container+" has started", func(p *corev1.Pod) bool {
			for _, s := range append(p.Status.InitContainerStatuses, p.Status.ContainerStatuses...) {
				if s.Name == container && (s.State.Running != nil || s.RestartCount > 0) {
					return true
				}
			}
			return false
		})
	}
	t.Run("late", func(t *testing.T) {
		k := &kit{Space: k.With(t), t: t}
		started("late", "first")
		k.shows("late", "[ -e /c/c ] && echo early; cat /c/first/v/f; touch /c/first/v/go; until [ -s /c/c/f ]; do sleep 0.1; done; cat /c/c/f /c/c/data/f; "+
			"touch /c/c/f 2>/dev/null || echo read-only", "in the volume\nmine\nin the volume", writable)
		k.shows("late", "cat /c/c/f; touch /c/c/f 2>/dev/null || echo read-only", "mine\nread-only")
		if left := k.remains(); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	})
	t.Run("crash", func(t *testing.T) {
		k := &kit{Space: k.With(t), t: t}
		k.pod("metadata: {name: crash}\nspec: {containers: [{name: c, command: [sh, -c, 'cat /proc/sys/kernel/random/uuid >/mark; sleep 1; exit 1']}]}")
		started("crash", "c")
		k.shows("crash", "set -- $(cat /c/c/mark); until [ $(cat /c/c.*/mark 2>/dev/null | sort -u | wc -l) -ge 2 ]; do sleep 0.2; done; "+
			"[ $(cat /c/c/mark) = $1 ] && echo kept", "kept")
	})
}
