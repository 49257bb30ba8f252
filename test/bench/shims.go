// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// shims: pods run by wherry's own shim against the same by containerd's (--runtime stock), on two servers in turns.
func (b *bench) shims(ctx context.Context) (results []result, err error) {
	var sides []func(context.Context) (map[string]time.Duration, error)
	var after []func() error
	defer func() {
		for _, f := range after {
			err = errors.Join(err, f())
		}
	}()
	for _, runtime := range []string{"wherry", "stock"} {
		s, err := b.sideWith(ctx, runtime)
		if err != nil {
			return nil, err
		}
		after = append(after, s.close)
		cpu, leave, err := accountFor(s.server.pid(), "wherry-bench-"+runtime)
		if err != nil {
			return nil, err
		}
		after = append(after, leave)
		sides = append(sides, s.lives(cpu))
	}
	s, err := inTurns(ctx, b.n, sides...)
	if err != nil {
		return nil, err
	}
	burst := fmt.Sprintf("%d pods at once", b.pods)
	for _, row := range []struct {
		what, key string
		ratio     float64
		per       int
	}{
		{"one container: create returned → Running (bare: --runtime stock, in all rows of this part)", "up", 0.6, 1},
		{"… its deletion", "down", 0.6, 1},
		{"3 sidecars + init + main → Ready", "life up", 0.65, 1},
		{"… deletion", "life down", 0.65, 1},
		{burst + " → all Running", "burst up", 0.6, 1},
		{"… deleted → all gone", "burst down", 0.6, 1},
		{"… CPU of all processes but the containers' own, for each pod, start and end", "cpu", 0.6, b.pods},
	} {
		if len(s[0][row.key]) == 0 {
			continue
		}
		results = append(results, result{
			What: row.what, Figure: s[0].median(row.key) / time.Duration(row.per),
			Bare: s[1].median(row.key) / time.Duration(row.per), MaxRatio: row.ratio,
		})
	}
	return results, nil
}

// sideWith is a bench with a server of its own.
func (b *bench) sideWith(ctx context.Context, runtime string) (*bench, error) {
	s := &bench{settings: b.settings, image: b.image}
	var err error
	if s.server, err = s.side(ctx, "shim-"+runtime, "--runtime", runtime); err != nil {
		return nil, err
	}
	out, err := exec.CommandContext(ctx, s.wherry, "image", "import", "--data-dir", s.server.dataDir,
		s.image).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("wherry image import: %w: %s", err, out)
	}
	return s, s.connect(ctx)
}

// lives is one side: the life of one pod, of one with sidecars, and of many.
func (b *bench) lives(cpu func() (time.Duration, error)) func(context.Context) (map[string]time.Duration, error) {
	turn := 0
	return func(ctx context.Context) (map[string]time.Duration, error) {
		turn++
		took, err := b.oneOurs(ctx, fmt.Sprintf("one-%d", turn))
		if err != nil {
			return nil, err
		}
		ends, err := b.hearEnds(ctx)
		if err != nil {
			return nil, err
		}
		life, err := b.lifeOurs(ctx, fmt.Sprintf("life-%d", turn), ends, samples{})
		ends.stop()
		if err != nil {
			return nil, err
		}
		took["life up"], took["life down"] = life["up"], life["down"]
		before, err := cpu()
		if err != nil {
			return nil, err
		}
		many, err := b.burst(ctx, fmt.Sprintf("many-%d", turn))
		if err != nil {
			return nil, err
		}
		now, err := cpu()
		if err != nil {
			return nil, err
		}
		took["burst up"], took["burst down"] = many["up"], many["down"]
		if now > 0 {
			took["cpu"] = now - before
		}
		return took, nil
	}
}

// accountFor has the kernel count what a process uses, and all it starts from now on; containers are in cgroups of
// their own. A machine where it cannot be counted has no such figure.
func accountFor(pid int, name string) (used func() (time.Duration, error), leave func() error, err error) {
	dir, file := filepath.Join("/sys/fs/cgroup/cpuacct", name), "cpuacct.usage"
	if _, err := os.Stat("/sys/fs/cgroup/cpuacct"); err != nil {
		dir, file = filepath.Join("/sys/fs/cgroup", name), "cpu.stat"
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, nil, err
	}
	leave = func() error { return os.Remove(dir) }
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0); err != nil {
		return nil, leave, err
	}
	return func() (time.Duration, error) {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			return 0, err
		}
		if file == "cpuacct.usage" {
			ns, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
			return time.Duration(ns), err
		}
		var us int64
		_, err = fmt.Sscanf(string(text), "usage_usec %d", &us)
		return time.Duration(us) * time.Microsecond, err
	}, leave, nil
}
