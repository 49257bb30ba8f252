// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"context"
	"fmt"
	"net"
	"time"

	eventsapi "github.com/containerd/containerd/api/services/ttrpc/events/v1"
	"github.com/containerd/containerd/api/types"
	"github.com/containerd/ttrpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

const (
	eventsKept  = 1024            // more are dropped, the newest first: nobody has listened for long
	eventTime   = 5 * time.Second // for one try
	eventTries  = 5               // with a pause of one second more each time
	eventOnExit = time.Second     // how long the end of a container waits for its OOM event to be sent
)

// The topics of containerd's events on tasks.
const (
	topicCreate       = "/tasks/create"
	topicStart        = "/tasks/start"
	topicOOM          = "/tasks/oom"
	topicExit         = "/tasks/exit"
	topicDelete       = "/tasks/delete"
	topicExecAdded    = "/tasks/exec-added"
	topicExecStarted  = "/tasks/exec-started"
	topicPaused       = "/tasks/paused"
	topicResumed      = "/tasks/resumed"
	topicCheckpointed = "/tasks/checkpointed"
)

// events reports to containerd what happens, in order. It is never waited for: containerd asks for states itself when
// it has been away.
type events struct {
	address   string
	namespace string
	log       *logger
	queue     chan event
	quit      chan struct{} // closed when no more will come
	done      chan struct{} // closed when what was queued by then is sent

	client *ttrpc.Client // used by run alone
}

type event struct {
	envelope *types.Envelope
	sent     chan struct{} // closed when containerd has it, or it is given up
}

// newEvents starts to forward to containerd's socket for events.
func newEvents(address, namespace string, log *logger) *events {
	e := &events{
		address: address, namespace: namespace, log: log,
		queue: make(chan event, eventsKept), quit: make(chan struct{}), done: make(chan struct{}),
	}
	go e.run()
	return e
}

// publish queues an event. The returned channel is closed when it has been sent, or given up.
func (e *events) publish(topic string, what proto.Message) <-chan struct{} {
	ev := event{sent: make(chan struct{})}
	any, err := pack(what)
	if err != nil {
		e.log.error("event "+topic, err)
		close(ev.sent)
		return ev.sent
	}
	ev.envelope = &types.Envelope{
		Timestamp: timestamppb.Now(), Namespace: e.namespace, Topic: topic, Event: any,
	}
	select {
	case e.queue <- ev:
	default:
		e.log.error("event "+topic, fmt.Errorf("dropped: %d are waiting", eventsKept))
		close(ev.sent)
	}
	return ev.sent
}

// close sends what is queued, if containerd takes it in time. What comes later is dropped.
func (e *events) close() {
	close(e.quit)
	select {
	case <-e.done:
	case <-time.After(leaveTime):
	}
}

func (e *events) run() {
	defer close(e.done)
	for {
		select {
		case ev := <-e.queue:
			e.send(ev)
			continue
		default:
		}
		select {
		case ev := <-e.queue:
			e.send(ev)
		case <-e.quit:
			return
		}
	}
}

func (e *events) send(ev event) {
	if err := e.forward(ev.envelope); err != nil {
		e.log.error("event "+ev.envelope.GetTopic()+" could not be sent", err)
	}
	close(ev.sent)
}

// forward sends one event. A server that is being started again is waited for, a while.
func (e *events) forward(envelope *types.Envelope) (err error) {
	for try := range eventTries {
		if err = e.once(envelope); err == nil {
			return nil
		}
		if e.client != nil {
			_ = e.client.Close()
			e.client = nil
		}
		if try > 0 { // the connection may be that of a server before
			time.Sleep(time.Duration(try) * time.Second)
		}
	}
	return err
}

func (e *events) once(envelope *types.Envelope) error {
	if e.client == nil {
		conn, err := net.DialTimeout("unix", e.address, eventTime)
		if err != nil {
			return err
		}
		e.client = ttrpc.NewClient(conn)
	}
	ctx, cancel := context.WithTimeout(context.Background(), eventTime)
	defer cancel()
	_, err := eventsapi.NewTTRPCEventsClient(e.client).Forward(ctx, &eventsapi.ForwardRequest{Envelope: envelope})
	return err
}

// pack makes an Any as containerd has them: its type is the message's bare name.
func pack(m proto.Message) (*anypb.Any, error) {
	data, err := proto.Marshal(m)
	if err != nil {
		return nil, err
	}
	return &anypb.Any{TypeUrl: string(m.ProtoReflect().Descriptor().FullName()), Value: data}, nil
}
