// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"encoding/json"
	"net/netip"
	"reflect"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"
)

// FuzzPolicy: WL-19, whatever a policy says, the tables let pass what is judged, lead nowhere that is not in them, and are
// without a trace of it when it has gone.
func FuzzPolicy(f *testing.F) {
	for _, text := range []string{orPeers, andPeers, ranged, overlap, byName, `
spec:
  podSelector: {matchExpressions: [{key: role, operator: NotIn, values: [db]}]}
  policyTypes: [Ingress, Egress]
  ingress: [{from: [{podSelector: {}}, {ipBlock: {cidr: "::/0", except: ["fd00::/8"]}}], ports: [{port: 80}, {port: web, protocol: UDP}]}]
  egress: [{ports: [{port: dns, protocol: UDP}]}, {}]`} {
		spec, err := json.Marshal(parsed(f, text).Spec)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(spec)
	}
	f.Fuzz(func(t *testing.T, spec []byte) {
		p := &networkingv1.NetworkPolicy{}
		if yaml.Unmarshal(spec, &p.Spec) != nil {
			return
		}
		p.Namespace, p.Name = "default", "p"
		w := cluster()
		w.SetNames(&Names{Asked: netip.MustParseAddrPort("10.96.0.10:53"), Listen: netip.MustParseAddrPort("10.5.0.1:40001")})
		if err := w.SetPolicy(parsed(t, "metadata: {name: other}\n"+overlap[1:])); err != nil {
			t.Fatal(err)
		}
		before, put := w.Tables().There(), w.elements()
		for range 2 {
			_ = w.SetPolicy(p) // what is not understood is left out
			leadsOn(t, w.Tables())
			agree(t, w)
		}
		w.DropPolicy(p.Namespace, p.Name)
		if after := w.Tables().There(); !reflect.DeepEqual(after, before) {
			t.Errorf("a policy that has gone leaves %+v, want %+v", after, before)
		}
		if n := w.elements(); n != put {
			t.Errorf("after a policy that has gone %d elements of pods are remembered, want %d", n, put)
		}
	})
}

// elements counts what is remembered to be in the sets for pods.
func (w *World) elements() (n int) {
	for _, pods := range w.pods {
		for _, p := range pods {
			n += len(p.put)
		}
	}
	return n
}

// leadsOn checks that all that is named in the tables is in them.
func leadsOn(t *testing.T, tables Tables) {
	t.Helper()
	to := func(from, chain string) {
		if _, there := tables.Chains[chain]; !there && chain != Accept && chain != Deny {
			t.Errorf("%s leads to %s, which is not there", from, chain)
		}
	}
	for name, set := range tables.Sets {
		for e, chain := range set {
			if ShapeOf(name) == AddrMap {
				to(name+" "+e.Addr.String(), chain)
			}
		}
	}
	for name, c := range tables.Chains {
		for _, r := range c.Rules {
			to(name, r.Then)
			for _, set := range []string{r.Peers, r.Named} {
				if _, there := tables.Sets[set]; set != "" && !there {
					t.Errorf("%s looks into %s, which is not there", name, set)
				}
			}
		}
	}
}

// agree checks that the tables say what is judged, of some connections between pods and with the world.
func agree(t *testing.T, w *World) {
	t.Helper()
	for _, from := range []string{"172.17.9.1", "172.17.9.2", "172.17.9.4", "192.0.2.1"} {
		for _, to := range []string{"172.17.9.1", "172.17.9.3", "10.0.0.5"} {
			for _, port := range []uint16{53, 80, 32768} {
				for _, proto := range []Proto{TCP, UDP} {
					c := Connection{netip.MustParseAddr(from), netip.MustParseAddr(to), proto, port}
					if got, kernel := w.Judge(c), w.Tables().kernel(c); got.Allowed != kernel {
						t.Errorf("%+v: judged %+v, the tables say %v", c, got, kernel)
					}
				}
			}
		}
	}
}
