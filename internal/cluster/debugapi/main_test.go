// SPDX-License-Identifier: Apache-2.0

package debugapi_test

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/wherryproject/wherry/internal/api"
	"github.com/wherryproject/wherry/internal/audit"
	"github.com/wherryproject/wherry/internal/store"
)

// shared is the API server that stands for a cluster's: it is a real one, with aggregation, rights, admission and an
// audit log.
var shared struct {
	dir string
	srv *api.Server
}

func TestMain(m *testing.M) {
	flag.Parse()
	if flag.Lookup("test.fuzz").Value.String() != "" {
		os.Exit(m.Run())
	}
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "wherry-debugapi-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	failing := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	etcd, err := store.Start(ctx, store.Config{Dir: filepath.Join(dir, "etcd"), Logger: failing})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer etcd.Close()
	recording := audit.Defaults()
	shared.dir = dir
	recording.PolicyFile = filepath.Join(dir, "policy.yaml") // what any cluster may have: who asked for what
	if err := os.WriteFile(recording.PolicyFile, []byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n"+
		"- level: Metadata\n  resources: [{group: debug.wherry.dev}]\n- level: None\n"), 0o600); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	shared.srv, err = api.New(ctx, api.Config{Audit: &recording, DataDir: dir, BindAddress: "127.0.0.1",
		EtcdServers: []string{etcd.Endpoint()}, Logger: failing})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	done := make(chan error, 1)
	go func() { done <- shared.srv.Run(ctx) }()
	select {
	case <-shared.srv.Ready():
	case err := <-done:
		fmt.Fprintln(os.Stderr, "server ended:", err)
		return 1
	}
	code := m.Run()
	cancel()
	if err := <-done; err != nil {
		fmt.Fprintln(os.Stderr, "server did not stop cleanly:", err)
		return 1
	}
	return code
}

func adminConfig(t testing.TB) *rest.Config {
	t.Helper()
	data, err := shared.srv.AdminKubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(data)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	return config
}

func clientOf(t testing.TB, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// person is somebody with a client certificate.
func person(t testing.TB, name string) *rest.Config {
	t.Helper()
	cert, key, err := shared.srv.CA().Client(name, nil, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	config := adminConfig(t)
	config.CertData, config.KeyData, config.BearerToken = cert, key, ""
	return config
}
