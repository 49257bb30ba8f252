// SPDX-License-Identifier: Apache-2.0

package critest_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/wherryproject/wherry/internal/cri"
	"github.com/wherryproject/wherry/internal/cri/critest"
	"github.com/wherryproject/wherry/internal/ociimage"
	"github.com/wherryproject/wherry/internal/runtime"
	"github.com/wherryproject/wherry/internal/runtime/bundle"
)

const progImage = "wherry.dev/prog:test"

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
	if _, err := r.Import(t.Context(), bytes.NewReader(progArchive(t))); err != nil {
		t.Fatal(err)
	}
	parent := "/" + filepath.Base(dir)
	t.Cleanup(func() { removeCgroups(t, parent) })
	client := cri.FromConn(r.Conn())
	critest.Run(t, func(*testing.T) critest.Env {
		return critest.Env{Client: client, Image: progImage, HostNetwork: true, CgroupParent: parent}
	})
}

// progArchive is the image of critest/prog as an archive.
func progArchive(t *testing.T) []byte {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "prog")
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", bin, "./prog")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building critest/prog: %v: %s", err, out)
	}
	data, err := os.ReadFile(bin)
	if err != nil {
		t.Fatal(err)
	}
	img, err := ociimage.Build(ociimage.Spec{Files: []ociimage.File{{Path: "/prog", Data: data}}, Entrypoint: []string{"/prog"}})
	if err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	if err := ociimage.WriteTar(&buf, img, progImage); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
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
