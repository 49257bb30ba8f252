// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/wherryproject/wherry/internal/cluster/wire"
	"github.com/wherryproject/wherry/internal/quantities"
)

// Limits are what a session may have at most.
type Limits struct {
	TTL    time.Duration
	Memory int64 // bytes
	CPUs   float64
}

// What a session has by default, if the limits allow it.
const (
	usualTTL    = time.Hour
	usualMemory = 512 << 20
	usualCPUs   = 1
)

// DefaultLimits are those of an API without settings of its own.
func DefaultLimits() Limits { return Limits{TTL: 8 * time.Hour, Memory: 2 << 30, CPUs: 4} }

// least are what nothing can run with less of.
const (
	leastTTL    = time.Second
	leastMemory = 16 << 20
	leastCPUs   = 0.01
)

// mostTTL is what agents take at most.
const mostTTL = 7 * 24 * time.Hour

// Validate says what is wrong with limits.
func (l Limits) Validate() error {
	switch {
	case l.TTL < leastTTL:
		return fmt.Errorf("the longest time of a session is %v: at least %v are needed", l.TTL, leastTTL)
	case l.TTL > mostTTL:
		return fmt.Errorf("the longest time of a session is %v: agents take at most %v", l.TTL, mostTTL)
	case l.Memory < leastMemory:
		return fmt.Errorf("the most memory of a session is %d bytes: at least %d are needed", l.Memory, leastMemory)
	case l.CPUs < leastCPUs:
		return fmt.Errorf("the most CPUs of a session are %v: at least %v are needed", l.CPUs, leastCPUs)
	}
	return nil
}

// bound gives a session its bounds.
func (l Limits) bound(b Bounds, s *wire.Session) error {
	ttl, err := l.ttl(b.TTL)
	if err != nil {
		return err
	}
	memory, err := quantity(wire.ParamMemory, b.Memory, "512Mi", usualMemory, leastMemory, float64(l.Memory))
	if err != nil {
		return err
	}
	s.CPUs, err = quantity(wire.ParamCPUs, b.CPUs, "500m", usualCPUs, leastCPUs, l.CPUs)
	s.Seconds, s.Memory = int64((ttl+time.Second-1)/time.Second), int64(memory)
	return err
}

func (l Limits) ttl(text string) (time.Duration, error) {
	if text == "" {
		return min(usualTTL, l.TTL), nil
	}
	ttl, err := time.ParseDuration(text)
	switch {
	case err != nil || ttl < leastTTL:
		return 0, fmt.Errorf("%s %.100q is not a duration of at least %v, for example 30m", wire.ParamTTL, text,
			leastTTL)
	case ttl > l.TTL:
		return 0, fmt.Errorf("%s %s is more than this cluster allows, %v", wire.ParamTTL, text, l.TTL)
	}
	return ttl, nil
}

// quantity reads one as Kubernetes writes it.
func quantity(param, text, example string, usual, least, most float64) (float64, error) {
	if text == "" {
		return min(usual, most), nil
	}
	if len(text) > maxQuantity {
		return 0, fmt.Errorf("%s has %d bytes: a quantity has at most %d, for example %s", param, len(text),
			maxQuantity, example)
	}
	q, err := quantities.Parse(text)
	if err != nil {
		return 0, fmt.Errorf("%s %q is not a quantity, for example %s", param, text, example)
	}
	switch n := q.AsApproximateFloat64(); {
	case n > most:
		top := resource.NewMilliQuantity(int64(most*1000), q.Format)
		return 0, fmt.Errorf("%s %s is more than this cluster allows, %s", param, text, top.String())
	case !(n >= least): // no number is not enough either
		return 0, fmt.Errorf("%s %s is too little: nothing could run; at least %s is needed", param, text,
			resource.NewMilliQuantity(int64(least*1000), resource.DecimalSI).String())
	default:
		return n, nil
	}
}

// maxQuantity bounds a quantity's text, in bytes: reading a long one takes long.
const maxQuantity = 32
