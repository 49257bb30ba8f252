// SPDX-License-Identifier: Apache-2.0

package nodeauth

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/podspec"
)

// Kind is of what a pod refers to, or is itself.
type Kind string

// Kinds of references.
const (
	Pod            Kind = "pod"
	Secret         Kind = "secret"
	ConfigMap      Kind = "configmap"
	ServiceAccount Kind = "serviceaccount"
	Claim          Kind = "persistentvolumeclaim"
	// Volume is a persistent volume. Pods do not name it: their claims are bound to it, as it says itself.
	Volume Kind = "persistentvolume"
	// Attachment is of a volume to a node, which it names itself.
	Attachment Kind = "volumeattachment"
)

// Ref names an object in a namespace. A pod refers to itself.
type Ref struct {
	Kind            Kind
	Namespace, Name string
}

// Graph knows the pods by node. What changes it must not run beside anything else of it.
type Graph struct {
	pods  map[Ref]known
	count map[edge]int // pods that make it
}

type known struct {
	node string
	refs []Ref
}

type edge struct {
	node string
	to   Ref
}

// NewGraph makes one without pods.
func NewGraph() *Graph { return &Graph{pods: map[Ref]known{}, count: map[edge]int{}} }

// Put takes in a pod as it is now; one without a node has no edges.
func (g *Graph) Put(pod *corev1.Pod) {
	self := Ref{Pod, pod.Namespace, pod.Name}
	g.remove(self)
	if pod.Spec.NodeName == "" {
		return
	}
	k := known{node: pod.Spec.NodeName, refs: Refs(pod)}
	g.pods[self] = k
	for _, ref := range k.refs {
		g.count[edge{k.node, ref}]++
	}
}

// Delete takes a pod out.
func (g *Graph) Delete(namespace, name string) { g.remove(Ref{Pod, namespace, name}) }

// Replace takes the pods for all there are.
func (g *Graph) Replace(pods []*corev1.Pod) {
	*g = *NewGraph()
	for _, pod := range pods {
		g.Put(pod)
	}
}

func (g *Graph) remove(self Ref) {
	k, ok := g.pods[self]
	if !ok {
		return
	}
	delete(g.pods, self)
	for _, ref := range k.refs {
		e := edge{k.node, ref}
		if g.count[e]--; g.count[e] <= 0 {
			delete(g.count, e)
		}
	}
}

// Has reports whether a pod on the node is, or refers to, the object.
func (g *Graph) Has(node string, to Ref) bool { return g.count[edge{node, to}] > 0 }

// Refs are the pod itself and everything in its namespace that the node must read to run it, each once.
func Refs(pod *corev1.Pod) []Ref {
	c := collector{namespace: pod.Namespace, seen: map[Ref]bool{}}
	c.add(Pod, pod.Name)
	c.add(ServiceAccount, pod.Spec.ServiceAccountName)
	for _, s := range pod.Spec.ImagePullSecrets {
		c.add(Secret, s.Name)
	}
	for i := range pod.Spec.Volumes {
		c.volume(&pod.Spec.Volumes[i].VolumeSource)
		c.add(Claim, podspec.ClaimName(pod, &pod.Spec.Volumes[i]))
	}
	for ref := range podspec.Containers(&pod.Spec) {
		c.environment(ref.Container.EnvFrom, ref.Container.Env)
	}
	return c.refs
}

type collector struct {
	namespace string
	seen      map[Ref]bool
	refs      []Ref
}

func (c *collector) add(kind Kind, name string) {
	ref := Ref{kind, c.namespace, name}
	if name == "" || c.seen[ref] {
		return
	}
	c.seen[ref] = true
	c.refs = append(c.refs, ref)
}

func (c *collector) environment(from []corev1.EnvFromSource, env []corev1.EnvVar) {
	for i := range from {
		if r := from[i].ConfigMapRef; r != nil {
			c.add(ConfigMap, r.Name)
		}
		if r := from[i].SecretRef; r != nil {
			c.add(Secret, r.Name)
		}
	}
	for i := range env {
		source := env[i].ValueFrom
		if source == nil {
			continue
		}
		if r := source.ConfigMapKeyRef; r != nil {
			c.add(ConfigMap, r.Name)
		}
		if r := source.SecretKeyRef; r != nil {
			c.add(Secret, r.Name)
		}
	}
}

// volume: of the volumes of other kinds that name secrets, those whose driver runs on the node.
func (c *collector) volume(v *corev1.VolumeSource) {
	switch {
	case v.Secret != nil:
		c.add(Secret, v.Secret.SecretName)
	case v.ConfigMap != nil:
		c.add(ConfigMap, v.ConfigMap.Name)
	case v.Projected != nil:
		for i := range v.Projected.Sources {
			source := &v.Projected.Sources[i]
			if source.Secret != nil {
				c.add(Secret, source.Secret.Name)
			}
			if source.ConfigMap != nil {
				c.add(ConfigMap, source.ConfigMap.Name)
			}
		}
	case v.CSI != nil && v.CSI.NodePublishSecretRef != nil:
		c.add(Secret, v.CSI.NodePublishSecretRef.Name)
	case v.ISCSI != nil && v.ISCSI.SecretRef != nil:
		c.add(Secret, v.ISCSI.SecretRef.Name)
	case v.FlexVolume != nil && v.FlexVolume.SecretRef != nil:
		c.add(Secret, v.FlexVolume.SecretRef.Name)
	}
}
