// SPDX-License-Identifier: Apache-2.0

package debugapi

import (
	"context"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// open are the sessions whose streams go through this server, which ends them when it stops: net/http does not know of
// them any more.
type open struct {
	ctx  context.Context // done when the server stops
	stop context.CancelFunc

	mu      sync.Mutex
	running sync.WaitGroup
}

func newOpen() *open {
	o := &open{}
	o.ctx, o.stop = context.WithCancel(context.Background())
	return o
}

// begin counts a session, until done is called; a server that stops begins no other.
func (o *open) begin() (done func(), err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ctx.Err() != nil {
		return nil, apierrors.NewServiceUnavailable("this server of the API of debugging is stopping: try again")
	}
	o.running.Add(1)
	return o.running.Done, nil
}

// stopping calls end when the server stops, unless forget is called before.
func (o *open) stopping(end func()) (forget func()) {
	stop := context.AfterFunc(o.ctx, end)
	return func() { stop() }
}

// end ends all sessions, and returns when they are over and events say so.
func (o *open) end() {
	o.mu.Lock()
	o.stop()
	o.mu.Unlock()
	o.running.Wait()
}
