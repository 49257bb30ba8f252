// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/runtime/bundle"
)

// enterTime is how long runc may take to enter a container that is to have ended, on a machine that is busy.
const enterTime = 5 * time.Second

// longestStop is how many seconds a time has room for; the CRI has no limit.
const longestStop = int64(math.MaxInt64 / time.Second)

// stopAll has a stop of a container end when its time is over (PL-10). A shim reports a container's end only when all
// that is being executed in it has ended, to which it counts a runc that is still entering the container; the exec of a
// hook has no limit of its own, and so a runc that hangs would keep its dead container for ever.
func (r *Runtime) stopAll(ctx context.Context, req any, handle grpc.UnaryHandler) (any, error) {
	stop, ok := req.(*criapi.StopContainerRequest)
	if !ok {
		return handle(ctx, req)
	}
	over := time.Now().Add(time.Duration(min(stop.GetTimeout(), longestStop)) * time.Second)
	ended := make(chan struct{})
	var looking sync.WaitGroup
	looking.Go(func() { r.endEntering(stop.GetContainerId(), over, ended) })
	defer looking.Wait()
	defer close(ended)
	return handle(ctx, req)
}

// endEntering kills what still enters a container that has been killed, or has ended, for longer than it may take.
// There is no event of something that does not happen: it looks from time to time, until ended is closed.
func (r *Runtime) endEntering(id string, over time.Time, ended <-chan struct{}) {
	look := time.NewTicker(enterTime)
	defer look.Stop()
	for {
		select {
		case <-ended:
			return
		case <-look.C:
		}
		if time.Since(over) < enterTime && !r.initGone(id) {
			continue
		}
		fds, err := killByExecutable(filepath.Join(r.dirs.bin, bundle.Runc), func(args []string) bool {
			return slices.Contains(args, "exec") && slices.Contains(args, id)
		})
		for _, fd := range fds {
			unix.Close(fd)
		}
		if err != nil || len(fds) > 0 {
			r.log.Warn("a command hung while it was started in a container that has ended, and was killed",
				"container", id, "count", len(fds), "err", err)
		}
	}
}

// initGone reports whether a container's first process has ended. If its number was given to another one it does not,
// and the container's time decides.
func (r *Runtime) initGone(id string) bool {
	pid, err := os.ReadFile(filepath.Join(r.tasks, id, "init.pid"))
	if err != nil {
		return false
	}
	_, err = os.Stat(filepath.Join("/proc", strings.TrimSpace(string(pid))))
	return os.IsNotExist(err)
}
