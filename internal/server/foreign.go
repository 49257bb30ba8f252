// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri"
	"github.com/wherryproject/wherry/internal/detach"
)

// endpointFile remembers the external runtime that a data folder's pods run on, so that Purge finds them.
func endpointFile(dataDir string) string { return filepath.Join(dataDir, "runtime-endpoint") }

// endForeign ends this folder's pods on an external runtime, at once, and unmounts their volumes. Other pods there are
// not touched: ours are known by their folders. A runtime that does not answer is an error, unless it is said to be
// gone: then the pods' processes are left to those who remove their cgroups.
func endForeign(ctx context.Context, dataDir string, o PurgeOptions) error {
	text, err := os.ReadFile(endpointFile(dataDir))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
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
	folders = append(folders, execs...)
	endpoint := strings.TrimSpace(string(text))
	done := o.takesLong("waiting for the container runtime at " + endpoint + " to end this folder's pods")
	err = endOnRuntime(ctx, endpoint, folders)
	done()
	switch {
	case err == nil:
	case o.RuntimeGone:
		o.tell(fmt.Sprintf("the pods are ended without their runtime; should it come back, remove there what it "+
			"still lists of them (crictl pods): %v", err))
	default:
		return fmt.Errorf("pods may still be running there; start the runtime and purge again, or, if it is gone for "+
			"good, purge with --runtime-gone: %w", err)
	}
	return unmountBelow(dataDir)
}

// tell tells the user, if there is one.
func (o PurgeOptions) tell(what string) {
	if o.Tell != nil {
		o.Tell(what)
	}
}

// takesLong tells what is being waited for if it takes more than a second: until the function that it returns, which is
// to be called, is called.
func (o PurgeOptions) takesLong(what string) (done func()) {
	ended := make(chan struct{})
	var waiting sync.WaitGroup
	waiting.Go(func() {
		t := time.NewTimer(time.Second)
		defer t.Stop()
		select {
		case <-t.C:
			o.tell(what)
		case <-ended:
		}
	})
	return func() {
		close(ended)
		waiting.Wait()
	}
}

// endOnRuntime ends the pods that have these folders.
func endOnRuntime(ctx context.Context, endpoint string, folders []string) error {
	if len(folders) == 0 {
		return nil
	}
	c, err := cri.Dial(ctx, endpoint)
	if err != nil {
		return err
	}
	defer c.Close()
	for _, f := range folders {
		if err := endPod(ctx, c, filepath.Base(f)); err != nil {
			return err
		}
	}
	return nil
}

// endPodTime is how long an external runtime may take to end a pod: one that hangs must not keep a purge from ending.
const endPodTime = 2 * time.Minute

func endPod(ctx context.Context, c *cri.Client, uid string) error {
	ctx, cancel := context.WithTimeout(ctx, endPodTime)
	defer cancel()
	list, err := c.Runtime.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{
		Filter: &runtimeapi.PodSandboxFilter{LabelSelector: map[string]string{"io.kubernetes.pod.uid": uid}}})
	if err != nil {
		return fmt.Errorf("pod %s: %w", uid, err)
	}
	for _, s := range list.Items {
		if _, err := c.Runtime.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: s.Id}); err != nil {
			return fmt.Errorf("pod %s: %w", uid, err)
		}
		if _,
			err := c.Runtime.RemovePodSandbox(ctx,
			&runtimeapi.RemovePodSandboxRequest{PodSandboxId: s.Id}); err != nil {
			return fmt.Errorf("pod %s: %w", uid, err)
		}
	}
	return nil
}

// unmountBelow unmounts what is mounted below a folder, innermost first.
func unmountBelow(dir string) error {
	if err := detach.Remote(dir); err != nil {
		return err
	}
	mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(dir))
	if err != nil {
		return err
	}
	for i := len(mounts) - 1; i >= 0; i-- { // later mounts may lie on earlier ones
		if err := unix.Unmount(mounts[i].Mountpoint, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil &&
			!errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("unmount %s: %w", mounts[i].Mountpoint, err)
		}
	}
	return nil
}
