// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/kubernetes/pkg/apis/networking"
	upstream "k8s.io/kubernetes/pkg/apis/networking/v1"
	"k8s.io/kubernetes/pkg/apis/networking/validation"
	"sigs.k8s.io/yaml"
)

// FuzzAgainstOracle: WL-19, whatever policy the API server takes in is understood, and among any pods every connection is judged,
// and let pass by the tables, as the naive oracle says.
func FuzzAgainstOracle(f *testing.F) {
	for _, text := range []string{orPeers, andPeers, ranged, overlap, byName, `
spec:
  podSelector: {matchExpressions: [{key: a, operator: DoesNotExist}]}
  policyTypes: [Egress]
  egress: [{to: [{ipBlock: {cidr: 10.0.0.0/29, except: [10.0.0.2/31]}}, {namespaceSelector: {}}], ports: [{port: 80, endPort: 82}, {port: web}]}]`} {
		spec, err := json.Marshal(parsed(f, text).Spec)
		if err != nil {
			f.Fatal(err)
		}
		for seed := range uint64(8) {
			f.Add(spec, seed)
		}
	}
	f.Fuzz(func(t *testing.T, spec []byte, seed uint64) {
		p := &networkingv1.NetworkPolicy{}
		if yaml.Unmarshal(spec, &p.Spec) != nil {
			return
		}
		p.Namespace, p.Name = "n1", "p"
		upstream.SetObjectDefaults_NetworkPolicy(p)
		in := &networking.NetworkPolicy{}
		if err := upstream.Convert_v1_NetworkPolicy_To_networking_NetworkPolicy(p.DeepCopy(), in, nil); err != nil {
			return
		}
		if len(validation.ValidateNetworkPolicy(in, validation.NetworkPolicyValidationOptions{})) > 0 {
			return
		}
		d := dice{rand.New(rand.NewPCG(seed, 7))}
		o := d.town()
		w := o.build()
		o.policies["n1/p"] = p
		if err := w.SetPolicy(p); err != nil {
			t.Fatalf("a valid policy is not understood: %v", err)
		}
		tables := w.Tables()
		for range 256 {
			c := d.connection()
			want := o.oracle(c)
			if got := w.Judge(c); got.Allowed != want {
				t.Fatalf("%+v: judged %+v, the oracle says %v", c, got, want)
			}
			if got := tables.kernel(c); got != want {
				t.Fatalf("%+v: the tables say %v, the oracle %v", c, got, want)
			}
		}
	})
}

// connection is any between the pods of a town, or with an address of nobody's.
func (d dice) connection() Connection {
	addr := "10.0.0.%d"
	if d.one(2) {
		addr = "fd00::%d"
	}
	at := func() netip.Addr { return netip.MustParseAddr(fmt.Sprintf(addr, 1+d.IntN(7))) }
	return Connection{at(), at(), pick(d, TCP, UDP, SCTP), uint16(79 + d.IntN(6))}
}
