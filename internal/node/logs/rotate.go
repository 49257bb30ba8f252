// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	stampLayout = "20060102-150405"
	gz          = ".gz"
	tmp         = ".tmp"
)

// Container is a running container and its log file.
type Container struct{ ID, Path string }

// Runtime is what the Rotator needs of a container runtime.
type Runtime interface {
	// Logs lists the running containers.
	Logs(ctx context.Context) ([]Container, error)
	// Reopen makes the runtime close a container's log file and open it anew by its path.
	Reopen(ctx context.Context, id string) error
}

// RotatorConfig says when logs are rotated. Zero values mean the defaults, which are Kubernetes'.
type RotatorConfig struct {
	MaxSize  int64         // bytes; 10 MiB
	MaxFiles int           // with the one that is written; 5
	Period   time.Duration // between looks; 10 s
	Runtime  Runtime
	Logger   *slog.Logger
}

// Rotator keeps the logs of running containers from growing: a log over the size is renamed to <log>.<time>, the
// runtime starts a new one, and older ones are compressed and then removed.
type Rotator struct{ config RotatorConfig }

// NewRotator makes a Rotator.
func NewRotator(c RotatorConfig) *Rotator {
	if c.MaxSize == 0 {
		c.MaxSize = 10 << 20
	}
	if c.MaxFiles == 0 {
		c.MaxFiles = 5
	}
	c.MaxFiles = max(c.MaxFiles, 2)
	if c.Period == 0 {
		c.Period = 10 * time.Second
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &Rotator{c}
}

// Run looks after the logs until ctx is done, and returns nil then. What goes wrong is logged and tried again.
func (r *Rotator) Run(ctx context.Context) error {
	ticker := time.NewTicker(r.config.Period)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-ticker.C:
			if err := r.Rotate(ctx, now); err != nil && ctx.Err() == nil {
				r.config.Logger.Warn("rotation of container logs", "err", err)
			}
		}
	}
}

// Rotate rotates the logs that are too large at the moment.
func (r *Rotator) Rotate(ctx context.Context, now time.Time) error {
	containers, err := r.config.Runtime.Logs(ctx)
	if err != nil {
		return fmt.Errorf("list running containers: %w", err)
	}
	var errs []error
	for _, c := range containers {
		info, err := os.Lstat(c.Path) // a link leads to the log of an engine that rotates its logs itself
		if errors.Is(err, os.ErrNotExist) {
			// A crash between rename and reopen left the runtime writing to the rotated file.
			if files, rerr := rotated(c.Path); rerr == nil && len(files) > 0 {
				err = r.config.Runtime.Reopen(ctx, c.ID)
			} else {
				err = nil // not started writing, or just removed
			}
		} else if err == nil && info.Mode().IsRegular() && info.Size() > r.config.MaxSize {
			err = r.rotate(ctx, c, now)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("log of container %s: %w", c.ID, err))
		}
	}
	return errors.Join(errs...)
}

func (r *Rotator) rotate(ctx context.Context, c Container, now time.Time) error {
	if err := r.tidy(c.Path); err != nil {
		return err
	}
	to := c.Path + "." + now.UTC().Format(stampLayout)
	if files, err := rotated(c.Path); err != nil || len(files) > 0 && stampOf(files[len(files)-1]) >= stampOf(to) {
		return err // rotated in this very second, or the clock went back: later
	}
	if err := os.Rename(c.Path, to); err != nil {
		return err
	}
	if err := r.config.Runtime.Reopen(ctx, c.ID); err != nil {
		// The runtime goes on writing to the file, whatever its name: give it back, unless there is a new one after
		// all.
		if _, serr := os.Lstat(c.Path); errors.Is(serr, os.ErrNotExist) {
			err = errors.Join(err, os.Rename(to, c.Path))
		}
		return fmt.Errorf("reopen: %w", err)
	}
	return nil
}

// tidy makes room for one more rotated file: removes the oldest and what an interrupted compression left, compresses
// the rest. The file rotated last stays uncompressed until then, for those who still read it.
func (r *Rotator) tidy(path string) error {
	files, err := rotated(path)
	if err != nil {
		return err
	}
	half, _ := filepath.Glob(escape(path) + ".*" + tmp)
	for _, f := range half {
		if err := os.Remove(f); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	keep := r.config.MaxFiles - 2 // with the log and the one to come
	for len(files) > keep {
		if err := os.Remove(files[0]); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		files = files[1:]
	}
	for _, f := range files {
		if strings.HasSuffix(f, gz) {
			continue
		}
		if err := compress(f); err != nil {
			return fmt.Errorf("compress %s: %w", f, err)
		}
	}
	return nil
}

// compress replaces a file by its compressed form; at every moment one of the two is there and whole.
func compress(path string) (err error) {
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(path+tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, info.Mode().Perm())
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(path+tmp))
		}
	}()
	z, err := gzip.NewWriterLevel(out, gzip.BestSpeed)
	if err != nil {
		return errors.Join(err, out.Close())
	}
	_, err = io.Copy(z, in)
	if err = errors.Join(err, z.Close(), out.Close()); err != nil {
		return err
	}
	if err := os.Rename(path+tmp, path+gz); err != nil {
		return err
	}
	return os.Remove(path)
}

// rotated lists the files a log was rotated to, oldest first. Of a file that is there compressed and not, the
// compressed one is taken, as it is whole.
func rotated(path string) ([]string, error) {
	all, err := filepath.Glob(escape(path) + ".*")
	if err != nil {
		return nil, err
	}
	byStamp := map[string]string{}
	for _, f := range all {
		if stamp := stampOf(f); stamp != "" && (strings.HasSuffix(f, gz) || byStamp[stamp] == "") {
			byStamp[stamp] = f
		}
	}
	out := make([]string, 0, len(byStamp))
	for _, f := range byStamp {
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b string) int { return strings.Compare(stampOf(a), stampOf(b)) })
	return out, nil
}

// stampOf is the time in the name of a rotated file, or "" if it is none.
func stampOf(path string) string {
	stamp := strings.TrimSuffix(path, gz)
	stamp = stamp[strings.LastIndex(stamp, ".")+1:]
	if _, err := time.Parse(stampLayout, stamp); err != nil {
		return ""
	}
	return stamp
}

// escape makes a path match itself in a glob pattern.
func escape(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}
