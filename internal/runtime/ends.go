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

	apievents "github.com/containerd/containerd/api/events"
	task "github.com/containerd/containerd/api/runtime/task/v3"
	tasktypes "github.com/containerd/containerd/api/types/task"
	containerd "github.com/containerd/containerd/v2/client"
	coreruntime "github.com/containerd/containerd/v2/core/runtime"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/ttrpc"
	"github.com/containerd/typeurl/v2"
)

// taskPlugin names the folders in which containerd keeps its containers' bundles.
const taskPlugin = "io.containerd.runtime.v2.task"

// shimPatience is how long one shim may take to say how its container is.
const shimPatience = 2 * time.Second

// recordEnds writes down how containers ended while no containerd ran. Their shims know; but containerd, when it starts,
// takes a shim whose container has ended for a leaked one, deletes it unasked, and calls the end unknown (code 255): an
// init container that had completed would then run again, a job that had succeeded would have failed. What the CRI finds
// in its own records it believes, so the end is put there before it looks. To be called before containerd is started.
//
// What cannot be had is left to containerd, as before: this function reports it and does not fail.
func recordEnds(ctx context.Context, d dirs, log *slog.Logger) {
	records, err := filepath.Glob(filepath.Join(d.root, criPlugin, "containers", "*", "status"))
	if err != nil {
		log.Warn("records of containers cannot be listed", "err", err)
		return
	}
	var wg sync.WaitGroup
	for _, path := range records {
		wg.Go(func() {
			if err := recordEnd(ctx, d, path); err != nil {
				log.Warn("how a container ended cannot be had from its shim", "container", filepath.Base(filepath.Dir(path)), "err", err)
			}
		})
	}
	wg.Wait()
}

func recordEnd(ctx context.Context, d dirs, path string) error {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	record := map[string]any{}
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber() // times in nanoseconds do not fit a float
	if err := decoder.Decode(&record); err != nil {
		return err
	}
	if record["Version"] != "v1" || fmt.Sprint(record["FinishedAt"]) != "0" {
		return nil // of an unknown kind, or its end is known
	}
	end, err := askShim(ctx, filepath.Join(d.run, taskPlugin, Namespace, filepath.Base(filepath.Dir(path))))
	if err != nil {
		return err
	}
	if end == nil {
		if end, err = noted(filepath.Dir(path)); err != nil || end == nil {
			return err
		}
	}
	if fmt.Sprint(record["StartedAt"]) == "0" {
		// It was started, and containerd died before it could say so.
		record["StartedAt"] = record["CreatedAt"]
	}
	record["FinishedAt"], record["ExitCode"], record["Pid"] = end.At.UnixNano(), end.Code, 0
	if text, err = json.Marshal(record); err != nil {
		return err
	}
	next := path + ".end"
	if err := os.WriteFile(next, text, 0o600); err != nil {
		return err
	}
	return os.Rename(next, path)
}

// end is how a container ended.
type end struct {
	At   time.Time
	Code uint32
}

// note is the file, beside the CRI's record of a container, in which noteEnds keeps its end.
const note = "end"

// noteEnds writes down how containers end, as they do, until ctx ends. The CRI first has the shim forget the container and
// then writes the end into its record: a process that dies in between would leave nobody who knows.
func noteEnds(ctx context.Context, d dirs, events containerd.EventService, log *slog.Logger) {
	exits, errs := events.Subscribe(namespaces.WithNamespace(ctx, Namespace), `topic=="`+coreruntime.TaskExitEventTopic+`"`)
	for {
		select {
		case <-ctx.Done():
			return
		case err := <-errs:
			if err != nil && ctx.Err() == nil {
				log.Warn("ends of containers are not noted any more", "err", err)
			}
			return
		case envelope := <-exits:
			v, err := typeurl.UnmarshalAny(envelope.Event)
			if err != nil {
				continue
			}
			exit, ok := v.(*apievents.TaskExit)
			if !ok || exit.ID != exit.ContainerID || exit.ExitedAt == nil { // another process of the container
				continue
			}
			text, err := json.Marshal(end{exit.ExitedAt.AsTime(), exit.ExitStatus})
			if err != nil {
				continue
			}
			dir := filepath.Join(d.root, criPlugin, "containers", exit.ContainerID)
			if err := os.WriteFile(filepath.Join(dir, note), text, 0o600); err != nil && !errors.Is(err, fs.ErrNotExist) { // a sandbox has no such folder
				log.Warn("the end of a container cannot be noted", "container", exit.ContainerID, "err", err)
			}
		}
	}
}

// noted reads what noteEnds wrote; nil if it wrote nothing, or was cut short.
func noted(dir string) (*end, error) {
	text, err := os.ReadFile(filepath.Join(dir, note))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	e := &end{}
	if json.Unmarshal(text, e) != nil {
		return nil, nil
	}
	return e, nil
}

// askShim returns the end of a container, or nil if it has not ended, or has no shim.
func askShim(ctx context.Context, bundle string) (*end, error) {
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
		return nil, nil // the shim is dead: nobody knows
	}
	client := ttrpc.NewClient(conn)
	defer client.Close()
	state, err := task.NewTTRPCTaskClient(client).State(ctx, &task.StateRequest{ID: filepath.Base(bundle)})
	if err != nil || state.Status != tasktypes.Status_STOPPED || state.ExitedAt == nil {
		return nil, nil // no such task, or one that runs: containerd knows what to do
	}
	return &end{state.ExitedAt.AsTime(), state.ExitStatus}, nil
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
