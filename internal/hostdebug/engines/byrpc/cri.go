// SPDX-License-Identifier: Apache-2.0

package byrpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri"
	"github.com/wherryproject/wherry/internal/debug/evidence"
	"github.com/wherryproject/wherry/internal/enginesocket"
	"github.com/wherryproject/wherry/internal/hostdebug/engines"
	"github.com/wherryproject/wherry/internal/hostdebug/target"
)

// CRI is a runtime of Kubernetes.
type CRI struct {
	client *cri.Client
	o      engines.Options
	socket string
}

// NewCRI connects to the runtime that the options name. [CRI.Close] closes it.
func NewCRI(ctx context.Context, o engines.Options) (*CRI, error) {
	socket, err := enginesocket.CRIPlace().Find(ctx, o.Address, o.Getenv)
	if err != nil {
		return nil, err
	}
	client, err := cri.Dial(ctx, "unix://"+socket)
	if err != nil {
		return nil, err
	}
	return &CRI{client, o, socket}, nil
}

// Close closes the connection.
func (c *CRI) Close() error { return c.client.Close() }

// Find implements engines.Engine.
func (c *CRI) Find(ctx context.Context, t target.Target) (*engines.Container, error) {
	list, err := c.client.Runtime.ListContainers(ctx, &runtimeapi.ListContainersRequest{})
	if err != nil {
		return nil, fmt.Errorf("socket %s: %s", c.socket, cri.Message(err))
	}
	one, err := meant(list.GetContainers(), t)
	if err != nil {
		return nil, err
	}
	got, err := c.client.Runtime.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: one.GetId(),
		Verbose: true})
	if err != nil {
		return nil, fmt.Errorf("socket %s: %s", c.socket, cri.Message(err))
	}
	d, err := c.describe(ctx, one, got)
	if err != nil {
		return nil, err
	}
	return d, nil
}

// meant is the container that a target means: the newest of a pod's name and its own, or the one whose ID begins so.
func meant(list []*runtimeapi.Container, t target.Target) (*runtimeapi.Container, error) {
	var found []*runtimeapi.Container
	for _, c := range list {
		pod, name := c.GetLabels()[cri.LabelPodName], c.GetMetadata().GetName()
		switch {
		case t.Namespace != "" && pod == t.Namespace && name == t.Name,
			t.Namespace == "" && (strings.HasPrefix(c.GetId(), t.Name) || name == t.Name):
			found = append(found, c)
		}
	}
	newest := map[string]*runtimeapi.Container{} // by pod and name: its earlier attempts are not meant by the name
	for _, c := range found {
		key := c.GetPodSandboxId() + "/" + c.GetMetadata().GetName()
		if strings.HasPrefix(c.GetId(), t.Name) {
			key = c.GetId()
		}
		if old := newest[key]; old == nil || old.GetMetadata().GetAttempt() < c.GetMetadata().GetAttempt() {
			newest[key] = c
		}
	}
	if len(newest) == 0 {
		return nil, errors.New("there is no such container (crictl ps -a lists those that there are)")
	}
	var which []string
	var one *runtimeapi.Container
	for _, c := range newest {
		one = c
		which = append(which, "cri:"+c.GetId()[:min(13, len(c.GetId()))]+" ("+c.GetLabels()[cri.LabelPodName]+"/"+
			c.GetMetadata().GetName()+")")
	}
	if len(newest) > 1 {
		return nil, fmt.Errorf("several containers are meant: choose one of %s", strings.Join(which, ", "))
	}
	return one, nil
}

// describe is what a runtime knows of a container. With an error for its files there is the rest.
func (c *CRI) describe(ctx context.Context, one *runtimeapi.Container,
	got *runtimeapi.ContainerStatusResponse) (*engines.Container, error) {
	s := got.GetStatus()
	d := summary(one)
	d.Started, d.Finished = nanos(s.GetStartedAt()), nanos(s.GetFinishedAt())
	d.ExitCode, d.OOMKilled, d.Error = int(s.GetExitCode()), s.GetReason() == "OOMKilled", s.GetMessage()
	var info struct {
		PID     int             `json:"pid"`
		Spec    json.RawMessage `json:"runtimeSpec"`
		Snapper string          `json:"snapshotter"`
		Key     string          `json:"snapshotKey"`
	}
	if text := got.GetInfo()["info"]; text != "" {
		if err := json.Unmarshal([]byte(text), &info); err != nil {
			return nil, fmt.Errorf("what the runtime tells of it cannot be read: %w", err)
		}
	}
	if len(info.Spec) > 0 {
		if err := specInto(d, info.Spec); err != nil {
			return nil, err
		}
	}
	if d.State == engines.Running {
		if info.PID <= 0 {
			return nil,
				errors.New("this runtime does not tell its process: debug it by its engine (docker:NAME), or with pid:NUMBER")
		}
		d.PID = info.PID
	}
	if path := s.GetLogPath(); path != "" {
		d.ReadLog = func(_ context.Context, lines int) (io.ReadCloser, error) { return criLog(path, lines) }
	}
	if !d.Alive() && info.Key != "" {
		layers, err := Snapshots(c.Containerd())(ctx, "k8s.io", info.Key)
		if err != nil { // what else is known of it is
			return d, fmt.Errorf("its files: %w", err)
		}
		d.Layers = layers
	}
	return d, nil
}

// Containerd are the options by which containerd is asked for what the CRI does not report: at the socket that was
// found, which may be none of containerd's own usual ones, unless another was given.
func (c *CRI) Containerd() engines.Options {
	o := engines.Options{Address: c.socket, Getenv: c.o.Getenv}
	if c.o.Getenv(enginesocket.ContainerdPlace().Variable) != "" {
		o.Address = ""
	}
	return o
}

func nanos(n int64) time.Time {
	if n <= 0 {
		return time.Time{}
	}
	return time.Unix(0, n)
}

// summary is what a list says of a container.
func summary(c *runtimeapi.Container) *engines.Container {
	d := &engines.Container{Target: target.Target{Engine: target.CRI, Name: c.GetId()}, ID: c.GetId(),
		Name: c.GetMetadata().GetName(), Image: c.GetImage().GetUserSpecifiedImage(), Created: nanos(c.GetCreatedAt()),
		State: engines.Exited}
	if d.Image == "" {
		d.Image = c.GetImage().GetImage()
	}
	if pod := c.GetLabels()[cri.LabelPodName]; pod != "" {
		d.Target.Namespace, d.Target.Name = pod, d.Name
	}
	switch c.GetState() {
	case runtimeapi.ContainerState_CONTAINER_RUNNING:
		d.State = engines.Running
	case runtimeapi.ContainerState_CONTAINER_CREATED:
		d.State = engines.Created
	}
	return d
}

// maxLog bounds what is read of a log's end.
const maxLog = 1 << 20

// criLog reads the last lines of a log in CRI format.
func criLog(path string, lines int) (io.ReadCloser, error) {
	text, err := evidence.CRILogEnd(path, maxLog)
	if err != nil {
		return nil, err
	}
	return io.NopCloser(bytes.NewReader(evidence.LastLines(text, lines))), nil
}

// List implements engines.Engine.
func (c *CRI) List(ctx context.Context) ([]*engines.Container, error) {
	list, err := c.client.Runtime.ListContainers(ctx, &runtimeapi.ListContainersRequest{})
	if err != nil {
		return nil, fmt.Errorf("socket %s: %s", c.socket, cri.Message(err))
	}
	var all []*engines.Container
	for _, one := range list.GetContainers() {
		all = append(all, summary(one))
	}
	return all, nil
}
