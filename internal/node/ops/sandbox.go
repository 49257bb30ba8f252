// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri"
	"github.com/wherryproject/wherry/internal/node/userns"
	"github.com/wherryproject/wherry/internal/node/volume"
	"github.com/wherryproject/wherry/internal/node/work"
	"github.com/wherryproject/wherry/internal/podspec"
)

func (r *Runner) sandboxInput(pod *corev1.Pod, attempt uint32, users *userns.Range) SandboxInput {
	in := SandboxInput{Pod: pod, Attempt: attempt, Node: r.Node, LogFolder: r.Logs.Of(pod), Users: users}
	if r.Cgroups != nil {
		in.CgroupParent = r.Cgroups.ParentOf(pod)
	}
	return in
}

func (r *Runner) runSandbox(ctx context.Context, t work.Task) error {
	if t.Attempt > 0 {
		r.Events.Event(t.Pod, "", corev1.EventTypeNormal, "SandboxChanged",
			"Pod sandbox changed, it will be killed and re-created.")
	}
	err := r.tryRunSandbox(ctx, t)
	if err != nil && ctx.Err() == nil {
		r.Events.Event(t.Pod, "", corev1.EventTypeWarning, "FailedCreatePodSandBox",
			"Failed to create pod sandbox: "+err.Error())
	}
	return err
}

func (r *Runner) tryRunSandbox(ctx context.Context, t work.Task) error {
	if _, err := volume.KernelHostname(t.Pod, r.Node.ClusterDomain); err != nil && !t.Pod.Spec.HostNetwork {
		return err
	}
	// The folder stands for the cgroup too: see hasFolders.
	if err := os.MkdirAll(filepath.Join(r.PodsFolder, string(t.Pod.UID)), 0o750); err != nil {
		return err
	}
	if err := r.keepAllocated(t.Pod); err != nil {
		return err
	}
	if r.Cgroups != nil {
		// Nothing of the pod is known to run: what runs there has been lost sight of, and would run twice.
		if err := r.endStrays(ctx, t.Pod); err != nil {
			return err
		}
		if err := r.ensureCgroup(t.Pod); err != nil {
			return err
		}
	}
	if err := r.Logs.make(t.Pod); err != nil {
		return err
	}
	users, err := r.UsersOf(t.Pod)
	if err != nil {
		return err
	}
	ctx, cancel := outlast(ctx)
	defer cancel()
	_, err = r.RunSandbox(ctx, t.Pod, SandboxConfig(r.sandboxInput(t.Pod, t.Attempt, users)))
	return err
}

// patience is how long a call that nobody wants any more is waited for before it is given up.
const patience = 15 * time.Second

// outlast returns a context that ends patience after ctx does. A runtime goes on for a while making the sandbox of a
// call that was given up, and one that came when its pod is gone would be seen by nobody.
func outlast(ctx context.Context) (context.Context, context.CancelFunc) {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		t := time.NewTimer(patience)
		defer t.Stop()
		select {
		case <-t.C:
			cancel()
		case <-own.Done():
		}
	})
	return own, func() {
		stop()
		cancel()
	}
}

// boxes returns the ids of the sandboxes with the task's attempt. There is one, unless something else than this agent
// made another.
func boxes(t work.Task) (ids []string) {
	for i := range t.Seen.Sandboxes {
		if s := &t.Seen.Sandboxes[i]; s.Attempt == t.Attempt {
			ids = append(ids, s.ID)
		}
	}
	return ids
}

func (r *Runner) stopSandbox(ctx context.Context, t work.Task) error {
	for _, id := range boxes(t) {
		_, err := r.CRI.Runtime.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: id})
		if err != nil && !cri.NotFound(err) {
			return fmt.Errorf("stopping the pod's sandbox: %s", cri.Message(err))
		}
	}
	return nil
}

func (r *Runner) removeSandbox(ctx context.Context, t work.Task) error {
	for _, id := range boxes(t) {
		for i := range t.Seen.Containers {
			if c := &t.Seen.Containers[i]; c.SandboxID == id {
				r.Logs.unlink(t.Pod, c.Name, c.ID)
			}
		}
		_, err := r.CRI.Runtime.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: id})
		if err != nil && !cri.NotFound(err) {
			return fmt.Errorf("removing the pod's sandbox: %s", cri.Message(err))
		}
	}
	return nil
}

// SandboxInput is what a sandbox's config is made of.
type SandboxInput struct {
	Pod          *corev1.Pod
	Attempt      uint32
	Node         Node
	LogFolder    string
	CgroupParent string
	Users        *userns.Range // that the pod's IDs are; nil: they are the machine's
}

