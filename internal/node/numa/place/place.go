// SPDX-License-Identifier: Apache-2.0

package place

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/cpuset"

	"github.com/wherryproject/wherry/internal/node/cpus/pin"
	"github.com/wherryproject/wherry/internal/node/devices/grant"
	"github.com/wherryproject/wherry/internal/node/numa"
	"github.com/wherryproject/wherry/internal/node/numa/bank"
	"github.com/wherryproject/wherry/internal/podspec"
)

// Node is what holds for all pods.
type Node struct {
	Rule   numa.Rule
	CPUs   pin.Policy
	Static bool         // containers that ask for whole CPUs have them to themselves
	Memory bank.Machine // nil: memory is not given by nodes
}

// Facts are what others have when a pod comes.
type Facts struct {
	CPUs    cpuset.CPUSet
	Memory  bank.Taken
	Devices map[string]Devices // by resource
}

// Devices are those of one resource.
type Devices struct {
	List  []grant.Device
	Taken map[string]bool
}

// Placement is what a pod's containers have, by container. Devices are by resource below that.
type Placement struct {
	CPUs    pin.Held
	Memory  bank.Held
	Charge  bank.Taken // what the pod has of the memory
	Devices map[string]map[string]Reserved
}

// Reserved are devices that a container is to have, and the NUMA nodes that they were chosen for.
type Reserved struct {
	IDs  []string
	Near []int64
}

// Refused is why a pod is not let in, in the kubelet's words.
type Refused struct{ Reason, Message string }

func (r *Refused) Error() string { return r.Message }

// Reasons of refused pods, as the kubelet names them.
const (
	ReasonAffinity   = "TopologyAffinityError"
	ReasonUnexpected = "UnexpectedAdmissionError"
)

// Place decides for all containers of a pod. Its error is a [*Refused].
func (n Node) Place(pod *corev1.Pod, f Facts) (Placement, error) {
	p := placing{Node: n, pod: pod, facts: f, out: Placement{CPUs: pin.Held{}, Memory: bank.Held{},
		Devices: map[string]map[string]Reserved{}}}
	near := n.Rule.Nodes
	if n.Rule.On() && n.Rule.PodScope {
		var err error
		if near, err = p.merge("the pod", p.wholePod()); err != nil {
			return Placement{}, err
		}
	}
	for c := range podspec.OwnContainers(&pod.Spec) {
		wants := p.wants(c.Container)
		if n.Rule.On() && !n.Rule.PodScope {
			var err error
			if near, err = p.merge("container "+c.Container.Name, wants); err != nil {
				return Placement{}, err
			}
		}
		if err := p.take(wants, near); err != nil {
			return Placement{}, err
		}
	}
	p.out.Charge = p.out.Memory.Charge(bank.Moments(&pod.Spec))
	return p.out, nil
}

// placing is a pod on its way.
type placing struct {
	Node
	pod   *corev1.Pod
	facts Facts
	out   Placement
}

// wants is what a container, or a pod as a whole, asks for.
type wants struct {
	cpus    pin.Request
	memory  bank.Request
	devices map[string]grant.Request
}

// wants says what a container asks for, beside those that have been placed.
func (p *placing) wants(c *corev1.Container) wants {
	ended := podspec.EndedBefore(&p.pod.Spec, c.Name)
	before := map[string]bool{}
	for _, name := range ended {
		before[name] = true
	}
	w := p.of(p.needs(c))
	w.cpus.Container, w.cpus.Pod, w.cpus.Before = c.Name, p.out.CPUs, before
	beside := bank.Held{}
	for name, share := range p.out.Memory {
		if !before[name] {
			beside[name] = share
		}
	}
	w.memory.Container = c.Name
	w.memory.Taken = p.facts.Memory.And(beside.Charge([][]string{slices.Collect(maps.Keys(beside))}))
	for name, d := range w.devices {
		d.Container, d.Before, d.Pod = c.Name, ended, grant.Held{}
		for container, has := range p.out.Devices {
			d.Pod[container] = has[name].IDs
		}
		w.devices[name] = d
	}
	return w
}

// needs is how much is asked for.
type needs struct {
	cpus    int
	memory  bank.Amounts
	devices map[string]int
}

func (p *placing) needs(c *corev1.Container) needs {
	out := needs{devices: map[string]int{}}
	if p.Static {
		out.cpus = pin.Whole(p.pod, c)
	}
	if p.Memory != nil {
		out.memory = bank.Needs(p.pod, c)
	}
	for name := range p.facts.Devices {
		if q, asks := c.Resources.Limits[corev1.ResourceName(name)]; asks && q.Value() > 0 {
			out.devices[name] = int(q.Value())
		}
	}
	return out
}

