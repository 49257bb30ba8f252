// SPDX-License-Identifier: Apache-2.0

package critest

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri/critest/script"
)

// Config is what a fake is made with. The zero value is a runtime with no images that writes no logs.
type Config struct {
	Images   map[string]Image  // on the node from the start, by reference
	Registry map[string]Remote // what can be pulled, by reference
	AnyImage bool              // every well-formed reference can be pulled, as an Image{}

	Logs    bool   // write container output in CRI format to the log paths asked for
	Streams Stream // answers Exec, Attach and PortForward; nil: Unimplemented
	// Script overrides how a container behaves; false leaves it to its image and its words.
	Script func(Info) (script.Script, bool)
	// Exec answers commands run in containers; false leaves it to the command's words.
	Exec func(Info, []string) (ExecAnswer, bool)
}

// Image is an image on the node. Its zero value is one whose process runs until stopped.
type Image struct {
	Script   script.Script
	UID      *int64 // the image's user, if a number
	Username string // or a name
	Size     uint64 // 0: some size
}

// Remote is an image in a registry.
type Remote struct {
	Image
	PullDelay      time.Duration
	PullError      error // a gRPC status error, or any other (Unknown)
	User, Password string
}

// Info names a container to hooks and in the journal.
type Info struct {
	ID, SandboxID            string
	Namespace, Pod, UID      string
	Container, Image         string
	Attempt                  uint32
	Command, Args            []string
	Labels, Annotations, Env map[string]string
	PIDNamespace             string // see Fake.PIDNamespace
}

// ExecAnswer is what a command in a container does.
type ExecAnswer struct {
	Stdout, Stderr string
	ExitCode       int32
	After          time.Duration
	Err            error
}

// Stream gives the URLs at which streams are served; k8s.io/cri-streaming's Server is one.
type Stream interface {
	GetExec(*runtimeapi.ExecRequest) (*runtimeapi.ExecResponse, error)
	GetAttach(*runtimeapi.AttachRequest) (*runtimeapi.AttachResponse, error)
	GetPortForward(*runtimeapi.PortForwardRequest) (*runtimeapi.PortForwardResponse, error)
}

// Call is one call in the fake's journal.
type Call struct {
	Method               string
	At                   time.Time
	ID                   string // of the sandbox or container, where the request has one; an image's reference
	Namespace, Pod, Name string // of the pod and container, where known
	Attempt              uint32
	Timeout              int64 // of StopContainer and ExecSync, seconds
}

// Fake is a container runtime without containers. It implements the CRI's RuntimeServiceServer and ImageServiceServer.
// It is safe for concurrent use, and starts no goroutines but those of time.AfterFunc.
type Fake struct {
	runtimeapi.UnimplementedRuntimeServiceServer
	runtimeapi.UnimplementedImageServiceServer

	config Config

	mu          sync.Mutex
	w           *world
	down        chan struct{} // closed while the daemon is down
	isDown      bool
	unsupported map[string]bool
	delays      map[string]time.Duration
	fault       func(Call) error
	detach      bool
	notReady    map[string]string // condition type -> message
	journal     []Call
}

// NewFake makes a fake runtime.
func NewFake(c Config) *Fake {
	f := &Fake{
		config: c, down: make(chan struct{}),
		unsupported: map[string]bool{}, delays: map[string]time.Duration{}, notReady: map[string]string{},
	}
	f.w = newWorld(&f.mu, c.Logs)
	for ref, img := range c.Images {
		f.AddImage(ref, img)
	}
	for ref, r := range c.Registry {
		f.Publish(ref, r)
	}
	return f
}

// begin stands at the start of every call: it writes the journal and refuses what is to be refused.
func (f *Fake) begin(ctx context.Context, method string, req any) error {
	if err := ctx.Err(); err != nil {
		return status.FromContextError(err).Err()
	}
	f.mu.Lock()
	c := f.w.describe(method, req)
	f.journal = append(f.journal, c)
	down, unsupported, fault := f.isDown, f.unsupported[method], f.fault
	f.mu.Unlock()
	switch {
	case down:
		return errDown()
	case unsupported:
		return status.Errorf(codes.Unimplemented, "unknown method %s", method)
	case fault != nil:
		return fault(c)
	}
	return nil
}

// wait is the time a call takes, as set by [Fake.Delay].
func (f *Fake) wait(ctx context.Context, method string) error {
	f.mu.Lock()
	d := f.delays[method]
	f.mu.Unlock()
	return f.sleep(ctx, d)
}

// sleep waits for d, or less when the caller gives up or the daemon goes down.
func (f *Fake) sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	return f.await(ctx, t.C)
}

func (f *Fake) await(ctx context.Context, done <-chan time.Time) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	case <-f.downs():
		return errDown()
	}
}

func (f *Fake) downs() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.down
}

// enter is begin and wait, for the calls that reserve nothing meanwhile.
func (f *Fake) enter(ctx context.Context, method string, req any) error {
	if err := f.begin(ctx, method, req); err != nil {
		return err
	}
	return f.wait(ctx, method)
}

func errDown() error {
	return status.Error(codes.Unavailable, "connection error: the container runtime is down")
}

// Calls gives the journal: all calls, or those of the methods named, in the order they began.
func (f *Fake) Calls(methods ...string) []Call {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(methods) == 0 {
		return slices.Clone(f.journal)
	}
	var out []Call
	for _, c := range f.journal {
		if slices.Contains(methods, c.Method) {
			out = append(out, c)
		}
	}
	return out
}

// describe makes the journal's entry of a request.
func (w *world) describe(method string, req any) Call {
	c := Call{Method: method, At: time.Now()}
	pod := func(m *runtimeapi.PodSandboxMetadata) {
		c.Namespace, c.Pod = m.GetNamespace(), m.GetName()
	}
	switch r := req.(type) {
	case *runtimeapi.RunPodSandboxRequest:
		pod(r.GetConfig().GetMetadata())
		c.Attempt = r.GetConfig().GetMetadata().GetAttempt()
	case *runtimeapi.CreateContainerRequest:
		pod(r.GetSandboxConfig().GetMetadata())
		c.ID, c.Name, c.Attempt = r.GetPodSandboxId(), r.GetConfig().GetMetadata().GetName(),
			r.GetConfig().GetMetadata().GetAttempt()
	case *runtimeapi.PullImageRequest:
		c.ID = r.GetImage().GetImage()
	case interface{ GetContainerId() string }:
		c.ID = r.GetContainerId()
		if ctr := w.containers[c.ID]; ctr != nil {
			i := ctr.info(w)
			c.Namespace, c.Pod, c.Name, c.Attempt = i.Namespace, i.Pod, i.Container, i.Attempt
		}
	case interface{ GetPodSandboxId() string }:
		c.ID = r.GetPodSandboxId()
		if s := w.sandboxes[c.ID]; s != nil {
			pod(s.config.GetMetadata())
			c.Attempt = s.config.GetMetadata().GetAttempt()
		}
	}
	if r, ok := req.(interface{ GetTimeout() int64 }); ok {
		c.Timeout = r.GetTimeout()
	}
	return c
}

// sorted gives a map's values in the order of their making.
func sorted[V interface{ order() int }](m map[string]V) []V {
	return slices.SortedFunc(maps.Values(m), func(a, b V) int { return a.order() - b.order() })
}
