// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func healthy(ids ...string) (out []Device) {
	for _, id := range ids {
		out = append(out, Device{ID: id, Healthy: true})
	}
	return out
}

func taken(ids ...string) map[string]bool {
	out := map[string]bool{}
	for _, id := range ids {
		out[id] = true
	}
	return out
}

// PL-34: which devices a container gets, and why there are too few.
func TestLook(t *testing.T) {
	for _, tt := range []struct {
		name      string
		req       Request
		preferred []string
		want      []string // nil: too few
		left      int      // of those that could be had, when they are too few
	}{
		{"the first that are free", Request{Need: 2, Devices: healthy("c", "a", "b")}, nil, []string{"a", "b"}, 0},
		{"what the plug-in prefers", Request{Need: 2, Devices: healthy("a", "b", "c")}, []string{"c", "b"},
			[]string{"b", "c"}, 0},
		{"it prefers too few", Request{Need: 2, Devices: healthy("a", "b", "c")}, []string{"c"}, []string{"a", "b"}, 0},
		{"it prefers one twice", Request{Need: 2, Devices: healthy("a", "b", "c")}, []string{"c", "c"},
			[]string{"a", "b"}, 0},
		{"it prefers one that is not free", Request{Need: 1, Devices: healthy("a", "b"), Taken: taken("b")},
			[]string{"b"}, []string{"a"}, 0},
		{"other pods have theirs", Request{Need: 1, Devices: healthy("a", "b"), Taken: taken("a")}, nil, []string{"b"},
			0},
		{"too few are free", Request{Need: 2, Devices: healthy("a", "b"), Taken: taken("a")}, nil, nil, 1},
		{"the unhealthy are given to nobody", Request{Need: 1, Devices: []Device{{ID: "a"}, {ID: "b"}}}, nil, nil, 0},
		{"a container keeps its own, though others are better now", Request{Need: 1, Container: "c",
			Devices: []Device{{ID: "a"}, {ID: "b", Healthy: true}}, Pod: Held{"c": {"a"}}}, []string{"b"},
			[]string{"a"}, 0},
		{"two containers of a pod do not share", Request{Need: 1, Container: "c", Devices: healthy("a", "b"),
			Pod: Held{"other": {"a"}}}, nil, []string{"b"}, 0},
		{"an init container's goes to the next", Request{Need: 1, Container: "c", Devices: healthy("a", "b"),
			Pod: Held{"init": {"b"}}, Before: []string{"init"}}, []string{"a"}, []string{"b"}, 0},
		{"… as far as it goes", Request{Need: 2, Container: "c", Devices: healthy("a", "b", "c"),
			Pod: Held{"init": {"c"}}, Before: []string{"init"}}, []string{"a", "b"}, []string{"a", "c"}, 0},
		{"… but not what another container has taken over", Request{Need: 1, Container: "second",
			Devices: healthy("a", "b"), Pod: Held{"init": {"a"}, "first": {"a"}}, Before: []string{"init"}}, nil,
			[]string{"b"}, 0},
		{"… and not when it is ill", Request{Need: 1, Container: "c",
			Devices: []Device{{ID: "a"}, {ID: "b", Healthy: true}}, Pod: Held{"init": {"a"}}, Before: []string{"init"}},
			nil, []string{"b"}, 0},
		{"PL-33 near", Request{Need: 1, Container: "c", Devices: placed("a0", "b1"), Near: []int64{1}}, nil,
			[]string{"b1"}, 0},
		{"PL-33 the plug-in's choice of what is near", Request{Need: 1, Container: "c",
			Devices: placed("a0", "b1", "c1"), Near: []int64{1}}, []string{"c1"}, []string{"c1"}, 0},
		{"PL-33 the plug-in wants one that is far", Request{Need: 1, Container: "c", Devices: placed("a0", "b1", "c1"),
			Near: []int64{1}}, []string{"a0"}, []string{"b1"}, 0},
		{"PL-33 too few are near", Request{Need: 2, Container: "c", Devices: placed("a0", "b0", "c1"),
			Near: []int64{1}}, nil,
			[]string{"a0", "c1"}, 0},
		{"PL-33 the plug-in leaves out what is near", Request{Need: 2, Container: "c",
			Devices: placed("a0", "b0", "c1"), Near: []int64{1}}, []string{"a0", "b0"}, []string{"a0", "c1"}, 0},
		{"PL-33 the init container's, though it is far", Request{Need: 1, Container: "c", Devices: placed("a0", "b1"),
			Near: []int64{1}, Pod: Held{"init": {"a0"}}, Before: []string{"init"}}, nil, []string{"a0"}, 0},
		{"an init container that comes later does not pass its own on", Request{Need: 1, Container: "early",
			Devices: healthy("a"), Pod: Held{"late": {"a"}}}, nil, nil, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.req.Resource = "vendor.example/gpu"
			o, err := Look(tt.req)
			if tt.want == nil {
				u, ok := errors.AsType[*Unavailable](err)
				if !ok || u.Available != tt.left || u.Need != tt.req.Need || u.Resource != "vendor.example/gpu" {
					t.Errorf("%+v, %v, want %d too few", o, err, tt.left)
				}
				return
			}
			if got := o.Choose(tt.preferred); err != nil || !slices.Equal(got, tt.want) {
				t.Errorf("%v, %v, want %v", got, err, tt.want)
			}
		})
	}
}

