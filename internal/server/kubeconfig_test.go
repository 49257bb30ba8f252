// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/wherryproject/wherry/internal/api"
	"github.com/wherryproject/wherry/internal/datadir"
	"github.com/wherryproject/wherry/internal/pki"
	"github.com/wherryproject/wherry/internal/store"
)

// Identity: a running server writes the administrator's kubeconfigs anew before their certificate ends, with mode 0600.
func TestKubeconfigIsRenewed(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	etcd, err := store.Start(ctx, store.Config{Dir: filepath.Join(dir, "etcd")})
	if err != nil {
		t.Fatal(err)
	}
	srv, err := api.New(ctx, api.Config{DataDir: dir, BindAddress: "127.0.0.1", Etcd: etcd.Client(),
		CertLifetime: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- srv.Run(ctx) }()
	<-srv.Ready()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := etcd.Close(); err != nil {
			t.Error(err)
		}
	})
	second := filepath.Join(dir, "elsewhere", "admin.yaml")
	s := &Server{opts: Options{DataDir: dir, WriteKubeconfig: second}, log: slog.New(slog.DiscardHandler),
		failed: make(chan error, 1)}
	s.parts.api = srv
	if err := s.startKubeconfigs(ctx); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.stopKubeconfigs(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	read := func(path string) (end time.Time, client kubernetes.Interface) {
		t.Helper()
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Fatalf("%s: %v, %v", path, info, err)
		}
		config, err := clientcmd.BuildConfigFromFlags("", path)
		if err != nil {
			t.Fatal(err)
		}
		certs, err := pki.ParseCertificates(config.CertData)
		if err != nil {
			t.Fatal(err)
		}
		return certs[0].NotAfter, kubernetes.NewForConfigOrDie(config)
	}
	first, _ := read(second)
	// as somebody who uses the file from time to time
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		end, client := read(datadir.Kubeconfig(dir))
		if !end.After(first) || time.Now().Before(first) {
			continue
		}
		if _, err := client.Discovery().ServerVersion(); err != nil {
			continue // a busy machine may be late
		}
		if end, _ := read(second); !end.After(first) {
			continue // it is written after the first one
		}
		return
	}
	t.Errorf("no kubeconfig is good after the end of the first one, %v", first)
}

// The administrator's kubeconfig can be made readable for others: the copy if there is one, and the data folder's own
// then stays root's.
func TestKubeconfigAccess(t *testing.T) {
	type files struct{ own, copied os.FileMode }
	for name, c := range map[string]struct {
		o    Options
		want files
		gid  uint32
	}{
		"nothing said":   {Options{}, files{0o600, 0}, 0},
		"mode":           {Options{KubeconfigMode: "0644"}, files{0o644, 0}, 0},
		"group":          {Options{KubeconfigGroup: "7"}, files{0o640, 0}, 7},
		"group and mode": {Options{KubeconfigGroup: "7", KubeconfigMode: "600"}, files{0o600, 0}, 7},
		"of the copy":    {Options{KubeconfigMode: "644", WriteKubeconfig: "yes"}, files{0o600, 0o644}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			c.o.DataDir = dir
			if c.o.WriteKubeconfig != "" {
				c.o.WriteKubeconfig = filepath.Join(dir, "elsewhere", "admin.yaml")
			}
			if c.gid != 0 && os.Geteuid() != 0 {
				t.Skip("only root gives files to other groups")
			}
			if err := (&Server{opts: c.o}).writeKubeconfigs([]byte("x")); err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(datadir.Kubeconfig(dir))
			if err != nil || info.Mode().Perm() != c.want.own {
				t.Errorf("%v, %v", info, err)
			}
			if stat, ok := info.Sys().(*syscall.Stat_t); !ok || c.gid != 0 && stat.Gid != c.gid {
				t.Errorf("group %d, want %d", stat.Gid, c.gid)
			}
			if c.want.copied == 0 {
				return
			}
			if info, err := os.Stat(c.o.WriteKubeconfig); err != nil || info.Mode().Perm() != c.want.copied {
				t.Errorf("the copy: %v, %v", info, err)
			}
		})
	}
	for want, o := range map[string]Options{
		`"rw" is not a file mode`:     {KubeconfigMode: "rw"},
		`"7777" is not a file mode`:   {KubeconfigMode: "7777"},
		"does not allow root to read": {KubeconfigMode: "044"},
		"makes a program of the file": {KubeconfigMode: "700"},
		"other users could write":     {KubeconfigMode: "666"},
		`there is no group "nobody-"`: {KubeconfigGroup: "nobody-"},
	} {
		if _, err := o.kubeconfigAccess(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
