// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/wherryproject/wherry/internal/node/devices/grant"
	"github.com/wherryproject/wherry/internal/node/kubeletsocket"
	"github.com/wherryproject/wherry/internal/podspec"
)

// Run serves l until ctx ends, and closes it. It returns with all its goroutines.
func (m *Manager) Run(ctx context.Context, l net.Listener) {
	var plugins sync.WaitGroup
	server := grpc.NewServer()
	plugin.RegisterRegistrationServer(server, &registration{m: m, ctx: ctx, plugins: &plugins})
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	forget := m.forgetLate(ctx)
	select {
	case <-ctx.Done():
		server.Stop()
		<-served
	case err := <-served:
		m.cfg.Logger.Error("device plug-ins can no longer register", "err", err)
		<-ctx.Done()
	}
	plugins.Wait()
	<-forget
}

// forgetLate has the node's resources reported again when the grace of a lost plug-in is over. Done is closed at its
// end.
func (m *Manager) forgetLate(ctx context.Context) (done chan struct{}) {
	done = make(chan struct{})
	go func() {
		defer close(done)
		for {
			m.mu.Lock()
			news, next, late := m.news, time.Duration(0), ""
			for name, d := range m.resources {
				left := Grace - time.Since(d.lost)
				if d.client == nil && left > 0 && (next == 0 || left < next) {
					next, late = left, name
				}
			}
			m.mu.Unlock()
			var over <-chan time.Time
			if next > 0 {
				over = time.After(next)
			}
			select {
			case <-ctx.Done():
				return
			case <-news:
			case <-over:
				m.cfg.Logger.Warn("a device plug-in has not come back: the node does not have its resource any more",
					"resource", late, "after", Grace)
				m.changed(late, false)
			}
		}
	}()
	return done
}

// registration is the service that plug-ins call.
type registration struct {
	plugin.UnimplementedRegistrationServer
	m       *Manager
	ctx     context.Context
	plugins *sync.WaitGroup
}

// Register takes in a plug-in, in place of an earlier one of the same resource.
func (r *registration) Register(_ context.Context, in *plugin.RegisterRequest) (*plugin.Empty, error) {
	if err := check(in); err != nil {
		r.m.cfg.Logger.Warn("a device plug-in is not taken", "resource", in.GetResourceName(), "err", err)
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	name := in.GetResourceName()
	ctx, cancel := context.WithCancel(r.ctx)
	r.m.mu.Lock()
	d := r.m.resource(name)
	if d.cancel != nil {
		d.cancel()
	}
	d.cancel = cancel
	d.newest++
	number := d.newest
	r.m.mu.Unlock()
	r.m.cfg.Logger.Info("a device plug-in has registered", "resource", name, "endpoint", in.GetEndpoint())
	r.plugins.Go(func() {
		defer cancel()
		err := r.m.follow(ctx, in, number)
		if ctx.Err() != nil {
			return // the agent ends, or there is a newer one
		}
		r.m.cfg.Logger.Warn("a device plug-in has gone: its devices are not given to anybody until it registers again",
			"resource", name, "err", err)
		r.m.away(name, number)
	})
	return &plugin.Empty{}, nil
}

// check says what is wrong with a registration.
func check(in *plugin.RegisterRequest) error {
	switch {
	case !slices.Contains(plugin.SupportedVersions[:], in.GetVersion()):
		return fmt.Errorf("version %q is not supported: %s are", in.GetVersion(),
			strings.Join(plugin.SupportedVersions[:], ", "))
	case !podspec.IsExtended(corev1.ResourceName(in.GetResourceName())):
		return fmt.Errorf("the resource name %q is not that of an extended resource, for example vendor.example/gpu",
			in.GetResourceName())
	case in.GetEndpoint() == "" || filepath.Base(in.GetEndpoint()) != in.GetEndpoint() ||
		in.GetEndpoint() == kubeletsocket.Name ||
		strings.HasPrefix(in.GetEndpoint(), "."):
		return fmt.Errorf("the endpoint %q is not the name of a socket beside %s", in.GetEndpoint(), kubeletsocket.Name)
	}
	return nil
}

// follow connects to a plug-in and takes in what it reports, until it is gone.
func (m *Manager) follow(ctx context.Context, in *plugin.RegisterRequest, number int) error {
	socket := filepath.Join(m.cfg.Folder, in.GetEndpoint())
	conn, err := kubeletsocket.Connect(socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	client := plugin.NewDevicePluginClient(conn)
	asked, cancel := context.WithTimeout(ctx, callTimeout)
	options, err := client.GetDevicePluginOptions(asked, &plugin.Empty{})
	cancel()
	if status.Code(err) == codes.Unimplemented {
		options, err = in.GetOptions(), nil
	}
	if err != nil {
		return fmt.Errorf("asking for its options: %w", err)
	}
	stream, err := client.ListAndWatch(ctx, &plugin.Empty{})
	if err != nil {
		return fmt.Errorf("asking for its devices: %w", err)
	}
	for {
		list, err := stream.Recv()
		if err != nil {
			return fmt.Errorf("following its devices: %w", err)
		}
		m.reported(in.GetResourceName(), number, client, options, read(list.GetDevices()))
	}
}

// read takes devices as a plug-in reports them, each ID once, in the order of their IDs.
func read(list []*plugin.Device) []grant.Device {
	out := make([]grant.Device, 0, len(list))
	for _, d := range list {
		dev := grant.Device{ID: d.GetID(), Healthy: d.GetHealth() == plugin.Healthy}
		for _, n := range d.GetTopology().GetNodes() {
			dev.NUMA = append(dev.NUMA, n.GetID())
		}
		out = append(out, dev)
	}
	slices.SortStableFunc(out, func(a, b grant.Device) int { return cmp.Compare(a.ID, b.ID) })
	return slices.CompactFunc(out, func(a, b grant.Device) bool { return a.ID == b.ID })
}
