// SPDX-License-Identifier: Apache-2.0

package devicetest

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/wherryproject/wherry/internal/node/kubeletsocket"
)

// Plugin is a running plug-in of one resource.
type Plugin struct {
	plugin.UnimplementedDevicePluginServer
	Folder, Resource string
	Options          *plugin.DevicePluginOptions
	// Answer, if set, makes what a container is given; else it is an environment variable with the devices.
	Answer func(ids []string) (*plugin.ContainerAllocateResponse, error)
	// Prefer, if set, is the answer to GetPreferredAllocation.
	Prefer func(free, must []string, size int) []string

	mu      sync.Mutex
	devices []*plugin.Device
	news    chan struct{}
	calls   []string
	server  *grpc.Server
	served  chan struct{}
}

// Device is a device for a list; NUMA below 0 is not known.
func Device(id string, healthy bool, numa int64) *plugin.Device {
	d := &plugin.Device{ID: id, Health: plugin.Unhealthy}
	if healthy {
		d.Health = plugin.Healthy
	}
	if numa >= 0 {
		d.Topology = &plugin.TopologyInfo{Nodes: []*plugin.NUMANode{{ID: numa}}}
	}
	return d
}

// Start serves the plug-in's socket and registers with the node.
func (p *Plugin) Start(devices ...*plugin.Device) error {
	endpoint := strings.NewReplacer("/", "-").Replace(p.Resource) + ".sock"
	path := filepath.Join(p.Folder, endpoint)
	_ = os.Remove(path)
	dir, err := os.Open(p.Folder)
	if err != nil {
		return err
	}
	defer dir.Close()
	l, err := net.Listen("unix", fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), endpoint)) // the path may be too long
	if err != nil {
		return err
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	p.devices, p.news = devices, make(chan struct{})
	server, served := grpc.NewServer(), make(chan struct{})
	p.server, p.served = server, served
	plugin.RegisterDevicePluginServer(server, p)
	go func() {
		defer close(served)
		_ = server.Serve(l)
	}()
	return p.Register(plugin.Version, endpoint)
}

// Register calls the node; Start does so too.
func (p *Plugin) Register(version, endpoint string) error {
	conn, err := grpc.NewClient("passthrough:///node", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return kubeletsocket.Dial(ctx, filepath.Join(p.Folder, kubeletsocket.Name))
		}))
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, err = plugin.NewRegistrationClient(conn).Register(ctx, &plugin.RegisterRequest{Version: version,
		Endpoint: endpoint, ResourceName: p.Resource, Options: p.Options})
	return err
}

// Stop ends the plug-in at once, as if it had been killed.
func (p *Plugin) Stop() {
	p.server.Stop()
	<-p.served
}

// Set reports other devices.
func (p *Plugin) Set(devices ...*plugin.Device) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.devices = devices
	close(p.news)
	p.news = make(chan struct{})
}

// Calls are those so far, for example "Allocate a,b".
func (p *Plugin) Calls() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.calls)
}

func (p *Plugin) called(what string, ids []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, what+" "+strings.Join(ids, ","))
}

// GetDevicePluginOptions is part of the protocol.
func (p *Plugin) GetDevicePluginOptions(context.Context, *plugin.Empty) (*plugin.DevicePluginOptions, error) {
	return p.Options, nil
}

// ListAndWatch is part of the protocol.
func (p *Plugin) ListAndWatch(_ *plugin.Empty, to grpc.ServerStreamingServer[plugin.ListAndWatchResponse]) error {
	for {
		p.mu.Lock()
		devices, news := p.devices, p.news
		p.mu.Unlock()
		if err := to.Send(&plugin.ListAndWatchResponse{Devices: devices}); err != nil {
			return err
		}
		select {
		case <-to.Context().Done():
			return nil
		case <-news:
		}
	}
}

// GetPreferredAllocation is part of the protocol.
func (p *Plugin) GetPreferredAllocation(_ context.Context,
	in *plugin.PreferredAllocationRequest) (*plugin.PreferredAllocationResponse, error) {
	out := &plugin.PreferredAllocationResponse{}
	for _, r := range in.GetContainerRequests() {
		p.called("Prefer", r.GetAvailableDeviceIDs())
		out.ContainerResponses = append(out.ContainerResponses, &plugin.ContainerPreferredAllocationResponse{
			DeviceIDs: p.Prefer(r.GetAvailableDeviceIDs(), r.GetMustIncludeDeviceIDs(), int(r.GetAllocationSize()))})
	}
	return out, nil
}

// Allocate is part of the protocol.
func (p *Plugin) Allocate(_ context.Context, in *plugin.AllocateRequest) (*plugin.AllocateResponse, error) {
	out := &plugin.AllocateResponse{}
	for _, r := range in.GetContainerRequests() {
		p.called("Allocate", r.GetDevicesIds())
		answer := &plugin.ContainerAllocateResponse{Envs: map[string]string{"DEVICES": strings.Join(r.GetDevicesIds(),
			",")}}
		if p.Answer != nil {
			var err error
			if answer, err = p.Answer(r.GetDevicesIds()); err != nil {
				return nil, err
			}
		}
		out.ContainerResponses = append(out.ContainerResponses, answer)
	}
	return out, nil
}

// PreStartContainer is part of the protocol.
func (p *Plugin) PreStartContainer(_ context.Context,
	in *plugin.PreStartContainerRequest) (*plugin.PreStartContainerResponse, error) {
	p.called("PreStart", in.GetDevicesIds())
	return &plugin.PreStartContainerResponse{}, nil
}
