// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherryproject/wherry/internal/debug/debugask"
	"github.com/wherryproject/wherry/internal/debug/options"
	"github.com/wherryproject/wherry/internal/podspec"
)

// DC-03 EC-10: what a wait makes of each state: it goes on, it is over, or it fails in the node's words.
func TestJudge(t *testing.T) {
	terminated := func(reason string, started bool) podspec.DebugState {
		end := &corev1.ContainerStateTerminated{Reason: reason}
		if started {
			end.StartedAt = metav1.Now()
		}
		return podspec.DebugState{Phase: podspec.DebugEnded, Reason: reason, Terminated: end}
	}
	pod := func(but func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
		if but != nil {
			but(p)
		}
		return p
	}
	for name, test := range map[string]struct {
		pod   *corev1.Pod
		s     podspec.DebugState
		begun bool
		words string
	}{
		"waits":              {pod(nil), podspec.DebugState{Phase: podspec.DebugPending}, false, ""},
		"runs":               {pod(nil), podspec.DebugState{Phase: podspec.DebugRunning}, true, ""},
		"has ended":          {pod(nil), terminated("Completed", true), true, ""},
		"ended unstarted":    {pod(nil), terminated("Stopped", false), false, "cannot start: Stopped"},
		"command not found":  {pod(nil), terminated("StartError", true), false, "cannot start: StartError"},
		"no image":           {pod(nil), podspec.DebugState{Phase: podspec.DebugFailing, Reason: "ErrImagePull"}, false, "cannot start: ErrImagePull"},
		"replaced":           {pod(nil), podspec.DebugState{Phase: podspec.DebugRunning, Run: 1}, false, "was replaced"},
		"not there any more": {pod(nil), podspec.DebugState{}, false, "was replaced"},
		"the pod is deleted": {pod(func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }), podspec.DebugState{Phase: podspec.DebugPending}, false, "is being deleted"},
		"the pod has ended":  {pod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), podspec.DebugState{Phase: podspec.DebugPending}, false, "has ended (Failed) before"},
	} {
		begun, err := judge(test.pod, "d", 0, test.s)
		if begun != test.begun || (err == nil) != (test.words == "") || err != nil && !strings.Contains(err.Error(), test.words) {
			t.Errorf("%s: %t, %v", name, begun, err)
		}
	}
	for message, want := range map[string]int{
		`exec: "x": executable file not found in $PATH`: 127, "stat /x: no such file or directory": 127, "permission denied": 126, "what?": 126,
	} {
		if got := commandCode(podspec.DebugState{Reason: "StartError", Message: message}); got != want {
			t.Errorf("%s: %d, want %d", message, got, want)
		}
	}
	if got := commandCode(podspec.DebugState{Reason: "ErrImagePull", Message: "no such file or directory"}); got != 0 {
		t.Errorf("a pull that failed is taken for a command: %d", got)
	}
}

// DC-03: what the record says of the end of a session is about its own run of the container.
func TestEndOfRun(t *testing.T) {
	pod := func(restarts int32, state corev1.ContainerState) *corev1.Pod {
		p := &corev1.Pod{}
		p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "d"}}}
		p.Status.EphemeralContainerStatuses = []corev1.ContainerStatus{{Name: "d", RestartCount: restarts, State: state}}
		if err := podspec.SetDebugRuns(p, podspec.DebugRuns{"d": {Run: 1}}); err != nil {
			t.Fatal(err)
		}
		return p
	}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 5, Reason: "Error"}}
	for name, test := range map[string]struct {
		pod  *corev1.Pod
		run  int
		code int32 // -1: none
		says string
		done bool
	}{
		"runs":               {pod(1, running), 1, -1, "left", false},
		"has ended":          {pod(1, ended), 1, 5, "", true},
		"an earlier run":     {pod(0, ended), 1, -1, "left", false},
		"a later run":        {pod(1, ended), 0, -1, "another container", true},
		"not there any more": {&corev1.Pod{}, 0, -1, "another container", true},
	} {
		end, done := endOfRun(test.pod, "d", test.run)
		code := int32(-1)
		if end.ExitCode != nil {
			code = *end.ExitCode
		}
		if done != test.done || code != test.code || code < 0 && !strings.Contains(end.Reason, test.says) {
			t.Errorf("%s: %+v, exit code %d, %t", name, end, code, done)
		}
	}
}

// IX-09: who asks to be told is told when what ran has ended while the debug container was made, and then looks at what is left.
func TestOrDead(t *testing.T) {
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3}}
	pod := func(state corev1.ContainerState) *corev1.Pod {
		return &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{Name: "main", State: state}}}}
	}
	cannot := func() error {
		return cannotStart(pod(ended), "debug", podspec.DebugState{Reason: "CreateContainerError", Message: "target container \"main\" is not running"})
	}
	for name, c := range map[string]struct {
		err  error
		pod  *corev1.Pod
		s    options.Session
		dead bool
	}{
		"it has ended":         {cannot(), pod(ended), options.Session{UnlessDead: true}, true},
		"its target has":       {cannot(), pod(ended), options.Session{UnlessDead: true, DebugContainer: podspec.DebugContainer{Target: "main"}}, true},
		"nobody wants to know": {cannot(), pod(ended), options.Session{}, false},
		"it runs": {cannot(), pod(corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}),
			options.Session{UnlessDead: true}, false},
		"nothing is known of it": {cannot(), nil, options.Session{UnlessDead: true}, false},
		"nothing is wrong":       {nil, pod(ended), options.Session{UnlessDead: true}, false},
		"the client went":        {context.Canceled, pod(ended), options.Session{UnlessDead: true}, false},
	} {
		err := orDead(c.err, c.pod, c.s)
		refused, is := errors.AsType[*apierrors.StatusError](err)
		got := is && slices.ContainsFunc(refused.ErrStatus.Details.Causes, func(c metav1.StatusCause) bool { return c.Type == debugask.CauseDead })
		if got != c.dead || (err == nil) != (c.err == nil) {
			t.Errorf("%s: %v, dead %t", name, err, got)
		}
	}
}

// DC-03: wherry debug waits a minute for the exit code of a container that has closed its streams, and so does the record of it.
func TestEndPatience(t *testing.T) {
	if closed, left := endPatience(true), endPatience(false); closed < time.Minute || left >= closed {
		t.Errorf("%v for one that closed its streams, %v for one that was left", closed, left)
	}
}
