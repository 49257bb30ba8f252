// SPDX-License-Identifier: Apache-2.0

package critest_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/wherryproject/wherry/internal/cri"
	"github.com/wherryproject/wherry/internal/cri/critest"
	"github.com/wherryproject/wherry/internal/cri/critest/progimage"
	"github.com/wherryproject/wherry/internal/runtime"
	"github.com/wherryproject/wherry/internal/runtime/bundle"
)

// The embedded containerd keeps the contract that the fake keeps (PID-03, PID-04, PID-06 to PID-09, PL-09).
func TestEmbeddedContainerdConforms(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	if _, _, err := bundle.Embedded().PauseImage(); errors.Is(err, bundle.ErrNotBuilt) {
		t.Skip("needs the helper programs: run make helpers")
	}
	dir, err := os.MkdirTemp("", "wherry-critest-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := runtime.Purge(context.Background(), dir); err != nil {
			t.Errorf("Purge: %v", err)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("the data folder cannot be deleted: %v", err)
		}
	})
	r, err := runtime.Start(t.Context(), runtime.Config{DataDir: dir, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	archive, err := progimage.Archive()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Import(t.Context(), bytes.NewReader(archive)); err != nil {
		t.Fatal(err)
	}
	parent := "/" + filepath.Base(dir)
	t.Cleanup(func() { removeCgroups(t, parent) })
	client := cri.FromConn(r.Conn())
	critest.Run(t, func(*testing.T) critest.Env {
		return critest.Env{Client: client, Image: progimage.Ref, HostNetwork: true, CgroupParent: parent}
	})
}

// removeCgroups removes the parent given to the sandboxes; runtimes leave it to whoever named it.
func removeCgroups(t *testing.T, parent string) {
	for _, pattern := range []string{"/sys/fs/cgroup" + parent, "/sys/fs/cgroup/*" + parent} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, dir := range found {
			if err := os.Remove(dir); err != nil {
				t.Errorf("cgroup of the tests: %v", err)
			}
		}
	}
}
