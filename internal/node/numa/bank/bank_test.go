// SPDX-License-Identifier: Apache-2.0

package bank

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/wherryproject/wherry/internal/node/numa"
)

const (
	memory = corev1.ResourceMemory
	huge   = corev1.ResourceName("hugepages-2Mi")
)

// of has so much memory on each node.
func of(per ...int64) map[int]Amounts {
	out := map[int]Amounts{}
	for n, has := range per {
		out[n] = Amounts{memory: has, huge: 4}
	}
	return out
}

// PL-33: from which nodes a container has its memory: by what is free, by what the topology manager has chosen, and
// beside those that use several nodes.
func TestChoose(t *testing.T) {
	for _, tt := range []struct {
		name  string
		m     Machine
		need  Amounts
		taken Taken
		near  numa.Mask
		want  string // what of which node; "": there is too little
		set   string
	}{
		{"the lower node", of(10, 10), Amounts{memory: 4}, Taken{}, 0, "map[0:memory 4]", "0"},
		{"the one that has enough", of(10, 10), Amounts{memory: 4}, Taken{Of: of(7)}, 0, "map[1:memory 4]", "1"},
		{"the one that was chosen", of(10, 10), Amounts{memory: 4}, Taken{}, 2, "map[1:memory 4]", "1"},
		{"all were, so nothing was", of(10, 10), Amounts{memory: 4}, Taken{}, 3, "map[0:memory 4]", "0"},
		{"more than was chosen", of(10, 10), Amounts{memory: 14}, Taken{}, 2, "map[0:memory 10 1:memory 4]", "0-1"},
		{"two nodes", of(10, 10), Amounts{memory: 14}, Taken{}, 0, "map[0:memory 10 1:memory 4]", "0-1"},
		{"huge pages too", of(10, 10), Amounts{memory: 4, huge: 3}, Taken{Of: map[int]Amounts{0: {huge: 2}}}, 0,
			"map[1:memory 4, hugepages-2Mi 3]", "1"},
		{"not where somebody uses both", of(10, 10), Amounts{memory: 4}, Taken{Sets: []numa.Mask{3}}, 1,
			"map[0:memory 4]", "0-1"},
		{"both not where somebody uses one", of(10, 10), Amounts{memory: 14}, Taken{Sets: []numa.Mask{1}}, 0, "", ""},
		{"other nodes than those that are shared", of(10, 10, 10, 10), Amounts{memory: 14}, Taken{Sets: []numa.Mask{2}},
			0, "map[0:memory 10 2:memory 4]", "0,2"},
		{"with what was chosen, of four", of(10, 10, 10, 10), Amounts{memory: 14}, Taken{}, 8,
			"map[0:memory 10 3:memory 4]", "0,3"},
		{"without what was chosen", of(10, 10, 10, 10), Amounts{memory: 14}, Taken{Sets: []numa.Mask{8}}, 8,
			"map[0:memory 10 1:memory 4]", "0-1"},
		{"too little", of(10, 10), Amounts{memory: 14}, Taken{Of: of(4, 4)}, 0, "", ""},
		{"nothing", of(10, 10), Amounts{}, Taken{}, 0, "map[]", ""},
	} {
		got, err := Request{"c", tt.need, tt.taken}.Choose(tt.m, numa.Rule{}, tt.near)
		if short := (*Short)(nil); errors.As(err, &short) != (tt.want == "") {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if tt.want != "" && (fmt.Sprint(got.Of) != tt.want || got.Nodes.String() != tt.set) {
			t.Errorf("%s: %v of %s, want %s of %s", tt.name, got.Of, got.Nodes, tt.want, tt.set)
		}
	}
	err := &Short{"c", Amounts{memory: 3 << 30, huge: 2 << 20}}
	if err.Error() != "container c: no NUMA nodes have memory 3Gi, hugepages-2Mi 2Mi free for it" {
		t.Error(err)
	}
}

// PL-33: what is preferred is as narrow as the machine could ever give it.
func TestOffer(t *testing.T) {
	w := Request{"c", Amounts{memory: 8}, Taken{Of: of(5, 5)}}
	if got := w.Offer(of(10, 10)); len(got.Hints) != 1 || got.Hints[0] != (numa.Hint{Nodes: 3}) {
		t.Errorf("%+v", got)
	}
	w = Request{"c", Amounts{memory: 8}, Taken{Of: of(5)}}
	if got := w.Offer(of(10, 10)); len(got.Hints) != 2 || got.Hints[0] != (numa.Hint{Nodes: 2, Preferred: true}) {
		t.Errorf("%+v", got)
	}
	if !(Request{}).Offer(of(1)).Any {
		t.Error("who needs nothing minds")
	}
}

func pod(init, side, main string) *corev1.Pod {
	of := func(name, bytes string) corev1.Container {
		list := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), memory: resource.MustParse(bytes)}
		return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: list, Limits: list}}
	}
	sidecar, always := of("side", side), corev1.ContainerRestartPolicyAlways
	sidecar.RestartPolicy = &always
	return &corev1.Pod{Spec: corev1.PodSpec{InitContainers: []corev1.Container{of("init", init), sidecar,
		of("next", init)},
		Containers: []corev1.Container{of("main", main)}}}
}

