// SPDX-License-Identifier: Apache-2.0

package server

import (
	"strings"
	"testing"
	"time"
)

// TestEvictionOptions (PL-13): the defaults hold, and wrong flags are refused by name.
func TestEvictionOptions(t *testing.T) {
	e, err := Defaults().eviction()
	if err != nil || len(e.Thresholds) != 5 || e.Thresholds[0].String() != "memory.available<100Mi" || e.Thresholds[1].String() != "nodefs.available<5%" || e.Images.High != 90 {
		t.Errorf("defaults: %+v, %v", e, err)
	}
	for want, change := range map[string]func(*EvictionOptions){
		"--eviction-hard: unknown signal":                   func(e *EvictionOptions) { e.Hard = map[string]string{"cpu": "1"} },
		"--eviction-pressure-transition-period: -1s":        func(e *EvictionOptions) { e.Transition = -time.Second },
		"--image-gc-high-threshold, --image-gc-low-":        func(e *EvictionOptions) { e.ImageHigh = 101 },
		"--image-gc-low-threshold: 90 must be below":        func(e *EvictionOptions) { e.ImageLow = 90 },
		"--minimum-image-ttl-duration: -1m0s is below":      func(e *EvictionOptions) { e.ImageMinAge = -time.Minute },
		"--maximum-image-ttl-duration: 1m0s must be 0 or":   func(e *EvictionOptions) { e.ImageMaxAge = time.Minute },
		"--eviction-soft: memory.available has no grace":    func(e *EvictionOptions) { e.Soft = map[string]string{"memory.available": "1Gi"} },
		"--eviction-minimum-reclaim: memory.available: \"x": func(e *EvictionOptions) { e.MinimumReclaim = map[string]string{"memory.available": "x"} },
	} {
		o := Defaults()
		change(&o.Eviction)
		if _, err := o.complete(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nlacks %s", err, want)
		}
	}
}
