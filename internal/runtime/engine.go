// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"log/slog"
	"time"

	containerd "github.com/containerd/containerd/v2/client"
	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/runtime/tap"
)

// engine is what debugging asks of a containerd because the CRI has no call for it: where containers' files are, and
// their output from the first byte. It is the same for the embedded one and for one behind a socket.
type engine struct {
	client *containerd.Client
	cri    criapi.RuntimeServiceClient
	taps   *tap.Taps
	log    *slog.Logger
	tasks  string // has a folder for each task, with its root filesystem
	// keeps reports whether the output of a container that has not been started will be kept.
	keeps func(ctx context.Context, id string) (bool, error)
}

// retryEvery is how often a containerd that does not answer is asked again.
const retryEvery = time.Second

// again waits for the time to ask once more; false when ctx is done.
func again(ctx context.Context) bool {
	t := time.NewTimer(retryEvery)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
