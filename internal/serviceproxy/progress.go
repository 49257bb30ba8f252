// SPDX-License-Identifier: Apache-2.0

package serviceproxy

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// staleAfter is how long a change may wait to be in the kernel before the proxy counts as unhealthy: that of kube-proxy
// with its default settings.
const staleAfter = time.Minute

// progress is how far the kernel is behind the objects.
type progress struct {
	waiting time.Time // since when a change has waited to be in the kernel; zero: none does
	made    time.Time // when the kernel was last made equal to the objects; zero: never
}

// changed notes that there is a change to be made.
func (p *progress) changed(now time.Time) {
	if p.waiting.IsZero() {
		p.waiting = now
	}
}

// equal notes that the kernel is equal to the objects, but for changes that came meanwhile, if there are more.
func (p *progress) equal(now time.Time, more bool) {
	p.made, p.waiting = now, time.Time{}
	if more {
		p.waiting = now
	}
}

// healthy: it is not late. One that has not begun is not late either.
func (p progress) healthy(now time.Time) bool {
	return p.made.IsZero() || p.waiting.IsZero() || now.Sub(p.waiting) < staleAfter
}

// report is what a kube-proxy says of itself, in its words.
type report struct {
	LastUpdated  time.Time                        `json:"lastUpdated"`
	CurrentTime  time.Time                        `json:"currentTime"`
	NodeEligible *bool                            `json:"nodeEligible,omitempty"`
	Healthy      bool                             `json:"healthy"`
	Status       map[corev1.IPFamily]familyReport `json:"status,omitempty"`
}

type familyReport struct {
	LastUpdated time.Time `json:"lastUpdated"`
	Healthy     bool      `json:"healthy"`
}

// report words the progress. Both families are made in one transaction. As with kube-proxy, a healthy one has been
// updated just now, whenever that was. (Pure.)
func (p progress) report(now time.Time) report {
	r := report{LastUpdated: p.made, CurrentTime: now, Healthy: p.healthy(now)}
	if !p.made.IsZero() {
		one := familyReport{LastUpdated: p.made, Healthy: r.Healthy}
		r.Status = map[corev1.IPFamily]familyReport{corev1.IPv4Protocol: one, corev1.IPv6Protocol: one}
	}
	if r.Healthy {
		r.LastUpdated = now
	}
	return r
}
