// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/pkg/cio"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"
	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// ordinary has create make a container that is not an ephemeral one.
func ordinary(c *criapi.ContainerConfig) { c.Labels = nil }

// PL-10: a call to start a container that is given up just when its shim has made it leaves a task that the CRI
// knows nothing of, and with which it does not remove the container, ever: the pod would be Terminating for good.
func TestTaskThatTheCRIForgot(t *testing.T) {
	r := start(t, dataFolder(t))
	importBox(t, r)
	ctx := namespaces.WithNamespace(t.Context(), Namespace)
	for name, c := range map[string]struct{ started, sandbox bool }{
		"made":                               {},
		"made, and removed with its sandbox": {sandbox: true},
		"it runs":                            {started: true},
		"it runs, and goes with its sandbox": {started: true, sandbox: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := runPod(t, r)
			id := p.create("main", nil, ordinary)
			made, err := r.Containerd().LoadContainer(ctx, id)
			if err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(filepath.Join(r.tasks, p.id, "bootstrap.json"))
			if err != nil {
				t.Fatal(err)
			}
			var shim struct{ Address string }
			if err := json.Unmarshal(text, &shim); err != nil {
				t.Fatal(err)
			}
			// as the CRI does
			task, err := made.NewTask(ctx, cio.NullIO, containerd.WithTaskAPIEndpoint("ttrpc+"+shim.Address, 3))
			if err != nil {
				t.Fatal(err)
			}
			if c.started {
				if err := task.Start(ctx); err != nil {
					t.Fatal(err)
				}
			}
			if !c.sandbox {
				if _, err := p.cri.RemoveContainer(t.Context(),
					&criapi.RemoveContainerRequest{ContainerId: id}); err != nil {
					t.Errorf("RemoveContainer: %v", err)
				}
			}
			p.stop()
			if _, err := made.Task(ctx, nil); !errdefs.IsNotFound(err) {
				t.Errorf("its task: %v, want none", err)
			}
		})
	}
}

// small puts a folder's files on a disk of its own that has room for so many blocks.
func small(t *testing.T, dir, size string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) }) // it fails when the test has done so
	if err := os.WriteFile(filepath.Join(dir, "status"), text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// SC-19, RS-02: on a full disk a container is not started, rather than run without its end being known; when there is
// room it is.
func TestNoStartWithoutRoom(t *testing.T) {
	r := start(t, dataFolder(t))
	importBox(t, r)
	p := runPod(t, r)
	id := p.create("main", []string{"echo", "ran"}, ordinary)
	dir := r.dirs.containerRecords(id)
	small(t, dir, "4k")
	_, err := p.cri.StartContainer(t.Context(), &criapi.StartContainerRequest{ContainerId: id})
	if err == nil || !strings.Contains(err.Error(), "is full: no space left on device") {
		t.Errorf("StartContainer: %v", err)
	}
	if s := p.status(id); s.State != criapi.ContainerState_CONTAINER_CREATED || s.StartedAt != 0 {
		t.Errorf("it is %v, started at %d", s.State, s.StartedAt)
	}
	if err := unix.Unmount(dir, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := p.cri.StartContainer(t.Context(), &criapi.StartContainerRequest{ContainerId: id}); err != nil {
		t.Fatalf("StartContainer, with room: %v", err)
	}
	eventually(t, "its end", func() bool { return p.status(id).State == criapi.ContainerState_CONTAINER_EXITED })
	if text := logOf(t, p, "main"); text != "ran\n" {
		t.Errorf("it wrote %q", text)
	}
	p.stop()
}

// SC-19: the room for a container's end is taken before it starts, so that its end is known of a disk that is full by
// then.
func TestNoteOnFullDisk(t *testing.T) {
	needRoot(t)
	d := dirsOf(t.TempDir())
	dir := d.containerRecords("c1")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "status"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	small(t, dir, "8k")
	if err := d.roomForNote("c1"); err != nil {
		t.Fatal(err)
	}
	if how, err := noted(dir); how != nil || err != nil {
		t.Errorf("noted before the end: %v, %v", how, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "more"), []byte("x"), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	want := end{time.Unix(1700000000, 123456789).UTC(), 4294967295, true}
	if err := writeNote(dir, want); err != nil {
		t.Fatal(err)
	}
	if err := d.roomForNote("c1"); err != nil { // a second start: what is noted stays
		t.Error(err)
	}
	if how, err := noted(dir); err != nil || how == nil || *how != want {
		t.Errorf("noted: %v, %v; want %v", how, err, want)
	}
	if err := d.blankNote("c1"); err != nil { // its task is started
		t.Error(err)
	}
	if how, err := noted(dir); how != nil || err != nil {
		t.Errorf("noted of an earlier start: %v, %v", how, err)
	}
	if err := writeNote(dir, want); err != nil {
		t.Errorf("the room for the note is lost: %v", err)
	}
	for _, id := range []string{"", ".", "..", "../c1", "c2"} {
		if err := d.roomForNote(id); err != nil {
			t.Errorf("%q: %v", id, err)
		}
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(dir), note)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a note of no container: %v", err)
	}
}

// SC-19: a container whose start failed because it could not be recorded, and which ended by itself, is one that has
// ended. One that was killed because its start had failed is not, nor one that never ran.
func TestEndedThoughUnstarted(t *testing.T) {
	const created, exited = criapi.ContainerState_CONTAINER_CREATED, criapi.ContainerState_CONTAINER_EXITED
	at := time.Unix(1700000000, 0).UTC()
	for name, c := range map[string]struct {
		state  criapi.ContainerState
		reason string
		noted  *end
		code   int32
		says   string
		ended  bool
	}{
		"completed":                 {exited, startFailed, &end{at, 0, true}, 0, "Completed", true},
		"completed, not recorded":   {created, "", &end{at, 0, true}, 0, "Completed", true},
		"failed":                    {exited, startFailed, &end{at, 3, true}, 3, "Error", true},
		"killed":                    {exited, startFailed, &end{at, 137, true}, 128, startFailed, false},
		"killed, not recorded":      {created, "", &end{at, 137, true}, 128, "", false},
		"its program is not there":  {exited, startFailed, &end{at, 255, false}, 128, startFailed, false},
		"never ran":                 {exited, startFailed, nil, 128, startFailed, false},
		"ended as the CRI knows it": {exited, "Error", &end{at, 0, true}, 128, "Error", false},
		"runs":                      {criapi.ContainerState_CONTAINER_RUNNING, "", &end{at, 0, true}, 128, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			d := dirsOf(t.TempDir())
			if err := os.MkdirAll(d.containerRecords("c1"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := d.roomForNote("c1"); err != nil {
				t.Fatal(err)
			}
			if c.noted != nil {
				if err := writeNote(d.containerRecords("c1"), *c.noted); err != nil {
					t.Fatal(err)
				}
			}
			s := &criapi.ContainerStatus{Id: "c1", State: c.state, Reason: c.reason, ExitCode: 128, CreatedAt: 7,
				Message: "no room"}
			d.correct(s)
			if s.ExitCode != c.code || s.Reason != c.says || (s.FinishedAt == at.UnixNano()) != c.ended ||
				(s.StartedAt == 7) != c.ended ||
				c.ended && (s.State != exited || s.Message != "") || !c.ended && s.State != c.state {
				t.Errorf("%+v", s)
			}
		})
	}
	dirsOf(t.TempDir()).correct(nil)
}
