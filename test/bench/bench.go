// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

// bench is one run: a server, and clients of its API and of its runtime.
type bench struct {
	settings
	image  string // archive
	server *server
	api    *apiClient
	bare   *bareClient
}

// measure runs the wanted rows and cleans up.
func measure(ctx context.Context, s settings) (results []result, err error) {
	b := &bench{settings: s}
	if b.wherry, err = filepath.Abs(s.wherry); err != nil {
		return nil, err
	}
	if _, err := os.Stat(b.wherry); err != nil {
		return nil, fmt.Errorf("%w: build it first (make build)", err)
	}
	if b.dir == "" {
		if b.dir, err = os.MkdirTemp("", "wherry-bench-"); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	}
	if b.image, err = buildImage(ctx, b.dir); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	for _, r := range allRows() {
		if !slices.Contains(b.rows, r.name) {
			continue
		}
		if !r.own {
			if err := b.open(ctx); err != nil {
				return results, err
			}
		}
		fmt.Fprintf(os.Stderr, "measuring %s\n", r.name)
		got, err := r.measure(b, ctx)
		if err != nil {
			return results, fmt.Errorf("row %s: %w", r.name, err)
		}
		for _, g := range got {
			fmt.Fprintf(os.Stderr, "  %s\n", g)
		}
		results = append(results, got...)
	}
	return results, nil
}

// open brings up the server that most rows share, if it is not up.
func (b *bench) open(ctx context.Context) (err error) {
	if b.server != nil {
		return nil
	}
	if b.server, err = startServer(ctx, b.settings, filepath.Join(b.dir, "data")); err != nil {
		return err
	}
	if err := b.server.ready(ctx); err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, b.wherry, "image", "import", "--data-dir", b.server.dataDir,
		b.image).CombinedOutput()
	if err != nil {
		return fmt.Errorf("wherry image import: %w: %s", err, out)
	}
	return b.connect(ctx)
}

// connect makes the clients of the shared server.
func (b *bench) connect(ctx context.Context) (err error) {
	if b.api, err = newAPIClient(ctx, b.server.dataDir); err != nil {
		return err
	}
	b.bare, err = newBareClient(ctx, b.server.dataDir)
	return err
}

// disconnect gives the clients up.
func (b *bench) disconnect() (err error) {
	if b.api != nil {
		b.api.close()
	}
	if b.bare != nil {
		err = b.bare.close()
	}
	b.api, b.bare = nil, nil
	return err
}

// close stops the shared server and purges its folder.
func (b *bench) close() error {
	errs := []error{b.disconnect()}
	if b.server != nil {
		errs = append(errs, b.server.purge(), removeBareCgroups()) // in this order: purging ends bare pods too
	}
	return errors.Join(errs...)
}

// inTurns measures two sides n times each, one after the other, after one unmeasured turn of both.
func inTurns(ctx context.Context, n int,
	sides ...func(context.Context) (map[string]time.Duration, error)) ([]samples, error) {
	out := make([]samples, len(sides))
	for i := range out {
		out[i] = samples{}
	}
	for turn := range n + 1 {
		for i, side := range sides {
			took, err := side(ctx)
			if err != nil {
				return nil, err
			}
			if turn == 0 {
				continue
			}
			for what, d := range took {
				out[i][what] = append(out[i][what], d)
			}
		}
	}
	return out, nil
}

// samples are the measurements of one side, by what was measured.
type samples map[string][]time.Duration

func (s samples) median(what string) time.Duration {
	list := slices.Sorted(slices.Values(s[what]))
	if len(list) == 0 {
		return 0
	}
	mid := len(list) / 2
	if len(list)%2 == 1 {
		return list[mid]
	}
	return (list[mid-1] + list[mid]) / 2
}
