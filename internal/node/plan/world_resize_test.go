// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/wherryproject/wherry/internal/node/allot"
)

// A pod with mains of the letters n and r may be resized: what is set aside for it is one of two sizes, by which all of them are
// small or large. An n is resized in place, an r is started again.

// sized makes the pod of a scene one that may be resized.
func (s *scene) sized() {
	for i, cpu := range []string{"100m", "200m"} {
		p := s.pod.DeepCopy()
		for j := range p.Spec.Containers {
			list := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
			p.Spec.Containers[j].Resources = corev1.ResourceRequirements{Requests: list, Limits: list}
		}
		s.sizes[i] = p
	}
}

func (s *scene) podOf(size uint8) *corev1.Pod {
	if p := s.sizes[size]; p != nil {
		return p
	}
	return s.pod
}

func (s *scene) specOf(size uint8, c int) *corev1.Container {
	return &s.sizes[size].Spec.Containers[c-len(s.pod.Spec.InitContainers)]
}

func (s *scene) groupOf(w *world) *allot.Amounts {
	if s.sizes[0] == nil {
		return nil
	}
	give := allot.Pod(s.sizes[w.group])
	return &give
}

// isSized tells whether container c is one that may be resized.
func (s *scene) isSized(c int) bool {
	return s.sizes[0] != nil && c >= len(s.pod.Spec.InitContainers) && c < s.others()
}

func (s *scene) showSize(x *Container, c int, r attempt) {
	if !s.isSized(c) {
		return
	}
	made, given := allot.SizeOf(s.sizes[r.made], s.specOf(r.made, c)), allot.Container(s.sizes[r.given], s.specOf(r.given, c))
	x.Made, x.Given = &made, &given
}

// giveOp fills in what an op gives.
func (s *scene) giveOp(o *Op, c wcall) {
	switch {
	case s.sizes[0] == nil:
	case c.verb == ResizePod:
		o.Give = allot.Pod(s.sizes[c.give])
	case c.verb == ResizeContainer:
		o.Give = allot.Container(s.sizes[c.give], s.specOf(c.give, int(c.c)))
	}
}

// giveOf finds the size that an op gives.
func (e *explorer) giveOf(w *world, o Op, what string) uint8 {
	if o.Verb != ResizePod && o.Verb != ResizeContainer {
		return w.size // the ops that make something go by what is set aside
	}
	for size := range uint8(2) {
		other := Op{}
		e.s.giveOp(&other, wcall{verb: o.Verb, c: e.s.indexOf(o.Container), give: size})
		if other.Give == o.Give {
			return size
		}
	}
	e.fault(w, what, "%v %s gives %+v, which is neither size", o.Verb, o.Container, o.Give)
	return 0
}

// checkResize holds what is given against what the pod's cgroup gives: a container never gets more.
func (e *explorer) checkResize(w *world, what string) {
	if e.s.sizes[0] == nil {
		return
	}
	for c := range w.runs {
		for _, r := range w.runs[c] {
			if e.s.isSized(c) && r.life == running && !r.lost && r.given > w.group && e.boxReady(w) {
				e.fault(w, what, "%s is given more than the pod", e.s.nameOf(int8(c)))
			}
		}
	}
}

// checkResizeStop: nothing is stopped for a resize but what has to be.
func (e *explorer) checkResizeStop(w *world, c int, o Op, what string) {
	if !e.s.isSized(c) || w.deleted || !e.boxReady(w) {
		return
	}
	r := w.runs[c][o.Attempt]
	if len(e.s.specOf(0, c).ResizePolicy) == 0 || r.made == w.size {
		e.fault(w, what, "%s is stopped, and its size asks for no restart", e.s.nameOf(int8(c)))
	}
}

// fits tells whether all that runs is given what is set aside, and the status says that nothing is left to do.
func (e *explorer) fits(w *world) bool {
	if e.s.sizes[0] == nil {
		return true
	}
	for c := range w.runs {
		for _, r := range w.runs[c] {
			if e.s.isSized(c) && r.life == running && r.given != w.size {
				return false
			}
		}
	}
	return w.group == w.size && find(e.s.statuses[w.mem].Conditions, corev1.PodResizeInProgress) == nil
}

// resizeEffect is what a resize does to the node.
func (e *explorer) resizeEffect(w *world, c wcall) {
	if c.verb == ResizePod {
		w.group = c.give
	} else if r := &w.runs[c.c][c.attempt]; r.life == running {
		r.given = c.give
	}
	e.checkResize(w, fmt.Sprint("the effect of ", c.verb))
}
