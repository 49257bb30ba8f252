// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"fmt"
	"net"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/cri"
)

// KubernetesVersion is what stands after "kube-probe/" and "kube-lifecycle/" in User-Agent headers. Applications match
// on these to keep probes out of their logs.
const KubernetesVersion = "1.37"

// userAgent is what HTTP and gRPC servers see of a probe.
const userAgent = "kube-probe/" + KubernetesVersion

// Verdict is what one try says of the container.
type Verdict uint8

// The verdicts. Unknown comes with an error, and only then.
const (
	Unknown Verdict = iota
	Success
	Failure
)

// String returns the verdict as the kubelet's metric prober_probe_total labels it.
func (v Verdict) String() string {
	switch v {
	case Success:
		return "successful"
	case Failure:
		return "failed"
	}
	return "unknown"
}

// Result is what came of one try.
type Result struct {
	Verdict Verdict
	// Message is for the user: why it failed, or what the container answered. Valid UTF-8, at most 10 KiB.
	Message string
	// Warning is set on a Success that the user ought to look at: a redirect away from the container, which was not
	// followed. Kubernetes shows its Message as an event with the reason ProbeWarning.
	Warning bool
}

// Target is the container that is probed.
type Target struct {
	Pod         *corev1.Pod // for messages
	Container   *corev1.Container
	ContainerID string // the runtime's
	PodIP       string // the node's IP for pods in the host's network
}

// Prober makes tries. It is safe for concurrent use and holds nothing between them. Make one with [New].
type Prober struct {
	cri  *cri.Client
	dial dialFunc
}

type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// New makes a prober whose exec probes run through c.
func New(c *cri.Client) *Prober {
	return &Prober{cri: c, dial: new(net.Dialer).DialContext}
}

// Try makes one try of the probe and blocks until it has ended, at most for its timeoutSeconds (for exec, until the
// runtime has killed the command then). See the package's law for what an error means.
func (p *Prober) Try(ctx context.Context, t Target, spec *corev1.Probe) (Result, error) {
	r, err := p.try(ctx, t, spec, timeoutOf(spec))
	if r.Verdict != Success && ctx.Err() != nil {
		// A connection that broke because nobody wants to know any more says nothing of the container.
		err = context.Cause(ctx)
	}
	if err != nil {
		return Result{}, fmt.Errorf("probe of container %q: %w", t.Container.Name, err)
	}
	r.Message = Cut(r.Message)
	return r, nil
}

func (p *Prober) try(ctx context.Context, t Target, spec *corev1.Probe, timeout time.Duration) (Result, error) {
	switch {
	case spec.Exec != nil:
		return p.exec(ctx, t, spec.Exec.Command, timeout)
	case spec.HTTPGet != nil:
		return p.httpGet(ctx, t, spec.HTTPGet, timeout)
	case spec.TCPSocket != nil:
		return p.tcpSocket(ctx, t, spec.TCPSocket, timeout)
	case spec.GRPC != nil:
		return p.grpc(ctx, t, spec.GRPC, timeout)
	}
	return Result{}, fmt.Errorf("the probe has no handler: give it exec, httpGet, tcpSocket or grpc")
}

// timeoutOf returns the probe's timeoutSeconds; without one, the API's default.
func timeoutOf(spec *corev1.Probe) time.Duration {
	return time.Duration(max(spec.TimeoutSeconds, 1)) * time.Second
}

func failed(format string, args ...any) Result {
	return Result{Verdict: Failure, Message: fmt.Sprintf(format, args...)}
}
