// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// DC-07: wherry debug -c NAME waits for a debug container that is about to start, and attaches to it then; if it cannot start, the command
// ends and says why.
func TestDebugAwaitsStart(t *testing.T) {
	at := func(version string, state corev1.ContainerState) *corev1.Pod {
		p := podDebuggedBefore()
		p.ResourceVersion = version
		p.Status.EphemeralContainerStatuses[0].State = state
		return p
	}
	waits := func(reason, message string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	}
	gone := at("4", waits("ContainerCreating", ""))
	gone.Status.Phase = corev1.PodFailed
	for name, c := range map[string]struct {
		next     *corev1.Pod
		attached bool
		want     string
	}{
		"it starts":       {at("4", corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}), true, "not here"},
		"no image":        {at("4", waits("ErrImagePull", "no such image")), false, "cannot start: ErrImagePull: no such image"},
		"the pod is over": {gone, false, "never will: the pod has ended"},
		"it has ended":    {at("4", podDebuggedBefore().Status.EphemeralContainerStatuses[0].State), false, "has ended (exit code 5)"},
	} {
		t.Run(name, func(t *testing.T) {
			attached := false
			d := &debugServer{pod: at("2", waits("", "")), next: []*corev1.Pod{at("3", waits("ContainerCreating", "")), c.next}}
			d.exec = func(w http.ResponseWriter, r *http.Request) {
				attached = true
				refusing(http.StatusConflict, "Conflict", "not here")(w, r)
			}
			t.Setenv("KUBECONFIG", d.kubeconfig(t))
			code, _, errs := call(t, "", "debug", "-c", "debug", "web")
			if attached != c.attached || code == 0 || !strings.Contains(errs, c.want) {
				t.Errorf("attached %t, code %d, said:\n%s\nwant %q", attached, code, errs, c.want)
			}
		})
	}
}
