// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri"
)

// cgroupFolders are the cgroups named after a pod, in every hierarchy.
func cgroupFolders(uid string) (found []string) {
	for _, pattern := range []string{"/sys/fs/cgroup/*/kubepods/*/pod", "/sys/fs/cgroup/*/*/kubepods/*/pod",
		"/sys/fs/cgroup/*/*/*/kubepods/*/pod"} {
		more, _ := filepath.Glob(pattern + uid) // the pattern is well-formed
		found = append(found, more...)
	}
	return found
}

// left lists what the node still holds of a pod: in the runtime, and in the data folder.
func (b *bareClient) left(ctx context.Context, uid string) (found []string, err error) {
	of := map[string]string{cri.LabelPodUID: uid}
	boxes,
		err := b.Runtime.ListPodSandbox(ctx,
		&runtimeapi.ListPodSandboxRequest{Filter: &runtimeapi.PodSandboxFilter{LabelSelector: of}})
	if err != nil {
		return nil, err
	}
	containers,
		err := b.Runtime.ListContainers(ctx,
		&runtimeapi.ListContainersRequest{Filter: &runtimeapi.ContainerFilter{LabelSelector: of}})
	if err != nil {
		return nil, err
	}
	for _, s := range boxes.GetItems() {
		found = append(found, "sandbox "+s.GetId())
	}
	for _, c := range containers.GetContainers() {
		found = append(found, "container "+c.GetId())
	}
	for _, pattern := range []string{"pods/" + uid, "log/pods/*_" + uid} {
		files, _ := filepath.Glob(filepath.Join(b.dataDir, pattern))
		found = append(found, files...)
	}
	return append(found, cgroupFolders(uid)...), nil
}

// machineLeft lists what the runtime holds below the level of pods: mounts, of network namespaces too, and shims.
func (b *bareClient) machineLeft() (found []string, err error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(mounts)) {
		f := strings.Fields(line)
		if len(f) > 4 && strings.HasPrefix(f[4], b.dataDir+"/") &&
			(strings.Contains(f[4], "/rootfs") || strings.Contains(f[4], "/shm") || strings.Contains(f[4], "/netns")) {
			found = append(found, "mount "+f[4])
		}
	}
	pids, err := b.shims()
	for _, pid := range pids {
		found = append(found, fmt.Sprintf("shim %d", pid))
	}
	return found, err
}

// shims are the processes that hold containers of this data folder.
func (b *bareClient) shims() (pids []int, err error) {
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil, err
	}
	for _, c := range commands {
		text, err := os.ReadFile(c)
		isShim := func(program string) bool { return strings.HasPrefix(string(text), b.dataDir+"/bin/"+program) }
		if err != nil || !isShim("wherry-shim") && !isShim("containerd-shim") {
			continue // what has ended in the meantime is none
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(c)))
		if err != nil {
			return nil, err
		}
		pids = append(pids, pid)
	}
	return pids, nil
}

// nothingLeft fails if anything of any pod is left on the machine.
func (b *bareClient) nothingLeft(ctx context.Context, uids ...string) error {
	all, err := b.machineLeft()
	if err != nil {
		return err
	}
	for _, uid := range uids {
		found, err := b.left(ctx, uid)
		if err != nil {
			return err
		}
		all = append(all, found...)
	}
	if len(all) > 0 {
		return fmt.Errorf("left on the node: %s", strings.Join(all, ", "))
	}
	return nil
}