// of makes requests of needs, for somebody who has nothing yet.
func (p *placing) of(n needs) wants {
	out := wants{cpus: pin.Request{Need: n.cpus, Taken: p.facts.CPUs},
		memory: bank.Request{Need: n.memory, Taken: p.facts.Memory}, devices: map[string]grant.Request{}}
	for name, need := range n.devices {
		d := p.facts.Devices[name]
		out.devices[name] = grant.Request{Resource: name, Need: need, Devices: d.List, Taken: d.Taken}
	}
	return out
}

// wholePod is what the pod asks for at the moment when it needs most.
func (p *placing) wholePod() wants {
	all := map[string]needs{}
	for c := range podspec.OwnContainers(&p.pod.Spec) {
		all[c.Container.Name] = p.needs(c.Container)
	}
	most := needs{memory: bank.Amounts{}, devices: map[string]int{}}
	for _, living := range bank.Moments(&p.pod.Spec) {
		cpus, memory, devices := 0, bank.Amounts{}, map[string]int{}
		for _, name := range living {
			cpus += all[name].cpus
			for r, n := range all[name].memory {
				memory[r] += n
			}
			for r, n := range all[name].devices {
				devices[r] += n
			}
		}
		most.cpus = max(most.cpus, cpus)
		for r, n := range memory {
			most.memory[r] = max(most.memory[r], n)
		}
		for r, n := range devices {
			most.devices[r] = max(most.devices[r], n)
		}
	}
	return p.of(most)
}

// merge decides on which NUMA nodes all of it is to be.
func (p *placing) merge(who string, w wants) (numa.Mask, error) {
	offers := []numa.Offer{w.memory.Offer(p.Memory), p.CPUs.Offer(w.cpus, p.Rule.Nodes)}
	var names []string
	if w.cpus.Need > 0 {
		names = append(names, "cpu")
	}
	names = append(names, slices.Sorted(resourceNames(w.memory.Need))...)
	for _, name := range slices.Sorted(maps.Keys(w.devices)) {
		offers = append(offers, w.devices[name].On(p.Rule.Nodes))
		names = append(names, name)
	}
	h := p.Rule.Merge(offers)
	if p.Rule.Admits(h) {
		return h.Nodes, nil
	}
	why := "what it asks for is not free on as few NUMA nodes as would hold it"
	if p.Rule.Policy == numa.SingleNUMANode {
		why = "no NUMA node has all that it asks for free"
	}
	return 0, &Refused{ReasonAffinity, fmt.Sprintf("Resources cannot be allocated with Topology locality: %s: %s: %s",
		who, why, strings.Join(names, ", "))}
}

func resourceNames(a bank.Amounts) func(func(string) bool) {
	return func(yield func(string) bool) {
		for name := range a {
			if !yield(string(name)) {
				return
			}
		}
	}
}

// take gives a container what it asks for, as near as can be to some nodes. Without a policy of the topology manager
// CPUs and devices are chosen when the container starts; so they are where there are too few now, and devices where
// their plug-in says nothing of nodes.
func (p *placing) take(w wants, near numa.Mask) error {
	name := w.memory.Container
	share, err := w.memory.Choose(p.Memory, p.Rule, near)
	if err != nil {
		return &Refused{ReasonUnexpected, "Allocate failed due to too little memory: " + err.Error() +
			", which is unexpected"}
	}
	if share.Nodes != 0 {
		p.out.Memory[name] = share
	}
	if !p.Rule.On() {
		return nil
	}
	if w.cpus.Need > 0 {
		w.cpus.Near = p.CPUs.On(near)
		if set, err := p.CPUs.Choose(w.cpus); err == nil {
			p.out.CPUs[name] = set
		}
	}
	for resource, d := range w.devices {
		if d.On(p.Rule.Nodes).Any {
			continue
		}
		d.Near = nodes(near)
		offer, err := grant.Look(d)
		if err != nil {
			continue
		}
		if p.out.Devices[name] == nil {
			p.out.Devices[name] = map[string]Reserved{}
		}
		p.out.Devices[name][resource] = Reserved{offer.Choose(nil), d.Near}
	}
	return nil
}

func nodes(m numa.Mask) (out []int64) {
	for _, n := range m.Nodes() {
		out = append(out, int64(n))
	}
	return out
}
