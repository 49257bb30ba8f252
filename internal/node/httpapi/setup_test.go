// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri"
	"github.com/wherryproject/wherry/internal/cri/critest"
	"github.com/wherryproject/wherry/internal/leaktest"
	"github.com/wherryproject/wherry/internal/pki"
)

// TestMain sees that every goroutine ends.
func TestMain(m *testing.M) {
	if os.Getenv(childMark) != "" { // its containerd never ends some of its own
		os.Exit(m.Run())
	}
	leaktest.Main(m, abandoned()...)
}

// abandoned are goroutines that client-go's WebSocket executor leaves behind when its connection ends just while it
// makes its streams: the tests' clients, not the server.
func abandoned() (out []goleak.Option) {
	const in = "k8s.io/client-go/tools/remotecommand."
	for _, name := range []string{"(*wsStreamExecutor).StreamWithContext.func1", "(*streamProtocolV2).copyStdout.func1",
		"(*streamProtocolV2).copyStderr.func1", "watchErrorStream.func1"} {
		out = append(out, goleak.IgnoreAnyFunction(in+name))
	}
	return out
}

// world is a server under test with everything around it: one pod with containers main (running), waiting (not there)
// and the ephemeral container debug (running).
type world struct {
	t       *testing.T
	fake    *critest.Fake
	host    *host
	server  *Server
	addr    string
	ca      *pki.CA
	masters *rest.Config
}

type host struct {
	pod                *corev1.Pod
	sandbox            string
	containers         map[string]string
	logPath            string
	logErr, sandboxErr error
	started            func(ctx context.Context, name string, run uint32) (string, error)
}

func (h *host) Pods() []*corev1.Pod { return []*corev1.Pod{h.pod} }

func (h *host) Pod(ns, name string) (*corev1.Pod, bool) {
	return h.pod, ns == h.pod.Namespace && name == h.pod.Name
}

func (h *host) ContainerID(_ types.UID, name string) (string, error) {
	if id := h.containers[name]; id != "" {
		return id, nil
	}
	return "", errors.New("it was not started yet")
}

// Started is told of starts by the test.
func (h *host) Started(ctx context.Context, _ types.UID, name string, run uint32) (string, error) {
	if h.started == nil {
		return "", errors.New("it was replaced")
	}
	return h.started(ctx, name, run)
}

func (h *host) UID(uid string) types.UID { return types.UID(uid) }

func (h *host) SandboxID(types.UID) (string, error) { return h.sandbox, h.sandboxErr }

func (h *host) LogPath(_ types.UID, name string, previous bool) (string, error) {
	if h.logErr != nil {
		return "", h.logErr
	}
	if previous {
		return h.logPath + ".previous", nil
	}
	return h.logPath + "/" + name, nil
}

func (h *host) Changed() <-chan struct{} { return nil }

// copyLog is a LogReader: it says what it was asked, then what the options' limit says how often.
func copyLog(_ context.Context, path string, o *corev1.PodLogOptions, _ func() bool, stdout,
	stderr io.Writer) (int64, error) {
	if strings.HasSuffix(path, "missing") {
		return 0, os.ErrNotExist
	}
	if stdout != nil {
		_, _ = io.WriteString(stdout, "out of "+path+"\n")
	}
	if stderr != nil {
		_, _ = io.WriteString(stderr, "err of "+path+"\n")
	}
	return 0, nil
}

