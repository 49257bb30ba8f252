// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"net"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// PL-04, SC-07: TCP probes.
func TestTCP(t *testing.T) {
	_, port := listen(t, "127.0.0.1:0")
	named := target(func(c *corev1.Container) { c.Ports = []corev1.ContainerPort{{Name: "web", ContainerPort: int32(port)}} })
	for name, tc := range map[string]struct {
		to    Target
		probe *corev1.Probe
		want  Verdict
		say   string
	}{
		"open":         {target(), tcpProbe("", intstr.FromInt(port)), Success, ""},
		"open by name": {named, tcpProbe("", intstr.FromString("web")), Success, ""},
		"own host":     {Target{Container: named.Container}, tcpProbe("localhost", intstr.FromInt(port)), Success, ""},
		"refused":      {target(), tcpProbe("", intstr.FromInt(closedPort(t))), Failure, "dial tcp 127.0.0.1:"},
		"unknown name": {named, tcpProbe("", intstr.FromString("api")), Unknown, `port "api" is not among the container's named ports ("web")`},
		"no IP":        {Target{Container: named.Container}, tcpProbe("", intstr.FromInt(port)), Unknown, "the pod has no IP address"},
	} {
		t.Run("PL-04 "+name, func(t *testing.T) {
			r, err := New(nil).Try(t.Context(), tc.to, tc.probe)
			if r.Verdict != tc.want || (err != nil) != (tc.want == Unknown) {
				t.Errorf("Try: %+v, %v", r, err)
			}
			if err != nil {
				r.Message = err.Error()
			}
			if !strings.Contains(r.Message, tc.say) {
				t.Errorf("says %q, want %q", r.Message, tc.say)
			}
		})
	}
}

// PL-04, SC-07: a gRPC probe with the mode TLS speaks TLS, whoever has signed the certificate; others do not.
func TestGRPCOverTLS(t *testing.T) {
	web := httptest.NewUnstartedServer(nil) // for its certificate
	web.StartTLS()
	defer web.Close()
	l, port := listen(t, "127.0.0.1:0")
	server, checks := grpc.NewServer(grpc.Creds(credentials.NewServerTLSFromCert(&web.TLS.Certificates[0]))), health.NewServer()
	grpc_health_v1.RegisterHealthServer(server, checks)
	go func() { _ = server.Serve(l) }()
	defer server.Stop()
	for mode, want := range map[corev1.GRPCProbeMode]Verdict{corev1.GRPCProbeModeTLS: Success, corev1.GRPCProbeModePlaintext: Failure} {
		spec := grpcProbe(port, nil)
		spec.GRPC.Mode = &mode
		if r, err := New(nil).Try(t.Context(), target(), spec); err != nil || r.Verdict != want {
			t.Errorf("%s: %+v, %v", mode, r, err)
		}
	}
}

