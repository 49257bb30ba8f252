// SPDX-License-Identifier: Apache-2.0

package enter

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"

	"github.com/wherryproject/wherry/internal/api/connect"
	"github.com/wherryproject/wherry/internal/api/connect/kubelettest"
	"github.com/wherryproject/wherry/internal/debug/options"
)

func TestMain(m *testing.M) { kubelettest.Main(m) }

// cluster has pods that are entered.
type cluster struct {
	*kubelettest.Cluster
	mu   sync.Mutex
	told []string // what was put on record
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{Cluster: kubelettest.NewCluster(t)}
	kubelets := connect.NewKubelets(c.Node, c.TLS())
	t.Cleanup(kubelets.Close)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, connect.RegisterConversions, options.Register} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	pods := connect.NewPods(c.Pod, kubelets.Locate)
	c.Serve(t, scheme, http.NewServeMux(), map[string]rest.Connecter{
		"exec": NewExec(pods, nil, nil, c), "attach": NewAttach(pods),
	})
	return c
}

// Entered implements Recorder.
func (c *cluster) Entered(_ context.Context, pod *corev1.Pod, container string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told = append(c.told, "exec "+pod.Name+"/"+container)
	return nil
}

// IX-08: an exec is told before it is handed over, and only then; an attach and a refused exec are not.
func TestExecIsTold(t *testing.T) {
	for _, way := range kubelettest.Ways() {
		t.Run(way, func(t *testing.T) {
			c := newCluster(t)
			var out bytes.Buffer
			stream := func(pod, sub string, opts *corev1.PodExecOptions) error {
				return c.Executor(t, way, pod, sub, opts).StreamWithContext(kubelettest.Context(t), remotecommand.StreamOptions{Stdout: &out})
			}
			if err := stream("many", "exec", &corev1.PodExecOptions{Stdout: true, Container: "b", Command: []string{"both"}}); err != nil {
				t.Fatal(err)
			}
			if err := stream("many", "exec", &corev1.PodExecOptions{Stdout: true, Container: "nobody", Command: []string{"both"}}); err == nil {
				t.Fatal("no error")
			}
			if err := stream("homeless", "exec", &corev1.PodExecOptions{Stdout: true, Command: []string{"both"}}); err == nil {
				t.Fatal("no error")
			}
			if err := stream("plain", "attach", &corev1.PodExecOptions{Stdout: true}); err != nil {
				t.Fatal(err)
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			if !slices.Equal(c.told, []string{"exec many/b"}) {
				t.Errorf("told %q", c.told)
			}
		})
	}
}

// TestExec runs commands over both protocols; EC-14 and PL-09 build on it.
func TestExec(t *testing.T) {
	for _, way := range kubelettest.Ways() {
		t.Run(way, func(t *testing.T) {
			c := newCluster(t)
			t.Run("stdout and stderr are kept apart", func(t *testing.T) {
				var out, errOut bytes.Buffer
				opts := &corev1.PodExecOptions{Stdout: true, Stderr: true, Container: "b", Command: []string{"both"}}
				err := c.Executor(t, way, "many", "exec", opts).StreamWithContext(kubelettest.Context(t), remotecommand.StreamOptions{Stdout: &out, Stderr: &errOut})
				if err != nil || out.String() != "out of b" || errOut.String() != "err" {
					t.Errorf("%q %q %v", &out, &errOut, err)
				}
			})
			t.Run("stdin ends", func(t *testing.T) {
				var out bytes.Buffer
				in := strings.Repeat("0123456789abcdef", 1<<14)
				opts := &corev1.PodExecOptions{Stdin: true, Stdout: true, Command: []string{"cat"}}
				err := c.Executor(t, way, "plain", "exec", opts).StreamWithContext(kubelettest.Context(t), remotecommand.StreamOptions{Stdin: strings.NewReader(in), Stdout: &out})
				if err != nil || out.String() != in {
					t.Errorf("%d bytes back of %d: %v", out.Len(), len(in), err)
				}
			})
			t.Run("the exit code is handed on", func(t *testing.T) {
				opts := &corev1.PodExecOptions{Stdout: true, Command: []string{"exit", "7"}}
				err := c.Executor(t, way, "plain", "exec", opts).StreamWithContext(kubelettest.Context(t), remotecommand.StreamOptions{Stdout: io.Discard})
				var code exec.CodeExitError
				if !errors.As(err, &code) || code.Code != 7 {
					t.Errorf("%T %v", err, err)
				}
			})
			t.Run("a terminal has a size", func(t *testing.T) {
				var out bytes.Buffer
				opts := &corev1.PodExecOptions{Stdin: true, Stdout: true, TTY: true, Command: []string{"size"}}
				err := c.Executor(t, way, "plain", "exec", opts).StreamWithContext(kubelettest.Context(t), remotecommand.StreamOptions{
					Stdin: strings.NewReader(""), Stdout: &out, Tty: true, TerminalSizeQueue: &oneSize{},
				})
				if err != nil || out.String() != "tty=true 80x25" {
					t.Errorf("%q %v", &out, err)
				}
			})
			t.Run("attach", func(t *testing.T) {
				var out bytes.Buffer
				opts := &corev1.PodAttachOptions{Stdin: true, Stdout: true}
				err := c.Executor(t, way, "plain", "attach", opts).StreamWithContext(kubelettest.Context(t), remotecommand.StreamOptions{Stdin: strings.NewReader("hello"), Stdout: &out})
				if err != nil || out.String() != "attached to main: hello" {
					t.Errorf("%q %v", &out, err)
				}
			})
		})
	}
}

type oneSize struct{ given bool }

func (s *oneSize) Next() *remotecommand.TerminalSize {
	if s.given {
		return nil
	}
	s.given = true
	return &remotecommand.TerminalSize{Width: 80, Height: 25}
}

// TestExecRefusals: PL-15, a request that cannot be served says why.
func TestExecRefusals(t *testing.T) {
	c := newCluster(t)
	echo := []string{"both"}
	for _, tc := range []struct {
		name, pod, want string
		opts            corev1.PodExecOptions
	}{
		{"no such pod", "none", `pods "none" not found`, corev1.PodExecOptions{Stdout: true, Command: echo}},
		{"several containers", "many", "a container name must be specified for pod many, choose one of: [a b] or one of the init containers: [setup]", corev1.PodExecOptions{Stdout: true, Command: echo}},
		{"no such container", "many", "container x is not valid for pod many", corev1.PodExecOptions{Stdout: true, Container: "x", Command: echo}},
		{"not scheduled", "homeless", "pod homeless does not have a host assigned", corev1.PodExecOptions{Stdout: true, Command: echo}},
		{"unknown node", "unregistered", `node "nobody" is not registered`, corev1.PodExecOptions{Stdout: true, Command: echo}},
		{"silent node", "early", `node "mute" has published no address yet`, corev1.PodExecOptions{Stdout: true, Command: echo}},
		{"no streams", "plain", "you must specify at least 1 of stdin, stdout, stderr", corev1.PodExecOptions{Command: echo}},
		{"no command", "plain", "you must specify at least one command for the container", corev1.PodExecOptions{Stdout: true}},
	} {
		for _, way := range kubelettest.Ways() {
			t.Run(tc.name+" "+way, func(t *testing.T) {
				err := c.Executor(t, way, tc.pod, "exec", &tc.opts).StreamWithContext(kubelettest.Context(t), remotecommand.StreamOptions{Stdout: io.Discard})
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("got %v, want %q", err, tc.want)
				}
			})
		}
	}
	t.Run("dead node spdy", func(t *testing.T) {
		opts := &corev1.PodExecOptions{Stdout: true, Command: echo}
		err := c.Executor(t, "spdy", "lost", "exec", opts).StreamWithContext(kubelettest.Context(t), remotecommand.StreamOptions{Stdout: io.Discard})
		if err == nil || !strings.Contains(err.Error(), `cannot reach the kubelet of node "dead"`) {
			t.Error(err)
		}
	})
	t.Run("dead node websocket", func(t *testing.T) {
		opts := &corev1.PodExecOptions{Stdout: true, Command: echo}
		err := c.Executor(t, "websocket", "lost", "exec", opts).StreamWithContext(kubelettest.Context(t), remotecommand.StreamOptions{Stdout: io.Discard})
		if err == nil || !strings.Contains(err.Error(), "connection refused") {
			t.Error(err)
		}
	})
	for _, way := range kubelettest.Ways() {
		t.Run("the kubelet's own refusal "+way, func(t *testing.T) {
			opts := &corev1.PodExecOptions{Stdout: true, Command: echo}
			err := c.Executor(t, way, "leaving", "exec", opts).StreamWithContext(kubelettest.Context(t), remotecommand.StreamOptions{Stdout: io.Discard})
			if err == nil || !strings.Contains(err.Error(), `container not found ("gone")`) {
				t.Error(err)
			}
		})
	}
}

// A few hundred commands that print one word and end at once: none is lost.
func TestThroughLosesNothing(t *testing.T) {
	c := newCluster(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				var out, errOut bytes.Buffer
				err := c.Executor(t, kubelettest.Throughout, "many", "exec", &corev1.PodExecOptions{Stdout: true, Stderr: true, Container: "b", Command: []string{"both"}}).
					StreamWithContext(kubelettest.Context(t), remotecommand.StreamOptions{Stdout: &out, Stderr: &errOut})
				if err != nil || out.String() != "out of b" || errOut.String() != "err" {
					t.Errorf("%q %q %v", &out, &errOut, err)
				}
			}
		})
	}
	all.Wait()
}
