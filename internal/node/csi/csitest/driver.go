// SPDX-License-Identifier: Apache-2.0

package csitest

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/wherryproject/wherry/internal/server/hostapi/socket"
)

// Driver is a driver that serves.
type Driver struct {
	spec.UnimplementedNodeServer
	registration.UnimplementedRegistrationServer
	Info *registration.PluginInfo
	Can  []spec.NodeServiceCapability_RPC_Type
	Node *spec.NodeGetInfoResponse
	// Fails, if set, is asked before each call, by its name; an error is the answer.
	Fails func(call string) error
	// Told gets the driver's registration statuses.
	Told chan *registration.RegistrationStatus

	mu     sync.Mutex
	calls  []string
	asked  []any
	news   chan struct{}
	path   string
	server *grpc.Server
	served chan error
}

// New makes a driver of a name that has not begun.
func New(name string, can ...spec.NodeServiceCapability_RPC_Type) *Driver {
	return &Driver{Info: &registration.PluginInfo{Type: registration.CSIPlugin, Name: name,
		SupportedVersions: []string{"1.0.0"}}, Can: can, Node: &spec.NodeGetInfoResponse{NodeId: "node-id"},
		Told: make(chan *registration.RegistrationStatus, 100), news: make(chan struct{})}
}

// Start serves all at one socket among those that wait for the kubelet.
func (d *Driver) Start(registry string) error {
	if err := os.MkdirAll(registry, 0o750); err != nil {
		return err
	}
	d.path = filepath.Join(registry, d.Info.GetName()+".sock")
	l, err := socket.Listen(d.path)
	if err != nil {
		return err
	}
	d.server, d.served = grpc.NewServer(), make(chan error, 1)
	registration.RegisterRegistrationServer(d.server, d)
	spec.RegisterNodeServer(d.server, d)
	go func(s *grpc.Server, l net.Listener, served chan error) { served <- s.Serve(l) }(d.server, l, d.served)
	return nil
}

// Stop ends it; its socket goes.
func (d *Driver) Stop() {
	_ = os.Remove(d.path)
	d.server.Stop()
	<-d.served
}

// Calls are those so far, each with the volume.
func (d *Driver) Calls() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.calls)
}

// Asked are the requests of the calls.
func (d *Driver) Asked() []any {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.asked)
}

// Await waits until there are so many calls.
func (d *Driver) Await(ctx context.Context, n int) error {
	for {
		d.mu.Lock()
		has, news := len(d.calls), d.news
		d.mu.Unlock()
		if has >= n {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-news:
		}
	}
}

func (d *Driver) call(name, volume string, r any) error {
	d.mu.Lock()
	d.calls, d.asked = append(d.calls, name+" "+volume), append(d.asked, r)
	close(d.news)
	d.news = make(chan struct{})
	fails := d.Fails
	d.mu.Unlock()
	if fails == nil {
		return nil
	}
	return fails(name)
}

// GetInfo is part of registration.
func (d *Driver) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return d.Info, nil
}

// NotifyRegistrationStatus is part of registration.
func (d *Driver) NotifyRegistrationStatus(_ context.Context,
	s *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	d.Told <- s
	return &registration.RegistrationStatusResponse{}, nil
}

// NodeGetCapabilities is part of the node service.
func (d *Driver) NodeGetCapabilities(context.Context,
	*spec.NodeGetCapabilitiesRequest) (*spec.NodeGetCapabilitiesResponse, error) {
	out := &spec.NodeGetCapabilitiesResponse{}
	for _, t := range d.Can {
		out.Capabilities = append(out.Capabilities, &spec.NodeServiceCapability{
			Type: &spec.NodeServiceCapability_Rpc{Rpc: &spec.NodeServiceCapability_RPC{Type: t}}})
	}
	return out, nil
}

// NodeGetInfo is part of the node service. It is not among the calls.
func (d *Driver) NodeGetInfo(context.Context, *spec.NodeGetInfoRequest) (*spec.NodeGetInfoResponse, error) {
	if d.Node == nil {
		return nil, status.Error(codes.Unavailable, "not ready")
	}
	return d.Node, nil
}

// NodeStageVolume is part of the node service.
func (d *Driver) NodeStageVolume(_ context.Context,
	r *spec.NodeStageVolumeRequest) (*spec.NodeStageVolumeResponse, error) {
	return &spec.NodeStageVolumeResponse{}, d.call("stage", r.GetVolumeId(), r)
}

// NodeUnstageVolume is part of the node service.
func (d *Driver) NodeUnstageVolume(_ context.Context,
	r *spec.NodeUnstageVolumeRequest) (*spec.NodeUnstageVolumeResponse, error) {
	return &spec.NodeUnstageVolumeResponse{}, d.call("unstage", r.GetVolumeId(), r)
}

// NodePublishVolume is part of the node service.
func (d *Driver) NodePublishVolume(_ context.Context,
	r *spec.NodePublishVolumeRequest) (*spec.NodePublishVolumeResponse, error) {
	if err := d.call("publish", r.GetVolumeId(), r); err != nil {
		return nil, err
	}
	return &spec.NodePublishVolumeResponse{}, os.MkdirAll(r.GetTargetPath(), 0o750)
}

// NodeUnpublishVolume is part of the node service.
func (d *Driver) NodeUnpublishVolume(_ context.Context,
	r *spec.NodeUnpublishVolumeRequest) (*spec.NodeUnpublishVolumeResponse, error) {
	if err := d.call("unpublish", r.GetVolumeId(), r); err != nil {
		return nil, err
	}
	return &spec.NodeUnpublishVolumeResponse{}, os.RemoveAll(r.GetTargetPath())
}

// NodeExpandVolume is part of the node service.
func (d *Driver) NodeExpandVolume(_ context.Context,
	r *spec.NodeExpandVolumeRequest) (*spec.NodeExpandVolumeResponse, error) {
	return &spec.NodeExpandVolumeResponse{}, d.call("expand", r.GetVolumeId(), r)
}

// NodeGetVolumeStats is part of the node service.
func (d *Driver) NodeGetVolumeStats(_ context.Context,
	r *spec.NodeGetVolumeStatsRequest) (*spec.NodeGetVolumeStatsResponse, error) {
	return &spec.NodeGetVolumeStatsResponse{Usage: []*spec.VolumeUsage{{Unit: spec.VolumeUsage_BYTES, Total: 10,
		Available: 6, Used: 4}}}, d.call("stats", r.GetVolumeId(), r)
}
