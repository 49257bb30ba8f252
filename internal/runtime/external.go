// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	tasks "github.com/containerd/containerd/api/services/tasks/v1"
	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"google.golang.org/grpc"
	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri"
	"github.com/wherryproject/wherry/internal/podspec"
	"github.com/wherryproject/wherry/internal/runtime/tap"
)

// External is a containerd that somebody else runs, behind a socket that serves its own API beside the CRI: what the
// embedded one gives to debugging, as far as it can be had from outside. It changes nothing in that containerd's
// settings.
//
// It sees to some calls of the CRI ([External.Intercept]): the start of a debug container, whose output it keeps as the
// embedded one does; reopening such a container's log; the question for the toolbox image, which it brings if need be;
// and status and removal of a container that runs although the CRI takes it for ended, alone or with its sandbox.
type External struct {
	engine
	socket  string
	dir     string // has a folder for each container, which the CRI removes with it
	toolbox toolboxCarrier

	up     atomic.Bool // connected: the calls may be seen to
	ctx    context.Context
	cancel context.CancelFunc
	ends   sync.WaitGroup // of those who wait for containers' ends
}

// NewExternal makes an External that lets all calls through untouched, until it is connected.
func NewExternal(socket string, log *slog.Logger) *External {
	ctx, cancel := context.WithCancel(context.Background())
	return &External{socket: socket, engine: engine{log: log}, ctx: ctx, cancel: cancel}
}

// Connect asks the runtime whether it is a containerd whose files can be reached, and takes up the output of debug
// containers that a former process left. The error says what is missing; then there is nothing to close.
func (e *External) Connect(ctx context.Context, c criapi.RuntimeServiceClient) error {
	if err := e.connect(ctx, c); err != nil {
		e.cancel()
		if e.client != nil {
			err = errors.Join(err, e.client.Close())
		}
		return err
	}
	e.keeps = func(ctx context.Context, id string) (bool, error) {
		s, err := e.spec(ctx, id)
		return s != nil, err
	}
	e.taps = tap.New(e.dir, e.log)
	e.taps.RecoverExchanged(func(id string) bool { return !e.absent(id) })
	for _, id := range e.taps.Live() {
		e.ends.Go(func() { e.awaitEnd(id) })
	}
	e.up.Store(true)
	return nil
}

func (e *External) connect(ctx context.Context, c criapi.RuntimeServiceClient) (err error) {
	if e.client, err = containerd.New(e.socket, containerd.WithDefaultNamespace(Namespace)); err != nil {
		return err
	}
	if _, err := e.client.Version(ctx); cri.Unimplemented(err) {
		return fmt.Errorf("%s serves only the CRI, not containerd's own API", e.socket)
	} else if err != nil {
		return fmt.Errorf("containerd's own API at %s: %s", e.socket, cri.Message(err))
	}
	res, err := c.Status(ctx, &criapi.StatusRequest{Verbose: true})
	if err != nil {
		return fmt.Errorf("the status of containerd's CRI: %s", cri.Message(err))
	}
	settings, err := parseCRISettings(res.GetInfo()["config"])
	if err != nil {
		return fmt.Errorf("containerd's CRI does not report where its files are: %w", err)
	}
	if info, err := os.Stat(settings.StateDir); err != nil || !info.IsDir() {
		return fmt.Errorf("containerd's folder %s cannot be found from here: containerd runs on another machine or in its own mount namespace", settings.StateDir)
	}
	e.cri = c
	e.dir = filepath.Join(settings.StateDir, "containers")
	e.tasks = filepath.Join(filepath.Dir(settings.StateDir), taskPlugin, Namespace)
	e.toolbox.snapshotter = settings.Containerd.Snapshotter
	return nil
}

// criSettings are what containerd's CRI reports of its settings.
type criSettings struct {
	StateDir   string `json:"stateDir"`
	Containerd struct {
		Snapshotter string `json:"snapshotter"` // "" in containerd 2, which keeps it elsewhere
	} `json:"containerd"`
}

func parseCRISettings(text string) (s criSettings, err error) {
	if text == "" {
		return s, errors.New("its status has no config")
	}
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return s, fmt.Errorf("its config: %w", err)
	}
	if !filepath.IsAbs(s.StateDir) {
		return s, fmt.Errorf("its stateDir is %q", s.StateDir)
	}
	return s, nil
}

// Close lets go of the containers, which go on.
func (e *External) Close() error {
	e.up.Store(false)
	e.cancel()
	e.taps.Stop()
	e.ends.Wait()
	return e.client.Close()
}

