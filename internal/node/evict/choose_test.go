// SPDX-License-Identifier: Apache-2.0

package evict

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func bestEffort() *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "p"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}}}
}

func with(change ...func(*corev1.Pod)) *corev1.Pod {
	p := bestEffort()
	for _, f := range change {
		f(p)
	}
	return p
}

func named(n string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Name, p.UID = n, types.UID(n) }
}

func prio(n int32) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.Priority = &n } }

func annotated(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations = map[string]string{key: value} }
}

func request(name corev1.ResourceName, q string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{name: resource.MustParse(q)}
	}
}

func limit(name corev1.ResourceName, q string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{name: resource.MustParse(q)}
	}
}

func debugged(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.EphemeralContainers = append(p.Spec.EphemeralContainers,
			corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: name}})
	}
}

func tolerating(key string, op corev1.TolerationOperator) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: key, Operator: op})
	}
}

const mi = 1 << 20

// TestChoose (PL-13): who uses more than requested goes first, then the lower priority, then who uses most above its request.
func TestChoose(t *testing.T) {
	mem := func(n int64, change ...func(*corev1.Pod)) Candidate {
		return Candidate{Pod: with(change...), Use: Use{Memory: n * mi, Disk: n * mi, Inodes: n, Processes: n}}
	}
	memory, disk := corev1.ResourceMemory, corev1.ResourceEphemeralStorage
	for _, row := range []struct {
		what   string
		signal Signal
		pods   []Candidate
		want   string
	}{
		{"nobody", MemoryAvailable, nil, ""},
		{"above its request before a larger one within it", MemoryAvailable, []Candidate{
			mem(900, named("big"), request(memory, "1Gi")), mem(20, named("over"), request(memory, "10Mi"))}, "over"},
		{"within requests the lower priority", MemoryAvailable, []Candidate{
			mem(90, named("dear"), request(memory, "1Gi"), prio(10)), mem(20, named("cheap"), request(memory, "1Gi"), prio(-1))}, "cheap"},
		{"above requests the lower priority before the greater use", MemoryAvailable, []Candidate{
			mem(900, named("dear"), prio(10)), mem(20, named("cheap"))}, "cheap"},
		{"then the most above the request", MemoryAvailable, []Candidate{
			mem(100, named("a"), request(memory, "90Mi")), mem(50, named("b"))}, "b"},
		{"disk by ephemeral-storage", NodeFsAvailable, []Candidate{
			mem(100, named("asked"), request(disk, "1Gi")), mem(5, named("not"))}, "not"},
		{"inodes by priority and number", NodeFsInodesFree, []Candidate{
			mem(5, named("few")), mem(50, named("many")), mem(500, named("dear"), prio(1))}, "many"},
		{"processes by priority and number", PIDAvailable, []Candidate{
			mem(5, named("few")), mem(50, named("many")), mem(500, named("dear"), prio(1))}, "many"},
		{"critical pods never", MemoryAvailable, []Candidate{
			mem(500, named("critical"), prio(2_000_000_000)), mem(1, named("small"), request(memory, "1Gi"))}, "small"},
		{"nobody by calling itself a mirror pod", MemoryAvailable, []Candidate{
			mem(500, named("mirror"), annotated(corev1.MirrorPodAnnotationKey, "x")), mem(1, named("small"), request(memory, "1Gi"))}, "mirror"},
		{"nobody by calling itself a static pod", MemoryAvailable, []Candidate{
			mem(500, named("static"), annotated("kubernetes.io/config.source", "file")), mem(1, named("small"), request(memory, "1Gi"))}, "static"},
		{"only critical ones", MemoryAvailable, []Candidate{mem(500, prio(2_000_001_000))}, ""},
	} {
		t.Run(row.what, func(t *testing.T) {
			got := ""
			if v := Choose(Threshold{Signal: row.signal, Least: Amount{Value: 100 * mi}}, Reading{50 * mi, 1000 * mi}, row.pods); v != nil {
				got = v.Pod.Name
			}
			if got != row.want {
				t.Errorf("%q goes, want %q", got, row.want)
			}
		})
	}
}

