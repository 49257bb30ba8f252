// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
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
// ATTACK C24, C25.
func TestLostRuntimeState(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ lost, purged []string }{
		{[]string{"run"}, []string{"run/runc/k8s.io/*/state.json", "../network.json"}},
		{[]string{"root"}, []string{"root"}},
		{[]string{"run", "root"}, []string{"run", "root"}},
	} {
		lost := tc.lost
		t.Run(fmt.Sprint(lost), func(t *testing.T) {
			var whole footprint
			t.Cleanup(func() { // after wherry purge, of which own knows less when network.json is gone
				if left, err := whole.left(); err != nil || len(left) > 0 {
					t.Errorf("RS-08 left on the machine after wherry purge: %v (%v)", left, err)
				}
			})
			srv := own(t)
			// In the end, when the space is gone: what is left then is wherry purge's, which own runs, with a look for traces.
			t.Cleanup(func() {
				srv.runIdle(t, "purged")
				var err error
				if whole, err = srv.footprint(); err != nil {
					t.Error(err)
				}
				srv.loseRuntime(t, tc.purged...)
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
			s.awaitBegun(again) // a container that has been started is not yet the program in it
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

// loseRuntime kills the server, removes folders of its runtime, with what is mounted there, and files; runc's records are emptied.
func (s *Server) loseRuntime(t *testing.T, patterns ...string) {
	t.Helper()
	s.Kill()
	for _, pattern := range patterns {
		found, err := filepath.Glob(filepath.Join(s.DataDir, "runtime", pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: found %v (%v)", pattern, found, err)
		}
		for _, path := range found {
			info, err := os.Lstat(path)
			switch {
			case err != nil:
			case info.IsDir():
				err = errors.Join(unmountAll(path), os.RemoveAll(path))
			case info.Name() == "state.json":
				err = os.Truncate(path, 0)
			default:
				err = os.Remove(path)
			}
			if err != nil {
				t.Fatal(err)
			}
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
