// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	task "github.com/containerd/containerd/api/runtime/task/v3"
	tasktypes "github.com/containerd/containerd/api/types/task"
	"github.com/containerd/ttrpc"
)

// taskPlugin names the folders in which containerd keeps its containers' bundles.
const taskPlugin = "io.containerd.runtime.v2.task"

// shimPatience is how long one shim may take to say how its container is.
const shimPatience = 2 * time.Second

// ends is what becomes of containers that a former process left running, until containerd has picked them up. Their
// shims know how they ended; but containerd, when it starts, takes a shim whose container has ended for a leaked one,
// deletes it unasked, and calls the end unknown (code 255): an init container that had completed would then run again,
// a job that had succeeded would have failed. What the CRI finds in its own records it believes, so ends are put there
// before it looks.
//
// watchEnds comes before containerd is started, recordMissed when it has loaded the shims and before the CRI is
// started.
//
// What cannot be had is left to containerd, as before: this is reported, and nothing fails.
type ends struct {
	dirs    dirs
	log     *slog.Logger
	mu      sync.Mutex
	waiting []*wait // for containers that had not ended
}

// wait is a question to a shim: how will its container end?
type wait struct {
	record string // the CRI's record of the container
	bundle string
	answer <-chan *end // receives one value; nil if the shim died first
	client *ttrpc.Client
}

func watchEnds(ctx context.Context, d dirs, log *slog.Logger) *ends {
	e := &ends{dirs: d, log: log}
	records, err := filepath.Glob(filepath.Join(d.root, criPlugin, "containers", "*", "status"))
	if err != nil {
		log.Warn("records of containers cannot be listed", "err", err)
		return e
	}
	var wg sync.WaitGroup
	for _, path := range records {
		wg.Go(func() { e.report(path, e.watch(ctx, path)) })
	}
	wg.Wait()
	return e
}

// recordMissed records the ends that came since watchEnds and that containerd did not see: those whose bundles it threw
// away.
func (e *ends) recordMissed() {
	defer e.close()
	patience := time.After(shimPatience)
	for _, w := range e.waiting {
		if _, err := os.Stat(w.bundle); !errors.Is(err, fs.ErrNotExist) {
			continue // containerd has it, and will ask
		}
		select {
		case how := <-w.answer:
			e.report(w.record, writeEnd(w.record, how))
		case <-patience:
			return
		}
	}
}

func (e *ends) close() {
	for _, w := range e.waiting {
		_ = w.client.Close()
	}
	e.waiting = nil
}

func (e *ends) report(record string, err error) {
	if err != nil {
		e.log.Warn("cannot find out from its shim how a container ended", "container",
			filepath.Base(filepath.Dir(record)), "err", err)
	}
}

// watch records how a container ended, or waits for its end.
func (e *ends) watch(ctx context.Context, path string) error {
	if record, err := readRecord(path); err != nil || record == nil {
		return err
	}
	dir := filepath.Dir(path)
	if how, err := noted(dir); err != nil || how != nil {
		return errors.Join(err, writeEnd(path, how))
	}
	bundle := filepath.Join(e.dirs.run, taskPlugin, Namespace, filepath.Base(dir))
	client, err := dialShim(ctx, bundle)
	if err != nil || client == nil {
		return err
	}
	how, runs := askShim(ctx, client, filepath.Base(dir))
	if !runs {
		return errors.Join(client.Close(), writeEnd(path, how))
	}
	answer := make(chan *end, 1)
	go func() { answer <- awaitShim(context.WithoutCancel(ctx), client, filepath.Base(dir)) }()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.waiting = append(e.waiting, &wait{path, bundle, answer, client})
	return nil
}

// readRecord reads the CRI's record of a container; nil if there is none, it is of an unknown kind, or says how it
// ended.
func readRecord(path string) (map[string]any, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	record := map[string]any{}
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber() // times in nanoseconds do not fit a float
	if err := decoder.Decode(&record); err != nil {
		return nil, err
	}
	if record["Version"] != "v1" || fmt.Sprint(record["FinishedAt"]) != "0" {
		return nil, nil
	}
	return record, nil
}

// writeEnd puts an end, if there is one, into a record that has none.
func writeEnd(path string, e *end) error {
	if e == nil {
		return nil
	}
	record, err := readRecord(path)
	if err != nil || record == nil {
		return err
	}
	if fmt.Sprint(record["StartedAt"]) == "0" {
		// It was started, and containerd died before it could say so.
		record["StartedAt"] = record["CreatedAt"]
	}
	record["FinishedAt"], record["ExitCode"], record["Pid"] = e.At.UnixNano(), e.Code, 0
	text, err := json.Marshal(record)
	if err != nil {
		return err
	}
	next := path + ".end"
	if err := os.WriteFile(next, text, 0o600); err != nil {
		return err
	}
	return os.Rename(next, path)
}

// dialShim connects to a container's shim; nil if there is none, or it is dead.
func dialShim(ctx context.Context, bundle string) (*ttrpc.Client, error) {
	text, err := os.ReadFile(filepath.Join(bundle, "bootstrap.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var shim struct{ Address, Protocol string }
	if err := json.Unmarshal(text, &shim); err != nil {
		return nil, err
	}
	if shim.Protocol != "ttrpc" {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, shimPatience)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "unix", strings.TrimPrefix(shim.Address, "unix://"))
	if err != nil {
		return nil, nil // dead: nobody knows
	}
	return ttrpc.NewClient(conn), nil
}

// askShim returns how a container ended, or that it runs; neither if the shim does not know it. One that does not
// answer in time may be starting it: what becomes of that is waited for, as for the end of one that runs.
func askShim(ctx context.Context, client *ttrpc.Client, id string) (_ *end, runs bool) {
	ctx, cancel := context.WithTimeout(ctx, shimPatience)
	defer cancel()
	state, err := task.NewTTRPCTaskClient(client).State(ctx, &task.StateRequest{ID: id})
	switch {
	case ctx.Err() != nil:
		return nil, true
	case err != nil:
		return nil, false
	case state.Status == tasktypes.Status_STOPPED && state.ExitedAt != nil:
		return &end{At: state.ExitedAt.AsTime(), Code: state.ExitStatus}, false
	}
	return nil, true
}

// awaitShim returns how a container ended, when it has; nil if the shim died before.
func awaitShim(ctx context.Context, client *ttrpc.Client, id string) *end {
	r, err := task.NewTTRPCTaskClient(client).Wait(ctx, &task.WaitRequest{ID: id})
	if err != nil || r.ExitedAt == nil {
		return nil
	}
	return &end{At: r.ExitedAt.AsTime(), Code: r.ExitStatus}
}

// sweepBundles removes what is left of bundles whose deletion was cut short: containerd renames them to a hidden name
// first, and never looks at those again.
func sweepBundles(d dirs) error {
	var errs []error
	for _, base := range []string{d.run, d.root} {
		hidden, err := filepath.Glob(filepath.Join(base, taskPlugin, Namespace, ".*"))
		errs = append(errs, err)
		for _, dir := range hidden {
			errs = append(errs, unmountBelow(dir), os.RemoveAll(dir))
		}
	}
	return errors.Join(errs...)
}