// TestLowMessage (PL-13, EC-18): the status says what was short, who used how much, and what of it was debugging.
func TestLowMessage(t *testing.T) {
	c := Candidate{Pod: with(request(corev1.ResourceMemory, "10Mi"), debugged("dbg")), Use: Use{Memory: 150 * mi}, Containers: []ContainerUse{
		{Name: "main", Use: Use{Memory: 50 * mi}}, {Name: "dbg", Use: Use{Memory: 70 * mi}}, {Name: "exec-1", Exec: true, Use: Use{Memory: 30 * mi}}}}
	got := Choose(Threshold{Signal: MemoryAvailable, Least: Amount{Share: .1}}, Reading{50 * mi, 1000 * mi}, []Candidate{c}).Message
	want := "The node was low on resource: memory. Threshold quantity: 10%, available: 50Mi. " +
		"Container main was using 50Mi, request is 10Mi, has larger consumption of memory. " +
		"Debug container dbg was using 70Mi, which counts to the pod. An image exec into the pod was using 30Mi, which counts to the pod. "
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	got = Choose(Threshold{Signal: PIDAvailable, Least: Amount{Value: 100}}, Reading{50, 1000}, []Candidate{c}).Message
	if want := "The node was low on resource: pids. Threshold quantity: 100, available: 50. "; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestOverLimit (PL-13, EC-18): emptyDirs, containers and pods that hold more than they may.
func TestOverLimit(t *testing.T) {
	volume := func(medium corev1.StorageMedium, size string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			q := resource.MustParse(size)
			p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: medium, SizeLimit: &q}}}}
		}
	}
	disk := corev1.ResourceEphemeralStorage
	for _, row := range []struct {
		what    string
		c       Candidate
		limited bool
		want    string
	}{
		{"nothing limited", Candidate{Pod: bestEffort(), Use: Use{Disk: 1 << 40}}, false, ""},
		{"emptyDir within", Candidate{Pod: with(volume("", "1Mi")), Volumes: map[string]int64{"v": mi}}, true, ""},
		{"emptyDir over", Candidate{Pod: with(volume("", "1Mi")), Volumes: map[string]int64{"v": mi + 1}}, true, `Usage of EmptyDir volume "v" exceeds the limit "1Mi". `},
		{"memory is the kernel's to bound", Candidate{Pod: with(volume(corev1.StorageMediumMemory, "1Mi")), Volumes: map[string]int64{"v": 9 * mi}}, false, ""},
		{"container over", Candidate{Pod: with(limit(disk, "2Mi")), Containers: []ContainerUse{{Name: "main", Use: Use{Disk: 3 * mi}}}}, true,
			`Container main exceeded its local ephemeral storage limit "2Mi". `},
		{"pod over", Candidate{Pod: with(limit(disk, "2Mi")), Use: Use{Disk: 3 * mi}}, true,
			`Pod ephemeral local storage usage exceeds the total limit of containers 2Mi. `},
		{"pod over by debugging", Candidate{Pod: with(limit(disk, "2Mi"), debugged("dbg")), Use: Use{Disk: 3 * mi},
			Containers: []ContainerUse{{Name: "dbg", Use: Use{Disk: 2 * mi}}, {Name: "x", Exec: true, Use: Use{Disk: mi}}}}, true,
			`Pod ephemeral local storage usage exceeds the total limit of containers 2Mi. Debug container dbg was using 2Mi of it. An image exec into the pod was using 1Mi of it. `},
	} {
		t.Run(row.what, func(t *testing.T) {
			if got := OverLimit(row.c); got != row.want {
				t.Errorf("got  %s\nwant %s", got, row.want)
			}
			if Limited(row.c.Pod) != row.limited {
				t.Errorf("limited: %t", !row.limited)
			}
		})
	}
}

// TestAdmit (PL-13): under memory pressure best-effort pods are turned away, under any other all are; critical ones never.
func TestAdmit(t *testing.T) {
	under := func(list ...corev1.NodeConditionType) State {
		s := State{Pressed: map[corev1.NodeConditionType]time.Time{}}
		for _, c := range list {
			s.Pressed[c] = time.Time{}
		}
		return s
	}
	memory, disk, pid := corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure
	burstable := with(request(corev1.ResourceMemory, "1Mi"))
	tolerant := with(tolerating(corev1.TaintNodeMemoryPressure, corev1.TolerationOpExists))
	for _, row := range []struct {
		what  string
		pod   *corev1.Pod
		state State
		want  string
	}{
		{"no pressure", bestEffort(), under(), ""},
		{"memory, best effort", bestEffort(), under(memory), "The node had condition: [MemoryPressure]. "},
		{"memory, burstable", burstable, under(memory), ""},
		{"memory, tolerated", tolerant, under(memory), ""},
		{"memory, all tolerated", with(tolerating("", corev1.TolerationOpExists)), under(memory), ""},
		{"disk, burstable", burstable, under(disk), "The node had condition: [DiskPressure]. "},
		{"processes, tolerant", tolerant, under(pid), "The node had condition: [PIDPressure]. "},
		{"two, burstable", burstable, under(memory, disk), "The node had condition: [DiskPressure MemoryPressure]. "},
		{"critical", with(prio(2_000_000_000)), under(memory, disk, pid), ""},
	} {
		if got := Admit(row.pod, row.state); got != row.want {
			t.Errorf("%s: %q, want %q", row.what, got, row.want)
		}
	}
}

