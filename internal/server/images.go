// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/imagename"
	"github.com/wherryproject/wherry/internal/node/image"
	"github.com/wherryproject/wherry/internal/node/pressure"
	"github.com/wherryproject/wherry/internal/registry"
	"github.com/wherryproject/wherry/internal/server/hostapi"
)

// registryLogins is the file with the node's own logins, which the agent reads too. Those of pods are the pods', not
// the command's.
func registryLogins(dataDir string) string { return filepath.Join(dataDir, "config.json") }

// registryHosts is the folder of registry settings.
func (s *Server) registryHosts() string {
	if s.opts.RegistryHostsDir != "" {
		return s.opts.RegistryHostsDir
	}
	return filepath.Join(s.opts.DataDir, "registries")
}

// pull fetches an image with the login that is given, else with those of the node.
func (s *Server) pull(ctx context.Context, name string, login *registry.Login) error {
	ref, err := imagename.Parse(name)
	if err != nil {
		return err
	}
	if ref.Own() {
		return errors.New(imagename.NotPulled(name))
	}
	var ring image.Keyring
	if err := ring.AddFile(registryLogins(s.opts.DataDir)); err != nil {
		s.log.Warn("the node's logins cannot be used", "err", err)
	}
	auths := ring.For(ref)
	if login != nil {
		auths = []*runtimeapi.AuthConfig{{Username: login.User, Password: login.Password}}
	}
	req := &runtimeapi.PullImageRequest{Image: &runtimeapi.ImageSpec{Image: ref.Given, UserSpecifiedImage: ref.Given}}
	images := s.parts.cri.Images
	if s.parts.runtime != nil { // another runtime's images lie elsewhere
		images = image.Roomy(images, s.disk)
	}
	_, err = image.Fetch(ctx, images, req, ref, auths)
	return s.forCommand(ref, len(auths) > 0, err)
}

// disk is what the data folder's has.
func (s *Server) disk() (free, capacity int64, err error) {
	bytes, err := pressure.Disk(s.opts.DataDir)
	return bytes.Available, bytes.Capacity, err
}

// forCommand words why an image was not had for somebody who types, not for a pod.
func (s *Server) forCommand(ref imagename.Reference, withLogin bool, err error) error {
	e, ok := errors.AsType[*image.Error](err)
	switch {
	case !ok:
		return err
	case e.Plain:
		return fmt.Errorf("registry %s %s", ref.Registry, registry.PlainHTTP(s.registryHosts(), ref.Registry))
	case e.Login && withLogin:
		return fmt.Errorf("registry %s rejected the credentials for image %s: check the name and who may pull it, or log in again (wherry image login %s)", ref.Registry, ref.Full, ref.Registry)
	case e.Login:
		return fmt.Errorf("image %s is not in registry %s, or is private: check the name, or log in (wherry image login %s, or --creds USER)", ref.Full, ref.Registry, ref.Registry)
	}
	return e
}

// login keeps a login that the registry takes, and reports whether it was asked for one.
func (s *Server) login(ctx context.Context, name string, login registry.Login) (hostapi.LoggedIn, error) {
	host, err := registry.Host(name)
	if err != nil {
		return hostapi.LoggedIn{}, err
	}
	asked, err := registry.Verify(ctx, s.registryHosts(), host, login)
	if err != nil {
		return hostapi.LoggedIn{}, err
	}
	file := registryLogins(s.opts.DataDir)
	s.loginFile.Lock()
	defer s.loginFile.Unlock()
	return hostapi.LoggedIn{Registry: host, File: file, Asked: asked}, registry.Logins{Path: file}.Set(host, login)
}

// logout forgets the node's login at a registry.
func (s *Server) logout(name string) (hostapi.LoggedIn, error) {
	host, err := registry.Host(name)
	if err != nil {
		return hostapi.LoggedIn{}, err
	}
	file := registryLogins(s.opts.DataDir)
	s.loginFile.Lock()
	defer s.loginFile.Unlock()
	found, err := registry.Logins{Path: file}.Remove(host)
	if err == nil && !found {
		err = fmt.Errorf("the node is not logged in to %s", host)
	}
	return hostapi.LoggedIn{Registry: host, File: file}, err
}

// transfers are the parts of images that the embedded runtime is fetching.
func (s *Server) transfers(ctx context.Context) ([]hostapi.Transfer, error) {
	list, err := s.parts.runtime.Transfers(ctx)
	all := []hostapi.Transfer{}
	for _, t := range list {
		all = append(all, hostapi.Transfer{Ref: t.Ref, Bytes: t.Bytes, Total: t.Total})
	}
	return all, err
}
