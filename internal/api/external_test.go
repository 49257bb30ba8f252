// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/wherryproject/wherry/internal/api"
	"github.com/wherryproject/wherry/internal/pki"
)

// externalEtcdEnv makes the test binary be an etcd on a TCP port with TLS, whose files lie in the folder it names.
const externalEtcdEnv = "WHERRY_TEST_ETCD_DIR"

func runExternalEtcd(dir string) int {
	free := func() url.URL {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			panic(err)
		}
		defer l.Close()
		return url.URL{Scheme: "https", Host: l.Addr().String()}
	}
	c := embed.NewConfig()
	c.Dir = filepath.Join(dir, "data")
	c.LogLevel = "error"
	c.WatchProgressNotifyInterval = 100 * time.Millisecond
	client, peer := free(), free()
	peer.Scheme = "http"
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.ClientTLSInfo.CertFile = filepath.Join(dir, "serving.crt")
	c.ClientTLSInfo.KeyFile = filepath.Join(dir, "serving.key")
	c.ClientTLSInfo.TrustedCAFile = filepath.Join(dir, "ca.crt")
	c.ClientTLSInfo.ClientCertAuth = true
	e, err := embed.StartEtcd(c)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer e.Close()
	<-e.Server.ReadyNotify()
	fmt.Println("READY", client.String())
	_, _ = bufio.NewReader(os.Stdin).ReadByte() // until the test closes the pipe
	return 0
}

// externalEtcd starts an etcd in another process and returns the configuration that reaches it.
func externalEtcd(t *testing.T) api.Config {
	t.Helper()
	dir := t.TempDir()
	ca, err := pki.LoadOrCreate(dir, "etcd-ca")
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, data []byte) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	// etcd dials itself with its serving certificate, so that one may be a client's too: sign a client one for the
	// server.
	certPEM, keyPEM, err := ca.Serving([]string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	write("serving.crt", certPEM)
	write("serving.key", keyPEM)
	certPEM, keyPEM, err = ca.Client("wherry", nil, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	cfg := api.Config{
		DataDir: t.TempDir(), BindAddress: "127.0.0.1",
		EtcdCAFile: filepath.Join(dir, "ca.crt"), EtcdCertFile: write("client.crt", certPEM),
		EtcdKeyFile: write("client.key", keyPEM), EtcdPrefix: "/elsewhere",
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), externalEtcdEnv+"="+dir)
	cmd.Stderr = t.Output()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		cmd.Wait()
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	endpoint, ok := strings.CutPrefix(strings.TrimSpace(line), "READY ")
	if err != nil || !ok {
		t.Fatalf("etcd said %q, %v", line, err)
	}
	cfg.EtcdServers = []string{endpoint}
	return cfg
}

// serve runs a server and returns how to stop it.
func serve(t testing.TB, cfg api.Config) (*api.Server, func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s, err := api.New(ctx, cfg)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	stopped := false
	stop := func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("stop: %v", err)
		}
	}
	t.Cleanup(stop)
	select {
	case <-s.Ready():
	case err := <-done:
		stopped = true
		t.Fatalf("the server ended: %v", err)
	case <-time.After(time.Minute):
		t.Fatal("the server did not get ready")
	}
	return s, stop
}

// The same server code works on an etcd of another process, over TLS with a client certificate, and finds its data
// again. ATTACK C35.
func TestExternalEtcd(t *testing.T) {
	cfg := externalEtcd(t)
	s, stop := serve(t, cfg)
	c := clientOf(t, configOf(t, s))
	ns := namespace(t, c)
	createPod(t, c, ns, pod("a"))
	stop()

	s, _ = serve(t, cfg)
	c = clientOf(t, configOf(t, s))
	if _, err := c.CoreV1().Pods(ns).Get(t.Context(), "a", metav1.GetOptions{}); err != nil {
		t.Errorf("after a restart: %v", err)
	}

	t.Run("bookmarks follow etcd's progress", func(t *testing.T) {
		w, err := c.CoreV1().Secrets(ns).Watch(t.Context(), metav1.ListOptions{AllowWatchBookmarks: true})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		cm, err := c.CoreV1().ConfigMaps(ns).Create(t.Context(),
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c"}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for { // the watch learns of a version made by a write it does not show
			ev := next(t, w)
			secret, ok := ev.Object.(*corev1.Secret)
			if ev.Type != watch.Bookmark || !ok {
				t.Fatalf("got %s %v", ev.Type, ev.Object)
			}
			if order, err := resourceversion.CompareResourceVersion(secret.ResourceVersion,
				cm.ResourceVersion); err != nil {
				t.Fatal(err)
			} else if order >= 0 { // the server may write something too
				break
			}
		}
	})
	t.Run("TLS is required", func(t *testing.T) {
		conn, err := tls.Dial("tcp", strings.TrimPrefix(cfg.EtcdServers[0], "https://"),
			&tls.Config{InsecureSkipVerify: true})
		if err == nil {
			conn.SetReadDeadline(time.Now().Add(time.Minute))
			_, err = conn.Read(make([]byte, 1))
			conn.Close()
		}
		if err == nil {
			t.Error("etcd let in a client without certificate")
		}
	})
}
