// SPDX-License-Identifier: Apache-2.0

package evict

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/wherryproject/wherry/internal/quantities"
)

// Signal names something that is measured, as the flags do.
type Signal string

// The signals. nodefs is the file system of the pods' volumes and logs, imagefs that of images and containers' own
// files.
const (
	MemoryAvailable   Signal = "memory.available"
	NodeFsAvailable   Signal = "nodefs.available"
	NodeFsInodesFree  Signal = "nodefs.inodesFree"
	ImageFsAvailable  Signal = "imagefs.available"
	ImageFsInodesFree Signal = "imagefs.inodesFree"
	PIDAvailable      Signal = "pid.available"
)

// signals is every signal, in the order in which they are acted upon: memory cannot wait.
func signals() []Signal {
	return []Signal{MemoryAvailable, NodeFsAvailable, ImageFsAvailable, NodeFsInodesFree, ImageFsInodesFree,
		PIDAvailable}
}

// Condition is the node condition that a signal leads to.
func (s Signal) Condition() corev1.NodeConditionType {
	switch s {
	case MemoryAvailable:
		return corev1.NodeMemoryPressure
	case PIDAvailable:
		return corev1.NodePIDPressure
	}
	return corev1.NodeDiskPressure
}

// Disk reports whether a signal is about a file system.
func (s Signal) Disk() bool { return s.Condition() == corev1.NodeDiskPressure }

// inodes reports whether a signal counts files, not bytes.
func (s Signal) inodes() bool { return s == NodeFsInodesFree || s == ImageFsInodesFree }

// resource is what a signal is about, as messages name it.
func (s Signal) resource() string {
	switch {
	case s == MemoryAvailable:
		return string(corev1.ResourceMemory)
	case s == PIDAvailable:
		return "pids"
	case s.inodes():
		return "inodes"
	}
	return string(corev1.ResourceEphemeralStorage)
}

// Amount is a quantity, or a share of the capacity.
type Amount struct {
	Value int64
	Share float64 // above 0: instead of Value
}

// Of is the amount on something with a capacity.
func (a Amount) Of(capacity int64) int64 {
	if a.Share > 0 {
		return int64(float64(capacity) * a.Share)
	}
	return a.Value
}

// String writes it as the flags do.
func (a Amount) String() string {
	if a.Share > 0 {
		return strconv.FormatFloat(a.Share*100, 'g', 6, 64) + "%"
	}
	return resource.NewQuantity(a.Value, resource.BinarySI).String()
}

// Threshold is the least that ought to be available.
type Threshold struct {
	Signal  Signal
	Least   Amount
	Soft    bool
	Grace   time.Duration // how long a soft one is met before pods go
	Reclaim Amount        // how much above Least there has to be until it is over
}

// String writes it as the flags do.
func (t Threshold) String() string { return fmt.Sprintf("%s<%s", t.Signal, t.Least) }

// Flags are the thresholds as given: signal to quantity or percentage, and for SoftGrace to a duration.
type Flags struct{ Hard, Soft, SoftGrace, Reclaim map[string]string }

// Parse reads flags. A hard or soft threshold of 0% or 100% is none, as with the kubelet. All faults come back at once;
// each names its flag.
func Parse(f Flags) ([]Threshold, error) {
	var out []Threshold
	var errs []error
	grace, err := eachOf("--eviction-soft-grace-period", f.SoftGrace, parseGrace)
	errs = append(errs, err)
	reclaim, err := eachOf("--eviction-minimum-reclaim", f.Reclaim, parseAmount)
	errs = append(errs, err)
	for _, kind := range []struct {
		flag string
		from map[string]string
		soft bool
	}{{"--eviction-hard", f.Hard, false}, {"--eviction-soft", f.Soft, true}} {
		least, err := eachOf(kind.flag, kind.from, parseAmount)
		errs = append(errs, err)
		for s, a := range least {
			_, waits := grace[s]
			switch {
			case a.Value == 0 && (a.Share <= 0 || a.Share >= 1):
				continue
			case kind.soft && !waits:
				errs = append(errs,
					fmt.Errorf("--eviction-soft: %s has no grace period; set one in --eviction-soft-grace-period", s))
			}
			out = append(out, Threshold{Signal: s, Least: a, Soft: kind.soft, Grace: grace[s], Reclaim: reclaim[s]})
			if !kind.soft {
				out[len(out)-1].Grace = 0
			}
		}
	}
	for s := range grace {
		if _, ok := f.Soft[string(s)]; !ok {
			errs = append(errs, fmt.Errorf("--eviction-soft-grace-period: --eviction-soft has no threshold for %s", s))
		}
	}
	slices.SortFunc(out, func(a, b Threshold) int {
		return cmp.Or(cmp.Compare(slices.Index(signals(), a.Signal), slices.Index(signals(), b.Signal)),
			cmp.Compare(a.Grace, b.Grace))
	})
	return out, errors.Join(errs...)
}

// eachOf parses the values of one flag.
func eachOf[T any](flag string, from map[string]string, parse func(string) (T, error)) (map[Signal]T, error) {
	out := map[Signal]T{}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(from)) {
		if !slices.Contains(signals(), Signal(name)) {
			errs = append(errs, fmt.Errorf("%s: unknown signal %q; choose from %v", flag, name, signals()))
			continue
		}
		v, err := parse(from[name])
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %s: %w", flag, name, err))
			continue
		}
		out[Signal(name)] = v
	}
	return out, errors.Join(errs...)
}

func parseAmount(text string) (Amount, error) {
	if percent, ok := strings.CutSuffix(text, "%"); ok {
		n, err := strconv.ParseFloat(percent, 64)
		if err != nil || math.IsNaN(n) || n < 0 || n > 100 {
			return Amount{}, fmt.Errorf("%q is not a percentage from 0%% to 100%%", text)
		}
		return Amount{Share: n / 100}, nil
	}
	q, err := quantities.Parse(text)
	if err != nil || q.Sign() <= 0 {
		return Amount{}, fmt.Errorf("%q is neither a quantity above 0, such as 100Mi, nor a percentage, such as 5%%",
			text)
	}
	return Amount{Value: q.Value()}, nil
}

func parseGrace(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%q is not a duration above 0, such as 1m30s", text)
	}
	return d, nil
}
