// SPDX-License-Identifier: Apache-2.0

package noderoutes

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/wherryproject/wherry/internal/runtime/network"
)

const (
	firstRetry = time.Second      // after a failure, or with a node out of reach; it doubles
	lastRetry  = 30 * time.Second // up to this
)

// Config says whose routes are kept where.
type Config struct {
	Node  string                    // its name
	Nodes cache.SharedIndexInformer // of all nodes; others start it
	// Reach has the pod network reach these nodes, and no others; see [network.Keeper.Reach].
	Reach func([]network.Node) ([]network.Unreached, error)
	Log   *slog.Logger
}

// Follower keeps the routes of one machine to other nodes' pods.
type Follower struct {
	config Config
	wake   chan struct{} // holds a token while something may have changed

	// of Run alone
	done  bool // Reach was called, and with
	nodes []network.Node
	told  []string
}

// New makes a follower.
func New(c Config) *Follower { return &Follower{config: c, wake: make(chan struct{}, 1)} }

// Run works until ctx ends. It is called once.
func (f *Follower) Run(ctx context.Context) error {
	changed := func() {
		select {
		case f.wake <- struct{}{}:
		default: // one waits to be taken, and will be after this
		}
	}
	r, err := f.config.Nodes.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { changed() }, UpdateFunc: func(any, any) { changed() }, DeleteFunc: func(any) { changed() },
	})
	if err != nil {
		return fmt.Errorf("routes to nodes: %w", err)
	}
	defer func() { _ = f.config.Nodes.RemoveEventHandler(r) }()
	if !cache.WaitFor(ctx, "", r.HasSyncedChecker()) {
		return nil
	}
	changed() // also if there are none
	retry := firstRetry
	var again <-chan time.Time // kept while other nodes change: a busy cluster must not put it off
	for {
		due := false
		select {
		case <-ctx.Done():
			return nil
		case <-f.wake:
		case <-again:
			again, due = nil, true
		}
		whole, acted := f.pass(due)
		switch {
		case !acted:
		case whole:
			again, retry = nil, firstRetry
		case again == nil:
			again = time.After(retry)
			retry = min(2*retry, lastRetry)
		}
	}
}

// pass has nodes reached if they are others than before, or it is due. whole says that all of them are.
func (f *Follower) pass(due bool) (whole, acted bool) {
	var list []*corev1.Node
	for _, obj := range f.config.Nodes.GetStore().List() {
		if n, ok := obj.(*corev1.Node); ok {
			list = append(list, n)
		}
	}
	now := Nodes(f.config.Node, list)
	if f.done && !due && reflect.DeepEqual(now, f.nodes) {
		return false, false
	}
	not, err := f.config.Reach(now)
	f.done, f.nodes = err == nil, now
	f.tell(not, err)
	return err == nil && len(not) == 0, true
}

// tell logs once what is not reached.
func (f *Follower) tell(not []network.Unreached, err error) {
	var texts []string
	for _, u := range not {
		texts = append(texts, u.String())
	}
	if err != nil {
		texts = []string{err.Error()}
	}
	if len(texts) > 0 && !slices.Equal(texts, f.told) {
		f.config.Log.Warn("pods of other nodes cannot be reached from here", "why", texts)
	} else if len(texts) == 0 && len(f.told) > 0 {
		f.config.Log.Info("the pods of all nodes can be reached from here again")
	}
	f.told = texts
}