// TestImages (PL-13): which images go, in which order, and until how much is free. Those in use and those kept stay whatever comes.
func TestImages(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	list := []Image{
		{ID: "used", InUse: true, Found: ago(time.Hour)},
		{ID: "kept", Kept: true, Found: ago(time.Hour)},
		{ID: "young", Found: ago(time.Second)},
		{ID: "recent", LastUsed: ago(time.Minute), Found: ago(time.Hour)},
		{ID: "old", LastUsed: ago(time.Hour), Found: ago(2 * time.Hour)},
		{ID: "never", Found: ago(time.Hour)},
	}
	p := ImagePolicy{High: 85, Low: 80, MinAge: 2 * time.Minute}
	for _, row := range []struct {
		what   string
		p      ImagePolicy
		free   int64
		all    bool
		want   string
		enough int64
	}{
		{"enough free", p, 20, false, "", 0},
		{"above the high mark", p, 15, false, "never old recent", 5},
		{"far above", p, 2, false, "never old recent", 18},
		{"switched off", ImagePolicy{High: 100, Low: 80}, 1, false, "", 0},
		{"under pressure", ImagePolicy{High: 100, Low: 80, MinAge: time.Hour}, 50, true, "never young old recent", 100},
	} {
		out, enough := Images(row.p, Reading{row.free, 100}, row.all, list, now)
		var names []string
		for _, i := range out {
			names = append(names, i.ID)
		}
		if got := strings.Join(names, " "); got != row.want || enough != row.enough {
			t.Errorf("%s: %q until %d, want %q until %d", row.what, got, enough, row.want, row.enough)
		}
	}
}

// TestFullDisk proves RS-02: a disk is cleared whoever fills it: critical pods go too, once no other has anything on it; for memory they
// stay. Disks are looked at more often while they are nearly full.
func TestFullDisk(t *testing.T) {
	on := func(name string, disk int64, change ...func(*corev1.Pod)) Candidate {
		return Candidate{Pod: with(append(change, named(name))...), Use: Use{Disk: disk, Memory: disk, Inodes: disk}}
	}
	filler, small := on("filler", 900*mi, prio(2_000_000_000)), on("small", 10*mi)
	idle, other := on("idle", 0), on("other", 20*mi, prio(2_000_000_000))
	for _, row := range []struct {
		what   string
		signal Signal
		pods   []Candidate
		want   string
	}{
		{"ordinary ones first", NodeFsAvailable, []Candidate{filler, small}, "small"},
		{"then who fills it", NodeFsAvailable, []Candidate{idle, other, filler}, "filler"},
		{"also of files", ImageFsInodesFree, []Candidate{idle, filler}, "filler"},
		{"nobody has anything", NodeFsAvailable, []Candidate{idle, on("none", 0, prio(2_000_000_000))}, "idle"},
		{"memory", MemoryAvailable, []Candidate{filler}, ""},
	} {
		got := ""
		if v := Choose(Threshold{Signal: row.signal}, Reading{}, row.pods); v != nil {
			got = v.Pod.Name
		}
		if got != row.want {
			t.Errorf("%s: %q goes, want %q", row.what, got, row.want)
		}
	}
	list := []Threshold{{Signal: NodeFsAvailable, Least: Amount{Share: 0.05}}}
	for available, want := range map[int64]bool{99 << 30: true, 101 << 30: false} {
		if got := NearlyFull(list, Readings{NodeFsAvailable: {available, 1000 << 30}}); got != want {
			t.Errorf("%d of 1000 GiB: nearly full: %t", available>>30, got)
		}
	}
	if !NearlyFull(nil, Readings{NodeFsAvailable: {100 << 20, 1000 << 30}}) {
		t.Error("100 MiB are plenty without a threshold")
	}
}

// PL-13, PL-36: images that nobody has used for longer than imageMaximumGCAge go; those in use, or nowhere else to be had,
// stay, and without such an age all do.
func TestOldImages(t *testing.T) {
	now := time.Date(2030, 1, 2, 0, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	images := []Image{
		{ID: "used long ago", LastUsed: ago(25 * time.Hour), Found: ago(48 * time.Hour)},
		{ID: "never used", Found: ago(25 * time.Hour)},
		{ID: "found just now", Found: ago(time.Hour)},
		{ID: "used lately", LastUsed: ago(23 * time.Hour), Found: ago(48 * time.Hour)},
		{ID: "in use", InUse: true, LastUsed: now, Found: ago(48 * time.Hour)},
		{ID: "kept", Kept: true, Found: ago(48 * time.Hour)},
	}
	var got []string
	for _, i := range Old(ImagePolicy{MaxAge: 24 * time.Hour}, images, now) {
		got = append(got, i.ID)
	}
	if strings.Join(got, ", ") != "used long ago, never used" {
		t.Errorf("%q", got)
	}
	if all := Old(ImagePolicy{}, images, now); len(all) > 0 {
		t.Errorf("%v", all)
	}
}
