// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Stops of one pod's containers begin a few at a time. All containers of a pod have one shim, which waits for each
// program that sends a signal and hears of at most 32 ends at once: when a hundred are stopped at the same moment
// (EC-17) it falls behind by a second for each, and the pod's end takes minutes.
const (
	stopsAtOnce = 8
	// stopTurn is how long a stop is counted at most: a container may take its whole grace, the signal does not, also
	// on a machine that is busy.
	stopTurn = time.Second
)

// turnstile lets so many operations of each pod begin at a time.
type turnstile struct {
	atOnce int
	turn   time.Duration // for how long one is counted at most; 0 for as long as it takes

	mu   sync.Mutex
	pods map[types.UID]*turns
}

type turns struct {
	slots chan struct{}
	users int
}

// enter waits for a turn of the pod, until ctx ends. leave ends the turn, which ends by itself when its time is over;
// it is to be called once.
func (t *turnstile) enter(ctx context.Context, pod types.UID) (leave func(), err error) {
	turn := t.use(pod)
	select {
	case turn.slots <- struct{}{}:
	case <-ctx.Done():
		t.drop(pod)
		return nil, ctx.Err()
	}
	end := sync.OnceFunc(func() { <-turn.slots })
	stop := func() bool { return false }
	if t.turn > 0 {
		stop = time.AfterFunc(t.turn, end).Stop
	}
	return func() {
		stop()
		end()
		t.drop(pod)
	}, nil
}

func (t *turnstile) use(pod types.UID) *turns {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pods == nil {
		t.pods = map[types.UID]*turns{}
	}
	turn := t.pods[pod]
	if turn == nil {
		turn = &turns{slots: make(chan struct{}, t.atOnce)}
		t.pods[pod] = turn
	}
	turn.users++
	return turn
}

func (t *turnstile) drop(pod types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pods[pod].users--; t.pods[pod].users == 0 {
		delete(t.pods, pod)
	}
}
