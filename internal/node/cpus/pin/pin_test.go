// SPDX-License-Identifier: Apache-2.0

package pin

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/cpuset"
)

// machine has so many sockets, cores in each and threads in each core, numbered as Linux does: first all cores' first
// threads.
func machine(sockets, cores, threads int) (out Machine) {
	for t := range threads {
		for s := range sockets {
			for c := range cores {
				out = append(out, CPU{ID: t*sockets*cores + s*cores + c, Core: c, Socket: s})
			}
		}
	}
	return out
}

func set(text string) cpuset.CPUSet {
	out, err := cpuset.Parse(text)
	if err != nil {
		panic(err)
	}
	return out
}

// PL-33: which CPUs are taken: near to one another, leaving larger pieces whole.
func TestTake(t *testing.T) {
	// CPUs 0-3 and 4-7; 0-3, 4-7 and their second threads 8-11, 12-15
	small, large := machine(1, 4, 2), machine(2, 4, 2)
	for _, tt := range []struct {
		name  string
		m     Machine
		free  string
		n     int
		whole bool
		want  string // "": too few
		says  string
	}{
		{"a core, whole", small, "0-7", 2, false, "0,4", ""},
		{"one thread", small, "0-7", 1, false, "0", ""},
		{"the other thread of a begun core", small, "1-7", 1, false, "4", ""},
		{"a core and a thread", small, "0-7", 3, false, "0-1,4", ""},
		{"a socket", large, "0-15", 8, false, "0-3,8-11", ""},
		{"the socket that is whole", large, "1-15", 8, false, "4-7,12-15", ""},
		{"the socket with less left", large, "0-3,4-5,8-11,12-13", 4, false, "4-5,12-13", ""},
		{"more than a socket", large, "0-15", 10, false, "0-4,8-12", ""},
		{"all", large, "0-15", 16, false, "0-15", ""},
		{"what is left", small, "1,6", 2, false, "1,6", ""},
		{"whole cores", small, "1-7", 2, true, "1,5", ""},
		{"no whole core", small, "0-2,7", 2, true, "",
			"not enough free physical CPUs available: requested 2 CPUs, 0 are free in whole cores"},
		{"too few", small, "0-2", 4, false, "",
			"not enough cpus available to satisfy request: requested=4, available=3"},
		{"none wanted", small, "0-2", 0, false, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.m.Take(set(tt.free), tt.n, Options{FullPCPUsOnly: tt.whole})
			if tt.says != "" {
				if err == nil || err.Error() != tt.says {
					t.Errorf("%v, %v, want %q", got, err, tt.says)
				}
				return
			}
			if err != nil || got.String() != tt.want {
				t.Errorf("%v, %v, want %s", got, err, tt.want)
			}
		})
	}
}

func pod(cpus ...string) *corev1.Pod {
	p := &corev1.Pod{}
	for i, cpu := range cpus {
		list := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu),
			corev1.ResourceMemory: resource.MustParse("1Mi")}
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: fmt.Sprint("c", i),
			Resources: corev1.ResourceRequirements{Requests: list, Limits: list}})
	}
	return p
}

// PL-33: only containers that ask for whole CPUs in guaranteed pods have some to themselves.
func TestWhole(t *testing.T) {
	burstable := pod("2")
	burstable.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	level := pod("2")
	level.Spec.Resources = &level.Spec.Containers[0].Resources
	for _, tt := range []struct {
		name string
		pod  *corev1.Pod
		want []int
	}{
		{"whole", pod("2"), []int{2}},
		{"beside another", pod("1", "1500m", "3000m"), []int{1, 0, 3}},
		{"burstable", burstable, []int{0}},
		{"best effort", &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{}}}}, []int{0}},
		{"with resources of the pod", level, []int{0}},
	} {
		for i, want := range tt.want {
			if got := Whole(tt.pod, &tt.pod.Spec.Containers[i]); got != want {
				t.Errorf("%s: container %d: %d, want %d", tt.name, i, got, want)
			}
		}
	}
}

// PL-33: with full-pcpus-only a pod that would share a core is never let in.
func TestMisaligned(t *testing.T) {
	p := Policy{Machine: machine(1, 4, 2), Reserved: set("0")}
	if got := p.Misaligned(pod("1")); got != "" {
		t.Errorf("without the option: %q", got)
	}
	p.FullPCPUsOnly = true
	if got := p.Misaligned(pod("2",
		"3")); got != "SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2" {
		t.Errorf("%q", got)
	}
	if got := p.Misaligned(pod("2", "500m")); got != "" {
		t.Errorf("%q", got)
	}
	p.Machine = machine(1, 4, 1)
	if got := p.Misaligned(pod("3")); got != "" {
		t.Errorf("without hyper-threading: %q", got)
	}
}

