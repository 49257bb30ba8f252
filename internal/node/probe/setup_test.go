// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"net"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/wherryproject/wherry/internal/cri/critest"
	"github.com/wherryproject/wherry/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func target(change ...func(*corev1.Container)) Target {
	c := &corev1.Container{Name: "app"}
	for _, f := range change {
		f(c)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "u1"}}
	return Target{Pod: pod, Container: c, PodIP: "127.0.0.1"}
}

// running starts a container on a fake runtime and returns a prober for it.
func running(t *testing.T,
	exec func(critest.Info, []string) (critest.ExecAnswer, bool)) (*Prober, *critest.Fake, string) {
	t.Helper()
	fake := critest.NewFake(critest.Config{Images: map[string]critest.Image{"app": {}}, Exec: exec})
	id := fake.Started(t)
	return New(fake.Client()), fake, id
}

func tcpProbe(host string, port intstr.IntOrString) *corev1.Probe {
	return &corev1.Probe{TimeoutSeconds: 20,
		ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Host: host, Port: port}}}
}

func execProbe(timeout int32, words ...string) *corev1.Probe {
	return &corev1.Probe{TimeoutSeconds: timeout,
		ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: words}}}
}

func grpcProbe(port int, service *string) *corev1.Probe {
	return &corev1.Probe{TimeoutSeconds: 5,
		ProbeHandler: corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: int32(port), Service: service}}}
}

func listen(t *testing.T, address string) (net.Listener, int) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Skipf("cannot listen on %s here: %v", address, err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l, l.Addr().(*net.TCPAddr).Port
}

// closedPort is a port that nobody listens on.
func closedPort(t *testing.T) int {
	l, port := listen(t, "127.0.0.1:0")
	_ = l.Close()
	return port
}

func portOf(t *testing.T, address string) intstr.IntOrString {
	t.Helper()
	_, p, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(p)
	if err != nil {
		t.Fatal(err)
	}
	return intstr.FromInt(n)
}
