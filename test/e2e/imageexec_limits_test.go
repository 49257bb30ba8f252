// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/test/images"
)

// TestImageExecLimits: RS-05 (ATTACK A34, C32): image execs of a pod that has ended are counted, one at a time writes to an ended
// container's files, and all of them end when the pod is deleted.
func TestImageExecLimits(t *testing.T) {
	t.Parallel()
	srv := own(t, ServerOptions{Args: []string{"--max-image-execs-per-pod", "2"}})
	k := kitOn(t, srv)
	gone := func(p *corev1.Pod) bool {
		return Condition(p, corev1.PodReadyToStartContainers) == corev1.ConditionFalse
	}
	pod, _ := k.ran(`{metadata: {name: done}, spec: {restartPolicy: Never, containers: [{name: main, command: [sh, -c, "echo left > /file"]}]}}`)
	k.ran(`{metadata: {name: other}, spec: {restartPolicy: Never, containers: [{name: main, command: [sh, -c, "true"]}]}}`)
	k.Wait("done", "without its sandbox", gone)
	k.Wait("other", "without its sandbox", gone)

	var ended sync.WaitGroup
	begin := func(writes bool) {
		t.Helper()
		up := make(chan struct{})
		x := imageExec{image: images.BusyboxRef, command: []string{"sh", "-c", "cat /c/main/file; sleep 4321"}, writable: writes,
			stdout: &firstWrite{done: func() { close(up) }}, stderr: &bytes.Buffer{}, ctx: k.ctx()}
		over := make(chan struct{})
		var code int
		var err error
		ended.Go(func() { code, err = k.start("done", x); close(over) })
		select {
		case <-up:
		case <-over:
			t.Fatalf("the image exec ended: %d, %v", code, err)
		}
	}
	refused := func(writes bool, want string) {
		t.Helper()
		x := imageExec{image: images.BusyboxRef, command: []string{"true"}, writable: writes, spdy: true, stdout: &bytes.Buffer{}, ctx: k.ctx()}
		if code, err := k.start("done", x); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("code %d, %v; want %q", code, err, want)
		}
	}
	begin(true)
	refused(true, "another image exec or wherry cp is writing to its files")
	begin(false)
	refused(false, "there are 2 image execs of this pod already")
	if _, errs, code := k.into("other", "true"); code != 0 {
		t.Errorf("another pod: %d, %s", code, errs)
	}
	k.Delete("done")
	ended.Wait()
	k.WaitGone(pod)
	if left := k.remains(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
