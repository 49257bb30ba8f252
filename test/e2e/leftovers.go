// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri"
)

// footprint is how the things are found that a server made outside of its data folder.
type footprint struct {
	dataDir string
	bridge  string   // empty: no network was made
	veths   []string // on the bridge
}

// footprint reads what the server has made. After a purge that was cut off it is what was there before.
func (s *Server) footprint() (footprint, error) {
	f := footprint{dataDir: s.DataDir}
	text, err := os.ReadFile(filepath.Join(s.DataDir, "network.json"))
	if errors.Is(err, os.ErrNotExist) {
		f.bridge, f.veths = s.made.bridge, s.made.veths
		return f, nil
	}
	if err != nil {
		return f, err
	}
	var network struct{ Bridge string }
	err = json.Unmarshal(text, &network)
	f.bridge = network.Bridge
	if err != nil {
		return f, err
	}
	f.veths, err = portsOf(f.bridge)
	s.made = f
	return f, err
}

// linkList lists the machine's network devices. A listing that a change broke off is begun again.
func linkList() (links []netlink.Link, err error) {
	for range 100 {
		if links, err = netlink.LinkList(); !errors.Is(err, netlink.ErrDumpInterrupted) {
			break
		}
	}
	return links, err
}

// portsOf names the devices on a bridge.
func portsOf(bridge string) ([]string, error) {
	links, err := linkList()
	if err != nil {
		return nil, err
	}
	index := 0
	for _, l := range links {
		if l.Attrs().Name == bridge {
			index = l.Attrs().Index
		}
	}
	var out []string
	for _, l := range links {
		if index != 0 && l.Attrs().MasterIndex == index {
			out = append(out, l.Attrs().Name)
		}
	}
	return out, nil
}

// left lists what is on the machine of a server that was purged.
func (f footprint) left() ([]string, error) {
	var out []string
	if _, err := os.Stat(f.dataDir); err == nil {
		out = append(out, "folder "+f.dataDir)
	}
	mounts, err := mountsWith(f.dataDir + "/")
	if err != nil {
		return nil, err
	}
	processes, err := processesWith(f.dataDir + "/")
	if err != nil {
		return nil, err
	}
	groups, err := cgroupsWith(f.cgroupRoot())
	if err != nil {
		return nil, err
	}
	network, err := f.networkLeft()
	return slices.Concat(out, mounts, processes, groups, network), err
}

// cgroupRoot is the name that a server's cgroups begin with, as the server derives it from its data folder.
func (f footprint) cgroupRoot() string {
	sum := sha256.Sum256([]byte(f.dataDir))
	return "wherry-" + hex.EncodeToString(sum[:4])
}

// networkLeft looks for the bridge, what was on it, and its table.
func (f footprint) networkLeft() ([]string, error) {
	if f.bridge == "" {
		return nil, nil
	}
	var out []string
	links, err := linkList()
	if err != nil {
		return nil, err
	}
	for _, l := range links {
		if name := l.Attrs().Name; name == f.bridge || slices.Contains(f.veths, name) {
			out = append(out, "network device "+name)
		}
	}
	conn, err := nftables.New()
	if err != nil {
		return nil, err
	}
	tables, err := conn.ListTables()
	if err != nil {
		return nil, err
	}
	for _, t := range tables {
		if strings.Contains(t.Name, f.bridge) {
			out = append(out, "nftables table "+t.Name)
		}
	}
	return out, nil
}

// mountsWith lists the mounts of this mount namespace whose lines contain one of the texts.
func mountsWith(texts ...string) ([]string, error) {
	info, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var out []string
	for line := range strings.SplitSeq(string(info), "\n") {
		if containsAny(line, texts) {
			out = append(out, "mount "+line)
		}
	}
	return out, nil
}

// processesWith lists the processes whose command line or cgroups contain one of the texts: shims, runc, containers.
func processesWith(texts ...string) ([]string, error) {
	procs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	var out []string
	for _, dir := range procs {
		if dir == fmt.Sprintf("/proc/%d", os.Getpid()) {
			continue
		}
		cmdline, _ := os.ReadFile(filepath.Join(dir, "cmdline")) // an error says that the process has ended meanwhile
		groups, _ := os.ReadFile(filepath.Join(dir, "cgroup"))
		if len(cmdline) == 0 { // a zombie of whoever started it
			continue
		}
		line := strings.ReplaceAll(string(cmdline), "\x00", " ")
		if containsAny(line, texts) || containsAny(string(groups), texts) {
			out = append(out, fmt.Sprintf("process %s: %s", filepath.Base(dir), line))
		}
	}
	return out, nil
}

