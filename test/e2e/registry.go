// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Registry is an image registry on loopback, without TLS, that the server under test is told to trust.
type Registry struct {
	Host string // 127.0.0.1:PORT, the first part of image names
	t    testing.TB

	mu       sync.Mutex
	user     string
	password string
	down     bool
	held     <-chan struct{} // blobs are not given out before it is closed; nil: at once
	waiting  func()          // called when somebody waits for a blob that is held
	requests []string
}

// Registry starts an empty registry and writes its hosts file into the server's folder of registries.
func (s *Server) Registry(t testing.TB) *Registry {
	t.Helper()
	r := &Registry{t: t}
	content := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { r.serve(w, q, content) }))
	t.Cleanup(srv.Close)
	r.Host = srv.Listener.Addr().String()
	s.TrustRegistry(t, r.Host)
	return r
}

// TrustRegistry makes the server speak plain HTTP to a registry.
func (s *Server) TrustRegistry(t testing.TB, host string) {
	t.Helper()
	dir := filepath.Join(s.DataDir, "registries", host)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	hosts := fmt.Sprintf("server = \"http://%s\"\n\n[host.\"http://%s\"]\n  capabilities = [\"pull\", \"resolve\"]\n",
		host, host)
	if err := os.WriteFile(filepath.Join(dir, "hosts.toml"), []byte(hosts), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (r *Registry) serve(w http.ResponseWriter, q *http.Request, content http.Handler) {
	r.mu.Lock()
	user, password, down, held, waiting := r.user, r.password, r.down, r.held, r.waiting
	r.requests = append(r.requests, q.Method+" "+q.URL.Path)
	r.mu.Unlock()
	if down {
		http.Error(w, "the registry is being repaired", http.StatusServiceUnavailable)
		return
	}
	if u, p, ok := q.BasicAuth(); user != "" && (!ok || u != user || p != password) {
		w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	}
	if held != nil && q.Method == http.MethodGet && strings.Contains(q.URL.Path, "/blobs/") {
		waiting()
		select {
		case <-held:
		case <-q.Context().Done():
			return
		}
	}
	content.ServeHTTP(w, q)
}

// Hold keeps blobs back until release is called; asked is closed when somebody waits for one.
func (r *Registry) Hold() (asked <-chan struct{}, release func()) {
	held, waited := make(chan struct{}), make(chan struct{})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held, r.waiting = held, sync.OnceFunc(func() { close(waited) })
	release = sync.OnceFunc(func() { close(held) })
	r.t.Cleanup(release) // before the server is closed, which waits for its requests
	return waited, release
}

// Push puts one of the tests' images into the registry and gives its name there. It is an image of its own by a label:
// a runtime that has two names for one image shows either.
func (r *Registry) Push(s *Server, ref, as string) string {
	r.t.Helper()
	img, ok := s.World.Images[ref]
	if !ok {
		r.t.Fatalf("there is no image %s", ref)
	}
	config, err := img.ConfigFile()
	if err != nil {
		r.t.Fatal(err)
	}
	own := config.Config.DeepCopy()
	own.Labels = map[string]string{"pushed-as": as}
	if img, err = mutate.Config(img, *own); err != nil {
		r.t.Fatal(err)
	}
	full := r.Host + "/" + as
	tag, err := name.ParseReference(full, name.Insecure)
	if err != nil {
		r.t.Fatal(err)
	}
	r.mu.Lock()
	auth := authn.Anonymous
	if r.user != "" {
		auth = &authn.Basic{Username: r.user, Password: r.password}
	}
	r.mu.Unlock()
	if err := remote.Write(tag, img, remote.WithAuth(auth)); err != nil {
		r.t.Fatalf("push %s: %v", full, err)
	}
	return full
}

// Lock makes the registry ask for a user and a password.
func (r *Registry) Lock(user, password string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.user, r.password = user, password
}

// SetDown makes the registry answer 503 to everything, or no longer.
func (r *Registry) SetDown(down bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down = down
}

// Requests are all requests so far, as "GET /v2/...".
func (r *Registry) Requests() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.requests...)
}

// ClosedPort is an address of loopback on which nobody listens.
func ClosedPort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
