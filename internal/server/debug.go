// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/wherryproject/wherry/internal/node/cgroup"
	"github.com/wherryproject/wherry/internal/node/image"
	"github.com/wherryproject/wherry/internal/node/pullrecord"
	"github.com/wherryproject/wherry/internal/quantities"
)

// debugCap reads what one debug container of this node may use at most (EC-19).
func (o Options) debugCap() (cgroup.Cap, error) {
	cpu, err1 := quantity("--debug-cpu-limit", o.DebugCPULimit, "500m")
	memory, err2 := quantity("--debug-memory-limit", o.DebugMemoryLimit, "256Mi")
	if err := errors.Join(err1, err2); err != nil {
		return cgroup.Cap{}, err
	}
	// A container with less does not start: its first process has no room.
	if least := resource.MustParse("4Mi"); !memory.IsZero() && memory.Cmp(least) < 0 {
		return cgroup.Cap{}, fmt.Errorf("--debug-memory-limit: %s is too little for any container; give %s or more",
			o.DebugMemoryLimit, &least)
	}
	if o.DebugMaxPIDs < -1 {
		return cgroup.Cap{}, fmt.Errorf("--debug-max-pids: %d is not a number of processes; -1 means no limit",
			o.DebugMaxPIDs)
	}
	return cgroup.Cap{MilliCPU: cpu.MilliValue(), Memory: memory.Value(), PIDs: max(o.DebugMaxPIDs, 0)}, nil
}

func quantity(flag, text, example string) (resource.Quantity, error) {
	if text == "" {
		return resource.Quantity{}, nil
	}
	q, err := quantities.Parse(text)
	if err != nil || q.Sign() <= 0 {
		return q, fmt.Errorf("%s: %q is not a quantity above 0 such as %s", flag, text, example)
	}
	return q, nil
}

// debugImages reads which images debug containers of this node may have (DC-13).
func (o Options) debugImages() (image.AllowList, error) {
	l, err := image.ParseAllowList(o.DebugImageAllow)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", image.AllowFlag, err)
	}
	return l, nil
}

// verifyPulls reads for which images on this node pods must show their credentials (RS-12).
func (o Options) verifyPulls() (pullrecord.Policy, error) {
	p, err := pullrecord.NewPolicy(o.PullVerification, o.PreloadedAllowlist)
	if err != nil {
		return p,
			fmt.Errorf("--image-pull-credentials-verification-policy, --preloaded-images-verification-allowlist: %w",
				err)
	}
	return p, nil
}

// validateDebug checks the flags about debugging and about who may use images.
func (o Options) validateDebug() error {
	_, err1 := o.debugCap()
	_, err2 := o.debugImages()
	_, err3 := o.verifyPulls()
	var err4, err5 error
	if o.MaxPods < 0 {
		err5 = fmt.Errorf("--max-pods: %d is not a number of pods", o.MaxPods)
	}
	if o.PodMaxPIDs < -1 {
		err4 = fmt.Errorf("--pod-max-pids: %d is not a number of processes; -1 means no limit", o.PodMaxPIDs)
	}
	for _, limit := range []struct {
		flag string
		most int
	}{{"max-image-execs-per-pod", o.ImageExecs.Pod}, {"max-image-execs-per-namespace", o.ImageExecs.Namespace},
		{"max-image-execs", o.ImageExecs.Node}} {
		if limit.most < 0 {
			err5 = errors.Join(err5, fmt.Errorf("--%s: %d is not a number of image execs; 0 means no limit", limit.flag,
				limit.most))
		}
	}
	return errors.Join(err1, err2, err3, err4, err5)
}
