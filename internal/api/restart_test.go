// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherryproject/wherry/internal/api"
	"github.com/wherryproject/wherry/internal/store"
)

// A restart keeps objects, certificates, tokens and service addresses; kubeconfigs written before it still work.
func TestRestartKeepsEverything(t *testing.T) {
	dir := t.TempDir()
	run := func() (*api.Server, func()) {
		e, err := store.Start(t.Context(), store.Config{Dir: filepath.Join(dir, "etcd")})
		if err != nil {
			t.Fatal(err)
		}
		s, stop := serve(t, api.Config{DataDir: dir, BindAddress: "127.0.0.1", Etcd: e.Client()})
		return s, func() {
			stop()
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	s, stop := run()
	config := configOf(t, s)
	c := clientOf(t, config)
	ns := namespace(t, c)
	before := createPod(t, c, ns, pod("a"))
	svc, err := c.CoreV1().Services(ns).Create(t.Context(), service("web"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	token, err := os.ReadFile(filepath.Join(dir, "pki", "admin.token"))
	if err != nil {
		t.Fatal(err)
	}
	stop()

	s, stop = run()
	defer stop()
	config.Host = s.URL() // the port was a free one
	c = clientOf(t, config)
	after, err := c.CoreV1().Pods(ns).Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if after.UID != before.UID || after.ResourceVersion != before.ResourceVersion {
		t.Errorf("the pod changed: %v/%v, was %v/%v", after.UID, after.ResourceVersion, before.UID,
			before.ResourceVersion)
	}
	again, err := os.ReadFile(filepath.Join(dir, "pki", "admin.token"))
	if err != nil || string(again) != string(token) {
		t.Errorf("the admin's token changed: %v", err)
	}
	clash := service("clash")
	clash.Spec.ClusterIP = svc.Spec.ClusterIP
	if _, err := c.CoreV1().Services(ns).Create(t.Context(), clash, metav1.CreateOptions{}); err == nil ||
		!strings.Contains(err.Error(), "already allocated") {
		t.Errorf("a taken address was given twice: %v", err)
	}
	kubernetes, err := c.CoreV1().Services("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := kubernetes.Spec.Ports[0].TargetPort.IntValue(); got != s.Port() {
		t.Errorf("service kubernetes points to port %d, the server is on %d", got, s.Port())
	}
	wantEndpoint(t, c, s)
}

func TestNewRefuses(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	good := api.Config{DataDir: t.TempDir(), BindAddress: "127.0.0.1", EtcdServers: []string{shared.etcd.Endpoint()}}
	for name, test := range map[string]struct {
		change func(*api.Config)
		want   string
	}{
		"port taken":         {func(c *api.Config) { c.SecurePort = taken.Addr().(*net.TCPAddr).Port }, "is in use"},
		"no data folder":     {func(c *api.Config) { c.DataDir = "" }, "data folder"},
		"no etcd":            {func(c *api.Config) { c.EtcdServers = nil }, "etcd servers"},
		"bad address":        {func(c *api.Config) { c.BindAddress = "here" }, "bind address"},
		"bad service range":  {func(c *api.Config) { c.ServiceCIDR = "10.0.0.0" }, "service range"},
		"tiny service range": {func(c *api.Config) { c.ServiceCIDR = "10.0.0.0/31" }, "too small"},
		"key without cert":   {func(c *api.Config) { c.EtcdKeyFile = "/dev/null" }, "certificate needs its key"},
		"no token file":      {func(c *api.Config) { c.TokenAuthFile = "/nowhere/tokens" }, "/nowhere/tokens"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := good
			test.change(&cfg)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err := api.New(ctx, cfg)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want something about %q", err, test.want)
			}
		})
	}
}
