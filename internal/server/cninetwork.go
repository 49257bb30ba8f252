// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// cniBinDir is where plug-ins are by default, as Calico, Cilium and flannel install theirs.
const cniBinDir = "/opt/cni/bin"

// foreignNetwork says whether the pod network is somebody else's: an external runtime's, or one of CNI plug-ins that
// the cluster installs.
func (o Options) foreignNetwork() bool { return o.RuntimeEndpoint != "" || o.CNIConfDir != "" }

// ownNetwork says whether pods are on a network that this node makes.
func (s *Server) ownNetwork() bool { return s.parts.runtime != nil && s.opts.CNIConfDir == "" }

func (o Options) validateCNI() error {
	if o.CNIConfDir == "" {
		if len(o.CNIBinDirs) > 0 {
			return errors.New("--cni-bin-dir says where the plug-ins are that --cni-conf-dir names; give that too")
		}
		return nil
	}
	for _, dir := range append([]string{o.CNIConfDir}, o.CNIBinDirs...) {
		if !filepath.IsAbs(dir) {
			return fmt.Errorf("--cni-conf-dir and --cni-bin-dir: %q is not an absolute path", dir)
		}
	}
	if o.RuntimeEndpoint != "" {
		return errors.New("--cni-conf-dir is for the embedded runtime; configure the runtime behind --container-runtime-endpoint itself")
	}
	if len(o.PodCIDRs) > 0 {
		return errors.New("--pod-cidr is of Wherry's own pod network, which there is not with --cni-conf-dir; leave out one of them")
	}
	return nil
}

// leaveOwnNetwork takes away what a start without --cni-conf-dir has made.
func (s *Server) leaveOwnNetwork() error {
	if err := leaveFormerBridge(s.opts.DataDir, "none"); err != nil {
		if refusal, ok := errors.AsType[*Refusal](err); ok {
			refusal.Do = "start without --cni-conf-dir, and drain the node before you change its pod network"
		}
		return err
	}
	if err := os.Remove(networkFile(s.opts.DataDir)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return folderRefusal(s.opts.DataDir, err)
	}
	return nil
}
