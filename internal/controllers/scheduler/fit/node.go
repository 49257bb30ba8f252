// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherryproject/wherry/internal/podspec"
)

// Placed is a pod as far as fitting others beside it matters.
type Placed struct {
	Pod      *corev1.Pod
	requests corev1.ResourceList
	ports    []hostPort
}

// Place takes in what a pod needs (SC-14).
func Place(pod *corev1.Pod) *Placed {
	return &Placed{Pod: pod, requests: podspec.EffectiveRequests(pod), ports: hostPorts(pod)}
}

// Node is a node and what is on it. It belongs to one goroutine.
type Node struct {
	// Object is the node as the API has it; nil while only pods of the node are known.
	Object    *corev1.Node
	pods      map[types.UID]*Placed
	requested corev1.ResourceList
}

// NewNode is a node without pods.
func NewNode(object *corev1.Node) *Node {
	return &Node{Object: object, pods: map[types.UID]*Placed{}, requested: corev1.ResourceList{}}
}

// Add puts a pod on the node, or replaces what was known of it. It says whether there may be more room than before:
// the pod was there and something that others might have to make way for has changed.
func (n *Node) Add(p *Placed) (room bool) {
	if old, ok := n.pods[p.Pod.UID]; ok {
		room = !equality.Semantic.DeepEqual(old.requests, p.requests) || !labels.Equals(old.Pod.Labels, p.Pod.Labels)
	}
	n.Remove(p.Pod.UID)
	n.pods[p.Pod.UID] = p
	for name, q := range p.requests {
		sum := n.requested[name].DeepCopy()
		sum.Add(q)
		n.requested[name] = sum
	}
	return room
}

// Remove takes a pod off the node, if it is there.
func (n *Node) Remove(uid types.UID) {
	p, ok := n.pods[uid]
	if !ok {
		return
	}
	delete(n.pods, uid)
	for name, q := range p.requests {
		sum := n.requested[name].DeepCopy()
		sum.Sub(q)
		n.requested[name] = sum
	}
}

// Len is the number of pods on the node.
func (n *Node) Len() int { return len(n.pods) }

// Has reports whether a pod is on the node.
func (n *Node) Has(uid types.UID) bool {
	_, ok := n.pods[uid]
	return ok
}

// Leaving reports whether a pod of a priority below this one is going.
func (n *Node) Leaving(priority int32) bool {
	for _, p := range n.pods {
		if p.Pod.DeletionTimestamp != nil && podspec.Priority(p.Pod) < priority {
			return true
		}
	}
	return false
}

// UIDs are those of the pods on the node.
func (n *Node) UIDs() []types.UID { return slices.Collect(maps.Keys(n.pods)) }

// hostPort is a port of the host that a pod takes.
type hostPort struct {
	protocol corev1.Protocol
	ip       string
	port     int32
}

const anyIP = "0.0.0.0"

// hostPorts are those of main containers and sidecars; other inits are gone when it matters.
func hostPorts(pod *corev1.Pod) []hostPort {
	var out []hostPort
	for ref := range podspec.Containers(&pod.Spec) {
		if ref.Kind == podspec.Init || ref.Kind == podspec.Ephemeral {
			continue
		}
		for _, p := range ref.Container.Ports {
			if p.HostPort <= 0 {
				continue
			}
			h := hostPort{protocol: p.Protocol, ip: p.HostIP, port: p.HostPort}
			if h.protocol == "" {
				h.protocol = corev1.ProtocolTCP
			}
			if h.ip == "" || h.ip == "::" {
				h.ip = anyIP
			}
			out = append(out, h)
		}
	}
	return out
}

func (h hostPort) clashes(o hostPort) bool {
	return h.port == o.port && h.protocol == o.protocol && (h.ip == o.ip || h.ip == anyIP || o.ip == anyIP)
}