// PL-04, SC-07: gRPC probes against a real health service.
func TestGRPC(t *testing.T) {
	l, port := listen(t, "127.0.0.1:0")
	server, checks := grpc.NewServer(), health.NewServer()
	checks.SetServingStatus("down", grpc_health_v1.HealthCheckResponse_NOT_SERVING)
	checks.SetServingStatus("up", grpc_health_v1.HealthCheckResponse_SERVING)
	grpc_health_v1.RegisterHealthServer(server, checks)
	go func() { _ = server.Serve(l) }()
	defer server.Stop()

	bare, barePort := listen(t, "127.0.0.1:0")
	plain := grpc.NewServer()
	go func() { _ = plain.Serve(bare) }()
	defer plain.Stop()

	hasty, hastyPort := listen(t, "127.0.0.1:0")
	go func() {
		for {
			c, err := hasty.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}()
	web := httptest.NewServer(app())
	defer web.Close()

	name := func(s string) *string { return &s }
	for what, tc := range map[string]struct {
		port    int
		service *string
		want    Verdict
		say     string
	}{
		"the server":       {port, nil, Success, "service healthy"},
		"a service":        {port, name("up"), Success, "service healthy"},
		"not serving":      {port, name("down"), Failure, `service unhealthy (responded with "NOT_SERVING")`},
		"unknown service":  {port, name("none"), Failure, "error: health rpc probe failed: rpc error: code = NotFound desc = unknown service"},
		"no health":        {barePort, nil, Failure, "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): unknown service"},
		"refused":          {closedPort(t), nil, Failure, "error: failed to connect service at \"127.0.0.1:"},
		"closes at once":   {hastyPort, nil, Failure, "error: health rpc probe failed: rpc error: code = Unavailable"},
		"not gRPC at all":  {web.Listener.Addr().(*net.TCPAddr).Port, nil, Failure, "error: health rpc probe failed: rpc error: code = Unavailable"},
		"no port to speak": {0, nil, Unknown, "is not between 1 and 65535"},
	} {
		t.Run("PL-04 "+what, func(t *testing.T) {
			r, err := New(nil).Try(t.Context(), target(), grpcProbe(tc.port, tc.service))
			if r.Verdict != tc.want || (err != nil) != (tc.want == Unknown) {
				t.Errorf("Try: %+v, %v", r, err)
			}
			if err != nil {
				r.Message = err.Error()
			}
			if !strings.Contains(r.Message, tc.say) {
				t.Errorf("says %q, want %q", r.Message, tc.say)
			}
		})
	}
}

func TestPort(t *testing.T) {
	c := &corev1.Container{Ports: []corev1.ContainerPort{{ContainerPort: 1}, {Name: "web", ContainerPort: 80}, {Name: "web", ContainerPort: 81}, {Name: "odd", ContainerPort: -1}}}
	for _, tc := range []struct {
		ref  intstr.IntOrString
		want int
		say  string
	}{
		{intstr.FromInt(8080), 8080, ""},
		{intstr.FromInt(65535), 65535, ""},
		{intstr.FromString("web"), 80, ""},
		{intstr.FromString("8080"), 8080, ""},
		{intstr.FromInt(0), 0, `port "0": 0 is not between 1 and 65535`},
		{intstr.FromInt(65536), 0, "65536 is not"},
		{intstr.FromString("-1"), 0, "-1 is not"},
		{intstr.FromString("odd"), 0, `port "odd": -1 is not`},
		{intstr.FromString("api"), 0, `port "api" is not among the container's named ports ("web", "web", "odd")`},
		{intstr.FromString(""), 0, `port "" is not`},
	} {
		got, err := Port(c, tc.ref)
		if got != tc.want || (err != nil) != (tc.say != "") || err != nil && !strings.Contains(err.Error(), tc.say) {
			t.Errorf("PL-04 Port(%s) = %d, %v; want %d, %q", tc.ref.String(), got, err, tc.want, tc.say)
		}
	}
	if _, err := Port(&corev1.Container{}, intstr.FromString("web")); err == nil || !strings.Contains(err.Error(), "it has none") {
		t.Errorf("Port of no ports: %v", err)
	}
}

func FuzzPort(f *testing.F) {
	f.Add("web", "web", int32(80))
	f.Add("8080", "", int32(0))
	f.Fuzz(func(t *testing.T, ref, name string, number int32) {
		to := target(func(c *corev1.Container) { c.Ports = []corev1.ContainerPort{{Name: name, ContainerPort: number}} })
		for _, r := range []intstr.IntOrString{intstr.FromString(ref), intstr.FromInt32(number)} {
			n, err := Port(to.Container, r)
			if (err == nil) != (n > 0 && n < 65536) {
				t.Fatalf("Port(%q) of %q=%d: %d, %v", r.String(), name, number, n, err)
			}
			if address, err := to.Address("", r); err == nil {
				if host, _, err := net.SplitHostPort(address); err != nil || host != to.PodIP {
					t.Fatalf("Address: %q, %v", address, err)
				}
			}
		}
	})
}

// The version in User-Agent headers is that of the API the module is built with.
func TestKubernetesVersion(t *testing.T) {
	mod, err := os.ReadFile("../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if m := regexp.MustCompile(`(?m)^\s*k8s\.io/api v0\.(\d+)\.`).FindSubmatch(mod); m == nil || "1."+string(m[1]) != KubernetesVersion {
		t.Errorf("KubernetesVersion is %s, go.mod has %q", KubernetesVersion, m)
	}
}
