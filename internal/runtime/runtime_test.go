// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// A pod on the embedded runtime, from image to removal.
func TestPod(t *testing.T) {
	r := start(t, dataFolder(t))
	importBox(t, r)
	p := runPod(t, r)
	id := p.run("main", nil)

	if s := p.status(id); s.State != criapi.ContainerState_CONTAINER_RUNNING {
		t.Fatalf("state %v, want running", s.State)
	}
	if out, code := p.exec(id, "echo", "hello"); out != "hello\n" || code != 0 {
		t.Errorf("exec: %q, exit code %d", out, code)
	}
	if _, code := p.exec(id, "exit", "7"); code != 7 {
		t.Errorf("exec: exit code %d, want 7", code)
	}
	if _, err := p.cri.StopContainer(t.Context(), &criapi.StopContainerRequest{ContainerId: id,
		Timeout: 20}); err != nil {
		t.Fatalf("StopContainer: %v", err)
	}
	if s := p.status(id); s.State != criapi.ContainerState_CONTAINER_EXITED || s.ExitCode != 0 {
		t.Errorf("after SIGTERM: %v, exit code %d, want exited with 0", s.State, s.ExitCode)
	}
	log, err := os.ReadFile(filepath.Join(p.sandbox.LogDirectory, "main.log"))
	if err != nil || !strings.HasSuffix(string(log), " stdout F waiting\n") {
		t.Errorf("log %q (%v), want one line in CRI format", log, err)
	}
	if _, err := p.cri.RemoveContainer(t.Context(), &criapi.RemoveContainerRequest{ContainerId: id}); err != nil {
		t.Errorf("RemoveContainer: %v", err)
	}
	p.stop()
	left, err := p.cri.ListPodSandbox(t.Context(), &criapi.ListPodSandboxRequest{})
	if err != nil || len(left.Items) != 0 {
		t.Errorf("sandboxes left: %v (%v)", left.GetItems(), err)
	}
}

func TestOnePerProcess(t *testing.T) {
	dir := dataFolder(t)
	r := start(t, dir)
	if _, err := Start(t.Context(), Config{DataDir: t.TempDir()}); !errors.Is(err, ErrRunning) {
		t.Errorf("second Start: %v, want ErrRunning", err)
	}
	begin := time.Now()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if d := time.Since(begin); d > 20*time.Second {
		t.Errorf("Close took %v", d)
	}
	select {
	case <-r.Done():
	default:
		t.Error("Done is open after Close")
	}
	if r.Err() != nil {
		t.Errorf("Err after Close: %v", r.Err())
	}
	importBox(t, start(t, dir)) // and works again
}
