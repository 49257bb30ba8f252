// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"golang.org/x/sys/unix"
)

func start(t *testing.T, dir string) (*Etcd, *clientv3.Client) {
	t.Helper()
	began := time.Now()
	e, err := Start(t.Context(), Config{Dir: dir, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("started in %v", time.Since(began))
	return e, connect(t, e)
}

func connect(t *testing.T, e *Etcd) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{e.Endpoint()}, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// What was written is there after a restart, also below a folder whose path is too long for a unix socket.
func TestKeepsData(t *testing.T) {
	for name, dir := range map[string]string{
		"short path": filepath.Join(t.TempDir(), "s"),
		"long path":  filepath.Join(t.TempDir(), strings.Repeat("long/", 30)),
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			e, c := start(t, dir)
			if _, err := c.Put(ctx, "k", "v"); err != nil {
				t.Fatal(err)
			}
			c.Close()
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			if err := e.Close(); err != nil {
				t.Errorf("second close: %v", err)
			}
			e, c = start(t, dir)
			defer e.Close()
			defer c.Close()
			got, err := c.Get(ctx, "k")
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Kvs) != 1 || string(got.Kvs[0].Value) != "v" {
				t.Errorf("after the restart: %v", got.Kvs)
			}
		})
	}
}

// A second server on the folder is told so, once the first has had its time to end.
// ATTACK C18.
func TestSecondServerIsTold(t *testing.T) {
	dir := t.TempDir()
	e, c := start(t, dir)
	defer e.Close()
	defer c.Close()
	_, err := Start(t.Context(), Config{Dir: dir})
	if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), dir) {
		t.Errorf("got %v", err)
	}
}

func TestNoTCPPort(t *testing.T) {
	dir := t.TempDir()
	e, c := start(t, dir)
	defer e.Close()
	defer c.Close()
	for _, l := range e.server.Clients {
		if l.Addr().Network() != "unix" {
			t.Errorf("client listener on %v", l.Addr())
		}
	}
	for _, l := range e.server.Peers {
		if l.Addr().Network() != "unix" || !strings.HasPrefix(l.Addr().String(), dir) {
			t.Errorf("peer listener on %v", l.Addr())
		}
	}
}

func TestFolderThatIsAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(t.Context(), Config{Dir: file}); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("got %v", err)
	}
}

// A file system without room is named as the reason before etcd lays out its files (PL-15).
func TestDiskFull(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: mounts a small tmpfs")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=8m"); err != nil {
		t.Skip("cannot mount a tmpfs here: ", err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	if _, err := Start(t.Context(), Config{Dir: filepath.Join(dir, "etcd")}); !errors.Is(err, ErrDiskFull) || !strings.Contains(err.Error(), "MB") {
		t.Errorf("got %v", err)
	}
}

// A disk that fills up under a running store is named as the reason it gave up, once; and Close does not wait for it (PL-15).
func TestDiskFills(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: mounts a small tmpfs")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=200m"); err != nil {
		t.Skip("cannot mount a tmpfs here: ", err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	failed := make(chan error, 2)
	e, err := Start(t.Context(), Config{Dir: filepath.Join(dir, "etcd"), Failed: func(err error) { failed <- err }})
	if err != nil {
		t.Fatal(err)
	}
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{e.Endpoint()}, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fill, err := os.Create(filepath.Join(dir, "fill"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(fill, zeros{}); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("filling the disk: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	go func() {
		for i := 0; ctx.Err() == nil; i++ { // until there is no room for one more
			_, _ = c.Put(ctx, "k", strings.Repeat("v", 1<<20))
		}
	}()
	select {
	case err := <-failed:
		if !errors.Is(err, ErrDiskFull) || !strings.Contains(err.Error(), dir) {
			t.Errorf("told %v, want ErrDiskFull with the folder", err)
		}
	case <-ctx.Done():
		t.Fatal("nothing was told")
	}
	cancel()
	if err := e.Close(); err == nil {
		t.Error("Close says that all is well")
	}
	if len(failed) > 0 {
		t.Errorf("told twice: %v", <-failed)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// What etcd calls its component does not stand beside ours.
func TestOneComponent(t *testing.T) {
	var out bytes.Buffer
	c := newCore(slog.New(slog.NewTextHandler(&out, nil)))
	if err := c.Write(zapcore.Entry{Level: zapcore.WarnLevel, Message: "slow"}, []zapcore.Field{zap.String("component", "raft")}); err != nil {
		t.Fatal(err)
	}
	if line := out.String(); strings.Count(line, "component=") != 1 || !strings.Contains(line, "component=etcd part=raft") {
		t.Errorf("%s", line)
	}
}

// Etcd's chatter does not reach the log; a start, writes and a stop say nothing.
func TestQuiet(t *testing.T) {
	var out bytes.Buffer
	e, err := Start(t.Context(), Config{Dir: t.TempDir(), Logger: slog.New(slog.NewTextHandler(&out, nil))})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if out.Len() > 0 {
		t.Errorf("logged:\n%s", out.String())
	}
}
