// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clientremote "k8s.io/client-go/tools/remotecommand"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"

	"github.com/wherryproject/wherry/internal/api"
	"github.com/wherryproject/wherry/internal/podspec"
)

// debugNode is a node that starts debug containers in its pods' statuses as their images say, and serves their streams.
type debugNode struct {
	name   string
	client kubernetes.Interface
	server *httptest.Server

	mu      sync.Mutex
	started map[string]int // runs that began, by pod, container and run
	routes  map[string]http.HandlerFunc
	served  []string // requests for streams
}

// newDebugNode registers a node of the shared server that lasts as long as the test.
func newDebugNode(t *testing.T) *debugNode { return newDebugNodeOf(t, shared.srv) }

func newDebugNodeOf(t *testing.T, srv *api.Server) *debugNode {
	t.Helper()
	certPEM, keyPEM, err := srv.CA().Serving([]string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	cert, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	n := &debugNode{name: "node-" + rand.String(6), client: clientOf(t, configOf(t, srv)), started: map[string]int{},
		routes: map[string]http.HandlerFunc{}}
	n.server = httptest.NewUnstartedServer(http.HandlerFunc(n.serve))
	n.server.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	n.server.StartTLS()
	t.Cleanup(n.server.Close)
	n.register(t)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	w, err := n.client.CoreV1().Pods("").Watch(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + n.name})
	if err != nil {
		t.Fatal(err)
	}
	running.Go(func() {
		for e := range w.ResultChan() {
			if pod, ok := e.Object.(*corev1.Pod); ok && e.Type != "DELETED" {
				n.sync(ctx, pod)
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		w.Stop()
		running.Wait()
		if err := n.client.CoreV1().Nodes().Delete(context.Background(), n.name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	return n
}

func (n *debugNode) register(t *testing.T) {
	t.Helper()
	u, _ := url.Parse(n.server.URL)
	port, _ := strconv.Atoi(u.Port())
	node, err := n.client.CoreV1().Nodes().Create(t.Context(),
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.name}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: u.Hostname()}}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(port)
	if _, err := n.client.CoreV1().Nodes().UpdateStatus(t.Context(), node, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// pod makes a pod on the node whose main containers run.
func (n *debugNode) pod(t *testing.T, ns string, p *corev1.Pod) *corev1.Pod {
	t.Helper()
	p = createPod(t, n.client, ns, p)
	if err := bindPod(t, n.client, p, n.name); err != nil {
		t.Fatal(err)
	}
	return n.status(t, p, func(s *corev1.PodStatus) {
		s.Phase = corev1.PodRunning
		for _, c := range p.Spec.Containers {
			s.ContainerStatuses = append(s.ContainerStatuses,
				corev1.ContainerStatus{Name: c.Name,
					State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}})
		}
	})
}

// status changes a pod's status as a node does.
func (n *debugNode) status(t testing.TB, p *corev1.Pod, change func(*corev1.PodStatus)) *corev1.Pod {
	t.Helper()
	out, err := n.setStatus(context.Background(), p, change)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (n *debugNode) setStatus(ctx context.Context, p *corev1.Pod, change func(*corev1.PodStatus)) (*corev1.Pod, error) {
	pods := n.client.CoreV1().Pods(p.Namespace)
	for {
		now, err := pods.Get(ctx, p.Name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		change(&now.Status)
		out, err := pods.UpdateStatus(ctx, now, metav1.UpdateOptions{})
		if !apierrors.IsConflict(err) {
			return out, err
		}
	}
}

// stubborn is the image of containers that are not stopped, as on a node that is away.
const stubborn = "tools:stubborn"

// sync starts and stops what is wanted of a pod's debug containers, each run once.
func (n *debugNode) sync(ctx context.Context, pod *corev1.Pod) {
	now := metav1.Now()
	for _, c := range pod.Spec.EphemeralContainers {
		want := podspec.DebugRunsOf(pod)[c.Name]
		state := podspec.DebugStateOf(pod, c.Name)
		stopping := want.StopAt != nil && !want.StopAt.After(now.Time)
		key := fmt.Sprintf("%s/%s/%s/%d", pod.Namespace, pod.Name, c.Name, want.Run)
		n.mu.Lock()
		first := !state.Begun && n.started[key] == 0
		if first {
			n.started[key]++
		}
		n.mu.Unlock()
		var to corev1.ContainerState
		switch {
		case first:
			to = stateFor(c.Image, now)
		case stopping && c.Image == stubborn:
			continue
		case stopping && state.Phase == podspec.DebugRunning:
			to.Terminated = &corev1.ContainerStateTerminated{ExitCode: 143, Reason: "Error", StartedAt: now,
				FinishedAt: now}
		case stopping && state.Begun && state.Phase != podspec.DebugEnded:
			to.Terminated = &corev1.ContainerStateTerminated{ExitCode: 143, Reason: "Stopped", FinishedAt: now}
		default:
			continue
		}
		if to == (corev1.ContainerState{}) {
			continue
		}
		// gone, or the test is over
		_, _ = n.setStatus(ctx, pod, func(s *corev1.PodStatus) { putState(s, c.Name, want.Run, to) })
	}
}

// stateFor is what becomes of a container, by its image.
func stateFor(image string, now metav1.Time) (s corev1.ContainerState) {
	switch name, _, _ := strings.Cut(image, ":"); name {
	case "tools", "shell":
		s.Running = &corev1.ContainerStateRunning{StartedAt: now}
	case "flash":
		s.Terminated = &corev1.ContainerStateTerminated{ExitCode: 3, Reason: "Error", StartedAt: now, FinishedAt: now}
	case "missing":
		s.Waiting = &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "no such host"}
	case "rooty":
		s.Waiting = &corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError",
			Message: "container has runAsNonRoot and image will run as root"}
	case "unlisted":
		s.Waiting = &corev1.ContainerStateWaiting{Reason: "ImageNotAllowed",
			Message: "this node takes debug images of example.com only"}
	case "shellless":
		s.Terminated = &corev1.ContainerStateTerminated{ExitCode: 128, Reason: "StartError", FinishedAt: now,
			Message: `exec: "sh": executable file not found in $PATH`}
	case "locked":
		s.Terminated = &corev1.ContainerStateTerminated{ExitCode: 128, Reason: "StartError", FinishedAt: now,
			Message: `exec: "/etc": permission denied`}
	}
	return s
}

func putState(s *corev1.PodStatus, name string, run int, to corev1.ContainerState) {
	i := slices.IndexFunc(s.EphemeralContainerStatuses, func(c corev1.ContainerStatus) bool { return c.Name == name })
	if i < 0 {
		i = len(s.EphemeralContainerStatuses)
		s.EphemeralContainerStatuses = append(s.EphemeralContainerStatuses, corev1.ContainerStatus{Name: name})
	}
	c := &s.EphemeralContainerStatuses[i]
	if int(c.RestartCount) < run {
		c.LastTerminationState = c.State
	}
	c.RestartCount, c.State = int32(run), to
}

func (n *debugNode) serve(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	n.mu.Lock()
	special := n.routes[parts[0]]
	n.served = append(n.served, r.URL.RequestURI())
	n.mu.Unlock()
	if special != nil {
		special(w, r)
		return
	}
	if len(parts) > 4 { // as a node that knows no runs
		http.NotFound(w, r)
		return
	}
	opts, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	const idle, creation = time.Minute, time.Minute
	command := r.URL.Query()["command"]
	switch parts[0] {
	case "attach":
		remotecommand.ServeAttach(w, r, n, parts[2], "", parts[3], opts, idle, creation,
			remotecommand.SupportedStreamingProtocols)
		n.left(r.Context(), parts[1], parts[2], parts[3])
	case "exec":
		remotecommand.ServeExec(w, r, n, parts[2], "", parts[3], command, opts, idle, creation,
			remotecommand.SupportedStreamingProtocols)
	case "imageExec":
		command = append([]string{"image", r.URL.Query().Get("image")}, command...)
		remotecommand.ServeExec(w, r, n, parts[2], "", "", command, opts, idle, creation,
			remotecommand.SupportedStreamingProtocols)
	default:
		http.NotFound(w, r)
	}
}

// AttachContainer says who it is.
func (*debugNode) AttachContainer(_ context.Context, pod, _, container string, _ io.Reader, out, _ io.WriteCloser,
	tty bool, _ <-chan remotecommand.TerminalSize) error {
	_, err := fmt.Fprintf(out, "%s in %s tty=%t", container, pod, tty)
	return err
}

// ExecInContainer says what it is to run; the command exit N ends with N.
func (*debugNode) ExecInContainer(_ context.Context, _, _, container string, cmd []string, _ io.Reader, out,
	_ io.WriteCloser, _ bool, _ <-chan remotecommand.TerminalSize, _ time.Duration) error {
	fmt.Fprintf(out, "%s runs %v", container, cmd)
	if i := slices.Index(cmd, "exit"); i >= 0 {
		code, _ := strconv.Atoi(cmd[i+1])
		return utilexec.CodeExitError{Err: fmt.Errorf("exit %d", code), Code: code}
	}
	return nil
}

// left ends a container of the image shell, whose streams are over: what reads from nobody any more ends. One of the
// image tools runs on.
func (n *debugNode) left(ctx context.Context, ns, pod, container string) {
	p, err := n.client.CoreV1().Pods(ns).Get(ctx, pod, metav1.GetOptions{})
	if err != nil {
		return // gone, or the test is over
	}
	for _, c := range p.Spec.EphemeralContainers {
		if c.Name == container && strings.HasPrefix(c.Image, "shell:") {
			now := metav1.Now()
			_, _ = n.setStatus(ctx, p, func(s *corev1.PodStatus) {
				putState(s, container, podspec.DebugRunsOf(p)[container].Run, corev1.ContainerState{
					Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: now, FinishedAt: now}})
			})
		}
	}
}

func (n *debugNode) requests() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.served)
}

func (n *debugNode) answer(route string, with http.HandlerFunc) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.routes[route] = with
}

// execInto makes a request on pods/exec and returns what came back.
func execInto(t *testing.T, config *rest.Config, way, ns, pod, query string) (string, error) {
	t.Helper()
	u, err := url.Parse(config.Host + "/api/v1/namespaces/" + ns + "/pods/" + pod + "/exec?" + query)
	if err != nil {
		t.Fatal(err)
	}
	var e clientremote.Executor
	if way == "spdy" {
		e, err = clientremote.NewSPDYExecutor(config, http.MethodPost, u)
	} else {
		e, err = clientremote.NewWebSocketExecutor(config, http.MethodGet, u.String())
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out strings.Builder
	opts := clientremote.StreamOptions{Stdout: &out, Tty: strings.Contains(query, "tty=true")}
	if strings.Contains(query, "stdin=true") {
		opts.Stdin = strings.NewReader("")
	}
	err = e.StreamWithContext(ctx, opts)
	return out.String(), err
}
