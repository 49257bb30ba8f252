// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri"
)

// bareClient calls the server's runtime without Wherry in between: the yardstick.
type bareClient struct {
	*cri.Client
	dataDir string
	files   string // what is mounted into bare containers, as the agent mounts its own
	image   string // id
}

func newBareClient(ctx context.Context, dataDir string) (*bareClient, error) {
	c, err := cri.Dial(ctx, "unix://"+filepath.Join(dataDir, "cri.sock"))
	if err != nil {
		return nil, err
	}
	s, err := c.Images.ImageStatus(ctx, &runtimeapi.ImageStatusRequest{Image: &runtimeapi.ImageSpec{Image: imageName}})
	if err != nil {
		return nil, err
	}
	if s.GetImage() == nil {
		return nil, fmt.Errorf("image %s is not there after its import", imageName)
	}
	b := &bareClient{Client: c, dataDir: dataDir, files: filepath.Join(dataDir, "bench"), image: s.GetImage().GetId()}
	if err := os.MkdirAll(filepath.Join(b.files, "token"), 0o755); err != nil {
		return nil, err
	}
	for _, name := range []string{"hosts", "termination-log", "token/token"} {
		if err := os.WriteFile(filepath.Join(b.files, name), []byte("127.0.0.1 localhost\n"), 0o644); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func (b *bareClient) close() error { return b.Client.Close() }

// barePod is one pod by bare calls.
type barePod struct {
	uid, sandbox, container string
	config                  *runtimeapi.PodSandboxConfig
}

// podConfig is what Wherry asks the runtime for, for the same pod: names, cgroup parent, log folder, network, security.
func (b *bareClient) podConfig(name string) (*barePod, error) {
	uid := string(uuid.NewUUID())
	logs := filepath.Join(b.dataDir, "log", "bare", namespace+"_"+name+"_"+uid)
	if err := os.MkdirAll(filepath.Join(logs, "main"), 0o755); err != nil {
		return nil, err
	}
	return &barePod{uid: uid, config: &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: name, Namespace: namespace, Uid: uid},
		Hostname: name, LogDirectory: logs, DnsConfig: &runtimeapi.DNSConfig{Servers: []string{"192.0.2.53"}},
		Labels: map[string]string{cri.LabelPodName: name, cri.LabelPodNamespace: namespace, cri.LabelPodUID: uid},
		Linux: &runtimeapi.LinuxPodSandboxConfig{
			CgroupParent: cgroupOf(uid),
			SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{NamespaceOptions: namespaceOptions(),
				Seccomp: &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault}},
		},
	}}, nil
}

func cgroupOf(uid string) string { return "/wherry-bench/kubepods/besteffort/pod" + uid }

func namespaceOptions() *runtimeapi.NamespaceOption {
	return &runtimeapi.NamespaceOption{Network: runtimeapi.NamespaceMode_POD, Pid: runtimeapi.NamespaceMode_CONTAINER, Ipc: runtimeapi.NamespaceMode_POD}
}

func (b *bareClient) containerConfig(p *barePod) *runtimeapi.ContainerConfig {
	return &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: "main"},
		Image:    &runtimeapi.ImageSpec{Image: b.image, UserSpecifiedImage: imageName},
		LogPath:  "main/0.log", Labels: map[string]string{cri.LabelPodName: p.config.Metadata.Name, cri.LabelPodNamespace: namespace,
			cri.LabelPodUID: p.uid, cri.LabelContainerName: "main", cri.LabelContainerType: string(cri.TypeRegular)},
		Mounts: []*runtimeapi.Mount{
			{ContainerPath: "/etc/hosts", HostPath: filepath.Join(b.files, "hosts")},
			{ContainerPath: "/dev/termination-log", HostPath: filepath.Join(b.files, "termination-log")},
			{ContainerPath: "/var/run/secrets/kubernetes.io/serviceaccount", HostPath: filepath.Join(b.files, "token"), Readonly: true},
		},
		Linux: &runtimeapi.LinuxContainerConfig{
			Resources: &runtimeapi.LinuxContainerResources{CpuShares: 2, OomScoreAdj: 1000},
			SecurityContext: &runtimeapi.LinuxContainerSecurityContext{NamespaceOptions: namespaceOptions(),
				MaskedPaths:   []string{"/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/timer_list", "/sys/firmware"},
				ReadonlyPaths: []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}},
		},
	}
}

// start runs a pod by three calls and returns how long they took.
func (b *bareClient) start(ctx context.Context, name string) (*barePod, time.Duration, error) {
	p, err := b.podConfig(name)
	if err != nil {
		return nil, 0, err
	}
	begun := time.Now()
	box, err := b.Runtime.RunPodSandbox(ctx, &runtimeapi.RunPodSandboxRequest{Config: p.config})
	if err != nil {
		return nil, 0, err
	}
	p.sandbox = box.GetPodSandboxId()
	made, err := b.Runtime.CreateContainer(ctx, &runtimeapi.CreateContainerRequest{PodSandboxId: p.sandbox,
		Config: b.containerConfig(p), SandboxConfig: p.config})
	if err != nil {
		return nil, 0, err
	}
	p.container = made.GetContainerId()
	_, err = b.Runtime.StartContainer(ctx, &runtimeapi.StartContainerRequest{ContainerId: p.container})
	return p, time.Since(begun), err
}

// stop takes a pod down by three calls and returns how long they took.
func (b *bareClient) stop(ctx context.Context, p *barePod) (time.Duration, error) {
	begun := time.Now()
	if _, err := b.Runtime.StopContainer(ctx, &runtimeapi.StopContainerRequest{ContainerId: p.container, Timeout: 30}); err != nil {
		return 0, err
	}
	if _, err := b.Runtime.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: p.sandbox}); err != nil {
		return 0, err
	}
	if _, err := b.Runtime.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: p.sandbox}); err != nil {
		return 0, err
	}
	took := time.Since(begun)
	// What is left are the folders this program made for it, and the cgroup the runtime made on the way.
	return took, removeAll(p.config.LogDirectory, cgroupFolders(p.uid))
}

func removeAll(logs string, cgroups []string) error {
	for _, dir := range cgroups {
		if err := os.Remove(dir); err != nil {
			return err
		}
	}
	return os.RemoveAll(logs)
}

// execTrue runs `true` in the pod and returns how long that took.
func (b *bareClient) execTrue(ctx context.Context, p *barePod) (time.Duration, error) {
	begun := time.Now()
	r, err := b.Runtime.ExecSync(ctx, &runtimeapi.ExecSyncRequest{ContainerId: p.container, Cmd: []string{"true"}, Timeout: 30})
	if err == nil && r.GetExitCode() != 0 {
		err = fmt.Errorf("true: exit code %d: %s", r.GetExitCode(), r.GetStderr())
	}
	return time.Since(begun), err
}
