// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"slices"

	"github.com/wherryproject/wherry/internal/node/numa"
)

// On says on which NUMA nodes a container could have its devices: it does not matter where the plug-in says of none to
// which it is near. (Near does not count.)
func (w Request) On(nodes numa.Mask) numa.Offer {
	var all []string
	known := false
	for _, d := range w.Devices {
		known = known || len(d.NUMA) > 0
		if d.Healthy {
			all = append(all, d.ID)
		}
	}
	if !known {
		return numa.Offer{Any: true}
	}
	w.Near = nil
	offer, err := Look(w)
	if err != nil {
		return numa.Offer{}
	}
	of := func(ids []string) func(numa.Mask) int64 {
		return func(m numa.Mask) (n int64) {
			for _, id := range ids {
				if slices.ContainsFunc(Nodes(w.Devices, []string{id}),
					func(node int64) bool { return m.Has(int(node)) }) {
					n++
				}
			}
			return n
		}
	}
	return numa.Stock{Need: int64(w.Need), Nodes: nodes, Total: of(all), Free: of(offer.Free),
		Kept: of(offer.Must)}.Offer()
}