// PL-34: whatever comes and goes, no device is in two living containers, and whoever gets some gets as many as he asks
// for, healthy ones.
func TestNobodyShares(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 34))
		devices := make([]Device, 1+rng.IntN(6))
		for i := range devices {
			devices[i] = Device{ID: fmt.Sprint(i), Healthy: rng.IntN(4) > 0}
		}
		pods := map[int]Held{}
		for step := range 40 {
			pod, c := rng.IntN(3), []string{"i1", "i2", "m1", "m2"}[rng.IntN(4)]
			if rng.IntN(6) == 0 {
				delete(pods, pod)
				continue
			}
			if rng.IntN(5) == 0 {
				devices[rng.IntN(len(devices))].Healthy = rng.IntN(2) == 0
				continue
			}
			w := Request{Resource: "r", Need: 1 + rng.IntN(2), Devices: devices, Taken: map[string]bool{},
				Pod: pods[pod], Container: c, Before: map[string][]string{"i2": {"i1"}, "m1": {"i1", "i2"},
					"m2": {"i1", "i2"}}[c]}
			for other, held := range pods {
				for _, ids := range held {
					for _, id := range ids {
						if other != pod {
							w.Taken[id] = true
						}
					}
				}
			}
			o, err := Look(w)
			if err != nil {
				continue
			}
			var preferred []string
			if len(o.Free) > 0 {
				preferred = []string{o.Free[rng.IntN(len(o.Free))], o.Free[rng.IntN(len(o.Free))]}
			}
			if pods[pod] == nil {
				pods[pod] = Held{}
			}
			_, had := pods[pod][c]
			got := o.Choose(preferred)
			if !had && len(got) != w.Need {
				t.Fatalf("seed %d, step %d: %v of %+v", seed, step, got, w)
			}
			pods[pod][c] = got
			living := map[string]string{}
			for p, held := range pods {
				for _, name := range []string{"m1", "m2"} {
					for _, id := range held[name] {
						who := fmt.Sprint(p, name)
						if other := living[id]; other != "" {
							t.Fatalf("seed %d, step %d: %s is in %s and %s", seed, step, id, other, who)
						}
						living[id] = who
					}
				}
			}
		}
	}
}

func TestNodes(t *testing.T) {
	devices := []Device{{ID: "a", NUMA: []int64{1, 0}}, {ID: "b", NUMA: []int64{1}}, {ID: "c"}}
	if got := Nodes(devices, []string{"a", "b", "gone"}); !slices.Equal(got, []int64{0, 1}) {
		t.Errorf("%v", got)
	}
	if got := Nodes(devices, []string{"c"}); len(got) > 0 {
		t.Errorf("%v", got)
	}
}

// placed are healthy devices, each at the NUMA node that its name ends with.
func placed(ids ...string) (out []Device) {
	for _, id := range ids {
		out = append(out, Device{ID: id, Healthy: true, NUMA: []int64{int64(id[len(id)-1] - '0')}})
	}
	return out
}

// PL-33: on which NUMA nodes devices can be had.
func TestOn(t *testing.T) {
	wide := Device{ID: "w", Healthy: true, NUMA: []int64{0, 1}}
	ill := Device{ID: "ill", NUMA: []int64{0}}
	for _, tt := range []struct {
		name string
		w    Request
		want string
	}{
		{"nobody says", Request{Need: 1, Devices: []Device{{ID: "a", Healthy: true}}}, "any"},
		{"either", Request{Need: 1, Devices: placed("a0", "b1")}, "0! 1! 0-1"},
		{"not the one that is taken", Request{Need: 1, Devices: placed("a0", "b1"), Taken: map[string]bool{"a0": true}},
			"1! 0-1"},
		{"not the one that is ill", Request{Need: 1, Devices: append(placed("b1"), ill)}, "1! 0-1"},
		{"near to both", Request{Need: 2, Devices: append(placed("a0"), wide)}, "0! 0-1"},
		{"two nodes by need", Request{Need: 2, Devices: placed("a0", "b1")}, "0-1!"},
		{"too few", Request{Need: 3, Devices: placed("a0", "b1")}, ""},
		{"the init container's", Request{Need: 1, Devices: placed("a0", "b1"), Container: "c",
			Pod: Held{"init": {"b1"}}, Before: []string{"init"}}, "1! 0-1"},
	} {
		o := tt.w.On(3)
		var words []string
		for _, h := range o.Hints {
			word := h.Nodes.String()
			if h.Preferred {
				word += "!"
			}
			words = append(words, word)
		}
		if o.Any {
			words = append(words, "any")
		}
		if got := strings.Join(words, " "); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
