// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// coldStart: from the start of the process, on a folder that is not there, to the first pod's create request that
// succeeds.
func (b *bench) coldStart(ctx context.Context) ([]result, error) {
	var took samples = samples{}
	for i := range b.n {
		v, err := startServer(ctx, b.settings, filepath.Join(b.dir, fmt.Sprintf("start%d", i)))
		if err != nil {
			return nil, err
		}
		d, err := firstPod(ctx, v)
		if err == nil {
			err = v.ready(ctx)
		}
		node := time.Since(v.begun)
		if stop := v.purge(); err == nil {
			err = stop
		}
		if err != nil {
			return nil, err
		}
		took["start"], took["node"] = append(took["start"], d), append(took["node"], node)
	}
	return []result{{What: "server start, empty data folder → first pod can be created", Figure: took.median("start"),
		Limit: 2500 * time.Millisecond},
		{What: "… → node Ready, all of the server up", Figure: took.median("node"), Limit: 3 * time.Second}}, nil
}

func firstPod(ctx context.Context, v *server) (time.Duration, error) {
	err := v.poll(ctx, "kubeconfig", time.Millisecond,
		func() bool { _, err := os.Stat(kubeconfig(v.dataDir)); return err == nil })
	if err != nil {
		return 0, err
	}
	client, err := connect(v.dataDir)
	if err != nil {
		return 0, err
	}
	c := &apiClient{client: client}
	err = v.poll(ctx, "the first pod", 2*time.Millisecond,
		func() bool { _, err := c.create(ctx, "first"); return err == nil })
	return time.Since(v.begun), err
}

// onePod: one pod's start and end, against the same by bare calls.
func (b *bench) onePod(ctx context.Context) ([]result, error) {
	i := 0
	ours := func(ctx context.Context) (map[string]time.Duration, error) {
		i++
		return b.oneOurs(ctx, fmt.Sprintf("one-%d", i))
	}
	bare := func(ctx context.Context) (map[string]time.Duration, error) {
		p, up, err := b.bare.start(ctx, fmt.Sprintf("bare-%d", i))
		if err == nil {
			err = b.bare.settled(ctx, p.container)
		}
		if err != nil {
			return nil, err
		}
		down, err := b.bare.stop(ctx, p)
		return map[string]time.Duration{"up": up, "down": down}, err
	}
	s, err := inTurns(ctx, b.n, ours, bare)
	if err != nil {
		return nil, err
	}
	return []result{
		{What: "create returned → `Running` seen by a watch, one container, image present", Figure: s[0].median("up"),
			Bare: s[1].median("up"), MaxRatio: 1.3},
		{What: "delete, main exits on SIGTERM → object gone and nothing left on the node", Figure: s[0].median("down"),
			Bare: s[1].median("down"), MaxRatio: 1.5},
	}, b.bare.nothingLeft(ctx)
}

func (b *bench) oneOurs(ctx context.Context, name string) (map[string]time.Duration, error) {
	uid, err := b.api.create(ctx, name)
	if err != nil {
		return nil, err
	}
	created := time.Now()
	running, err := b.api.awaitRunning(ctx, uid)
	if err != nil {
		return nil, err
	}
	if err := b.settled(ctx, name); err != nil {
		return nil, err
	}
	begun := time.Now()
	if err := b.api.delete(ctx, name); err != nil {
		return nil, err
	}
	gone, err := b.awaitClean(ctx, []types.UID{uid})
	return map[string]time.Duration{"up": running.Sub(created), "down": gone.Sub(begun)}, err
}

// awaitClean waits until the objects are gone and then until the node holds nothing of them. It returns when the
// objects were gone if the node was clean by then, else when it was.
func (b *bench) awaitClean(ctx context.Context, uids []types.UID) (time.Time, error) {
	clean, err := b.api.awaitGone(ctx, uids...)
	if err != nil {
		return clean, err
	}
	late := time.Now().Add(patience)
	for _, uid := range uids {
		for first := true; ; first = false {
			found, err := b.bare.left(ctx, string(uid))
			if err != nil {
				return clean, err
			}
			if len(found) == 0 {
				break
			}
			if first {
				fmt.Fprintf(os.Stderr, "  left when the object was gone: %v\n", found)
			}
			if clean = time.Now(); clean.After(late) {
				return clean, fmt.Errorf("left on the node %v after the object was gone: %v", patience, found)
			}
		}
	}
	return clean, nil
}