// PL-33: what a container gets beside others, and what it takes over.
func TestChoose(t *testing.T) {
	p := Policy{Machine: machine(1, 4, 2), Reserved: set("0,4")}
	before := map[string]bool{"init": true}
	for _, tt := range []struct {
		name string
		req  Request
		want string
	}{
		{"not a reserved one", Request{Need: 2}, "1,5"},
		{"not another pod's", Request{Need: 2, Taken: set("1,5")}, "2,6"},
		{"its own again", Request{Need: 2, Container: "c", Pod: Held{"c": set("3,7")}, Taken: set("1")}, "3,7"},
		{"not its neighbour's", Request{Need: 2, Container: "c", Pod: Held{"d": set("1,5")}}, "2,6"},
		{"its init container's", Request{Need: 2, Container: "c", Pod: Held{"init": set("3,7")}, Before: before},
			"3,7"},
		{"a part of them", Request{Need: 1, Container: "c", Pod: Held{"init": set("3,7")}, Before: before}, "3"},
		{"and more", Request{Need: 4, Container: "c", Pod: Held{"init": set("3,7")}, Before: before}, "1,3,5,7"},
		{"not what another took over", Request{Need: 2, Container: "c", Pod: Held{"init": set("3,7"), "d": set("3,7")},
			Before: before}, "1,5"},
	} {
		got, err := p.Choose(tt.req)
		if err != nil || !got.Equals(set(tt.want)) {
			t.Errorf("%s: %v, %v, want %s", tt.name, got, err, tt.want)
		}
	}
	_, err := p.Choose(Request{Need: 6, Container: "c", Pod: Held{"init": set("3,7")}, Before: before, Taken: set("1")})
	if few, ok := errors.AsType[*TooFew](err); !ok || few.Need != 6 || few.Free != 5 {
		t.Errorf("too few: %v", err)
	}
}

// Whoever has no CPU to himself always has some.
func TestShared(t *testing.T) {
	p := Policy{Machine: machine(1, 4, 1), Reserved: set("0")}
	if got := p.Shared(set("1-3")); !got.Equals(set("0")) {
		t.Errorf("%v", got)
	}
	p.StrictCPUReservation = true
	if got := p.Shared(set("1")); !got.Equals(set("2-3")) {
		t.Errorf("strictly: %v", got)
	}
	if got := p.Shared(set("1-3")); !got.Equals(set("0")) {
		t.Errorf("strictly, and nothing is left: %v", got)
	}
}

// PL-33: whatever comes and goes on whatever machine, no CPU is of two, nobody has a reserved one, everybody has as
// many as he asks for, whole cores where that is the rule, and some are always shared.
func TestNobodyShares(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 33))
		m := machine(1+rng.IntN(2), 1+rng.IntN(4), 1+rng.IntN(2))
		if len(m) < 2 {
			continue
		}
		p := Policy{Machine: m, Reserved: m.cores()[core{0, 0}], Options: Options{FullPCPUsOnly: rng.IntN(2) == 0,
			StrictCPUReservation: rng.IntN(2) == 0}}
		pods := map[int]Held{}
		var story []string
		for range 40 {
			who := rng.IntN(4)
			if rng.IntN(3) == 0 {
				delete(pods, who)
				story = append(story, fmt.Sprint(who, " ends"))
				continue
			}
			name := []string{"init", "a", "b"}[rng.IntN(3)]
			n := 1 + rng.IntN(len(m))
			if p.FullPCPUsOnly {
				n *= m.ThreadsPerCore()
			}
			w := Request{Need: n, Container: name, Pod: pods[who]}
			if name != "init" {
				w.Before = map[string]bool{"init": true}
			}
			all := p.Machine.All()
			for other, held := range pods {
				if other != who {
					w.Taken = w.Taken.Union(held.union(func(string) bool { return true }))
				}
			}
			had := pods[who][name].Size()
			got, err := p.Choose(w)
			story = append(story, fmt.Sprint(who, name, n, " ", got, err))
			if err != nil {
				continue
			}
			if had == 0 && got.Size() != n || !got.IsSubsetOf(all.Difference(p.Reserved)) ||
				!got.Intersection(w.Taken).IsEmpty() {
				t.Fatalf("seed %d: %+v\n%s", seed, p, strings.Join(story, "\n"))
			}
			if p.FullPCPUsOnly && !m.inWholeCores(got).Equals(got) {
				t.Fatalf("seed %d: half a core\n%s", seed, strings.Join(story, "\n"))
			}
			if pods[who] == nil {
				pods[who] = Held{}
			}
			pods[who][name] = got
			if !pods[who]["a"].Intersection(pods[who]["b"]).IsEmpty() {
				t.Fatalf("seed %d: two have the same\n%s", seed, strings.Join(story, "\n"))
			}
			var taken cpuset.CPUSet
			for _, held := range pods {
				taken = taken.Union(held.union(func(string) bool { return true }))
			}
			if p.Shared(taken).IsEmpty() || !p.Shared(taken).Intersection(taken).IsEmpty() {
				t.Fatalf("seed %d: shared %v of %v\n%s", seed, p.Shared(taken), taken, strings.Join(story, "\n"))
			}
		}
	}
}

// A list that would be longer than any machine is refused before it is made.
func TestParse(t *testing.T) {
	for text, want := range map[string]string{"0-3,8": "0-3,8", "5": "5", "": ""} {
		if got, err := Parse(text); err != nil || got.String() != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"0-99999999999", "0-99999999", "3-1", "a", "1,,2", "-1", "1-", "1 2"} {
		if got, err := Parse(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}
