// SPDX-License-Identifier: Apache-2.0

package shutdown

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/podspec"
)

// critical is the least priority of the system-critical classes.
const critical = 2_000_000_000

// Period is how long pods of a priority or above have, up to the next period's.
type Period struct {
	Priority int32
	Grace    time.Duration // whole seconds
}

// Periods are two: of all the time, critical pods have the last part.
func Periods(whole, criticals time.Duration) ([]Period, error) {
	switch {
	case whole < 0 || criticals < 0 || criticals > whole:
		return nil, fmt.Errorf("critical pods have %s of %s: that must be a part of it", criticals, whole)
	case whole == 0:
		return nil, nil
	case whole < time.Second || criticals > 0 && criticals < time.Second:
		return nil, fmt.Errorf("%s and %s must be 0, or a second at least", whole, criticals)
	}
	return []Period{{0, whole - criticals}, {critical, criticals}}, nil
}

// Parse reads periods as PRIORITY=SECONDS, and sorts them.
func Parse(list []string) ([]Period, error) {
	var out []Period
	for _, text := range list {
		priority, seconds, ok := strings.Cut(text, "=")
		p, err1 := strconv.ParseInt(priority, 10, 32)
		s, err2 := strconv.ParseInt(seconds, 10, 64)
		if !ok || err1 != nil || err2 != nil || s < 0 || s > math.MaxInt32 {
			return nil, fmt.Errorf("%q must be PRIORITY=SECONDS, for example 1000=30", text)
		}
		if slices.ContainsFunc(out, func(o Period) bool { return o.Priority == int32(p) }) {
			return nil, fmt.Errorf("priority %d is there twice", p)
		}
		out = append(out, Period{int32(p), podspec.Seconds(s)})
	}
	slices.SortFunc(out, func(a, b Period) int { return int(int64(a.Priority) - int64(b.Priority)) })
	return out, nil
}

// Total is how long all periods take at most.
func Total(periods []Period) (sum time.Duration) {
	for _, p := range periods {
		sum += p.Grace
	}
	return sum
}

// Group are the pods of a period.
type Group struct {
	Period
	Pods []*corev1.Pod
}

// Groups sorts pods into the periods, which are sorted; those below all of them are with the first. Periods without
// pods are left out: nobody waits for them.
func Groups(periods []Period, pods []*corev1.Pod) (out []Group) {
	if len(periods) == 0 {
		return nil
	}
	all := make([]Group, len(periods))
	for i := range periods {
		all[i].Period = periods[i]
	}
	for _, pod := range pods {
		i := len(periods) - 1
		for i > 0 && periods[i].Priority > podspec.Priority(pod) {
			i--
		}
		all[i].Pods = append(all[i].Pods, pod)
	}
	return slices.DeleteFunc(all, func(g Group) bool { return len(g.Pods) == 0 })
}

// GraceOf is how long a pod of the group has.
func (g Group) GraceOf(pod *corev1.Pod) time.Duration {
	if own := pod.Spec.TerminationGracePeriodSeconds; own != nil {
		return min(g.Grace, podspec.Seconds(*own))
	}
	return g.Grace
}