// exec: the whole kubectl command, the built-in one and the machine's own if it has one, against ExecSync in the same
// kind of container.
func (b *bench) exec(ctx context.Context) (results []result, err error) {
	uid, err := b.api.create(ctx, "exec")
	if err != nil {
		return nil, err
	}
	if _, err := b.api.awaitRunning(ctx, uid); err != nil {
		return nil, err
	}
	p, _, err := b.bare.start(ctx, "exec")
	if err != nil {
		return nil, err
	}
	side := func(kubectl ...string) func(context.Context) (map[string]time.Duration, error) {
		return func(ctx context.Context) (map[string]time.Duration, error) {
			args := append(kubectl[1:len(kubectl):len(kubectl)], "--kubeconfig", kubeconfig(b.server.dataDir), "exec",
				"exec", "--", "true")
			begun := time.Now()
			out, err := exec.CommandContext(ctx, kubectl[0], args...).CombinedOutput()
			if err != nil {
				return nil, fmt.Errorf("%v exec: %w: %s", kubectl, err, out)
			}
			return map[string]time.Duration{"exec": time.Since(begun)}, nil
		}
	}
	bare := func(ctx context.Context) (map[string]time.Duration, error) {
		d, err := b.bare.execTrue(ctx, p)
		return map[string]time.Duration{"exec": d}, err
	}
	own := func(ctx context.Context) (map[string]time.Duration, error) {
		begun := time.Now()
		out, err := exec.CommandContext(ctx, b.wherry, "exec", "--kubeconfig", kubeconfig(b.server.dataDir), "exec",
			"--", "true").CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("wherry exec: %w: %s", err, out)
		}
		return map[string]time.Duration{"exec": time.Since(begun)}, nil
	}
	sides := []func(context.Context) (map[string]time.Duration, error){bare, own, side(b.wherry, "kubectl")}
	if path, err := exec.LookPath("kubectl"); err == nil {
		sides = append(sides, side(path))
	}
	s, err := inTurns(ctx, b.n, sides...)
	if err != nil {
		return nil, err
	}
	if _, err := b.bare.stop(ctx, p); err != nil {
		return nil, err
	}
	if err := b.api.delete(ctx, "exec"); err != nil {
		return nil, err
	}
	if _, err := b.awaitClean(ctx, []types.UID{uid}); err != nil {
		return nil, err
	}
	results = append(results, result{What: "`wherry exec POD -- true`, whole command", Figure: s[1].median("exec"),
		Bare: s[0].median("exec"), Limit: 40 * time.Millisecond})
	for i, what := range []string{"`wherry kubectl exec POD -- true`, whole command",
		"`kubectl exec POD -- true`, whole command"} {
		if i+2 < len(sides) {
			results = append(results, result{What: what, Figure: s[i+2].median("exec"), Bare: s[0].median("exec"),
				MaxOver: 70 * time.Millisecond})
		}
	}
	return results, b.bare.nothingLeft(ctx)
}

// burst makes many pods at once, waits until all run, and deletes them.
func (b *bench) burst(ctx context.Context, prefix string) (map[string]time.Duration, error) {
	begun := time.Now()
	uids, err := b.createMany(ctx, prefix)
	if err != nil {
		return nil, err
	}
	running, err := b.api.awaitRunning(ctx, uids...)
	if err != nil {
		return nil, err
	}
	// What is told to end before it listens for that takes its whole grace period.
	if err := each(b.pods, 8,
		func(i int) error { return b.settled(ctx, fmt.Sprintf("%s-%d", prefix, i)) }); err != nil {
		return nil, err
	}
	ending := time.Now()
	gone, err := b.deleteMany(ctx, prefix, uids)
	return map[string]time.Duration{"up": running.Sub(begun), "down": gone.Sub(ending)}, err
}

// manyPods: many pods at once, against as many by bare calls, 8 at a time.
func (b *bench) manyPods(ctx context.Context) ([]result, error) {
	round := 0
	ours := func(ctx context.Context) (map[string]time.Duration, error) {
		round++
		return b.burst(ctx, fmt.Sprintf("many-%d", round))
	}
	bare := func(ctx context.Context) (map[string]time.Duration, error) {
		pods := make([]*barePod, b.pods)
		begun := time.Now()
		err := each(b.pods, 8, func(i int) (err error) {
			pods[i], _, err = b.bare.start(ctx, fmt.Sprintf("bare-%d", i))
			return err
		})
		up := time.Since(begun)
		if err != nil {
			return nil, err
		}
		begun = time.Now()
		err = each(b.pods, 8, func(i int) error {
			_, err := b.bare.stop(ctx, pods[i])
			return err
		})
		return map[string]time.Duration{"up": up, "down": time.Since(begun)}, err
	}
	s, err := inTurns(ctx, b.n, b.withCPU(ours), b.withCPU(bare))
	if err != nil {
		return nil, err
	}
	return []result{
		{What: fmt.Sprintf("%d pods at once → all Running (bare: 8 at a time)", b.pods), Figure: s[0].median("up"),
			Bare: s[1].median("up"), MaxRatio: 1.3},
		{What: "… deleted → all gone", Figure: s[0].median("down"), Bare: s[1].median("down"), MaxRatio: 1.3},
		{What: "… CPU of the server process for each pod, start and end",
			Figure: s[0].median("cpu") / time.Duration(b.pods), Bare: s[1].median("cpu") / time.Duration(b.pods)},
	}, b.bare.nothingLeft(ctx)
}

// withCPU adds the server's CPU time to what is measured: it depends less than any other figure on what else the
// machine does.
func (b *bench) withCPU(side func(context.Context) (map[string]time.Duration, error)) func(context.Context) (map[string]time.Duration, error) {
	return func(ctx context.Context) (map[string]time.Duration, error) {
		before, err := cpuTime(b.server.pid())
		if err != nil {
			return nil, err
		}
		took, err := side(ctx)
		if err != nil {
			return nil, err
		}
		after, err := cpuTime(b.server.pid())
		took["cpu"] = after - before
		return took, err
	}
}

func (b *bench) createMany(ctx context.Context, prefix string) ([]types.UID, error) {
	uids := make([]types.UID, b.pods)
	return uids, each(b.pods, b.pods, func(i int) (err error) {
		uids[i], err = b.api.create(ctx, fmt.Sprintf("%s-%d", prefix, i))
		return err
	})
}

func (b *bench) deleteMany(ctx context.Context, prefix string, uids []types.UID) (time.Time, error) {
	err := each(b.pods, b.pods, func(i int) error { return b.api.delete(ctx, fmt.Sprintf("%s-%d", prefix, i)) })
	if err != nil {
		return time.Time{}, err
	}
	return b.awaitClean(ctx, uids)
}

// each calls f for 0 … n-1, at most `wide` at a time, and returns the first error.
func each(n, wide int, f func(int) error) (err error) {
	var wg sync.WaitGroup
	var once sync.Once
	slots := make(chan struct{}, wide)
	for i := range n {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			if e := f(i); e != nil {
				once.Do(func() { err = e })
			}
		})
	}
	wg.Wait()
	return err
}
