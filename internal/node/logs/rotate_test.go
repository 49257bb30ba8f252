// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func files(t testing.TB, path string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func TestPL09Rotate(t *testing.T) {
	w := newWriter(t)
	r := NewRotator(RotatorConfig{MaxSize: 100, MaxFiles: 3, Runtime: w})
	rotateAt := func(hour int) {
		t.Helper()
		if err := r.Rotate(t.Context(), start.Add(time.Duration(hour)*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	w.write(1)
	rotateAt(0)
	if got := files(t, w.path); !slices.Equal(got, []string{"0.log"}) {
		t.Errorf("a small log was rotated: %v", got)
	}
	w.write(100)
	rotateAt(1)
	if got := files(t, w.path); !slices.Equal(got, []string{"0.log", "0.log.20261120-110000"}) {
		t.Errorf("%v", got)
	}
	first, err := os.ReadFile(w.path + ".20261120-110000")
	if err != nil || bytes.Count(first, []byte("\n")) < 101 {
		t.Errorf("%d bytes, %v", len(first), err)
	}
	w.write(100)
	rotateAt(1) // in the same second: nothing may be overwritten
	rotateAt(2)
	if got := files(t, w.path); !slices.Equal(got, []string{"0.log", "0.log.20261120-110000.gz", "0.log.20261120-120000"}) {
		t.Errorf("%v", got)
	}
	f := mustOpen(t, w.path+".20261120-110000.gz")
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(z); err != nil || !bytes.Equal(got, first) {
		t.Errorf("the compressed log differs: %d bytes, %v", len(got), err)
	}
	if err := os.WriteFile(w.path+".20261120-120000.tmp", nil, 0o600); err != nil { // a crash while compressing
		t.Fatal(err)
	}
	w.write(100)
	rotateAt(3)
	if got := files(t, w.path); !slices.Equal(got, []string{"0.log", "0.log.20261120-120000.gz", "0.log.20261120-130000"}) {
		t.Errorf("%v", got)
	}
}

// stubborn is a runtime that does not reopen.
type stubborn struct{ *writer }

func (stubborn) Reopen(context.Context, string) error { return errors.New("not now") }

func TestPL09RotateWhenTheRuntimeFails(t *testing.T) {
	w := newWriter(t)
	w.write(100)
	r := NewRotator(RotatorConfig{MaxSize: 100, Runtime: stubborn{w}})
	if err := r.Rotate(t.Context(), start); err == nil || !strings.Contains(err.Error(), "not now") {
		t.Error(err)
	}
	if got := files(t, w.path); !slices.Equal(got, []string{"0.log"}) {
		t.Errorf("the log has lost its name: %v", got)
	}
	// A crash between rename and reopen: the next look reopens.
	if err := os.Rename(w.path, w.path+".20261120-100000"); err != nil {
		t.Fatal(err)
	}
	r = NewRotator(RotatorConfig{MaxSize: 100, Runtime: w})
	if err := r.Rotate(t.Context(), start); err != nil {
		t.Fatal(err)
	}
	if got := files(t, w.path); !slices.Equal(got, []string{"0.log", "0.log.20261120-100000"}) {
		t.Errorf("%v", got)
	}
}

// none is a runtime without containers.
type none struct{ looks int }

func (n *none) Logs(context.Context) ([]Container, error) { n.looks++; return nil, errors.New("away") }
func (n *none) Reopen(context.Context, string) error      { return nil }

func TestRotatorRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &none{}
		ctx, cancel := context.WithTimeout(t.Context(), 65*time.Second)
		defer cancel()
		if err := NewRotator(RotatorConfig{Runtime: n}).Run(ctx); err != nil {
			t.Error(err)
		}
		if n.looks != 6 {
			t.Errorf("%d looks in 65 s, want 6", n.looks)
		}
	})
}

// fakeCRI is the part of a CRI client that OverCRI uses.
type fakeCRI struct {
	runtimeapi.RuntimeServiceClient
	paths    map[string]string
	asked    int
	reopened []string
}

func (f *fakeCRI) ListContainers(_ context.Context, r *runtimeapi.ListContainersRequest, _ ...grpc.CallOption) (*runtimeapi.ListContainersResponse, error) {
	if r.Filter.State.State != runtimeapi.ContainerState_CONTAINER_RUNNING {
		return nil, errors.New("ended containers are none of its business")
	}
	out := &runtimeapi.ListContainersResponse{}
	for id := range f.paths {
		out.Containers = append(out.Containers, &runtimeapi.Container{Id: id})
	}
	return out, nil
}

func (f *fakeCRI) ContainerStatus(_ context.Context, r *runtimeapi.ContainerStatusRequest, _ ...grpc.CallOption) (*runtimeapi.ContainerStatusResponse, error) {
	f.asked++
	if f.paths[r.ContainerId] == "gone" {
		return nil, errors.New("not found")
	}
	return &runtimeapi.ContainerStatusResponse{Status: &runtimeapi.ContainerStatus{LogPath: f.paths[r.ContainerId]}}, nil
}

func (f *fakeCRI) ReopenContainerLog(_ context.Context, r *runtimeapi.ReopenContainerLogRequest, _ ...grpc.CallOption) (*runtimeapi.ReopenContainerLogResponse, error) {
	f.reopened = append(f.reopened, r.ContainerId)
	return &runtimeapi.ReopenContainerLogResponse{}, nil
}

func TestOverCRI(t *testing.T) {
	f := &fakeCRI{paths: map[string]string{"a": "/logs/pod/a/0.log", "other": "/other/logs/0.log", "gone": "gone"}}
	r := OverCRI(f, "/logs")
	for range 3 {
		got, err := r.Logs(t.Context())
		if err != nil || len(got) != 1 || got[0] != (Container{"a", "/logs/pod/a/0.log"}) {
			t.Errorf("%v, %v", got, err)
		}
	}
	if f.asked != 2+3 { // once each for those that answer
		t.Errorf("%d questions", f.asked)
	}
	if err := r.Reopen(t.Context(), "a"); err != nil || len(f.reopened) != 1 {
		t.Error(err, f.reopened)
	}
}
