// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/wherryproject/wherry/test/images"
)

// TestLostRuntimeState: RS-07, RS-08, the runtime's state is removed while pods run and the server is away: what ran is ended before it is
// started again, once, also of a pod that is not to be restarted; every deletion ends; and wherry purge takes all away, whatever it
// finds no record of.
func TestLostRuntimeState(t *testing.T) {
	t.Parallel()
	for _, lost := range [][]string{{"run"}, {"root"}, {"run", "root"}} {
		t.Run(fmt.Sprint(lost), func(t *testing.T) {
			srv := own(t)
			// In the end, when the space is gone: what is left then is wherry purge's, which own runs, with a look for traces.
			t.Cleanup(func() {
				srv.runIdle(t, "purged")
				srv.loseRuntime(t, lost...)
			})
			s := srv.Space(t)
			st := s.NewStage(t)
			always, never := st.Pod("always", st.Act("a")), st.Pod("never", st.Act("n"))
			never.Spec.RestartPolicy = corev1.RestartPolicyNever
			s.Create(always)
			s.Create(never)
			a := s.WaitReady("always")
			n := s.WaitReady("never")
			before := srv.actors(t)
			if len(before) != 2 {
				t.Fatalf("processes of two pods: %v", before)
			}
			srv.loseRuntime(t, lost...)
			if err := srv.Start(context.Background()); err != nil {
				t.Fatal(err)
			}
			if slices.Contains(lost, "root") { // the images went too
				if err := srv.importImages(context.Background()); err != nil {
					t.Fatal(err)
				}
			}
			again := s.Wait("always", "run again", func(p *corev1.Pod) bool {
				return Condition(p, corev1.PodReady) == corev1.ConditionTrue && Status(p, "a").ContainerID != Status(a, "a").ContainerID
			})
			s.Wait("never", "have come to rest", func(p *corev1.Pod) bool {
				return p.Status.Phase == corev1.PodFailed || Status(p, "n").ContainerID != Status(n, "n").ContainerID
			})
			now := srv.actors(t)
			for _, pid := range before {
				if slices.Contains(now, pid) {
					t.Errorf("RS-07 process %d of before runs beside %v", pid, now)
				}
			}
			if len(now) > 2 || len(now) == 0 {
				t.Errorf("RS-07 %d processes of two pods with one container each: %v", len(now), now)
			}
			s.Delete("always")
			s.Delete("never")
			s.WaitGone(again)
			s.WaitGone(n)
			if left := srv.actors(t); len(left) != 0 {
				t.Errorf("RS-07 processes %v are left of deleted pods", left)
			}
		})
	}
}

func (s *Server) actors(t *testing.T) []int {
	t.Helper()
	pids, err := s.Processes("container")
	if err != nil {
		t.Fatal(err)
	}
	return pids
}

// loseRuntime kills the server and removes folders of its runtime, with what is mounted there.
func (s *Server) loseRuntime(t *testing.T, folders ...string) {
	t.Helper()
	s.Kill()
	for _, name := range folders {
		dir := filepath.Join(s.DataDir, "runtime", name)
		if err := unmountAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
}

// runIdle runs a pod in namespace default.
func (s *Server) runIdle(t *testing.T, name string) {
	t.Helper()
	pods := s.Client.CoreV1().Pods(metav1.NamespaceDefault)
	_, err := pods.Create(context.Background(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: images.ToolRef, Args: []string{"sleep"}}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	w := cache.NewListWatchFromClient(s.Client.CoreV1().RESTClient(), "pods", metav1.NamespaceDefault, fields.OneTermEqualSelector("metadata.name", name))
	if _, err := watchtools.UntilWithSync(ctx, w, &corev1.Pod{}, nil, func(e watch.Event) (bool, error) {
		p, ok := e.Object.(*corev1.Pod)
		return ok && p.Status.Phase == corev1.PodRunning, nil
	}); err != nil {
		t.Fatalf("pod %s does not run: %v\n%s", name, err, s.LogTail(30))
	}
}
