// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/errdefs"
	"google.golang.org/grpc"
	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// lost finds the containers that runc has and nobody knows any more: on a machine so busy that containerd gave up on
// making or deleting one, or when a process was killed in the middle of it. Such a container is most often one that was
// made and never started: a process `runc init` waits in the pod's cgroup for a word that does not come, and the cgroup
// cannot be removed.
//
// containerd makes a container's record first, then its bundle, then has runc make it, and deletes in the reverse
// order. So what runc has without one of the two is nobody's, at any time. Reading all records costs something where
// there are many pods: only thorough does.
func (r *Runtime) lost(ctx context.Context, thorough bool) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(r.dirs.runc, Namespace))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if _, err := os.Stat(filepath.Join(r.tasks, e.Name())); errors.Is(err, fs.ErrNotExist) {
			out = append(out, e.Name())
			continue
		}
		if !thorough {
			continue
		}
		_, err := r.client.ContainerService().Get(namespaces.WithNamespace(ctx, Namespace), e.Name())
		if errdefs.IsNotFound(err) {
			out = append(out, e.Name())
		} else if err != nil {
			return out, err
		}
	}
	return out, nil
}

// reapLost kills and deletes lost containers: processes, cgroups, and runc's own state.
func (r *Runtime) reapLost(ctx context.Context, thorough bool) error {
	r.reaping.Lock()
	defer r.reaping.Unlock()
	ids, err := r.lost(ctx, thorough)
	errs := []error{err}
	var now map[string]stubborn // those that are gone are forgotten
	for _, id := range ids {
		s := r.stubborn[id]
		if s.tries == 0 || !time.Now().Before(s.until) {
			r.log.Info("removing an orphaned container", "container", id)
			err := deleteContainer(ctx, r.dirs, filepath.Join(r.dirs.runc, Namespace), id)
			errs = append(errs, err)
			if err == nil {
				continue
			}
			s = s.failed(time.Now())
		}
		if now == nil {
			now = map[string]stubborn{}
		}
		now[id] = s
	}
	r.stubborn = now
	return errors.Join(errs...)
}

// stubborn is a lost container that could not be deleted. A try may take half a minute, and the ends of sandboxes wait
// for it: the next one comes after a while only.
type stubborn struct {
	tries int
	until time.Time // not tried again before
}

const (
	stubbornFirst = time.Minute
	stubbornMost  = time.Hour
)

// failed counts one more try that failed. (Pure.)
func (s stubborn) failed(now time.Time) stubborn {
	pause := stubbornMost
	if s.tries < 6 {
		pause = stubbornFirst << s.tries
	}
	return stubborn{s.tries + 1, now.Add(pause)}
}

// reapAfter looks for lost containers when a sandbox was stopped or removed: before the pod's cgroup is to go. reapLate
// comes after it, and is thorough.
func (r *Runtime) reapAfter(ctx context.Context, req any, handle grpc.UnaryHandler) (any, error) {
	res, err := handle(ctx, req)
	_, removes := req.(*criapi.RemovePodSandboxRequest)
	if _, stops := req.(*criapi.StopPodSandboxRequest); !stops && !removes {
		return res, err
	}
	if lerr := r.reapLost(context.WithoutCancel(ctx), false); lerr != nil {
		r.log.Warn("orphaned containers could not be removed; will retry after a while, when a sandbox ends", "err",
			lerr)
	}
	if removes {
		select {
		case r.removed <- struct{}{}:
		default: // reapLate will look soon
		}
	}
	return res, err
}

// sweepRecords removes records of containers' states that a kill left half deleted: containerd gives them another name
// first, and never looks at those again.
func sweepRecords(d dirs) error {
	left, err := filepath.Glob(filepath.Join(d.root, criPlugin, "containers", "*.del-status"))
	errs := []error{err}
	for _, path := range left {
		if err := os.RemoveAll(path); err != nil {
			errs = append(errs, fmt.Errorf("half-deleted record: %w", err))
		}
	}
	return errors.Join(errs...)
}
