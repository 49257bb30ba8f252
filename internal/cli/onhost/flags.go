// SPDX-License-Identifier: Apache-2.0

package onhost

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/wherryproject/wherry/internal/cli/ask"
	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/enginesocket"
	"github.com/wherryproject/wherry/internal/hostdebug"
	"github.com/wherryproject/wherry/internal/hostdebug/engines"
	"github.com/wherryproject/wherry/internal/hostdebug/ocispec"
	"github.com/wherryproject/wherry/internal/hostdebug/target"
	"github.com/wherryproject/wherry/internal/quantities"
)

// Flags are those that only have a meaning with a target on this machine.
type Flags struct {
	Address string
	memory  string
	cpus    float64
}

// AddFlags adds them.
func (f *Flags) AddFlags(fl *pflag.FlagSet) {
	f.AddAddress(fl)
	fl.StringVar(&f.memory, "memory", "",
		"on this machine or beside a cluster's pod: maximum memory for the debugger, for example 512Mi; default: no limit on this machine, 512Mi beside a pod")
	fl.Float64Var(&f.cpus, "cpus", 0,
		"on this machine or beside a cluster's pod: maximum CPUs for the debugger, for example 0.5; default: no limit on this machine, 1 beside a pod")
}

// AddAddress adds the flag that says where an engine listens.
func (f *Flags) AddAddress(fl *pflag.FlagSet) {
	fl.StringVar(&f.Address, "address", "",
		"on this machine: the engine's socket; default: $DOCKER_HOST or $CONTAINERD_ADDRESS, or the usual places")
}

// Quantities are the limits as they were given, for a debugger on another machine.
func (f *Flags) Quantities() ask.Limits {
	l := ask.Limits{Memory: f.memory}
	if f.cpus != 0 {
		l.CPUs = strconv.FormatFloat(f.cpus, 'f', -1, 64)
	}
	return l
}

// Given refuses them where the target is a pod or a node.
func (f *Flags) Given() error {
	if f.Address == "" && f.memory == "" && f.cpus == 0 {
		return nil
	}
	return cmdline.ExitWith(cmdline.ExitUsage, errors.New(
		"--address only applies to containers of this machine, such as docker:web, and --memory and --cpus to those and to debuggers beside pods of a cluster with Wherry's debugging: leave them out here"))
}

// OnlyLimits reports whether what was given means something for a debugger on another machine, too.
func (f *Flags) OnlyLimits() bool { return f.Address == "" }

// limits puts the limits into what is asked for.
func (f *Flags) limits(w *ocispec.Options) error {
	if f.memory != "" {
		q, err := quantities.Parse(f.memory)
		if err != nil {
			return fmt.Errorf("--memory: %q is not a size: write it like 512Mi", f.memory)
		}
		const least = 8 << 20 // below, runc itself is killed before it has started the command
		if q.Value() < least {
			return fmt.Errorf("--memory: %s is too little to start a program in: give at least 8Mi", f.memory)
		}
		w.Memory = q.Value()
	}
	const least = 0.01
	if f.cpus != 0 && (math.IsNaN(f.cpus) || f.cpus < least || f.cpus > 1e6) {
		return fmt.Errorf("--cpus: %v is not a number of CPUs above %v", f.cpus, least)
	}
	w.CPUs = f.cpus
	return nil
}

// Options are how engines are asked.
func (f *Flags) Options() engines.Options {
	return engines.Options{Address: f.Address, Getenv: os.Getenv, UID: os.Geteuid(), Proc: "/proc"}
}

// find asks for the target.
func (f *Flags) find(ctx context.Context, t target.Target) (*engines.Container, error) {
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("debugging %s needs root: run it with sudo", t)
	}
	if t.Engine == target.PID || t.Engine == target.Systemd {
		if f.Address != "" {
			return nil, cmdline.ExitWith(cmdline.ExitUsage, fmt.Errorf("--address: %s has no socket", t.Engine))
		}
	}
	c, err := hostdebug.Find(ctx, t, f.Options())
	if absent := (*enginesocket.Absent)(nil); errors.As(err, &absent) {
		return nil, absent
	}
	return c, err
}
