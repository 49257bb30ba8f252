// SPDX-License-Identifier: Apache-2.0

package shutdown

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func pod(name string, priority *int32, grace int64) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{Priority: priority, TerminationGracePeriodSeconds: &grace}}
}

// TestGroups proves PL-32: pods end in the order of their priority, each with the least of its own time and its
// period's; periods without pods take no time.
func TestGroups(t *testing.T) {
	periods, err := Parse([]string{"1000=60", "100=10", "100000=120"})
	if err != nil || Total(periods) != 190*time.Second {
		t.Fatal(periods, err)
	}
	pods := []*corev1.Pod{pod("none", nil, 30), pod("negative", ptr.To[int32](-5), 5), pod("100", ptr.To[int32](100), 30),
		pod("999", ptr.To[int32](999), 30), pod("100000", ptr.To[int32](100000), 300), pod("above", ptr.To[int32](2000000001), 30)}
	var got []string
	for _, g := range Groups(periods, pods) {
		for _, p := range g.Pods {
			got = append(got, fmt.Sprintf("%d:%s:%s", g.Priority, p.Name, g.GraceOf(p)))
		}
	}
	if s := strings.Join(got, " "); s != "100:none:10s 100:negative:5s 100:100:10s 100:999:10s 100000:100000:2m0s 100000:above:30s" {
		t.Error(s)
	}
	if got := Groups(nil, pods); got != nil {
		t.Error(got)
	}
}

// TestPeriods proves PL-32: the kubelet's two durations, and what makes no sense.
func TestPeriods(t *testing.T) {
	for _, c := range []struct {
		whole, critical time.Duration
		want, err       string
	}{
		{0, 0, "[]", ""},
		{30 * time.Second, 10 * time.Second, "[{0 20s} {2000000000 10s}]", ""},
		{30 * time.Second, 0, "[{0 30s} {2000000000 0s}]", ""},
		{10 * time.Second, 30 * time.Second, "[]", "must be a part of it"},
		{time.Millisecond, 0, "[]", "a second at least"},
		{-time.Second, 0, "[]", "must be a part"},
	} {
		got, err := Periods(c.whole, c.critical)
		if fmt.Sprint(got) != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%v of %v: %v, %v", c.critical, c.whole, got, err)
		}
	}
	for _, bad := range []string{"", "a=1", "1=a", "1", "1=-1", "5000000000=1"} {
		if _, err := Parse([]string{bad}); err == nil || !strings.Contains(err.Error(), "PRIORITY=SECONDS") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := Parse([]string{"1=1", "1=2"}); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("1=2,3=4")
	f.Fuzz(func(t *testing.T, s string) {
		periods, err := Parse(strings.Split(s, ","))
		for i := 1; err == nil && i < len(periods); i++ {
			if periods[i-1].Priority >= periods[i].Priority {
				t.Error("not sorted")
			}
		}
	})
}
