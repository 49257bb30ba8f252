// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/containernetworking/cni/libcni"
)

// pluginsFile is where a data folder keeps, a line each, in which folders the plug-ins are that make its pod network;
// there is none where that is made here.
func (d dirs) pluginsFile() string { return filepath.Join(d.cni, "plugins") }

// notePlugins writes that file, or removes it.
func (d dirs) notePlugins(folders []string) error {
	if len(folders) > 0 {
		return writeNetwork(d.pluginsFile(), []byte(strings.Join(folders, "\n")+"\n"))
	}
	if err := os.Remove(d.pluginsFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("pod network: %w", err)
	}
	return nil
}

// GiveBack has the CNI plug-ins of the pod network, where that is not made here, take back what the pods of a data
// folder have of it: addresses, devices, ports. It is for a folder that is going to be purged, and asks no runtime:
// what was given is known to libcni. What a plug-in cannot take back is in the error; the others are asked all the
// same.
func GiveBack(ctx context.Context, dataDir string) error {
	d := dirsOf(filepath.Clean(dataDir))
	text, err := os.ReadFile(d.pluginsFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	plugins := libcni.NewCNIConfigWithCacheDir(strings.Split(strings.TrimSpace(string(text)), "\n"),
		filepath.Dir(cniResults), nil)
	sandboxes, err := d.sandboxes()
	errs := []error{err}
	for _, id := range sandboxes {
		given, err := plugins.GetCachedAttachments(id)
		errs = append(errs, err)
		for _, g := range given {
			list, err := libcni.ConfListFromBytes(g.Config)
			if err == nil {
				err = plugins.DelNetworkList(ctx, list, &libcni.RuntimeConf{ContainerID: g.ContainerID, NetNS: g.NetNS,
					IfName: g.IfName, Args: g.CniArgs, CapabilityArgs: g.CapabilityArgs})
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("sandbox %s: %w", id, err))
			}
		}
	}
	return errors.Join(errs...)
}

// sandboxes are the names of those that a data folder has, also of a boot before.
func (d dirs) sandboxes() (ids []string, err error) {
	found, err := os.ReadDir(filepath.Join(d.root, criPlugin, "sandboxes"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, s := range found {
		ids = append(ids, s.Name())
	}
	return ids, err
}
