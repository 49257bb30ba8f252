// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/cli/reach"
	"github.com/wherryproject/wherry/internal/cli/session"
)

// debugged is a pod whose debug container is in a state.
func debugged(state corev1.ContainerState) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "u", ResourceVersion: "1"},
		Spec: corev1.PodSpec{EphemeralContainers: []corev1.EphemeralContainer{
			{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug"}}}},
		Status: corev1.PodStatus{EphemeralContainerStatuses: []corev1.ContainerStatus{{Name: "debug", State: state}}},
	}
}

// DC-03 DC-06: a node that is busy says late how a debug container has ended; its exit code is that one, and not 0.
func TestEndIsSaidLate(t *testing.T) {
	for _, late := range []time.Duration{0, 4 * time.Second, 6 * time.Second, 40 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			set := fake.NewClientset(debugged(corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}))
			var node sync.WaitGroup
			defer node.Wait()
			node.Go(func() {
				time.Sleep(late) // of the bubble's clock
				over := debugged(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 4}})
				over.ResourceVersion = "2"
				if _, err := set.CoreV1().Pods("default").UpdateStatus(context.Background(), over, metav1.UpdateOptions{}); err != nil {
					t.Error(err)
				}
			})
			if code := codeOf(over(t.Context(), set)); code != 4 {
				t.Errorf("%s late: the exit code is %d", late, code)
			}
		})
	}
}

// DC-03 DC-06: where nobody says how it ended, or the user does not wait for that, nobody is told that the command went well.
func TestEndIsNotSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := fake.NewClientset(debugged(corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}))
		if err := over(t.Context(), set); codeOf(err) != session.ExitFailed || !strings.Contains(err.Error(), "return with wherry debug -c debug web") {
			t.Errorf("%d, %v", codeOf(err), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := over(ctx, set); codeOf(err) != session.ExitInterrupted {
			t.Errorf("%d, %v", codeOf(err), err)
		}
	})
}

// over ends a session whose streams have ended, and nothing was wrong with them.
func over(ctx context.Context, set kubernetes.Interface) error {
	f := &debugFlags{}
	f.Namespace = "default"
	return f.over(ctx, cmdline.Terminal{Out: io.Discard, Err: io.Discard}, &reach.Client{Interface: set}, "web", "debug", 0, nil)
}

// codeOf is the exit code of a command that ended so.
func codeOf(err error) int {
	exit, ok := errors.AsType[*cmdline.Exit](err)
	switch {
	case err == nil:
		return 0
	case !ok:
		return -1
	}
	return exit.Code
}
