// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/wherryproject/wherry/internal/cri"
	"github.com/wherryproject/wherry/internal/datadir"
	"github.com/wherryproject/wherry/internal/node"
	"github.com/wherryproject/wherry/internal/release"
	"github.com/wherryproject/wherry/internal/runtime"
	"github.com/wherryproject/wherry/internal/runtime/network"
	"github.com/wherryproject/wherry/internal/server/hostapi"
	"github.com/wherryproject/wherry/internal/server/hostapi/socket"
)

// startRuntime starts the embedded runtime, or connects to the one that was named.
func (s *Server) startRuntime(ctx context.Context) error {
	log := s.log.With("component", "runtime")
	if s.opts.RuntimeEndpoint != "" {
		return s.connectRuntime(ctx, log)
	}
	config, err := s.runtimeConfig()
	if err != nil {
		return err
	}
	r, err := runtime.Start(ctx, config)
	if errors.Is(err, runtime.ErrInUse) {
		return &Refusal{Code: ExitFolderLocked, What: err.Error()}
	}
	if err != nil {
		return err
	}
	s.parts.runtime = r
	if chains, err := r.Blockers(); err != nil {
		log.Warn("cannot tell whether a firewall drops the packets of pods", "err", err)
	} else if len(chains) > 0 {
		log.Warn("a firewall may drop the packets of pods", "what", node.FirewallMessage(chains))
	}
	s.parts.cri = cri.FromConn(r.Conn(), cri.WithLogger(log),
		cri.WithRequestTimeout(s.opts.RuntimeTimeout))
	s.parts.watch = spawn("container runtime", s.failed, func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return nil
		case <-r.Done():
			return r.Err()
		}
	})
	return nil
}

// runtimeFolder is where containers of the embedded runtime are made; "" for another runtime.
func (s *Server) runtimeFolder() string {
	if s.parts.runtime == nil {
		return ""
	}
	return s.opts.DataDir
}

// blockers finds firewalls in the pods' way for the agent: of the embedded runtime's network alone.
func (s *Server) blockers() func() ([]string, error) {
	if s.parts.runtime == nil {
		return nil
	}
	return s.parts.runtime.Blockers
}

// runtimeConfig chooses the pod network and writes it down, so that Purge finds it.
func (s *Server) runtimeConfig() (runtime.Config, error) {
	o := s.opts
	c := runtime.Config{DataDir: o.DataDir, BridgeName: o.BridgeName, PodCIDRs: o.PodCIDRs,
		Shim: o.Shim, Snapshotter: o.Snapshotter, HostsDir: o.RegistryHostsDir, PullProgress: o.PullProgressDeadline,
		Logger: s.log.With("component", "runtime")}
	if given := s.parts.member.Networks; len(given) > 0 {
		c.PodCIDRs = texts(given)
	}
	groups, err := podCgroups(o.DataDir, o.CgroupDriver, o.PodMaxPIDs)
	if err != nil {
		return c, err
	}
	c.CgroupDriver = groups.Name()
	if o.CNIConfDir != "" {
		c.PodCIDRs, c.CNIConfDir, c.CNIBinDirs = nil, o.CNIConfDir, o.CNIBinDirs
		if len(c.CNIBinDirs) == 0 {
			c.CNIBinDirs = []string{cniBinDir}
		}
		return c, s.leaveOwnNetwork()
	}
	if err := leaveFormerBridge(o.DataDir, o.BridgeName); err != nil {
		return c, err
	}
	if len(c.PodCIDRs) == 0 && len(o.ClusterCIDRs) > 0 {
		if c.PodCIDRs, err = s.partOfCluster(); err != nil {
			return c, err
		}
	}
	bridge, subnet, err := network.Choose(o.DataDir, subnetBefore(o.DataDir, c.BridgeName))
	if err != nil && len(c.PodCIDRs) == 0 {
		return c, &Refusal{Code: 1, What: "no free pod network was found", Do: "choose one with --pod-cidr", Err: err}
	}
	if c.BridgeName == "" {
		c.BridgeName = bridge
	}
	if len(c.PodCIDRs) == 0 {
		c.PodCIDRs = []string{subnet.String()}
	}
	text, err := json.Marshal(podNetwork{Bridge: c.BridgeName, CIDRs: c.PodCIDRs})
	if err != nil {
		return c, err
	}
	if err := writeFile(networkFile(o.DataDir), append(text, '\n'), 0o644); err != nil {
		return c, folderRefusal(o.DataDir, err)
	}
	return c, nil
}

// leaveFormerBridge removes the bridge that a data folder had at its last start if it is to have another one now;
// bridge is empty for the one by default. Pods cannot move.
func leaveFormerBridge(dataDir, bridge string) error {
	n, err := readNetwork(dataDir)
	if err != nil {
		return nil // no former one is known
	}
	if bridge == "" {
		if bridge, _, err = network.Derive(dataDir, nil); err != nil {
			return err
		}
	}
	c, wanted, err := runtime.Config{DataDir: dataDir, BridgeName: n.Bridge, PodCIDRs: n.CIDRs}.Network()
	if err != nil || !wanted || n.Bridge == bridge {
		return nil // what is wrong with the record is logged when the new network is made
	}
	err = network.Leave(c)
	if errors.Is(err, network.ErrAttached) {
		return &Refusal{Code: 1,
			What: fmt.Sprintf("pods of this data folder are still attached to its former bridge, %s", n.Bridge),
			Do: fmt.Sprintf("start with --bridge-name %s, and delete the pods before you change the bridge",
				n.Bridge)}
	}
	return err
}