// cgroupsWith lists the cgroups, of any hierarchy, whose own names contain one of the texts.
func cgroupsWith(texts ...string) ([]string, error) {
	var out []string
	err := filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a cgroup of others, gone meanwhile
		}
		if err != nil {
			return err
		}
		if d.IsDir() && containsAny(d.Name(), texts) {
			out = append(out, "cgroup "+path)
			return fs.SkipDir
		}
		return nil
	})
	return out, err
}

func containsAny(s string, texts []string) bool {
	return slices.ContainsFunc(texts, func(t string) bool { return t != "" && strings.Contains(s, t) })
}

// Traces lists what there is on the node of a pod, found by its UID and by the ids of its containers and sandboxes in
// the runtime and in pod's status (give the last one seen): containers, sandboxes, processes, mounts, cgroups, folders,
// logs, address leases. Of a pod that is gone there must be none (PL-10).
func (s *Server) Traces(ctx context.Context, pod *corev1.Pod) ([]string, error) {
	uid := string(pod.UID)
	out, err := s.inRuntime(ctx, uid)
	if err != nil {
		return nil, err
	}
	names := append([]string{uid}, containerIDs(pod)...)
	for _, look := range []func(...string) ([]string, error){mountsWith, processesWith, cgroupsWith, s.foldersWith} {
		found, err := look(names...)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// inRuntime asks the runtime's own CRI socket.
func (s *Server) inRuntime(ctx context.Context, uid string) ([]string, error) {
	client, err := s.CRI(ctx)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	labels := map[string]string{cri.LabelPodUID: uid}
	containers,
		err := client.Runtime.ListContainers(ctx,
		&runtimeapi.ListContainersRequest{Filter: &runtimeapi.ContainerFilter{LabelSelector: labels}})
	if err != nil {
		return nil, err
	}
	sandboxes,
		err := client.Runtime.ListPodSandbox(ctx,
		&runtimeapi.ListPodSandboxRequest{Filter: &runtimeapi.PodSandboxFilter{LabelSelector: labels}})
	if err != nil {
		return nil, err
	}
	var out []string
	for _, c := range containers.Containers {
		out = append(out, fmt.Sprintf("container %s (%s, %s)", c.Id, c.Metadata.Name, c.State))
	}
	for _, b := range sandboxes.Items {
		out = append(out, fmt.Sprintf("sandbox %s (%s)", b.Id, b.State))
	}
	return out, nil
}

// CRI connects to the server's runtime. The caller closes it.
func (s *Server) CRI(ctx context.Context) (*cri.Client, error) {
	if d := s.opts.Runtime; d != nil {
		return cri.Dial(ctx, "unix://"+d.socket)
	}
	return cri.Dial(ctx, "unix://"+filepath.Join(s.DataDir, "cri.sock"))
}

// foldersWith lists files and folders of the data folder, whose names or (of links) targets contain one of the texts,
// but not inside images' contents, the store and the histories, which outlive their pods.
func (s *Server) foldersWith(texts ...string) ([]string, error) {
	var out []string
	err := filepath.WalkDir(s.DataDir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // somebody else's, gone meanwhile
		}
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "snapshots" || d.Name() == "etcd" || d.Name() == "rootfs" ||
			path == filepath.Join(s.DataDir, "history")) {
			return fs.SkipDir
		}
		target := ""
		if d.Type()&fs.ModeSymlink != 0 {
			target, _ = os.Readlink(path) // gone meanwhile: no target
		}
		if containsAny(d.Name(), texts) || containsAny(target, texts) {
			out = append(out, "folder "+path)
			if d.IsDir() {
				return fs.SkipDir
			}
		}
		return nil
	})
	return out, err
}

// containerIDs are the runtime's ids of all containers in a pod's status, also of those before the last restart.
func containerIDs(pod *corev1.Pod) []string {
	var out []string
	add := func(id string) {
		if _, bare, ok := strings.Cut(id, "://"); ok && bare != "" {
			out = append(out, bare)
		}
	}
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, c := range list {
			add(c.ContainerID)
			for _, state := range []corev1.ContainerState{c.State, c.LastTerminationState} {
				if state.Terminated != nil {
					add(state.Terminated.ContainerID)
				}
			}
		}
	}
	return out
}
