// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/cri"
	"github.com/wherryproject/wherry/internal/node/probe"
)

// userAgent is what HTTP servers see of a hook.
const userAgent = "kube-lifecycle/" + probe.KubernetesVersion

// maxBody is how much of an HTTP answer is read, so that the application can finish writing a short one.
const maxBody = 10 << 10

// Target is the container whose hook is run.
type Target = probe.Target

// Notices are what is called when a hook went otherwise than its error can say. Each may be nil; none may block.
type Notices struct {
	// PlainHTTP: an HTTPS hook was answered by plain HTTP at address (host and port), and was done without TLS.
	PlainHTTP func(pod *corev1.Pod, address string)
	// SleepCut: a sleep hook was cut off by the end of its container.
	SleepCut func()
}

// Runner runs hooks. It is safe for concurrent use. Make one with [New].
type Runner struct {
	cri     *cri.Client
	notices Notices
}

// New makes a runner whose exec hooks run through c.
func New(c *cri.Client, n Notices) *Runner { return &Runner{cri: c, notices: n} }

// Run runs the handler and blocks until it has ended, or until ctx ends; then the error wraps the context's cause. A
// command cut off this way is killed, as far as the runtime does it. Errors name hook, container and pod, in the
// kubelet's words.
func (r *Runner) Run(ctx context.Context, t Target, h *corev1.LifecycleHandler) error {
	kind, what, run := r.handler(t, h)
	if run == nil {
		return fmt.Errorf("cannot run handler: the lifecycle hook of Container %q in Pod %q is not one of exec, httpGet, tcpSocket and sleep",
			t.Container.Name, podName(t.Pod))
	}
	err := run(ctx)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil && !errors.Is(err, context.Cause(ctx)) {
		err = context.Cause(ctx) // says more than how the call broke off
	}
	return fmt.Errorf("%s lifecycle hook (%s) for Container %q in Pod %q failed - error: %w",
		kind, probe.Cut(what), t.Container.Name, podName(t.Pod), err)
}

// handler returns the hook's kind and what it does, for messages, and how to run it; nil if h has no handler.
func (r *Runner) handler(t Target, h *corev1.LifecycleHandler) (kind, what string, run func(context.Context) error) {
	switch {
	case h.Exec != nil:
		return "Exec", fmt.Sprint(h.Exec.Command),
			func(ctx context.Context) error { return r.exec(ctx, t, h.Exec.Command) }
	case h.HTTPGet != nil:
		return "HTTP", h.HTTPGet.Path, func(ctx context.Context) error { return r.httpGet(ctx, t, h.HTTPGet) }
	case h.TCPSocket != nil:
		return "TCP", h.TCPSocket.Port.String(),
			func(ctx context.Context) error { return tcpSocket(ctx, t, h.TCPSocket) }
	case h.Sleep != nil:
		return "Sleep", fmt.Sprint(h.Sleep.Seconds),
			func(ctx context.Context) error { return r.sleep(ctx, h.Sleep.Seconds) }
	}
	return "", "", nil
}

// exec runs the command in the container. Unlike a probe's, its $(NAME) are left as they are.
func (r *Runner) exec(ctx context.Context, t Target, command []string) error {
	result, err := r.cri.ExecSync(ctx, t.ContainerID, command, 0)
	if err != nil {
		return err
	}
	if result.ExitCode == 0 {
		return nil
	}
	return fmt.Errorf("command '%s' exited with %d: %s", probe.Cut(strings.Join(command, " ")), result.ExitCode,
		strings.TrimSpace(probe.Cut(string(result.Output()))))
}

// httpGet asks as the action says. A server that speaks no TLS where HTTPS was asked for is asked without: before
// Kubernetes 1.26 hooks were sent by HTTP whatever their scheme was, and manifests may rest on that. Credentials are
// not sent then. If that fails too, the first error says what is wrong.
func (r *Runner) httpGet(ctx context.Context, t Target, a *corev1.HTTPGetAction) error {
	request, err := t.Request(ctx, a, userAgent)
	if err != nil {
		return err
	}
	err = send(request)
	if !errors.Is(err, http.ErrSchemeMismatch) {
		return err
	}
	plain := request.Clone(ctx)
	plain.URL.Scheme = "http"
	plain.Header.Del("Authorization")
	if send(plain) != nil {
		return err
	}
	if r.notices.PlainHTTP != nil {
		r.notices.PlainHTTP(t.Pod, plain.URL.Host)
	}
	return nil
}

func send(request *http.Request) error {
	client, release := probe.NewClient(0)
	defer release()
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	_, _ = io.CopyN(io.Discard, answer.Body, maxBody) // what it says, and how it ends, is no matter
	_ = answer.Body.Close()
	return nil
}

func tcpSocket(ctx context.Context, t Target, a *corev1.TCPSocketAction) error {
	address, err := t.Address(a.Host, a.Port)
	if err != nil {
		return err
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return conn.Close()
}

func (r *Runner) sleep(ctx context.Context, seconds int64) error {
	over := time.NewTimer(time.Duration(min(seconds, math.MaxInt64/int64(time.Second))) * time.Second)
	defer over.Stop()
	select {
	case <-over.C:
		return nil
	case <-ctx.Done():
		if r.notices.SleepCut != nil {
			r.notices.SleepCut()
		}
		return fmt.Errorf("container terminated before sleep hook finished: %w", context.Cause(ctx))
	}
}

// podName names the pod as the kubelet does in such messages.
func podName(p *corev1.Pod) string { return fmt.Sprintf("%s_%s(%s)", p.Name, p.Namespace, p.UID) }
