// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	containersapi "github.com/containerd/containerd/api/services/containers/v1"
	tasks "github.com/containerd/containerd/api/services/tasks/v1"
	tasktypes "github.com/containerd/containerd/api/types/task"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/containerd/v2/plugins"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri"
	"github.com/wherryproject/wherry/internal/podspec"
	"github.com/wherryproject/wherry/internal/runtime/tap"
)

// criMetadata is where containerd's CRI keeps, in containerd's record of a container, what it was asked for.
const criMetadata = "io.cri-containerd.container.metadata"

// criContainer is what is of interest in there.
type criContainer struct {
	Config struct {
		Labels    map[string]string `json:"labels"`
		Stdin     bool              `json:"stdin"`
		StdinOnce bool              `json:"stdin_once"`
		TTY       bool              `json:"tty"`
	}
	LogPath string
}

// metadata reads the CRI's record of a container; nil if it has none, as sandboxes.
func (d *daemon) metadata(ctx context.Context, id string) (*criContainer, error) {
	containers, err := instance[containersapi.ContainersClient](d, plugins.ServicePlugin, "containers-service")
	if err != nil {
		return nil, err
	}
	found, err := containers.Get(namespaces.WithNamespace(ctx, Namespace), &containersapi.GetContainerRequest{ID: id})
	if err != nil {
		return nil, err
	}
	ext := found.GetContainer().GetExtensions()[criMetadata]
	if ext == nil {
		return nil, nil
	}
	return parseRecord(id, ext.Value)
}

// parseRecord reads the CRI's record of a container.
func parseRecord(id string, text []byte) (*criContainer, error) {
	var v struct {
		Version  string
		Metadata criContainer
	}
	if err := json.Unmarshal(text, &v); err != nil {
		return nil, fmt.Errorf("the CRI's record of container %s: %w", id, err)
	}
	if v.Version != "v1" {
		return nil, fmt.Errorf("the CRI's record of container %s has the unknown version %q", id, v.Version)
	}
	return &v.Metadata, nil
}

// keptOutput decides whose output is kept for those who attach (EC-16): of debugging's containers. To others an
// attachment shows what comes from then on, as Kubernetes has it: kubectl run reads the log before it attaches, and
// would show all of it twice. Their output passes through a tap all the same, which writes the log several times as
// fast as the CRI and loses nothing of it when the server is killed (decision 081).
func keptOutput(c *criContainer) bool {
	labels := c.Config.Labels
	return cri.IsExec(labels) || labels[cri.LabelContainerType] == podspec.Ephemeral.Label()
}

// tappedTasks is containerd's tasks service, but the shims of all containers write into taps. The CRI is not to know:
// it hears of its own fifos, and finds no output in them, only its end.
type tappedTasks struct {
	tasks.TasksClient
	daemon *daemon
	taps   *tap.Taps
}

// Create implements tasks.TasksClient.
func (t *tappedTasks) Create(ctx context.Context, in *tasks.CreateTaskRequest,
	opts ...grpc.CallOption) (r *tasks.CreateTaskResponse, err error) {
	spec, err := t.spec(ctx, in)
	if err != nil {
		return nil, err
	}
	create := func(in *tasks.CreateTaskRequest) error {
		r, err = t.TasksClient.Create(ctx, in, opts...)
		return err
	}
	if spec == nil {
		return r, create(in)
	}
	err = createTapped(t.taps, *spec, in, create)
	return r, err
}

// createTapped creates a container whose shim writes into a tap. One whose output need not be kept does not depend on
// there being room for a tap.
func createTapped(taps *tap.Taps, spec tap.Spec, in *tasks.CreateTaskRequest,
	create func(*tasks.CreateTaskRequest) error) error {
	tapped := proto.CloneOf(in)
	if in.Stdin != "" {
		tapped.Stdin += tap.Suffix
	}
	tapped.Stdout += tap.Suffix
	if in.Stderr != "" && !in.Terminal {
		tapped.Stderr += tap.Suffix
	}
	tried := false
	err := taps.Start(in.ContainerID, spec, func() error {
		tried = true
		return create(tapped)
	})
	if err != nil && !tried && spec.FromNow {
		return create(in)
	}
	return err
}

// spec is how a new task is to be tapped; nil if it is not.
func (t *tappedTasks) spec(ctx context.Context, in *tasks.CreateTaskRequest) (*tap.Spec, error) {
	if in.Stdout == "" || in.Stderr == "" && !in.Terminal {
		return nil, nil // a sandbox
	}
	c, err := t.daemon.metadata(ctx, in.ContainerID)
	if err != nil || c == nil {
		return nil, err
	}
	return tapSpec(c, in.Stdin, in.Stdout, in.Stderr, in.Terminal), nil
}

// tapSpec is how a container is tapped whose fifos these are.
func tapSpec(c *criContainer, stdin, stdout, stderr string, tty bool) *tap.Spec {
	kept := keptOutput(c)
	return &tap.Spec{Stdin: stdin, Stdout: stdout, Stderr: stderr, Log: c.LogPath, TTY: tty,
		StdinOnce: c.Config.StdinOnce, FromNow: !kept,
		Awaited: kept && (c.Config.StdinOnce || cri.IsExec(c.Config.Labels))}
}

// Get implements tasks.TasksClient.
func (t *tappedTasks) Get(ctx context.Context, in *tasks.GetRequest,
	opts ...grpc.CallOption) (*tasks.GetResponse, error) {
	r, err := t.TasksClient.Get(ctx, in, opts...)
	if err == nil {
		showTheirs(r.Process)
	}
	return r, err
}

// List implements tasks.TasksClient.
func (t *tappedTasks) List(ctx context.Context, in *tasks.ListTasksRequest,
	opts ...grpc.CallOption) (*tasks.ListTasksResponse, error) {
	r, err := t.TasksClient.List(ctx, in, opts...)
	for _, p := range r.GetTasks() {
		showTheirs(p)
	}
	return r, err
}

// showTheirs puts the CRI's fifos in the place of the tap's.
func showTheirs(p *tasktypes.Process) {
	for _, path := range []*string{&p.Stdin, &p.Stdout, &p.Stderr} {
		*path = strings.TrimSuffix(*path, tap.Suffix)
	}
}

// Wait implements tasks.TasksClient.
func (t *tappedTasks) Wait(ctx context.Context, in *tasks.WaitRequest,
	opts ...grpc.CallOption) (*tasks.WaitResponse, error) {
	r, err := t.TasksClient.Wait(ctx, in, opts...)
	if err == nil && in.ExecID == "" {
		t.taps.ProcessEnded(in.ContainerID)
	}
	return r, err
}

// aroundTaps handles a call of the CRI. Logs that a tap writes are opened anew with the CRI's, and the CRI's own way to
// attach is closed where it would show nothing.
func aroundTaps(ctx context.Context, req any, handle grpc.UnaryHandler, taps *tap.Taps) (any, error) {
	if r, ok := req.(*criapi.AttachRequest); ok && taps.Kept(r.ContainerId) {
		return nil,
			status.Error(codes.FailedPrecondition,
				"the streams of this container are managed by wherry: use kubectl attach")
	}
	r, ok := req.(*criapi.ReopenContainerLogRequest)
	if !ok {
		return handle(ctx, req)
	}
	var res any
	err := taps.ReopenLog(r.ContainerId, func() (err error) {
		res, err = handle(ctx, req)
		return err
	})
	return res, err
}
