// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/runtime/network"
)

// podInterface is the name containerd gives a pod's interface.
const podInterface = "eth0"

// Network is the pod network of a runtime with this configuration, and whether it has one. After Purge,
// network.Teardown removes what is left of it.
func (c Config) Network() (network.Config, bool, error) {
	prefixes, err := c.prefixes()
	if err != nil || len(prefixes) == 0 {
		return network.Config{}, false, err
	}
	// Leases belong to sandboxes of this boot, so they go with the runtime's other state of this boot.
	return network.Config{
		Bridge: c.BridgeName, CIDRs: prefixes, StateDir: filepath.Join(dirsOf(c.DataDir).run, "network"),
	}, true, nil
}

// Network is the pod network of the runtime, and whether it has one.
func (r *Runtime) Network() (network.Config, bool, error) { return r.config.Network() }

// prepareNetwork sets the pod network up and tells containerd of it.
func (r *Runtime) prepareNetwork() error {
	file := filepath.Join(r.dirs.cni, "10-wherry.conflist")
	c, wanted, err := r.config.Network()
	if err != nil {
		return err
	}
	if !wanted {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("pod network: %w", err)
		}
		return nil
	}
	if err := network.Setup(c); err != nil {
		return err
	}
	// Not *.conflist: containerd may read the folder at any time.
	tmp := file + ".new"
	if err := os.WriteFile(tmp, network.ConfList(c), 0o600); err != nil {
		return fmt.Errorf("pod network: %w", err)
	}
	if err := os.Rename(tmp, file); err != nil {
		return fmt.Errorf("pod network: %w", err)
	}
	return nil
}

// tidyNetwork takes back addresses and devices of sandboxes that are gone, as a kill in the middle of making one
// leaves them. No sandbox may be made meanwhile.
func (r *Runtime) tidyNetwork(ctx context.Context) error {
	c, wanted, err := r.config.Network()
	if err != nil || !wanted {
		return err
	}
	list, err := criapi.NewRuntimeServiceClient(r.Conn()).ListPodSandbox(ctx, &criapi.ListPodSandboxRequest{})
	if err != nil {
		return fmt.Errorf("pod network: list sandboxes: %w", err)
	}
	var valid []network.Attachment
	for _, s := range list.Items {
		valid = append(valid, network.Attachment{ContainerID: s.Id, IfName: podInterface})
	}
	return network.GC(c, valid)
}
