// SPDX-License-Identifier: Apache-2.0

package bank

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/wherryproject/wherry/internal/node/numa"
	"github.com/wherryproject/wherry/internal/podspec"
)

// Amounts are bytes by resource: memory, and huge pages by their size.
type Amounts map[corev1.ResourceName]int64

// String lists them: memory 1Gi, hugepages-2Mi 4Mi.
func (a Amounts) String() string {
	var out []string
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(a))) {
		out = append(out, string(name)+" "+resource.NewQuantity(a[name], resource.BinarySI).String())
	}
	return strings.Join(out, ", ")
}

// Machine is what each NUMA node can give to pods, without what is reserved.
type Machine map[int]Amounts

// Nodes are those that there are.
func (m Machine) Nodes() (out numa.Mask) {
	for n := range m {
		out |= 1 << n
	}
	return out
}

// Share is what a container has: so much of each node. It may use these nodes only.
type Share struct {
	Nodes numa.Mask       `json:"nodes"`
	Of    map[int]Amounts `json:"of"`
}

// Held is what a pod's containers have, by container.
type Held map[string]Share

// Needs is what a container is given from NUMA nodes: what it requests, in guaranteed pods; nothing of others, and
// where the pod as a whole has resources.
func Needs(pod *corev1.Pod, c *corev1.Container) Amounts {
	if pod.Spec.Resources != nil || podspec.QOSClass(pod) != corev1.PodQOSGuaranteed {
		return nil
	}
	out := Amounts{}
	for name, q := range c.Resources.Requests {
		if (name == corev1.ResourceMemory || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)) &&
			q.Value() > 0 {
			out[name] = q.Value()
		}
	}
	return out
}

// Moments are the containers of a pod that live at the same time: each init container with the sidecars before it, and
// in the end all but those.
func Moments(spec *corev1.PodSpec) (out [][]string) {
	var stay []string
	for c := range podspec.OwnContainers(spec) {
		if c.Kind == podspec.Init {
			out = append(out, append(slices.Clone(stay), c.Container.Name))
			continue
		}
		stay = append(stay, c.Container.Name)
	}
	return append(out, stay)
}

// Taken is what some pods have.
type Taken struct {
	Of map[int]Amounts `json:"of"`
	// Sets are the sets of nodes that their containers use.
	Sets []numa.Mask `json:"sets"`
}

// Charge is what a pod has, by what lives at the same time: of each node the most that it is ever.
func (h Held) Charge(moments [][]string) Taken {
	out := Taken{Of: map[int]Amounts{}}
	for _, living := range moments {
		at := map[int]Amounts{}
		for _, name := range living {
			add(at, h[name].Of)
		}
		for node, amounts := range at {
			if out.Of[node] == nil {
				out.Of[node] = Amounts{}
			}
			for name, n := range amounts {
				out.Of[node][name] = max(out.Of[node][name], n)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(h)) {
		if m := h[name].Nodes; !slices.Contains(out.Sets, m) {
			out.Sets = append(out.Sets, m)
		}
	}
	return out
}

// And is what both have.
func (t Taken) And(other Taken) Taken {
	out := Taken{Of: map[int]Amounts{}, Sets: slices.Concat(t.Sets, other.Sets)}
	add(out.Of, t.Of)
	add(out.Of, other.Of)
	return out
}

func add(to, from map[int]Amounts) {
	for node, amounts := range from {
		if to[node] == nil {
			to[node] = Amounts{}
		}
		for name, n := range amounts {
			to[node][name] += n
		}
	}
}

// Short says that there is too little where a container could have it.
type Short struct {
	Container string
	Need      Amounts
}

func (s *Short) Error() string {
	return fmt.Sprintf("container %s: no NUMA nodes have %s free for it", s.Container, s.Need)
}

// Request is a container's request.
type Request struct {
	Container string
	Need      Amounts
	Taken     Taken // by others that live when it does, of its pod too
}

// free is what a node has left of a resource.
func (m Machine) free(t Taken, node int, name corev1.ResourceName) int64 {
	return max(0, m[node][name]-t.Of[node][name])
}

// enough reports whether a set of nodes has what is needed, beside what is taken.
func (m Machine) enough(set numa.Mask, need Amounts, t Taken) bool {
	for name, n := range need {
		var has int64
		for _, node := range set.Nodes() {
			has += m.free(t, node, name)
		}
		if has < n {
			return false
		}
	}
	return true
}

// may reports whether a container may use a set of nodes beside those who use some of them.
func (t Taken) may(set numa.Mask) bool {
	for _, s := range t.Sets {
		if s != set && s&set != 0 {
			return false
		}
	}
	return true
}

// Offer says where it could be had.
func (w Request) Offer(m Machine) numa.Offer {
	if len(w.Need) == 0 {
		return numa.Offer{Any: true}
	}
	one := func(t Taken) func(numa.Mask) int64 {
		return func(set numa.Mask) int64 {
			if m.enough(set, w.Need, t) {
				return 1
			}
			return 0
		}
	}
	return numa.Stock{Need: 1, Nodes: m.Nodes(), Total: one(Taken{}), Free: one(w.Taken), May: w.Taken.may}.Offer()
}

// Choose takes it from the nodes that the topology manager has chosen; where these have too little, from the fewest
// that have enough with them, or else without. near is 0 where it does not matter. Its error is a [*Short].
func (w Request) Choose(m Machine, r numa.Rule, near numa.Mask) (Share, error) {
	if len(w.Need) == 0 {
		return Share{}, nil
	}
	near &= m.Nodes()
	if near == m.Nodes() { // nothing has been chosen
		near = 0
	}
	best, found := numa.Mask(0), false
	for _, h := range w.Offer(m).Hints {
		set := h.Nodes
		switch {
		case !found:
		case near.Within(set) != near.Within(best):
			if !near.Within(set) {
				continue
			}
		case set.Count() != best.Count():
			if set.Count() > best.Count() {
				continue
			}
		case !r.Nearer(set, best):
			continue
		}
		best, found = set, true
	}
	if !found {
		return Share{}, &Short{w.Container, w.Need}
	}
	out := Share{Nodes: best, Of: map[int]Amounts{}}
	for name, left := range w.Need {
		for _, node := range best.Nodes() {
			n := min(left, m.free(w.Taken, node, name))
			if left -= n; n == 0 {
				continue
			}
			if out.Of[node] == nil {
				out.Of[node] = Amounts{}
			}
			out.Of[node][name] = n
		}
	}
	return out, nil
}
