// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// TestRegistryIsNoWayIn: an image's name makes no plain HTTP request, but to loopback, where a registry is looked for as every containerd does it;
// and whatever a program answers that is no registry, or that a registry sends the runtime to for a manifest, a blob or a token, is not
// shown. (RS-12; ATTACK A25)
func TestRegistryIsNoWayIn(t *testing.T) {
	r := start(t, dataFolder(t))
	const treasure = "the inner program's own words"
	var asked, sent atomic.Int32
	inner := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		asked.Add(1)
		if req.Method != http.MethodGet && req.Method != http.MethodHead || req.Header.Get("Authorization") != "" {
			t.Errorf("it was asked with %s, %v", req.Method, req.Header)
		}
		w.WriteHeader(http.StatusOK)
		_, _ = fmt.Fprint(w, treasure)
	}))
	defer inner.Close()
	failing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, treasure, http.StatusInternalServerError)
	}))
	defer failing.Close()
	registry := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		sent.Add(1)
		to := inner.URL
		if strings.Contains(req.URL.Path, "/failing/") {
			to = failing.URL
		}
		switch {
		case strings.Contains(req.URL.Path, "/token"):
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm=%q,service="x",scope="repository:token:pull"`, to+"/meta-data"))
			w.WriteHeader(http.StatusUnauthorized)
		case strings.Contains(req.URL.Path, "/blob") && strings.Contains(req.URL.Path, "/manifests/"):
			digest := "sha256:" + strings.Repeat("a", 64)
			w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
			_, _ = fmt.Fprintf(w, `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":%q,"size":10},"layers":[]}`, digest)
		default:
			http.Redirect(w, req, to+"/meta-data", http.StatusTemporaryRedirect)
		}
	}))
	defer registry.Close()
	pull := func(ref string) error {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		_, err := criapi.NewImageServiceClient(r.Conn()).PullImage(ctx, &criapi.PullImageRequest{Image: &criapi.ImageSpec{Image: ref}})
		if err == nil || strings.Contains(err.Error(), treasure) {
			t.Errorf("%s: %v", ref, err)
		}
		return err
	}
	_, port, _ := strings.Cut(strings.TrimPrefix(inner.URL, "http://"), ":")
	for _, host := range []string{"127.0.0.1", "localhost", "127.1.2.3", "[::1]"} {
		for _, name := range []string{"/x:1", "/v2/../latest:1"} {
			_ = pull(host + ":" + port + name)
		}
	}
	asked.Store(0)
	if own := onOwnAddress(t, inner.Config.Handler); own != "" {
		if err := pull(own + "/x:1"); asked.Load() > 0 {
			t.Errorf("a program at %s was asked without TLS: %v", own, err)
		}
	}
	host := strings.TrimPrefix(registry.URL, "http://")
	hosts := filepath.Join(r.config.HostsDir, host)
	if err := os.MkdirAll(hosts, 0o755); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("server = %q\n[host.%q]\n  capabilities = [\"pull\", \"resolve\"]\n", registry.URL, registry.URL)
	if err := os.WriteFile(filepath.Join(hosts, "hosts.toml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"/redirected:1", "/failing/redirected:1", "/token:1", "/failing/token:1", "/blob:1", "/failing/blob:1"} {
		_ = pull(host + name)
	}
	if sent.Load() == 0 {
		t.Error("the registry was never asked")
	}
}

// onOwnAddress serves plain HTTP at an address of this machine that is not loopback, and returns it; "" if there is none.
func onOwnAddress(t *testing.T, h http.Handler) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		ip, ok := a.(*net.IPNet)
		if !ok || !ip.IP.IsGlobalUnicast() || ip.IP.To4() == nil {
			continue
		}
		l, err := net.Listen("tcp", net.JoinHostPort(ip.IP.String(), "0"))
		if err != nil {
			continue
		}
		s := httptest.NewUnstartedServer(h)
		_ = s.Listener.Close()
		s.Listener = l
		s.Start()
		t.Cleanup(s.Close)
		return l.Addr().String()
	}
	t.Log("this machine has no address but loopback: other addresses are not tried")
	return ""
}