// reopenTimeout is how long a runtime may take to open a log anew.
const reopenTimeout = 10 * time.Second

// Intercept sees to calls of the CRI; it is a [grpc.UnaryClientInterceptor].
func (e *External) Intercept(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn,
	invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if _, reopens := req.(*criapi.ReopenContainerLogRequest); reopens {
		var cancel context.CancelFunc // what containers print waits for this call
		ctx, cancel = context.WithTimeout(ctx, reopenTimeout)
		defer cancel()
	}
	call := func() error { return invoke(ctx, method, req, reply, conn, opts...) }
	if err := refusePull(req); err != nil {
		return err
	}
	if !e.up.Load() {
		return call()
	}
	switch r := req.(type) {
	case *criapi.StartContainerRequest:
		return e.start(ctx, r.GetContainerId(), call)
	case *criapi.ReopenContainerLogRequest:
		return e.taps.ReopenLog(r.GetContainerId(), call)
	case *criapi.RemoveContainerRequest:
		return e.remove(ctx, r.GetContainerId(), call)
	case *criapi.RemovePodSandboxRequest:
		return e.removeSandbox(ctx, r.GetPodSandboxId(), call)
	case *criapi.ContainerStatusRequest:
		if status, ok := reply.(*criapi.ContainerStatusResponse); ok {
			return e.status(ctx, r.GetContainerId(), status, call)
		}
	case *criapi.ImageStatusRequest:
		if status, ok := reply.(*criapi.ImageStatusResponse); ok && podspec.IsToolbox(r.GetImage().GetImage()) {
			return e.toolbox.status(ctx, e.client, status, call)
		}
	}
	return call()
}

// start starts a container, one of debugging's with a tap on its output.
func (e *External) start(ctx context.Context, id string, call func() error) error {
	spec, err := e.spec(ctx, id)
	if err != nil || spec == nil {
		return call() // it is the CRI's to say what is wrong
	}
	var failed error
	err = e.taps.StartExchanged(id, *spec, func() error {
		failed = call()
		if failed != nil && e.absent(id) {
			return failed
		}
		return nil // also when it is not known: if there is no shim, there is no output
	})
	if err != nil {
		return err
	}
	e.ends.Go(func() { e.awaitEnd(id) })
	return failed
}

// spec is how a container is to be tapped; nil if it is not: it is not of debugging, or its fifos are not where they
// were expected.
func (e *External) spec(ctx context.Context, id string) (*tap.Spec, error) {
	found, err := e.client.ContainerService().Get(namespaces.WithNamespace(ctx, Namespace), id)
	if err != nil {
		return nil, err
	}
	ext := found.Extensions[criMetadata]
	if ext == nil {
		return nil, nil
	}
	c, err := parseRecord(id, ext.GetValue())
	if err != nil || !keptOutput(c) {
		return nil, err
	}
	stdout, err := filepath.Glob(filepath.Join(e.dir, id, "io", "*", id+"-stdout"))
	if err != nil || len(stdout) != 1 {
		e.log.Warn("containerd's fifos for a container were not found; clients that attach will not see its earlier output", "container", id, "err", err)
		return nil, err
	}
	fifo := func(there bool, name string) string {
		if !there {
			return ""
		}
		return filepath.Join(filepath.Dir(stdout[0]), id+"-"+name)
	}
	tty := c.Config.TTY
	return tapSpec(c, fifo(c.Config.Stdin, "stdin"), stdout[0], fifo(!tty, "stderr"), tty), nil
}

// askTime bounds questions whose answer is needed though the caller may have gone.
const askTime = 5 * time.Second

// absent reports whether it is known that a container has no task.
func (e *External) absent(id string) bool {
	ctx, cancel := context.WithTimeout(namespaces.WithNamespace(e.ctx, Namespace), askTime)
	defer cancel()
	_, err := e.client.TaskService().Get(ctx, &tasks.GetRequest{ContainerID: id})
	return cri.NotFound(err)
}

// awaitEnd notifies a container's tap when its process has ended.
func (e *External) awaitEnd(id string) {
	ctx := namespaces.WithNamespace(e.ctx, Namespace)
	for {
		_, err := e.client.TaskService().Wait(ctx, &tasks.WaitRequest{ContainerID: id})
		if err == nil || cri.NotFound(err) {
			e.taps.ProcessEnded(id)
			return
		}
		if !again(e.ctx) { // containerd is being started anew
			return
		}
	}
}
