// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/wherryproject/wherry/internal/backup"
	"github.com/wherryproject/wherry/internal/server/hostapi"
	"github.com/wherryproject/wherry/internal/store"
)

// backedUp is a server's data folder with an object, a key and a pod's volume, its running store, and what makes backups of it.
func backedUp(t *testing.T) *Server {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: so does a restore")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"pki/ca.key": "key", "pods/uid/volumes/kubernetes.io~empty-dir/v/file": "text",
		"volumes/pvc-1/data/file": "claimed", "volumes/.gone-pvc-2/file": "going", "volumes/.new-pvc-3/file": "coming"} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	e := openStore(t, dir)
	c := clientOf(t, e)
	if _, err := c.Put(t.Context(), "/registry/x", "v"); err != nil {
		t.Fatal(err)
	}
	s, err := New(Options{DataDir: dir, NodeName: "n", BindAddress: "127.0.0.1", SecurePort: 1, KubeletPort: 2, ServiceCIDR: DefaultServiceCIDR,
		EtcdPrefix: "/registry", Audit: Defaults().Audit, Serving: Defaults().Serving, Eviction: defaultEviction(), Kubelet: defaultKubelet(), Snapshots: SnapshotOptions{Interval: time.Hour, Keep: 2}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.parts.etcd = e
	return s
}

func openStore(t *testing.T, dataDir string) *store.Etcd {
	t.Helper()
	e, err := store.Start(t.Context(), store.Config{Dir: filepath.Join(dataDir, "etcd"), Quota: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

func clientOf(t *testing.T, e *store.Etcd) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{e.Endpoint()}, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // before the store's
	return c
}

// RS-14: a backup has what was asked for, restores into an empty folder whole, and leaves the keys and volumes of one that has some.
func TestBackupRestores(t *testing.T) {
	s := backedUp(t)
	var out bytes.Buffer
	if err := s.backup(t.Context(), &out, hostapi.BackupParts{Keys: true, Volumes: true}); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(s.snapshotFolder()); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	file := filepath.Join(t.TempDir(), "b")
	if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	into := filepath.Join(t.TempDir(), "d")
	done, err := Restore(t.Context(), RestoreOptions{DataDir: into, File: file})
	if err != nil {
		t.Fatal(err)
	}
	if done.Header == nil || done.Header.Node != "n" || !done.Keys || done.Volumes != 2 || len(done.Kept)+len(done.Stayed) > 0 {
		t.Errorf("done: %+v", done)
	}
	holds := func(name, want string) {
		t.Helper()
		if got, err := os.ReadFile(filepath.Join(into, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
	holds("pki/ca.key", "key")
	holds("pods/uid/volumes/kubernetes.io~empty-dir/v/file", "text")
	holds("volumes/pvc-1/data/file", "claimed")
	if all, err := os.ReadDir(filepath.Join(into, "volumes")); err != nil || len(all) != 1 {
		t.Errorf("volumes of claims: %v, %v: one was not finished and one on its way out", all, err)
	}
	e := openStore(t, into)
	c := clientOf(t, e)
	if got, err := c.Get(t.Context(), "/registry/x"); err != nil || got.Count != 1 {
		t.Errorf("the object: %v, %v", got, err)
	}
	if err := errors.Join(c.Close(), e.Close()); err != nil {
		t.Fatal(err)
	}

	// Once more, over what is there by now.
	if err := errors.Join(os.WriteFile(filepath.Join(into, "volumes/pvc-1/data/file"), []byte("newer"), 0o600), os.WriteFile(filepath.Join(into, "pki/ca.key"), []byte("other"), 0o600),
		os.WriteFile(filepath.Join(into, "pods/uid/volumes/kubernetes.io~empty-dir/v/file"), []byte("newer"), 0o600)); err != nil {
		t.Fatal(err)
	}
	refusal, ok := errors.AsType[*Refusal](restoreError(t, RestoreOptions{DataDir: into, File: file}))
	if !ok || refusal.Code != ExitStore || !strings.Contains(refusal.Error(), "--force") {
		t.Errorf("over a store: %v", refusal)
	}
	if done, err = Restore(t.Context(), RestoreOptions{DataDir: into, File: file, Force: true}); err != nil || done.Keys || done.Volumes > 0 || len(done.Kept) != 1 ||
		len(done.Stayed) != 1 || done.Stayed[0] != filepath.Join(into, "volumes/pvc-1") {
		t.Errorf("done: %+v, %v", done, err)
	}
	holds("pki/ca.key", "other")
	holds("volumes/pvc-1/data/file", "newer")
	holds("pods/uid/volumes/kubernetes.io~empty-dir/v/file", "newer")
	if done, err = Restore(t.Context(), RestoreOptions{DataDir: into, File: file, Force: true, Keys: true}); err != nil || !done.Keys || len(done.Kept) != 2 {
		t.Errorf("done: %+v, %v", done, err)
	}
	holds("pki/ca.key", "key")
}

func restoreError(t *testing.T, o RestoreOptions) error {
	t.Helper()
	_, err := Restore(t.Context(), o)
	return err
}

// RS-14: what cannot be restored is refused, and changes nothing.
func TestRestoreRefuses(t *testing.T) {
	s := backedUp(t)
	var out bytes.Buffer
	if err := s.backup(t.Context(), &out, hostapi.BackupParts{}); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string][]byte{"cut": out.Bytes()[:out.Len()/2], "text": []byte("no backup"), "empty": nil, "database": append(make([]byte, 16), "\xed\xda\x0c\xed"...)} {
		file, into := filepath.Join(dir, name), filepath.Join(dir, "into-"+name)
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		err := restoreError(t, RestoreOptions{DataDir: into, File: file})
		if err == nil || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), "nothing was changed") {
			t.Errorf("%s: %v", name, err)
		}
		if left, rerr := os.ReadDir(into); rerr != nil || len(left) != 1 || left[0].Name() != "lock" {
			t.Errorf("%s: left %v, %v", name, left, rerr)
		}
	}
	held, err := lockFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer held.release()
	if refusal, ok := errors.AsType[*Refusal](restoreError(t, RestoreOptions{DataDir: dir, File: filepath.Join(dir, "cut")})); !ok || refusal.Code != ExitFolderLocked {
		t.Errorf("under a server: %v", refusal)
	}
	if err := restoreError(t, RestoreOptions{DataDir: t.TempDir(), File: filepath.Join(dir, "gone")}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// RS-14: a snapshot that the server keeps is a whole backup, and takes the place of the oldest.
func TestKeepsSnapshots(t *testing.T) {
	s := backedUp(t)
	folder := s.snapshotFolder()
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"store-20200101T000000Z.tar.gz", "store-20200102T000000Z.tar.gz", "mine.tar.gz"} {
		if err := os.WriteFile(filepath.Join(folder, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.keepSnapshot(t.Context()); err != nil {
		t.Fatal(err)
	}
	kept := backup.List(folder)
	if len(kept) != 2 || kept[1].Path != filepath.Join(folder, "store-20200102T000000Z.tar.gz") {
		t.Fatalf("kept: %v", kept)
	}
	f, err := os.Open(kept[0].Path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if h, err := backup.Verify(f); err != nil || h.Keys || h.Revision == 0 {
		t.Errorf("%+v, %v", h, err)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 3 {
		t.Errorf("in the folder: %v, %v", left, err)
	}
}