// PL-33: a pod is charged for what lives at the same time, and only guaranteed pods are given anything.
func TestCharge(t *testing.T) {
	p := pod("5", "2", "4")
	want := [][]string{{"init"}, {"side", "next"}, {"side", "main"}}
	if got := Moments(&p.Spec); !reflect.DeepEqual(got, want) {
		t.Fatalf("%v", got)
	}
	h := Held{}
	for name, n := range map[string]int64{"init": 5, "side": 2, "next": 5, "main": 4} {
		h[name] = Share{1, map[int]Amounts{0: {memory: n}}}
	}
	h["main"] = Share{2, map[int]Amounts{1: {memory: 4}}}
	got := h.Charge(Moments(&p.Spec))
	if got.Of[0][memory] != 7 || got.Of[1][memory] != 4 || len(got.Sets) != 2 {
		t.Errorf("%+v", got)
	}
	if two := got.And(got); two.Of[0][memory] != 14 || got.Of[0][memory] != 7 {
		t.Errorf("twice that: %+v, after: %+v", two, got)
	}
	if got := Needs(p, &p.Spec.Containers[0]); !reflect.DeepEqual(got, Amounts{memory: 4}) {
		t.Errorf("%v", got)
	}
	delete(p.Spec.Containers[0].Resources.Limits, memory)
	if got := Needs(p, &p.Spec.Containers[0]); got != nil {
		t.Errorf("burstable: %v", got)
	}
}

// PL-33: whoever comes and goes, no node gives more than it has, each container has what it asks for on the nodes that
// it may use, and several nodes are used by those alone who use just them.
func TestNeverTooMuch(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 33))
		m := Machine{}
		for n := range 1 + rng.IntN(4) {
			m[n] = Amounts{memory: rng.Int64N(20), huge: rng.Int64N(6)}
		}
		pods := map[int]Held{}
		moments := [][]string{{"c"}}
		for range 30 {
			who := rng.IntN(6)
			delete(pods, who)
			if rng.IntN(3) == 0 {
				continue
			}
			w := Request{Container: "c", Need: Amounts{memory: 1 + rng.Int64N(12)}}
			if rng.IntN(3) == 0 {
				w.Need[huge] = 1 + rng.Int64N(4)
			}
			for _, h := range pods {
				w.Taken = w.Taken.And(h.Charge(moments))
			}
			got, err := w.Choose(m, numa.Rule{}, numa.Mask(rng.IntN(16))&m.Nodes())
			if err != nil {
				continue
			}
			pods[who] = Held{"c": got}
			all, sum := Taken{}, Amounts{}
			for _, h := range pods {
				all = all.And(h.Charge(moments))
				if s := h["c"].Nodes; !(Taken{Sets: []numa.Mask{s}}).may(got.Nodes) {
					t.Fatalf("seed %d: %s beside %s", seed, got.Nodes, s)
				}
			}
			for n, a := range got.Of {
				if !got.Nodes.Has(n) {
					t.Fatalf("seed %d: of node %d: %+v", seed, n, got)
				}
				for name, v := range a {
					sum[name] += v
				}
			}
			if !reflect.DeepEqual(sum, w.Need) {
				t.Fatalf("seed %d: it has %v, asked for %v", seed, sum, w.Need)
			}
			for n, a := range all.Of {
				for name, v := range a {
					if v > m[n][name] {
						t.Fatalf("seed %d: node %d gives %d of %s, has %d", seed, n, v, name, m[n][name])
					}
				}
			}
		}
	}
}
