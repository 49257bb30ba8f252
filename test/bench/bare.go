// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri"
	"github.com/wherryproject/wherry/internal/node/ops"
	"github.com/wherryproject/wherry/internal/podspec"
)

// bareClient calls the server's runtime without Wherry in between: the yardstick.
type bareClient struct {
	*cri.Client
	dataDir string
	files   string // what is mounted into bare containers, as the agent mounts its own
	image   *runtimeapi.Image
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
	b := &bareClient{Client: c, dataDir: dataDir, files: filepath.Join(dataDir, "bench"), image: s.GetImage()}
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

// removeBareCgroups removes the cgroups of the bare pods, which hold nothing any more, from the innermost.
func removeBareCgroups() error {
	roots, err := filepath.Glob("/sys/fs/cgroup/*/" + cgroupRoot())
	if err != nil {
		return err
	}
	for _, root := range roots {
		var dirs []string
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				dirs = append(dirs, path)
			}
			return err
		})
		for _, dir := range slices.Backward(dirs) {
			err = errors.Join(err, os.Remove(dir))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// barePod is one pod by bare calls.
type barePod struct {
	uid, sandbox, container string // container is the last that was started
	config                  *runtimeapi.PodSandboxConfig
	containers              []*runtimeapi.ContainerConfig // in the order of their start
}

// newPod makes the configs that Wherry's agent makes for the same pod, with its own functions: names, cgroup parent,
// log folder, network, security. So both sides ask the runtime for the same.
func (b *bareClient) newPod(p *corev1.Pod) (*barePod, error) {
	p.UID = uuid.NewUUID()
	podspec.SetDefaults(p)
	logs := filepath.Join(b.dataDir, "log", "bare", namespace+"_"+p.Name+"_"+string(p.UID))
	out := &barePod{uid: string(p.UID)}
	out.config = ops.SandboxConfig(ops.SandboxInput{Pod: p, LogFolder: logs, CgroupParent: cgroupOf(string(p.UID)),
		Node: ops.Node{HostDNS: &runtimeapi.DNSConfig{Servers: []string{"192.0.2.53"}}}})
	// The label says whose a sandbox is: the agent takes down those of pods that it has no record of.
	delete(out.config.Labels, cri.LabelPodUID)
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		if err := os.MkdirAll(filepath.Join(logs, c.Name), 0o755); err != nil {
			return nil, err
		}
		config, err := ops.ContainerConfig(ops.ContainerInput{
			Pod: p, Container: &c, Image: b.image,
			Mounts: []*runtimeapi.Mount{{ContainerPath: "/var/run/secrets/kubernetes.io/serviceaccount",
				HostPath: filepath.Join(b.files, "token"), Readonly: true}},
			HostsFile: filepath.Join(b.files, "hosts"), TerminationLog: filepath.Join(b.files, "termination-log"),
		})
		if err != nil {
			return nil, err
		}
		delete(config.Labels, cri.LabelPodUID)
		out.containers = append(out.containers, config)
	}
	return out, nil
}

// cgroupRoot holds the cgroups of this run's bare pods, laid out like the agent's.
func cgroupRoot() string { return fmt.Sprintf("wherry-bench-%d", os.Getpid()) }

func cgroupOf(uid string) string { return "/" + cgroupRoot() + "/kubepods/besteffort/pod" + uid }

// start runs a pod by three calls and returns how long they took.
func (b *bareClient) start(ctx context.Context, name string) (*barePod, time.Duration, error) {
	p, err := b.newPod(pod(name))
	if err != nil {
		return nil, 0, err
	}
	begun := time.Now()
	if err := b.runSandbox(ctx, p); err != nil {
		return nil, 0, err
	}
	err = b.startContainer(ctx, p, p.containers[0])
	return p, time.Since(begun), err
}

func (b *bareClient) runSandbox(ctx context.Context, p *barePod) error {
	box, err := b.Runtime.RunPodSandbox(ctx, &runtimeapi.RunPodSandboxRequest{Config: p.config})
	p.sandbox = box.GetPodSandboxId()
	return err
}

// startContainer creates and starts one container.
func (b *bareClient) startContainer(ctx context.Context, p *barePod, c *runtimeapi.ContainerConfig) error {
	made, err := b.Runtime.CreateContainer(ctx, &runtimeapi.CreateContainerRequest{PodSandboxId: p.sandbox, Config: c,
		SandboxConfig: p.config})
	if err != nil {
		return err
	}
	p.container = made.GetContainerId()
	_, err = b.Runtime.StartContainer(ctx, &runtimeapi.StartContainerRequest{ContainerId: p.container})
	return err
}

// stop takes a pod down by three calls and returns how long they took.
func (b *bareClient) stop(ctx context.Context, p *barePod) (time.Duration, error) {
	begun := time.Now()
	if _, err := b.Runtime.StopContainer(ctx, &runtimeapi.StopContainerRequest{ContainerId: p.container,
		Timeout: 30}); err != nil {
		return 0, err
	}
	if _, err := b.Runtime.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: p.sandbox}); err != nil {
		return 0, err
	}
	if _,
		err := b.Runtime.RemovePodSandbox(ctx,
		&runtimeapi.RemovePodSandboxRequest{PodSandboxId: p.sandbox}); err != nil {
		return 0, err
	}
	return time.Since(begun), p.tidy()
}

// tidy removes what the runtime does not: the folders this program made for the pod, and the cgroup the runtime made on
// the way.
func (p *barePod) tidy() error { return removeAll(p.config.LogDirectory, cgroupFolders(p.uid)) }

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
	r, err := b.Runtime.ExecSync(ctx, &runtimeapi.ExecSyncRequest{ContainerId: p.container, Cmd: []string{"true"},
		Timeout: 30})
	if err == nil && r.GetExitCode() != 0 {
		err = fmt.Errorf("true: exit code %d: %s", r.GetExitCode(), r.GetStderr())
	}
	return time.Since(begun), err
}
