// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/wherryproject/wherry/internal/api/connect"
	"github.com/wherryproject/wherry/internal/api/usage"
)

const (
	// usageFresh is how long an answer is given again: many clients cost one read of a node.
	usageFresh = 5 * time.Second
	// usageWindow is what is waited between two reads when there is no earlier one to compare with.
	usageWindow = time.Second
	// usageTimeout is how long a node may take to tell its figures, both reads and the window together.
	usageTimeout = 10 * time.Second
	// maxSummary is how much a node may say; 5,000 containers take 4 MB.
	maxSummary = 64 << 20
)

// nodeUsage asks nodes what their pods use and remembers the last answer of each.
type nodeUsage struct {
	locate connect.NodeLocator

	mu    sync.Mutex
	nodes map[string]*meteredNode
}

// meteredNode is one node; the semaphore lets one request ask it while others wait for the same answer.
type meteredNode struct {
	turn   chan struct{}
	latest *usage.Sample
	rates  usage.Rates
}

func newNodeUsage(locate connect.NodeLocator) *nodeUsage {
	return &nodeUsage{locate: locate, nodes: map[string]*meteredNode{}}
}

// of asks nodes, all at the same time. A node that does not answer in time is missing from the answer, with the reason
// in the errors.
func (u *nodeUsage) of(ctx context.Context, names []string) (map[string]usage.Rates, map[string]error) {
	ctx, cancel := context.WithTimeout(ctx, usageTimeout)
	defer cancel()
	type answer struct {
		node  string
		rates usage.Rates
		err   error
	}
	answers := make(chan answer, len(names))
	for _, name := range names {
		go func() {
			rates, err := u.one(ctx, name)
			answers <- answer{name, rates, err}
		}()
	}
	all, errs := map[string]usage.Rates{}, map[string]error{}
	for range names {
		a := <-answers
		if a.err != nil {
			errs[a.node] = a.err
		} else {
			all[a.node] = a.rates
		}
	}
	return all, errs
}

func (u *nodeUsage) one(ctx context.Context, name string) (usage.Rates, error) {
	n := u.node(name)
	select {
	case n.turn <- struct{}{}:
		defer func() { <-n.turn }()
	case <-ctx.Done():
		return usage.Rates{}, ctx.Err()
	}
	defer func() {
		if n.latest == nil { // perhaps there is no such node: pods may name any
			u.forget(name)
		}
	}()
	if n.latest != nil && time.Since(n.latest.At) < usageFresh && n.rates.Window > 0 {
		return n.rates, nil
	}
	to, err := u.ask(ctx, name)
	if err != nil {
		return usage.Rates{}, err
	}
	from := n.latest
	if !usage.Known(from, to.At) {
		from = to
		select {
		case <-time.After(usageWindow):
		case <-ctx.Done():
			return usage.Rates{}, ctx.Err()
		}
		if to, err = u.ask(ctx, name); err != nil {
			return usage.Rates{}, err
		}
	}
	n.latest, n.rates = to, usage.Between(*from, *to)
	return n.rates, nil
}

func (u *nodeUsage) node(name string) *meteredNode {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.nodes[name] == nil {
		u.nodes[name] = &meteredNode{turn: make(chan struct{}, 1)}
	}
	return u.nodes[name]
}

// forget lets go of what is known of a node that is gone, or has never answered.
func (u *nodeUsage) forget(name string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.nodes, name)
}

// ask reads a node's figures (the kubelet's /stats/summary).
func (u *nodeUsage) ask(ctx context.Context, name string) (*usage.Sample, error) {
	location, transport, err := u.locate(ctx, name)
	if err != nil {
		return nil, err
	}
	at := *location
	at.Path, at.RawQuery = "/stats/summary", "only_cpu_and_memory=true"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return nil, fmt.Errorf("ask node %s: %w", name, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 512))
		return nil, fmt.Errorf("node %s: %s: %s", name, resp.Status, text)
	}
	sample := usage.Sample{}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxSummary)).Decode(&sample.Summary); err != nil {
		return nil, fmt.Errorf("node %s: cannot read its metrics: %w", name, err)
	}
	sample.At = time.Now()
	lean(&sample.Summary)
	return &sample, nil
}

// lean drops what is not compared later: one sample of every node stays in memory.
func lean(s *statsapi.Summary) {
	s.Node.SystemContainers = nil
	for i := range s.Pods {
		p := &s.Pods[i]
		*p = statsapi.PodStats{PodRef: p.PodRef, Containers: p.Containers}
	}
}
