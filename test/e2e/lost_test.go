// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestLostSightOf: the server is killed between two files of a container, so that the runtime cannot tell what became of it, and the
// sandbox dies too before it is back: the pod is up again in a new sandbox, once, and can be deleted (SC-19, PL-38).
func TestLostSightOf(t *testing.T) {
	t.Parallel()
	srv := own(t)
	s := srv.Space(t)
	st := s.NewStage(t)
	pod := WithInit(st.Pod("p", st.Act("main")), st.Act("init", "-for", "1ms"), Sidecar(st.Act("side")))
	share := true // so that the sandbox's process is found
	pod.Spec.ShareProcessNamespace = &share
	s.Create(pod)
	p := s.WaitReady("p")
	st.AwaitUp(p)
	pause := s.pauseOf("p", "main")
	srv.Kill()
	st.Note("killed")
	for _, name := range []string{"side", "main"} {
		_, id, _ := strings.Cut(Status(p, name).ContainerID, "://")
		if err := os.Remove(recordOf(t, srv, id)); err != nil {
			t.Fatal(err)
		}
	}
	kill(t, pause)
	if err := srv.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	st.Await("main", "start", 2).After("killed").InOrder("SC-19", "init start", "init end", "side start", "main start")
	p = s.Wait("p", "be ready again", func(p *corev1.Pod) bool {
		return Condition(p, corev1.PodReady) == corev1.ConditionTrue && Status(p, "init").RestartCount > 0
	})
	for _, name := range []string{"init", "side", "main"} {
		st.Play().After("killed").Happened("SC-19", name, "start", 1)
	}
	s.Delete("p")
	s.WaitGone(p)
}

// recordOf finds the file in which the runtime keeps what a container does.
func recordOf(t *testing.T, srv *Server, id string) string {
	t.Helper()
	found := ""
	err := filepath.WalkDir(srv.DataDir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return filepath.SkipDir // it went meanwhile
		}
		if filepath.Base(path) == "status" && filepath.Base(filepath.Dir(path)) == id && strings.Contains(path, ".cri/containers/") {
			found = path
			return filepath.SkipAll
		}
		return nil
	})
	if err != nil || found == "" {
		t.Fatalf("no record of container %s below %s: %v", id, srv.DataDir, err)
	}
	return found
}
