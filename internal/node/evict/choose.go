// SPDX-License-Identifier: Apache-2.0

package evict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/wherryproject/wherry/internal/podspec"
)

// Use is what something uses. Memory is the working set in bytes, Disk what it has written: layer, logs, emptyDirs.
type Use struct{ Memory, Disk, Inodes, Processes int64 }

// ContainerUse is what one container of a pod uses.
type ContainerUse struct {
	Name  string
	Exec  bool // an image exec into the pod, which is in no spec
	Layer int64
	Logs  int64
	Use   // Disk is Layer + Logs
}

// Candidate is a pod that runs, with what it uses.
type Candidate struct {
	Pod        *corev1.Pod
	Use        // of the whole pod, with all that debugs it (EC-18)
	Containers []ContainerUse
	Volumes    map[string]int64 // emptyDirs on disk, by volume
}

// Critical reports whether a pod of a system-critical priority is spared: it is held to no limit of its own, and never
// evicted, but for a disk that nobody else fills.
func Critical(pod *corev1.Pod) bool { return podspec.Critical(pod) }

// Victim is the pod that goes, and what its status will say.
type Victim struct {
	Pod     *corev1.Pod
	Message string
}

// Choose names the pod to go for a threshold, or nil if there is none: first those that use more than they requested,
// then by priority, then by how much more they use. Of files and processes nothing is requested: there the priority and
// the count decide. A disk that is full ends more than pods, so there critical ones go too, once no other has anything
// on it.
func Choose(t Threshold, r Reading, pods []Candidate) *Victim {
	pods = eligible(t.Signal, pods)
	if len(pods) == 0 {
		return nil
	}
	first := slices.MinFunc(pods, func(a, b Candidate) int { return rank(t.Signal, &a, &b) })
	return &Victim{first.Pod, lowMessage(t, r, &first)}
}

// littleDisk is what ending a pod is not worth, as long as another has more.
const littleDisk = 1 << 20

// eligible are the pods among which is chosen.
func eligible(s Signal, pods []Candidate) []Candidate {
	var ordinary, giving, critical []Candidate
	for _, c := range pods {
		gives := s.Disk() && (s.inodes() && c.Inodes > 0 || !s.inodes() && c.Disk >= littleDisk)
		switch {
		case !Critical(c.Pod):
			ordinary = append(ordinary, c)
			if gives {
				giving = append(giving, c)
			}
		case gives:
			critical = append(critical, c)
		}
	}
	if len(giving) == 0 && len(critical) > 0 {
		return critical
	}
	return ordinary
}

// rank orders candidates, the first to go first. Among equals the younger one goes.
func rank(s Signal, a, b *Candidate) int {
	above := func(c *Candidate) int64 {
		switch {
		case s == PIDAvailable:
			return c.Processes
		case s.inodes():
			return c.Inodes
		}
		return used(s, c.Use) - requested(s, podspec.EffectiveRequests(c.Pod))
	}
	exceeds := 0
	if s != PIDAvailable && !s.inodes() {
		exceeds = cmp.Compare(sign(above(b)), sign(above(a)))
	}
	return cmp.Or(exceeds, cmp.Compare(podspec.Priority(a.Pod), podspec.Priority(b.Pod)),
		cmp.Compare(above(b), above(a)), b.Pod.CreationTimestamp.Compare(a.Pod.CreationTimestamp.Time),
		strings.Compare(string(a.Pod.UID), string(b.Pod.UID)))
}

// sign is only whether something is above what was requested.
func sign(n int64) int {
	if n > 0 {
		return 1
	}
	return 0
}

func used(s Signal, u Use) int64 {
	switch {
	case s == MemoryAvailable:
		return u.Memory
	case s == PIDAvailable:
		return u.Processes
	case s.inodes():
		return u.Inodes
	}
	return u.Disk
}

// requested is what a list of requests has of what a signal is about.
func requested(s Signal, list corev1.ResourceList) int64 {
	q := list[corev1.ResourceName(s.resource())]
	return q.Value()
}

// lowMessage is the kubelet's sentence, with a word on what of the use is debugging (EC-18).
func lowMessage(t Threshold, r Reading, c *Candidate) string {
	what := t.Signal.resource()
	var b strings.Builder
	fmt.Fprintf(&b, "The node was low on resource: %s. Threshold quantity: %s, available: %s. ", what, t.Least,
		quantity(t.Signal, r.Available))
	if t.Signal == PIDAvailable || t.Signal.inodes() {
		return b.String()
	}
	for _, u := range c.Containers {
		n := used(t.Signal, u.Use)
		ref, known := podspec.FindContainer(&c.Pod.Spec, u.Name)
		switch {
		case n <= 0:
		case u.Exec:
			fmt.Fprintf(&b, "An image exec into the pod was using %s, which counts to the pod. ", quantity(t.Signal, n))
		case known && ref.Kind == podspec.Ephemeral:
			fmt.Fprintf(&b, "Debug container %s was using %s, which counts to the pod. ", u.Name, quantity(t.Signal, n))
		case known:
			want := requested(t.Signal, ref.Container.Resources.Requests)
			if n > want {
				fmt.Fprintf(&b, "Container %s was using %s, request is %s, has larger consumption of %s. ", u.Name,
					quantity(t.Signal, n), quantity(t.Signal, want), what)
			}
		}
	}
	return b.String()
}

// quantity writes a number for people: bytes in KiB as the kubelet does, other things as they are.
func quantity(s Signal, n int64) string {
	if s == PIDAvailable || s.inodes() || n < 1024 {
		return resource.NewQuantity(n, resource.DecimalSI).String()
	}
	return resource.NewQuantity(n>>10<<10, resource.BinarySI).String()
}