func newWorld(t *testing.T, change ...func(*Config)) *world {
	t.Helper()
	streams, err := critest.ServeStreams(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = streams.Close() })
	w := &world{t: t, fake: critest.NewFake(critest.Config{AnyImage: true, Images: map[string]critest.Image{"app": {}},
		Streams: streams})}
	w.host = &host{pod: testPod(), containers: map[string]string{}, logPath: "/logs"}
	w.startPod()
	w.ca, err = pki.LoadOrCreate(t.TempDir(), "ca")
	if err != nil {
		t.Fatal(err)
	}
	certPEM, keyPEM, err := w.ca.Serving([]string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	cert, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	config := Config{Host: w.host, CRI: w.fake.Client(), Logs: copyLog, NodeName: "node-1", Certificate: cert,
		ClientCAs: w.ca.Pool()}
	for _, c := range change {
		c(&config)
	}
	if w.server, err = New(config); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.addr = l.Addr().String()
	w.server.Start(l)
	t.Cleanup(func() {
		if err := w.server.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	w.masters = w.client("apiserver", "system:masters")
	return w
}

func testPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "uid-1"},
		Spec: corev1.PodSpec{
			Containers:          []corev1.Container{{Name: "main"}, {Name: "waiting"}},
			EphemeralContainers: []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug"}}},
		},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{
			{Name: "main",
				State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(time.Unix(1700000000, 0))}}},
			{Name: "waiting",
				State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}},
		}},
	}
}

func (w *world) startPod() {
	w.t.Helper()
	labels := map[string]string{cri.LabelPodUID: "uid-1", cri.LabelPodName: "web", cri.LabelPodNamespace: "default"}
	rt := w.fake.Client().Runtime
	box := &runtimeapi.PodSandboxConfig{Metadata: &runtimeapi.PodSandboxMetadata{Name: "web", Namespace: "default",
		Uid: "uid-1"}, Labels: labels}
	s, err := rt.RunPodSandbox(w.t.Context(), &runtimeapi.RunPodSandboxRequest{Config: box})
	if err != nil {
		w.t.Fatal(err)
	}
	w.host.sandbox = s.GetPodSandboxId()
	for _, name := range []string{"main", "debug"} {
		own := map[string]string{cri.LabelContainerName: name}
		for k, v := range labels {
			own[k] = v
		}
		c, err := rt.CreateContainer(w.t.Context(), &runtimeapi.CreateContainerRequest{PodSandboxId: w.host.sandbox,
			SandboxConfig: box, Config: &runtimeapi.ContainerConfig{
				Metadata: &runtimeapi.ContainerMetadata{Name: name}, Image: &runtimeapi.ImageSpec{Image: "app"},
				Labels: own,
			}})
		if err != nil {
			w.t.Fatal(err)
		}
		if _,
			err := rt.StartContainer(w.t.Context(),
			&runtimeapi.StartContainerRequest{ContainerId: c.GetContainerId()}); err != nil {
			w.t.Fatal(err)
		}
		w.host.containers[name] = c.GetContainerId()
	}
}

// client is the configuration of a client with a certificate of the CA.
func (w *world) client(user string, groups ...string) *rest.Config {
	w.t.Helper()
	certPEM, keyPEM, err := w.ca.Client(user, groups, time.Hour)
	if err != nil {
		w.t.Fatal(err)
	}
	return &rest.Config{Host: "https://" + w.addr, TLSClientConfig: rest.TLSClientConfig{CAData: w.ca.CertPEM(),
		CertData: certPEM, KeyData: keyPEM}}
}

// get asks as config's user and gives status and body.
func (w *world) get(config *rest.Config, path string) (int, string) {
	w.t.Helper()
	return w.do(config, http.MethodGet, path)
}

func (w *world) do(config *rest.Config, method, path string) (int, string) {
	w.t.Helper()
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		w.t.Fatal(err)
	}
	tr := &http.Transport{TLSClientConfig: tlsConfig}
	defer tr.CloseIdleConnections()
	req, err := http.NewRequestWithContext(w.t.Context(), method, "https://"+w.addr+path, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	resp, err := (&http.Client{Transport: tr}).Do(req)
	if err != nil {
		w.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer func() { _ = resp.Body.Close() }()
	var body bytes.Buffer
	_, _ = body.ReadFrom(resp.Body)
	return resp.StatusCode, body.String()
}
