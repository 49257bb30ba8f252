// SPDX-License-Identifier: Apache-2.0

package csi

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/wherryproject/wherry/internal/node/csi/terms"
	"github.com/wherryproject/wherry/internal/node/kubeletsocket"
)

const (
	// RegistryFolder is where drivers make the sockets at which they are asked who they are, below the kubelet's.
	RegistryFolder = "plugins_registry"
	askTimeout     = 10 * time.Second
	firstRetry     = 500 * time.Millisecond
	lastRetry      = time.Minute
	// unregisterTimeout is how long the API server may take when a driver has left.
	unregisterTimeout = 15 * time.Second
)

var errNoFolder = errors.New("this node takes no CSI drivers: it was started with --kubelet-dir=none")

// driver is one that has registered.
type driver struct {
	name     string
	node     spec.NodeClient
	ability  terms.Ability
	identity terms.Identity
}

// refused is an error that no second try mends: the driver is notified, and has to register again.
type refused struct{ error }

// Run takes in drivers until ctx ends, and looks after the volumes that are there. It returns with all its goroutines.
func (m *Manager) Run(ctx context.Context) {
	defer m.loops.Wait()
	defer m.end()
	m.running = ctx
	if m.cfg.Folder == "" {
		<-ctx.Done()
		return
	}
	err := kubeletsocket.Watch(ctx, filepath.Join(m.cfg.Folder, RegistryFolder), m.attend)
	if err != nil && ctx.Err() == nil {
		m.cfg.Logger.Error("CSI drivers can no longer register", "err", err)
		<-ctx.Done()
	}
}

// attend registers who serves a socket, again and again until it works, and keeps it until the socket goes.
func (m *Manager) attend(ctx context.Context, socket string) {
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		err := m.register(ctx, socket)
		if ctx.Err() != nil {
			return
		}
		if no, ok := errors.AsType[refused](err); ok {
			m.cfg.Logger.Warn("a plug-in is not taken", "socket", socket, "err", no.error)
			return
		}
		m.cfg.Logger.Warn("a plug-in cannot be registered yet", "socket", socket, "err", err, "again", wait)
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// register asks who serves a socket, and has it as a driver until ctx ends.
func (m *Manager) register(ctx context.Context, socket string) error {
	conn, err := kubeletsocket.Connect(socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	client := registration.NewRegistrationClient(conn)
	asked, cancel := context.WithTimeout(ctx, askTimeout)
	info, err := client.GetInfo(asked, &registration.InfoRequest{}, grpc.WaitForReady(true))
	cancel()
	if err != nil {
		return fmt.Errorf("asking who it is: %w", err)
	}
	if err := checkInfo(info); err != nil {
		notifyPlugin(ctx, client, err)
		return refused{err}
	}
	endpoint := info.GetEndpoint()
	if endpoint == "" {
		endpoint = socket
	}
	at, err := kubeletsocket.Connect(endpoint)
	if err != nil {
		return err
	}
	defer at.Close()
	d, err := m.meet(ctx, info.GetName(), spec.NewNodeClient(at))
	if err != nil {
		return fmt.Errorf("driver %s: %w", info.GetName(), err)
	}
	return m.have(ctx, d, client)
}

// checkInfo says what is wrong with what a plug-in says of itself.
func checkInfo(info *registration.PluginInfo) error {
	if info.GetType() != registration.CSIPlugin {
		return fmt.Errorf("plug-ins of type %q are not supported here: %s are", info.GetType(), registration.CSIPlugin)
	}
	if e := info.GetEndpoint(); e != "" && !filepath.IsAbs(e) {
		return fmt.Errorf("the endpoint %q of driver %s is not the path of a socket", e, info.GetName())
	}
	return terms.CheckDriver(info.GetName(), info.GetSupportedVersions())
}

func notifyPlugin(ctx context.Context, client registration.RegistrationClient, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	s := &registration.RegistrationStatus{PluginRegistered: err == nil}
	if err != nil {
		s.Error = err.Error()
	}
	_, _ = client.NotifyRegistrationStatus(ctx, s) // it may not want to know
}

// meet asks a driver what it can do and what it calls the node.
func (m *Manager) meet(ctx context.Context, name string, node spec.NodeClient) (*driver, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	can, err := node.NodeGetCapabilities(ctx, &spec.NodeGetCapabilitiesRequest{}, grpc.WaitForReady(true))
	if err != nil {
		return nil, fmt.Errorf("NodeGetCapabilities: %w", err)
	}
	info, err := node.NodeGetInfo(ctx, &spec.NodeGetInfoRequest{})
	if err != nil {
		return nil, fmt.Errorf("NodeGetInfo: %w", err)
	}
	d := &driver{name: name, node: node, ability: terms.AbilityOf(can.GetCapabilities()),
		identity: terms.Identity{Driver: name, NodeID: info.GetNodeId(), Most: info.GetMaxVolumesPerNode(),
			Topology: info.GetAccessibleTopology().GetSegments()}}
	return d, d.identity.Check()
}

// have has the driver at hand until ctx ends. It may be used at once; it is notified that it is registered when the
// node's objects show it.
func (m *Manager) have(ctx context.Context, d *driver, client registration.RegistrationClient) error {
	m.mu.Lock()
	m.drivers[d.name] = d
	delete(m.gone, d.name)
	m.mu.Unlock()
	m.cfg.Logger.Info("a CSI driver has registered", "driver", d.name, "node", d.identity.NodeID)
	m.wakeWaiting()
	defer m.leave(d)
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		err := m.Advertise(ctx)
		if err == nil {
			break
		}
		if ctx.Err() == nil {
			m.cfg.Logger.Warn("cannot register a CSI driver in the node's objects yet", "driver", d.name, "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
	notifyPlugin(ctx, client, nil)
	<-ctx.Done()
	return nil
}

// leave takes out a driver whose socket has gone, unless there is a newer one or it is the agent that ends.
func (m *Manager) leave(d *driver) {
	if m.running.Err() != nil {
		return
	}
	m.mu.Lock()
	current := m.drivers[d.name] == d
	if current {
		delete(m.drivers, d.name)
		m.gone[d.name] = true
	}
	m.mu.Unlock()
	if !current {
		return
	}
	m.cfg.Logger.Info("a CSI driver has gone: its volumes stay as they are", "driver", d.name)
	ctx, cancel := context.WithTimeout(m.ctx, unregisterTimeout)
	defer cancel()
	if err := m.Advertise(ctx); err != nil && m.running.Err() == nil {
		m.cfg.Logger.Warn("cannot take a CSI driver out of the node's objects", "driver", d.name, "err", err)
	}
}

// final reports whether a driver's error says that nothing was done and a second try would not help.
func final(err error) bool {
	switch status.Code(err) {
	case codes.InvalidArgument, codes.OutOfRange, codes.NotFound, codes.FailedPrecondition:
		return true
	}
	return false
}
