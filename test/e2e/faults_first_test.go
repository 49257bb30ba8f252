// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
)

// TestFirstStartKilled: RS-07: the server is killed at the moment when each of the things that a first start makes comes into being: the
// next start goes on from there, and in the end all of it is whole.
// ATTACK C28.
func TestFirstStartKilled(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", serverPrefix)
	if err != nil {
		t.Fatal(err)
	}
	srv := &Server{World: world(t), base: dir, DataDir: filepath.Join(dir, "d"), home: filepath.Join(dir, "home"), log: filepath.Join(dir, "server.log")}
	srv.Kubeconfig = filepath.Join(srv.DataDir, "kubeconfig")
	if err := os.Mkdir(srv.home, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := writePID(dir, ownerFile, os.Getpid()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the end of the server's log:\n%s", srv.LogTail(60))
		}
		if err := srv.Purge(context.Background()); err != nil {
			t.Error(err)
		}
	})
	for _, made := range []string{"version", "etcd/member/wal", "etcd/member/snap/db", "pki/ca.key", "pki/admin.token", "runtime/root", "network.json", "cri.sock", "wherry.sock", "kubeconfig"} {
		if err := srv.spawn(filepath.Join(dir, "nobody")); err != nil {
			t.Fatal(err)
		}
		if err := srv.awaitFile(made); err != nil {
			t.Errorf("%s: %v\n%s", made, err, srv.LogTail(10))
		}
		srv.Kill()
	}
	if err := srv.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := srv.importImages(context.Background()); err != nil {
		t.Fatal(err)
	}
	k := inDefault(t, srv)
	k.Create(NewPod("first", Tool("sleep")))
	p := k.WaitReady("first")
	k.Delete("first")
	k.WaitGone(p)
}

// awaitFile waits until there is a file in the data folder, while the server runs.
func (s *Server) awaitFile(name string) error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	defer w.Close()
	limit := time.After(startTimeout)
	for path := filepath.Join(s.DataDir, name); ; {
		near := path
		for ; ; near = filepath.Dir(near) { // the nearest folder that is there
			if _, err := os.Lstat(near); err == nil {
				break
			}
		}
		if near == path {
			return nil
		}
		if err := w.Add(near); err != nil {
			continue // it went meanwhile
		}
		if below, _, _ := strings.Cut(strings.TrimPrefix(path, near+"/"), "/"); exists(filepath.Join(near, below)) {
			continue // it came before it was watched
		}
		select {
		case <-w.Events:
		case <-s.Done():
			return fmt.Errorf("the server ended before there was %s: %w", name, s.err)
		case <-limit:
			return fmt.Errorf("there is no %s after %s", name, startTimeout)
		}
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
