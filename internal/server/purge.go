// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"k8s.io/apimachinery/pkg/types"

	"github.com/wherryproject/wherry/internal/deeptree"
	"github.com/wherryproject/wherry/internal/names/link"
	"github.com/wherryproject/wherry/internal/names/wire"
	"github.com/wherryproject/wherry/internal/node"
	"github.com/wherryproject/wherry/internal/node/logind"
	"github.com/wherryproject/wherry/internal/runtime"
	"github.com/wherryproject/wherry/internal/runtime/network"
)

// PurgeOptions change what [Purge] does.
type PurgeOptions struct {
	// RuntimeGone says that the external runtime, if the pods are on one, will not come back. Where it does not answer,
	// their processes are ended by their cgroups; what it has written down of them stays with it.
	RuntimeGone bool
	// Tell is given what the user should know meanwhile, one thing at a time: what is being waited for, and what a
	// purge that succeeds leaves. nil: nobody is told.
	Tell func(string)
}

// Purge ends all pods of a data folder and removes what a server with that folder left on the machine: containers,
// mounts, network, logs, and the folder. No server may run on it. It can be repeated after an error.
func Purge(ctx context.Context, dataDir string, o PurgeOptions) error {
	if err := MayPurge(dataDir); err != nil {
		return err
	}
	held, err := lockFolder(dataDir)
	if err != nil {
		return beforePurge(err)
	}
	defer held.release()
	if err := endForeign(ctx, dataDir, o); err != nil {
		return err
	}
	if err := runtime.GiveBack(ctx, dataDir); err != nil && o.Tell != nil {
		o.Tell("the CNI plug-ins have not taken back all that the pods had of their network: " + err.Error())
	}
	rerr := runtime.Purge(ctx, dataDir)
	if err := removeCgroups(ctx, dataDir); err != nil {
		return errors.Join(rerr, err)
	}
	if rerr != nil { // containers whose records are damaged have no processes now, and what was busy with those is not
		if err := runtime.Purge(ctx, dataDir); err != nil {
			return err
		}
	}
	if err := link.End(ctx, wire.Dir(dataDir)); err != nil {
		return err
	}
	if err := teardownNetwork(dataDir); err != nil {
		return err
	}
	if err := removeLogs(dataDir); err != nil {
		return err
	}
	if err := logind.Forget(dataDir); err != nil {
		return err
	}
	if dataDir == DefaultDataDir { // others have theirs in the data folder
		if err := node.RemoveKubeletFolder(dataDir, KubeletDir); err != nil {
			return err
		}
	}
	return removeDataFolder(dataDir)
}

// removeDataFolder removes a data folder. The file that says whose it is goes last: a purge that was cut off can be
// repeated.
func removeDataFolder(path string) error {
	dir, err := os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, name := range names {
		if name == stampName {
			continue
		}
		if err := deeptree.Remove(dir, name); err != nil {
			return err
		}
	}
	return removeFolder(path)
}

// removeFolder removes a folder in which containers' programs may have nested others deeper than a path can be long.
func removeFolder(path string) error {
	dir, err := os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	err = deeptree.Empty(dir)
	dir.Close()
	if err != nil {
		return err
	}
	return os.Remove(path)
}

// MayPurge refuses what Purge would refuse, and touches nothing: before somebody is asked whether to go on.
func MayPurge(dataDir string) error {
	if err := checkRoot(os.Geteuid(), "only root can stop the pods of a data folder and remove it"); err != nil {
		return err
	}
	if !ours(dataDir) {
		return &Refusal{Code: ExitFolder, What: fmt.Sprintf("%s is not the data folder of a wherry server", dataDir),
			Do: "check --data-dir; nothing was removed"}
	}
	if Locked(dataDir) && holderLives(dataDir) {
		return beforePurge(inUse(dataDir))
	}
	return nil
}

// beforePurge says what to do about a folder that is in use.
func beforePurge(err error) error {
	if refusal, ok := errors.AsType[*Refusal](err); ok && refusal.Code == ExitFolderLocked {
		refusal.Do = "stop it first, then purge; nothing was removed"
	}
	return err
}

// ours guards against a mistyped folder: only one with our version file is removed.
func ours(dataDir string) bool {
	_, err := readStamp(filepath.Join(dataDir, stampName))
	return err == nil
}

// removeCgroups removes the cgroups of this folder's pods, and those above them. Processes that are in them still are
// ended: the runtime has lost sight of them. The tree of the default folder is where a kubelet's pods are, too: there
// only what is known to be ours goes.
func removeCgroups(ctx context.Context, dataDir string) error {
	groups, err := podCgroups(dataDir, "", 0)
	if err != nil {
		return err
	}
	folders, err := filepath.Glob(filepath.Join(dataDir, "pods", "*"))
	if err != nil {
		return err
	}
	// the temporary sandboxes of a server that was killed
	execs, err := filepath.Glob(filepath.Join(dataDir, "imageexec", "*"))
	if err != nil {
		return err
	}
	end := func(uid types.UID) error {
		if _, err := groups.EndPod(ctx, uid); err != nil {
			return err
		}
		return groups.RemovePod(uid)
	}
	for _, f := range append(folders, execs...) {
		if err := end(types.UID(filepath.Base(f))); err != nil {
			return err
		}
	}
	left, err := groups.List()
	if err != nil {
		return err
	}
	if dataDir == DefaultDataDir && len(left) > 0 {
		return nil
	}
	for _, uid := range left {
		if err := end(uid); err != nil {
			return err
		}
	}
	return groups.Teardown()
}

func teardownNetwork(dataDir string) error {
	if err := rememberOutside(dataDir, ""); err != nil {
		return err
	}
	n, err := readNetwork(dataDir)
	if errors.Is(err, os.ErrNotExist) {
		return nil // an external runtime's network is not ours
	}
	if err != nil {
		return err
	}
	c, wanted, err := runtime.Config{DataDir: dataDir, BridgeName: n.Bridge, PodCIDRs: n.CIDRs}.Network()
	if err != nil || !wanted {
		return err
	}
	return network.Teardown(c)
}

// removeLogs removes the logs of this folder's pods from where they lie outside of it. Pods are known by their volumes'
// folders; links to logs are removed when what they point at is gone.
func removeLogs(dataDir string) error {
	pods, containers := LogDirs(dataDir)
	if filepath.Dir(filepath.Dir(pods)) == dataDir {
		return nil // they go with the folder
	}
	uids, err := filepath.Glob(filepath.Join(dataDir, "pods", "*"))
	if err != nil {
		return err
	}
	for _, uid := range uids {
		logs, err := filepath.Glob(filepath.Join(pods, "*_"+filepath.Base(uid)))
		if err != nil {
			return err
		}
		for _, l := range logs {
			if err := removeFolder(l); err != nil {
				return err
			}
		}
	}
	links, err := filepath.Glob(filepath.Join(containers, "*.log"))
	if err != nil {
		return err
	}
	for _, l := range links {
		to, err := os.Readlink(l)
		if err != nil || filepath.Dir(filepath.Dir(filepath.Dir(to))) != pods {
			continue
		}
		if _, err := os.Stat(l); errors.Is(err, os.ErrNotExist) {
			if err := os.Remove(l); err != nil {
				return err
			}
		}
	}
	return nil
}
