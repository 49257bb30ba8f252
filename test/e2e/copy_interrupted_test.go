// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"archive/tar"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fsnotify/fsnotify"
)

// TestCopyInterrupted: wherry cp that is ended by Ctrl-C ends with 130 and leaves nothing under the final name, nor under
// another: from a pod and into one.
func TestCopyInterrupted(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	s := shared(t)
	s.Create(NewPod("box", Sh(Idle)))
	s.WaitReady("box")
	s.Kubectl("exec", "box", "--", "sh", "-c", "mkdir /in; yes word | head -c 400000000 >/large")

	t.Run("from a pod", func(t *testing.T) {
		s := s.With(t)
		dir := t.TempDir()
		files, err := fsnotify.NewWatcher()
		if err != nil {
			t.Fatal(err)
		}
		defer files.Close()
		if err := files.Add(dir); err != nil {
			t.Fatal(err)
		}
		p := s.command("cp", "box:/large", filepath.Join(dir, "large")).StartProcess()
		select {
		case <-files.Events: // the first of it is there
		case err := <-files.Errors:
			t.Fatal(err)
		case <-s.Context().Done():
			t.Fatal("nothing was copied")
		}
		p.Signal(os.Interrupt)
		if code := p.Wait(); code != 130 || !strings.Contains(p.Err.Text(), "interrupted: /large was not copied completely") {
			t.Errorf("exit code %d\n%s", code, p.Err.Text())
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("left: %v, %v", left, err)
		}
	})
	t.Run("into a pod", func(t *testing.T) {
		s := s.With(t)
		p := s.command("cp", "-", "box:/in").StartProcess()
		// An archive that has not come to its end when it is called off.
		w := tar.NewWriter(p.In)
		if err := w.WriteHeader(&tar.Header{Name: "file", Mode: 0o644, Size: 8 << 20}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(make([]byte, 4<<20)); err != nil {
			t.Fatal(err)
		}
		p.Signal(os.Interrupt)
		if code := p.Wait(); code != 130 || !strings.Contains(p.Err.Text(), "interrupted") {
			t.Errorf("exit code %d\n%s", code, p.Err.Text())
		}
		s.Kubectl("exec", "box", "--", "ls", "-A", "/in").Is("")
	})
}