// podNetwork is what the data folder remembers of its network.
type podNetwork struct {
	Bridge string   `json:"bridge"`
	CIDRs  []string `json:"cidrs"`
}

// subnetBefore is the subnet that a folder's bridge had at the last start, as far as it is known; bridge is empty for
// the one by default.
func subnetBefore(dataDir, bridge string) netip.Prefix {
	n, err := readNetwork(dataDir)
	if err != nil || len(n.CIDRs) != 1 || bridge != "" && bridge != n.Bridge {
		return netip.Prefix{}
	}
	subnet, _ := netip.ParsePrefix(n.CIDRs[0]) // the zero value if it is not one
	return subnet
}

// readNetwork reads what a data folder remembers of its network; when that was removed, what the runtime was last set
// up with. The error is fs.ErrNotExist if there is neither: a folder with an external runtime has none.
func readNetwork(dataDir string) (n podNetwork, err error) {
	text, err := os.ReadFile(networkFile(dataDir))
	if err == nil {
		if err = json.Unmarshal(text, &n); err == nil && n.Bridge != "" {
			return n, nil
		}
		err = fmt.Errorf("%s: %w", networkFile(dataDir), cmp.Or(err, errors.New("it names no bridge")))
	}
	if c, cerr := runtime.LastNetwork(dataDir); cerr == nil {
		n = podNetwork{Bridge: c.Bridge}
		for _, p := range c.CIDRs {
			n.CIDRs = append(n.CIDRs, p.String())
		}
		return n, nil
	}
	return podNetwork{}, err
}

func networkFile(dataDir string) string { return filepath.Join(dataDir, "network.json") }

func (s *Server) stopRuntime(ctx context.Context) error {
	err := stopAll(ctx, s.parts.watch)
	err = errors.Join(err, s.parts.cri.Close())
	if s.parts.external != nil {
		err = errors.Join(err, s.parts.external.Close())
	}
	if s.parts.runtime != nil {
		err = errors.Join(err, s.parts.runtime.Close())
		if s.refused.Load() {
			err = errors.Join(err, s.parts.runtime.Undo(), undoCgroups(s.opts.DataDir))
		}
	}
	return err
}

// undoCgroups removes the cgroups of a start that was refused. Those of the default data folder are not its own alone,
// and cgroups with pods stay.
func undoCgroups(dataDir string) error {
	if dataDir == DefaultDataDir {
		return nil
	}
	groups, err := podCgroups(dataDir, "", 0)
	if err != nil {
		return err
	}
	if pods, err := groups.List(); err != nil || len(pods) > 0 {
		return err
	}
	return groups.Teardown()
}

// startSockets serves the commands of this machine, and with the embedded runtime its CRI.
func (s *Server) startSockets(context.Context) error {
	l, err := socket.Listen(datadir.Socket(s.opts.DataDir))
	if err != nil {
		return err
	}
	h := &hostapi.Server{
		Info: hostapi.Info{PID: os.Getpid(), Version: release.Version(), URL: s.parts.url(),
			DataDir: s.opts.DataDir},
		Images:     s.parts.cri.Images,
		Containers: s.parts.cri.Runtime,
		Pull:       s.pull,
		Login:      s.login,
		Logout:     s.logout,
		Backup:     s.backup,
		Drain:      s.drain,
	}
	if s.parts.runtime != nil {
		h.Archives = s.parts.runtime
		h.Transfers, h.DropPulls = s.transfers, s.parts.runtime.DropPulls
	}
	s.parts.host = &http.Server{Handler: h.Handler()}
	s.parts.socket = spawn("socket", s.failed, func(ctx context.Context) error {
		stop := context.AfterFunc(ctx, func() { s.parts.host.Close() })
		defer stop()
		if err := s.parts.host.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	if s.parts.runtime == nil {
		return nil
	}
	// A variable of its own: the loop above goes on using l.
	criListener, err := socket.Listen(CRISocket(s.opts.DataDir))
	if err != nil {
		return errors.Join(err, s.parts.socket.stop(context.Background()))
	}
	s.parts.criProxy = spawn("CRI socket", s.failed, newCRIProxy(criListener, s.parts.runtime.Conn()).run)
	return nil
}

func (s *Server) stopSockets(ctx context.Context) error {
	err := stopAll(ctx, s.parts.socket, s.parts.criProxy)
	for _, path := range []string{datadir.Socket(s.opts.DataDir), CRISocket(s.opts.DataDir)} {
		if rerr := os.Remove(path); rerr != nil && !errors.Is(rerr, os.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
	}
	return err
}