// SandboxConfig makes the CRI's config of a pod's sandbox. (Pure.)
func SandboxConfig(in SandboxInput) *runtimeapi.PodSandboxConfig {
	p := in.Pod
	c := &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: p.Name, Namespace: p.Namespace, Uid: string(p.UID),
			Attempt: in.Attempt},
		LogDirectory: in.LogFolder,
		DnsConfig:    dnsConfig(in),
		PortMappings: portMappings(p),
		Labels:       podLabels(p),
		Annotations:  p.Annotations,
		Linux: &runtimeapi.LinuxPodSandboxConfig{
			CgroupParent:    in.CgroupParent,
			SecurityContext: sandboxSecurity(p, in.Users),
		},
	}
	if !p.Spec.HostNetwork { // there the name is the machine's
		// a pod whose name is too long gets no sandbox, see tryRunSandbox
		c.Hostname, _ = volume.KernelHostname(p, in.Node.ClusterDomain)
	}
	if s := p.Spec.SecurityContext; s != nil && len(s.Sysctls) > 0 {
		c.Linux.Sysctls = map[string]string{}
		for _, ctl := range s.Sysctls {
			c.Linux.Sysctls[ctl.Name] = ctl.Value
		}
	}
	return c
}

func podLabels(p *corev1.Pod) map[string]string {
	labels := make(map[string]string, len(p.Labels)+3)
	for k, v := range p.Labels {
		labels[k] = v
	}
	labels[cri.LabelPodName], labels[cri.LabelPodNamespace], labels[cri.LabelPodUID] = p.Name, p.Namespace,
		string(p.UID)
	return labels
}

// portMappings are the host ports of what serves: mains and sidecars. On the host's network there is nothing to map.
func portMappings(p *corev1.Pod) (out []*runtimeapi.PortMapping) {
	if p.Spec.HostNetwork {
		return nil
	}
	protocols := map[corev1.Protocol]runtimeapi.Protocol{corev1.ProtocolUDP: runtimeapi.Protocol_UDP,
		corev1.ProtocolSCTP: runtimeapi.Protocol_SCTP}
	for ref := range podspec.Containers(&p.Spec) {
		if ref.Kind != podspec.Main && ref.Kind != podspec.Sidecar {
			continue
		}
		for _, port := range ref.Container.Ports {
			if port.HostPort > 0 {
				out = append(out, &runtimeapi.PortMapping{Protocol: protocols[port.Protocol],
					ContainerPort: port.ContainerPort, HostPort: port.HostPort, HostIp: port.HostIP})
			}
		}
	}
	return out
}

// dnsConfig decides the pod's resolv.conf by its dnsPolicy and dnsConfig (PL-12). Without a cluster DNS ClusterFirst is
// Default, as there is nothing else to ask.
func dnsConfig(in SandboxInput) *runtimeapi.DNSConfig {
	p := in.Pod
	out := &runtimeapi.DNSConfig{}
	cluster := p.Spec.DNSPolicy == corev1.DNSClusterFirstWithHostNet ||
		p.Spec.DNSPolicy == corev1.DNSClusterFirst && !p.Spec.HostNetwork
	switch {
	case p.Spec.DNSPolicy == corev1.DNSNone:
	case cluster && len(in.Node.ClusterDNS) > 0:
		out.Servers = append(out.Servers, in.Node.ClusterDNS...)
		if d := in.Node.ClusterDomain; d != "" {
			out.Searches = append(out.Searches, p.Namespace+".svc."+d, "svc."+d, d)
		}
		out.Options = []string{"ndots:5"}
		if h := in.Node.HostDNS; h != nil {
			out.Searches = join(out.Searches, h.Searches)
		}
	case in.Node.HostDNS != nil:
		h := in.Node.HostDNS
		out.Servers = append(out.Servers, h.Servers...)
		out.Searches = append(out.Searches, h.Searches...)
		out.Options = append(out.Options, h.Options...)
	}
	if c := p.Spec.DNSConfig; c != nil {
		out.Servers = join(out.Servers, c.Nameservers)
		out.Searches = join(out.Searches, c.Searches)
		for _, o := range c.Options {
			text := o.Name
			if o.Value != nil && *o.Value != "" {
				text += ":" + *o.Value
			}
			out.Options = append(slices.DeleteFunc(out.Options, func(old string) bool { // the pod's own word counts
				name, _, _ := strings.Cut(old, ":")
				return name == o.Name
			}), text)
		}
	}
	return out
}

// join appends what is not there yet.
func join(list, more []string) []string {
	for _, m := range more {
		if !slices.Contains(list, m) {
			list = append(list, m)
		}
	}
	return list
}
