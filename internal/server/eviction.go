// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"fmt"
	"time"

	"github.com/wherryproject/wherry/internal/node"
	"github.com/wherryproject/wherry/internal/node/evict"
)

// EvictionOptions are the kubelet's flags of the same names, and its meanings.
type EvictionOptions struct {
	Hard, Soft, SoftGrace, MinimumReclaim map[string]string // by signal

	MaxPodGrace int           // seconds a pod that goes for a soft threshold may take; below 0: its own grace
	Transition  time.Duration // how long a condition of the node outlives its cause

	// percent of the images' file system: collection begins and ends there; 100: never
	ImageHigh, ImageLow int
	ImageMinAge         time.Duration // younger images stay
	ImageMaxAge         time.Duration // images unused for longer go; 0: none
}

// defaultEviction is the kubelet's, but for the disks: a machine of one's own is fuller than a cluster's.
func defaultEviction() EvictionOptions {
	return EvictionOptions{
		Hard: map[string]string{
			string(evict.MemoryAvailable): "100Mi", string(evict.NodeFsAvailable): "5%",
			string(evict.ImageFsAvailable): "5%", string(evict.NodeFsInodesFree): "5%",
			string(evict.ImageFsInodesFree): "5%",
		},
		Transition: 5 * time.Minute,
		ImageHigh:  90, ImageLow: 85, ImageMinAge: 2 * time.Minute,
	}
}

// eviction reads them.
func (o Options) eviction() (node.Eviction, error) {
	e := o.Eviction
	list, err := evict.Parse(evict.Flags{Hard: e.Hard, Soft: e.Soft, SoftGrace: e.SoftGrace, Reclaim: e.MinimumReclaim})
	errs := []error{err}
	if e.Transition < 0 {
		errs = append(errs, fmt.Errorf("--eviction-pressure-transition-period: %s is below 0", e.Transition))
	}
	if e.ImageHigh < 1 || e.ImageHigh > 100 || e.ImageLow < 0 || e.ImageLow > 100 {
		errs = append(errs,
			fmt.Errorf("--image-gc-high-threshold, --image-gc-low-threshold: %d and %d must be percentages up to 100, the first above 0", e.ImageHigh, e.ImageLow))
	} else if e.ImageLow >= e.ImageHigh {
		errs = append(errs,
			fmt.Errorf("--image-gc-low-threshold: %d must be below --image-gc-high-threshold, which is %d", e.ImageLow,
				e.ImageHigh))
	}
	if e.ImageMinAge < 0 {
		errs = append(errs, fmt.Errorf("--minimum-image-ttl-duration: %s is below 0", e.ImageMinAge))
	}
	if e.ImageMaxAge < 0 || e.ImageMaxAge > 0 && e.ImageMaxAge <= e.ImageMinAge {
		errs = append(errs,
			fmt.Errorf("--maximum-image-ttl-duration: %s must be 0 or above --minimum-image-ttl-duration, "+
				"which is %s", e.ImageMaxAge, e.ImageMinAge))
	}
	return node.Eviction{Thresholds: list, Transition: e.Transition,
		MaxPodGrace: time.Duration(e.MaxPodGrace) * time.Second,
		Images: evict.ImagePolicy{High: e.ImageHigh, Low: e.ImageLow, MinAge: e.ImageMinAge,
			MaxAge: e.ImageMaxAge}}, errors.Join(errs...)
}

func (o Options) validateEviction() error {
	_, err := o.eviction()
	return err
}
