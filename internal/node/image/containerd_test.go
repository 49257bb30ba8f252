// SPDX-License-Identifier: Apache-2.0

package image_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/node/image"
	"github.com/wherryproject/wherry/internal/runtime"
	"github.com/wherryproject/wherry/internal/runtime/bundle"
)

// TestContainerd proves PL-03 and PL-15 with the real runtime and registries: what it says is understood, credentials of a pull
// secret let in, an image that is there is not fetched again.
func TestContainerd(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: a container runtime")
	}
	if _, _, err := bundle.Embedded().PauseImage(); errors.Is(err, bundle.ErrNotBuilt) {
		t.Skip("needs the helper programs: run make helpers")
	}
	quiet := slog.New(slog.DiscardHandler)
	dir := t.TempDir()
	rt, err := runtime.Start(t.Context(), runtime.Config{DataDir: dir, Logger: quiet, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(rt.Close(), runtime.Purge(context.Background(), dir)); err != nil {
			t.Error(err)
		}
	}()

	open := registryAt(t, "127.0.0.1", "", (*httptest.Server).Start)
	closed := registryAt(t, "127.0.0.1", "alice:secret", (*httptest.Server).Start)
	push(t, open+"/app:v1", authn.Anonymous)
	push(t, closed+"/app:v1", &authn.Basic{Username: "alice", Password: "secret"})

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := l.Addr().String()
	l.Close()

	login := func(user, password string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pull"}, Type: corev1.SecretTypeDockerConfigJson,
			Data: map[string][]byte{".dockerconfigjson": fmt.Appendf(nil, `{"auths":{%q:{"username":%q,"password":%q}}}`, closed, user, password)}}
	}
	type tc struct {
		what, image string
		secrets     []*corev1.Secret
		want        string // of the error's message; "" is success
	}
	cases := []tc{
		{"open", open + "/app:v1", nil, ""},
		{"no such tag", open + "/app:v2", nil, "image " + open + "/app:v2 not found in registry " + open},
		{"no such repository", open + "/nope:v1", nil, "image " + open + "/nope:v1 not found in registry " + open},
		{"nobody there", nobody + "/app:v1", nil, "registry " + nobody + " cannot be reached: dial tcp " + nobody + ": connect: connection refused"},
		{"no such host", "registry.invalid/app:v1", nil, "registry registry.invalid cannot be reached: "},
		{"no credentials", closed + "/app:v1", nil, "the registry " + closed + " asks for credentials: add an imagePullSecret for it"},
		{"wrong credentials", closed + "/app:v1", []*corev1.Secret{login("alice", "wrong")}, "the registry " + closed + " refuses the credentials it was given"},
		{"one of two right", closed + "/app:v1", []*corev1.Secret{login("alice", "wrong"), login("alice", "secret")}, ""},
	}
	if ip := address(t); ip != "" { // on the loopback network, the runtime takes any certificate and none
		tls, plain := registryAt(t, ip, "", (*httptest.Server).StartTLS), registryAt(t, ip, "", (*httptest.Server).Start)
		cases = append(cases,
			tc{"unknown CA", tls + "/app:v1", nil, "registry " + tls + " shows a certificate this node does not trust: x509: "},
			tc{"plain HTTP", plain + "/app:v1", nil, "registry " + plain + " speaks plain HTTP"})
	}
	for _, c := range cases {
		t.Run("PL-03 "+c.what, func(t *testing.T) {
			p := image.New(image.Config{Images: runtimeapi.NewImageServiceClient(rt.Conn()),
				PullSecrets: func(context.Context, *corev1.Pod) ([]*corev1.Secret, []string, error) { return c.secrets, nil, nil }})
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u"}}
			id, err := p.Ensure(t.Context(), pod, &corev1.Container{Name: "main", Image: c.image})
			if c.want == "" {
				if err != nil || id == "" {
					t.Fatal(id, err)
				}
				again, err := p.Ensure(t.Context(), pod, &corev1.Container{Name: "main", Image: c.image, ImagePullPolicy: corev1.PullNever})
				if err != nil || again != id {
					t.Errorf("then with Never: %q, %v, want %q", again, err, id)
				}
				return
			}
			var e *image.Error
			if !errors.As(err, &e) || e.Reason != image.ErrImagePull || !strings.HasPrefix(e.Message, c.want) {
				t.Errorf("got  %v\nwant %s\nthe runtime said: %v", err, c.want, errors.Unwrap(err))
			}
		})
	}
}

// address is one of the machine's own outside the loopback network, "" if it has none.
func address(t *testing.T) string {
	t.Helper()
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && !n.IP.IsLoopback() {
			return n.IP.String()
		}
	}
	t.Log("no address but loopback ones: certificates and plain HTTP are not tried")
	return ""
}

// registryAt serves an empty registry on the address, for one user:password only if that is given, and returns its host and port.
func registryAt(t *testing.T, ip, login string, serve func(*httptest.Server)) string {
	t.Helper()
	images := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, ok := r.BasicAuth(); login != "" && (!ok || user+":"+password != login) {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		images.ServeHTTP(w, r)
	})
	l, err := net.Listen("tcp", net.JoinHostPort(ip, "0"))
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(handler)
	srv.Listener.Close()
	srv.Listener = l
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	serve(srv)
	t.Cleanup(srv.Close)
	return srv.Listener.Addr().String()
}

func push(t *testing.T, ref string, auth authn.Authenticator) {
	t.Helper()
	to, err := name.ParseReference(ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(to, empty.Image, remote.WithAuth(auth)); err != nil {
		t.Fatal(err)
	}
}
