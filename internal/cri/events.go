// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const (
	backoffFirst = 50 * time.Millisecond
	backoffMost  = 2 * time.Second
	// afterConnect is when "" is sent a second time: the runtime subscribes us some moments after the call returned,
	// and does not say when. What happened in between would otherwise wait for the next slow relist.
	afterConnect = 250 * time.Millisecond
)

// Nudges gives the UIDs of pods that something happened to in the runtime; "" means that anything may have happened to
// any pod: look at all of them. It begins with "", and says "" again after every (re)connection. Equal nudges not yet
// taken are merged, so a slow reader loses nothing and holds up nobody. The channel is closed when ctx is done.
//
// Runtimes without GetContainerEvents are asked for their lists every second instead.
func (c *Client) Nudges(ctx context.Context) <-chan string {
	out := make(chan string)
	box := newMailbox()
	box.everything()
	var wg sync.WaitGroup
	wg.Go(func() { c.watch(ctx, box) })
	go func() {
		defer close(out)
		c.deliver(ctx, box, out)
		wg.Wait()
	}()
	return out
}

// watch keeps an event stream open and the mailbox filled until ctx is done.
func (c *Client) watch(ctx context.Context, box *mailbox) {
	wait := backoffFirst
	saidPolling := false
	for ctx.Err() == nil {
		began := time.Now()
		err := c.stream(ctx, box)
		if ctx.Err() != nil {
			return
		}
		if Unimplemented(err) {
			if !saidPolling {
				c.logger.Warn("the container runtime has no container events; asking for its lists every second instead", "endpoint", c.where())
				saidPolling = true
			}
			err = c.poll(ctx, box) // returns when the runtime is away: it may come back as one that has events
			if ctx.Err() != nil {
				return
			}
		}
		if time.Since(began) > backoffMost {
			wait = backoffFirst
		}
		c.logger.Debug("container event stream ended; connecting again", "endpoint", c.where(), "after", wait, "err",
			err)
		if !sleep(ctx, wait) {
			return
		}
		wait = min(2*wait, backoffMost)
	}
}

// stream opens one event stream and puts what it says into the mailbox until the stream ends.
func (c *Client) stream(ctx context.Context, box *mailbox) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events, err := c.Runtime.GetContainerEvents(ctx, &runtimeapi.GetEventsRequest{})
	if err != nil {
		return err
	}
	// A stream may open before the runtime behind it answers: do not send everybody asking what nobody can say.
	if _, err := c.Runtime.Version(ctx, &runtimeapi.VersionRequest{}); err != nil {
		return err
	}
	box.everything()
	again := time.AfterFunc(afterConnect, func() {
		if ctx.Err() == nil {
			box.everything()
		}
	})
	defer again.Stop()
	for {
		ev, err := events.Recv()
		if errors.Is(err, io.EOF) {
			return errors.New("the runtime ended the stream")
		}
		if err != nil {
			return err
		}
		if uid := podOf(ev); uid != "" {
			box.pod(uid)
		} else {
			box.stray(ev.GetContainerId())
		}
	}
}

// podOf finds the pod in the event itself; "" when it is not there (the sandbox may be gone by then).
func podOf(ev *runtimeapi.ContainerEventResponse) string {
	if uid := ev.GetPodSandboxStatus().GetMetadata().GetUid(); uid != "" {
		return uid
	}
	for _, st := range ev.GetContainersStatuses() {
		if uid := st.GetLabels()[LabelPodUID]; uid != "" {
			return uid
		}
	}
	return ""
}

// deliver hands the mailbox's contents to the reader until ctx is done.
func (c *Client) deliver(ctx context.Context, box *mailbox, out chan<- string) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-box.full:
		}
		everything, pods, strays := box.take()
		for id := range strays {
			if everything {
				break
			}
			if uid := c.lookUp(ctx, id); uid != "" {
				pods[uid] = struct{}{}
			} else {
				everything = true
			}
		}
		if everything {
			pods = map[string]struct{}{"": {}}
		}
		for uid := range pods {
			select {
			case out <- uid:
			case <-ctx.Done():
				return
			}
		}
	}
}

// lookUp finds the pod of a container or sandbox id; "" when the runtime does not know it any more.
func (c *Client) lookUp(ctx context.Context, id string) string {
	if r, err := c.Runtime.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: id}); err == nil {
		return r.GetStatus().GetLabels()[LabelPodUID]
	}
	if r, err := c.Runtime.PodSandboxStatus(ctx, &runtimeapi.PodSandboxStatusRequest{PodSandboxId: id}); err == nil {
		return r.GetStatus().GetMetadata().GetUid()
	}
	return ""
}

// sleep waits for d and says whether ctx still holds.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
