// SPDX-License-Identifier: Apache-2.0

package decide

// The tables that are wanted, and what was touched of them.

func (w *World) makeSet(name string) {
	if w.want.Sets[name] == nil {
		w.want.Sets[name] = Set{}
		w.touched.Sets[name] = true
	}
}

func (w *World) dropSet(name string) {
	delete(w.want.Sets, name)
	w.touched.Sets[name] = true
}

// set puts an element into a set, in the name of a pod if there is one.
func (w *World) set(p *pod, name string, e Elem, to string) {
	w.makeSet(name)
	w.want.Sets[name][e] = to
	w.touched.Sets[name] = true
	if p != nil {
		p.put = append(p.put, placed{name, e})
	}
}

// unset takes one away.
func (w *World) unset(name string, e Elem) {
	delete(w.want.Sets[name], e)
	w.touched.Sets[name] = true
}

func (w *World) setChain(name string, c Chain) {
	w.want.Chains[name] = c
	w.touched.Chains[name] = true
}

func (w *World) dropChain(name string) {
	delete(w.want.Chains, name)
	w.touched.Chains[name] = true
}
