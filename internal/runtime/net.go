// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/containerd/containerd/v2/core/sandbox"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/containerd/v2/plugins"
	"github.com/containerd/errdefs"
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

// prepareNetwork sets the pod network up and writes it to containerd's CNI configuration.
func (r *Runtime) prepareNetwork() error {
	file := r.dirs.network()
	c, wanted, err := r.config.Network()
	if err != nil {
		return err
	}
	if err := r.dirs.notePlugins(r.config.CNIBinDirs); err != nil {
		return err
	}
	if !wanted {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("pod network: %w", err)
		}
		return nil
	}
	// as of the last start; an error: this is the first
	if last, terr := LastNetwork(r.dirs.data); terr == nil && last.Bridge == c.Bridge {
		c.Former = last.CIDRs
	}
	if err := r.noteNetwork(c); err != nil {
		return err
	}
	r.keeper, err = network.NewKeeper(c, r.attachedPods, r.log)
	if err != nil {
		return err
	}
	return writeNetwork(file, network.ConfList(c))
}

// writeNetwork writes containerd's CNI configuration, unless it is there already: a server starts on a full disk, too.
func writeNetwork(file string, text []byte) error {
	if old, err := os.ReadFile(file); err == nil && bytes.Equal(old, text) {
		return nil
	}
	// Not *.conflist: containerd may read the folder at any time.
	tmp := file + ".new"
	if err := os.WriteFile(tmp, text, 0o600); err != nil {
		return fmt.Errorf("pod network: %w", err)
	}
	if err := os.Rename(tmp, file); err != nil {
		return fmt.Errorf("pod network: %w", err)
	}
	return nil
}

// network is containerd's CNI configuration file of the pod network.
func (d dirs) network() string { return filepath.Join(d.cni, "10-wherry.conflist") }

// LastNetwork is the pod network that the runtime of a data folder was set up with at its last start; fs.ErrNotExist if
// there is none.
func LastNetwork(dataDir string) (network.Config, error) {
	text, err := os.ReadFile(dirsOf(dataDir).network())
	if err != nil {
		return network.Config{}, err
	}
	return network.ParseConfList(text)
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

// keepNetwork mends the pod network from now until ctx ends. What is amiss already, of pods that a former process left,
// is mended first.
func (r *Runtime) keepNetwork(ctx context.Context) {
	if r.keeper != nil {
		r.late.Go(func() { r.keeper.Run(ctx) })
	}
}

// Carry has the pod network carry what services says, see [network.Carry]; for a runtime that has one.
func (r *Runtime) Carry(services network.Services) (ownRoutes []netip.Prefix, err error) {
	return r.keeper.Carry(services)
}

// Reach has pods here and those of other nodes reach one another, see [network.Keeper.Reach]; for a runtime that has a
// pod network.
func (r *Runtime) Reach(nodes []network.Node) ([]network.Unreached, error) {
	return r.keeper.Reach(nodes)
}

// Blockers is [network.Blockers] of the pod network; none without one.
func (r *Runtime) Blockers() ([]string, error) {
	c, wanted, err := r.config.Network()
	if err != nil || !wanted {
		return nil, err
	}
	return network.Blockers(c)
}

// attachedPods lists the pods that run with a network of their own. Nothing is asked of shims: one that hangs is not
// waited for.
func (r *Runtime) attachedPods(ctx context.Context) ([]network.Pod, error) {
	list, err := criapi.NewRuntimeServiceClient(r.Conn()).ListPodSandbox(ctx,
		&criapi.ListPodSandboxRequest{Filter: &criapi.PodSandboxFilter{
			State: &criapi.PodSandboxStateValue{State: criapi.PodSandboxState_SANDBOX_READY},
		}})
	if err != nil {
		return nil, fmt.Errorf("pod network: list sandboxes: %w", err)
	}
	var out []network.Pod
	for _, s := range list.Items {
		record, err := r.daemon.sandbox(ctx, s.Id)
		if errdefs.IsNotFound(err) {
			continue // gone since
		}
		if err != nil {
			return nil, err
		}
		if pod, has := record.pod(s.Id); has {
			out = append(out, pod)
		}
	}
	return out, nil
}

// criSandboxMetadata is where containerd's CRI keeps, in containerd's record of a sandbox, what it was asked for.
const criSandboxMetadata = "metadata"

// criSandbox is what is of interest in there.
type criSandbox struct {
	Config    *criapi.PodSandboxConfig
	NetNSPath string
}

// sandbox reads the CRI's record of a sandbox.
func (d *daemon) sandbox(ctx context.Context, id string) (criSandbox, error) {
	store, err := instance[sandbox.Store](d, plugins.SandboxStorePlugin, "local")
	if err != nil {
		return criSandbox{}, err
	}
	found, err := store.Get(namespaces.WithNamespace(ctx, Namespace), id)
	if err != nil {
		return criSandbox{}, err
	}
	ext := found.Extensions[criSandboxMetadata]
	if ext == nil {
		return criSandbox{}, fmt.Errorf("sandbox %s: the CRI's record: %w", id, errdefs.ErrNotFound)
	}
	return parseSandbox(id, ext.GetValue())
}

func parseSandbox(id string, text []byte) (criSandbox, error) {
	var v struct {
		Version  string
		Metadata criSandbox
	}
	if err := json.Unmarshal(text, &v); err != nil {
		return criSandbox{}, fmt.Errorf("sandbox %s: the CRI's record: %w", id, err)
	}
	if v.Version != "v1" {
		return criSandbox{}, fmt.Errorf("sandbox %s: the CRI's record is of version %q: v1 is known", id, v.Version)
	}
	return v.Metadata, nil
}

// pod says what the network must have for a sandbox; nothing if it is on the host's.
func (s criSandbox) pod(id string) (_ network.Pod, has bool) {
	if s.NetNSPath == "" {
		return network.Pod{}, false
	}
	p := network.Pod{Attachment: network.Attachment{ContainerID: id, IfName: podInterface}, Netns: s.NetNSPath}
	for _, m := range s.Config.GetPortMappings() {
		if m.GetHostPort() > 0 {
			p.Ports = append(p.Ports, network.PortMapping{
				HostPort: m.GetHostPort(), ContainerPort: m.GetContainerPort(), Protocol: m.GetProtocol().String(),
				HostIP: m.GetHostIp(),
			})
		}
	}
	return p, true
}
