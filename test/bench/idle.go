// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// ticksPerSecond is the unit of the times in /proc/<pid>/stat (USER_HZ), which is 100 on all of Linux's architectures
// but alpha.
const ticksPerSecond = 100

// idleEmpty: memory and CPU of a server without pods.
func (b *bench) idleEmpty(ctx context.Context) ([]result, error) {
	if err := sleep(ctx, b.settle); err != nil {
		return nil, err
	}
	share, err := b.cpuShare(ctx)
	if err != nil {
		return nil, err
	}
	rss, pss, err := memory(b.server.pid())
	if err != nil {
		return nil, err
	}
	return []result{
		{What: "server process RSS, idle, 0 pods", Bytes: rss, MaxBytes: 260 << 20,
			Note: fmt.Sprintf("PSS %s", mib(pss))},
		{What: fmt.Sprintf("CPU idle over %v, 0 pods", b.idle), Share: share, MaxShare: 0.008},
	}, nil
}

// idleMany: the same with pods that run, and what is left of that when they are gone.
func (b *bench) idleMany(ctx context.Context) ([]result, error) {
	uids, err := b.createMany(ctx, "idle")
	if err != nil {
		return nil, err
	}
	if _, err := b.api.awaitRunning(ctx, uids...); err != nil {
		return nil, err
	}
	if err := sleep(ctx, b.settle); err != nil {
		return nil, err
	}
	share, err := b.cpuShare(ctx)
	if err != nil {
		return nil, err
	}
	rss, pss, err := memory(b.server.pid())
	if err != nil {
		return nil, err
	}
	shims, err := b.bare.shims()
	if err != nil {
		return nil, err
	}
	all := pss
	for _, pid := range shims {
		_, more, err := memory(pid)
		if err != nil {
			return nil, err
		}
		all += more
	}
	if _, err := b.deleteMany(ctx, "idle", uids); err != nil {
		return nil, err
	}
	return []result{
		{What: fmt.Sprintf("CPU idle over %v, %d running pods", b.idle, b.pods), Share: share, MaxShare: 0.02},
		{What: fmt.Sprintf("server process RSS, %d running pods", b.pods), Bytes: rss,
			Note: fmt.Sprintf("PSS %s; with the %d shims %s", mib(pss), len(shims), mib(all))},
	}, b.bare.nothingLeft(ctx)
}

// cpuShare is the server's CPU time over the idle time, in cores.
func (b *bench) cpuShare(ctx context.Context) (float64, error) {
	before, err := cpuTime(b.server.pid())
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	if err := sleep(ctx, b.idle); err != nil {
		return 0, err
	}
	after, err := cpuTime(b.server.pid())
	return (after - before).Seconds() / time.Since(begun).Seconds(), err
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// cpuTime is the user and system time of a process.
func cpuTime(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, rest, ok := strings.Cut(string(text), ") ") // the name may hold spaces
	f := strings.Fields(rest)
	if !ok || len(f) < 13 {
		return 0, errors.New("/proc/<pid>/stat is not as it should be")
	}
	user, err1 := strconv.ParseInt(f[11], 10, 64)
	system, err2 := strconv.ParseInt(f[12], 10, 64)
	return time.Duration(user+system) * time.Second / ticksPerSecond, errors.Join(err1, err2)
}

// memory is a process's resident set, and its proportional one, in bytes.
func memory(pid int) (rss, pss int64, err error) {
	rss, err1 := field(fmt.Sprintf("/proc/%d/status", pid), "VmRSS:")
	pss, err2 := field(fmt.Sprintf("/proc/%d/smaps_rollup", pid), "Pss:")
	return rss << 10, pss << 10, errors.Join(err1, err2)
}

// field reads a number after its name, as /proc has them.
func field(file, name string) (int64, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			return strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
		}
	}
	return 0, fmt.Errorf("%s has no %s", file, name)
}
