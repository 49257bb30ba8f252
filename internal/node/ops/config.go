// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri"
	"github.com/wherryproject/wherry/internal/node/allot"
	"github.com/wherryproject/wherry/internal/node/cgroup"
	"github.com/wherryproject/wherry/internal/node/devices"
	"github.com/wherryproject/wherry/internal/node/env"
	"github.com/wherryproject/wherry/internal/node/userns"
	"github.com/wherryproject/wherry/internal/podspec"
)

// Annotations of Wherry's own on containers: what the planner must know of an attempt and cannot see.
const (
	annotationImage  = cri.AnnotationPrefix + "image"  // the image the spec named
	annotationStreak = cri.AnnotationPrefix + "streak" // restarts in a row, see plan.Delay
	annotationRound  = cri.AnnotationPrefix + "round"  // restarts of all containers before it
	annotationSize   = cri.AnnotationPrefix + "size"   // what it was made with, see allot.Size
)

// ContainerInput is what a container's config is made of.
type ContainerInput struct {
	Pod            *corev1.Pod
	Container      *corev1.Container
	Kind           podspec.Kind
	Attempt        uint32
	Streak, Round  int
	Node           Node
	Image          *runtimeapi.Image
	Env            []*runtimeapi.KeyValue
	Mounts         []*runtimeapi.Mount
	HostsFile      string         // on the node
	TerminationLog string         // on the node
	TargetID       string         // of the container whose PID namespace is joined; "" for none
	User           *User          // of a debugger that needs one (NeedsUser); nil where none is known
	Users          *userns.Range  // as in SandboxInput
	Devices        *devices.Given // nil: none
	BlockDevices   []*runtimeapi.Device
	CPUs           string // that it runs on; "": all
	Own            bool   // nobody else runs on them
	Memory         string // NUMA nodes whose memory it may use; "": all
}

// ContainerConfig makes the CRI's config of one attempt of a container. (Pure.)
func ContainerConfig(in ContainerInput) (*runtimeapi.ContainerConfig, error) {
	c := in.Container
	security, err := containerSecurity(in)
	if err != nil {
		return nil, err
	}
	config := &runtimeapi.ContainerConfig{
		Metadata:    &runtimeapi.ContainerMetadata{Name: c.Name, Attempt: in.Attempt},
		Image:       &runtimeapi.ImageSpec{Image: in.Image.GetId(), UserSpecifiedImage: c.Image},
		Command:     env.Expand(c.Command, in.Env),
		Args:        env.Expand(c.Args, in.Env),
		WorkingDir:  c.WorkingDir,
		Envs:        in.Env,
		Mounts:      in.Mounts,
		Labels:      containerLabels(in),
		Annotations: containerAnnotations(in),
		LogPath:     path.Join(c.Name, fmt.Sprintf("%d.log", in.Attempt)),
		Stdin:       c.Stdin,
		StdinOnce:   c.StdinOnce,
		Tty:         c.TTY,
		Linux: &runtimeapi.LinuxContainerConfig{
			Resources:       resources(in),
			SecurityContext: security,
		},
	}
	if l := c.Lifecycle; l != nil && l.StopSignal != nil {
		config.StopSignal = stopSignal(*l.StopSignal)
	}
	if in.HostsFile != "" && !mounted(in.Mounts, "/etc/hosts") {
		config.Mounts = append(config.Mounts, &runtimeapi.Mount{ContainerPath: "/etc/hosts", HostPath: in.HostsFile})
	}
	if at := c.TerminationMessagePath; at != "" && in.TerminationLog != "" && !mounted(in.Mounts, at) {
		config.Mounts = append(config.Mounts, &runtimeapi.Mount{ContainerPath: at, HostPath: in.TerminationLog})
	}
	config.Linux.Resources.CpusetCpus, config.Linux.Resources.CpusetMems = in.CPUs, in.Memory
	if in.Own {
		config.Linux.Resources.CpuQuota = 0
	}
	if in.Devices != nil {
		addDevices(config, in.Devices)
	}
	config.Devices = slices.Concat(config.Devices, in.BlockDevices)
	MapMounts(config.Mounts, in.Users)
	return config, nil
}

// addDevices adds what device plug-ins want of the container, in front of what its spec says: that holds. (Pure.)
func addDevices(config *runtimeapi.ContainerConfig, g *devices.Given) {
	config.Envs = slices.Concat(g.Envs, config.Envs)
	for _, m := range g.Mounts {
		if !mounted(config.Mounts, m.GetContainerPath()) {
			config.Mounts = append(config.Mounts, m)
		}
	}
	config.Devices, config.CDIDevices = g.Devices, g.CDI
	for name, value := range g.Annotations {
		if _, own := config.Annotations[name]; !own {
			config.Annotations[name] = value
		}
	}
}

func resources(in ContainerInput) *runtimeapi.LinuxContainerResources {
	if in.Kind == podspec.Ephemeral {
		return cgroup.DebugResources(in.Pod, in.Container, in.Node.Cgroup)
	}
	return cgroup.ContainerResources(in.Pod, in.Container, in.Node.Cgroup)
}

func mounted(mounts []*runtimeapi.Mount, at string) bool {
	for _, m := range mounts {
		if path.Clean(m.GetContainerPath()) == path.Clean(at) {
			return true
		}
	}
	return false
}

func containerLabels(in ContainerInput) map[string]string {
	return map[string]string{
		cri.LabelPodName:       in.Pod.Name,
		cri.LabelPodNamespace:  in.Pod.Namespace,
		cri.LabelPodUID:        string(in.Pod.UID),
		cri.LabelContainerName: in.Container.Name,
		cri.LabelContainerType: in.Kind.Label(),
	}
}

func containerAnnotations(in ContainerInput) map[string]string {
	a := map[string]string{
		cri.AnnotationRestartCount:             strconv.FormatUint(uint64(in.Attempt), 10),
		cri.AnnotationTerminationMessagePath:   in.Container.TerminationMessagePath,
		cri.AnnotationTerminationMessagePolicy: string(in.Container.TerminationMessagePolicy),
		annotationImage:                        in.Container.Image,
		annotationStreak:                       strconv.Itoa(in.Streak),
	}
	if in.Round > 0 {
		a[annotationRound] = strconv.Itoa(in.Round)
	}
	if in.Kind != podspec.Ephemeral {
		size := allot.SizeOf(in.Pod, in.Container)
		size.Unbound = in.Own
		a[annotationSize] = sizeText(size)
	}
	if g := in.Pod.Spec.TerminationGracePeriodSeconds; g != nil {
		a[cri.AnnotationPodGracePeriod] = strconv.FormatInt(*g, 10)
	}
	return a
}

// stopSignal translates a signal's name for the CRI: SIGRTMIN+3 is SIGNAL_SIGRTMINPLUS3 there.
func stopSignal(s corev1.Signal) runtimeapi.Signal {
	name := strings.NewReplacer("+", "PLUS", "-", "MINUS").Replace(string(s))
	return runtimeapi.Signal(runtimeapi.Signal_value["SIGNAL_"+name])
}

// signalName is the way back; "" when the runtime does not say.
func signalName(s runtimeapi.Signal) string {
	if s == runtimeapi.Signal_SIGNAL_RUNTIME_DEFAULT {
		return ""
	}
	return strings.NewReplacer("PLUS", "+", "MINUS", "-").Replace(strings.TrimPrefix(s.String(), "SIGNAL_"))
}
