// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/runtime/bundle"
)

// PL-10, RS-05: a container is killed when its time is over, also while a program that was to enter it hangs, as a hook's may on a machine
// that is busy: its shim tells nobody of the container's end before that program has ended.
func TestStopWhileAnExecHangs(t *testing.T) {
	r := start(t, dataFolder(t))
	importBox(t, r)
	p := runPod(t, r)
	id := p.run("main", []string{"wait"})
	log := filepath.Join(r.tasks, id, "log.json")
	if err := os.Rename(log, log+".real"); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(log, 0o600); err != nil { // nobody reads it: who opens it to write hangs
		t.Fatal(err)
	}
	hook := make(chan error, 1)
	go func() {
		_, err := p.cri.ExecSync(context.WithoutCancel(t.Context()), &criapi.ExecSyncRequest{ContainerId: id, Cmd: []string{"/box", "wait"}})
		hook <- err
	}()
	eventually(t, "runc enters the container", func() bool {
		entering := false
		_, err := killByExecutable(filepath.Join(r.dirs.bin, bundle.Runc), func(args []string) bool {
			entering = entering || slices.Contains(args, "exec") && slices.Contains(args, id)
			return false
		})
		return err == nil && entering
	})
	if err := os.Remove(log); err != nil { // others may write again
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if _, err := p.cri.StopContainer(ctx, &criapi.StopContainerRequest{ContainerId: id}); err != nil {
		t.Fatalf("StopContainer: %v", err)
	}
	if err := <-hook; err == nil {
		t.Error("what hung has entered the container")
	}
	if s := p.status(id); s.State != criapi.ContainerState_CONTAINER_EXITED {
		t.Errorf("it is %v", s.State)
	}
	p.stop()
}
