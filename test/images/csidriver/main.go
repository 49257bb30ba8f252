// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: csidriver NAME NODE KUBELET-FOLDER")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}

// run serves the driver and, beside it, what registers it, until it is asked to end.
func run(name, node, folder string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	// Named as the node finds it: its folder is mounted here at the same place.
	endpoint := filepath.Join(folder, "plugins", name, "csi.sock")
	serve := func(at string, register func(*grpc.Server)) error {
		if err := os.MkdirAll(filepath.Dir(at), 0o750); err != nil {
			return err
		}
		if err := os.Remove(at); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		l, err := net.Listen("unix", at)
		if err != nil {
			return err
		}
		s := grpc.NewServer()
		register(s)
		go func() { _ = s.Serve(l) }()
		context.AfterFunc(ctx, s.Stop) // which removes the socket
		return nil
	}
	d := &driver{name: name, node: node}
	if err := serve(endpoint, func(s *grpc.Server) {
		spec.RegisterIdentityServer(s, d)
		spec.RegisterNodeServer(s, d)
	}); err != nil {
		return err
	}
	err := serve(filepath.Join(folder, "plugins_registry", name+"-reg.sock"), func(s *grpc.Server) {
		registration.RegisterRegistrationServer(s, &registrar{name: name, endpoint: endpoint})
	})
	if err != nil {
		return err
	}
	<-ctx.Done()
	return os.RemoveAll(filepath.Join(folder, "plugins_registry", name+"-reg.sock"))
}

// registrar tells the node who the driver is.
type registrar struct {
	registration.UnimplementedRegistrationServer
	name, endpoint string
}

// GetInfo is part of registration.
func (r *registrar) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{Type: registration.CSIPlugin, Name: r.name, Endpoint: r.endpoint,
		SupportedVersions: []string{"1.0.0"}}, nil
}

// NotifyRegistrationStatus is part of registration.
func (r *registrar) NotifyRegistrationStatus(_ context.Context,
	s *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	fmt.Println("registered", s.GetPluginRegistered(), s.GetError())
	return &registration.RegistrationStatusResponse{}, nil
}
