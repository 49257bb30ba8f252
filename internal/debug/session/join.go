// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"net/http"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/proxy"

	"github.com/wherryproject/wherry/internal/api/connect"
	"github.com/wherryproject/wherry/internal/debug/options"
	"github.com/wherryproject/wherry/internal/debug/record"
	"github.com/wherryproject/wherry/internal/debug/wire"
	"github.com/wherryproject/wherry/internal/streams"
)

// Joiner makes debug containers and joins clients with them.
type Joiner struct {
	pods *connect.Pods
	make func(ctx context.Context, pod string, session options.Session) (*Made, error)
}

// Made is a debug container that was added to its pod.
type Made struct {
	Pod *corev1.Pod
	Run int // of its name (podspec.DebugRun)
	// Note is for the user: what is not to be seen in it; "" for nothing.
	Note string
	// Recorded is closed when it is on record: nobody is let in before.
	Recorded <-chan struct{}
	// Begun returns when it runs or has ended, with the pod as it is stored then, or says why it cannot start; then it
	// does not start later either. It is called once. When ctx is done, nobody wants to know any more.
	Begun func(ctx context.Context) (*corev1.Pod, error)
	// Ended says how it has ended, or that it goes on, once the client's streams are over; closed says that they ended
	// on the container's side.
	Ended func(ctx context.Context, closed bool) record.End
}

// Serve makes a debug container and attaches to it: the node has kept its output meanwhile (DC-03, EC-16).
func (j *Joiner) Serve(ctx context.Context, name string, session options.Session, in proxy.Options,
	r rest.Responder, req *http.Request) (http.Handler, error) {
	made, err := j.make(ctx, name, session)
	if err != nil {
		return nil, err
	}
	c := connect.Command{Verb: "attach", Pod: name, Container: session.Name, Streams: in}
	joined, pod, err := j.enter(ctx, made, c, req)
	select {
	case <-made.Recorded: // nobody is let in before it is on record
	case <-ctx.Done():
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		joined.Close()
		return nil, err
	}
	var h http.Handler
	if joined == nil {
		if h, err = j.pods.Hand(ctx, pod, c, r); err != nil {
			return nil, err
		}
	} else {
		if made.Note != "" {
			joined.Header.Set(wire.HeaderNote, made.Note)
		}
		h = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if err := joined.Join(w, connect.EarlyReader(req)); err != nil {
				r.Error(connect.Unreachable(pod.Spec.NodeName, err))
			}
		})
	}
	return record.Stream(h, func(end record.End) {
		// attach says that the container has ended, and not how; a client that leaves hears nothing
		if end.ExitCode != nil || end == (record.End{}) {
			end = made.Ended(ctx, end.ExitCode != nil)
		}
		record.NoteEnd(ctx, end)
	}), nil
}

// begun is a pod whose debug container runs or has ended, or why it cannot start.
type begun struct {
	pod *corev1.Pod
	err error
}

// enter waits until a debug container has started, and returns the node's side of its streams, or why it cannot start.
// The node is asked for them at once: it grants them as soon as it has started the container, while its word of that is
// still on the way through the store, where everybody else reads it. What keeps the container from starting is read
// there too, and ends the node's request.
//
// A node that does not grant them (an agent that is older does not know the request, which names the run, and says 404)
// is asked in the ordinary way when the container has begun by its status: then enter returns no streams, and the pod.
func (j *Joiner) enter(ctx context.Context, made *Made, c connect.Command,
	client *http.Request) (*streams.Answer, *corev1.Pod, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	asked, status := make(chan *streams.Answer, 1), make(chan begun, 1)
	go func() { asked <- j.askStarted(ctx, made, c, client) }()
	go func() {
		pod, err := made.Begun(ctx)
		status <- begun{pod, err}
	}()
	select {
	case node := <-asked:
		if node == nil {
			b := <-status
			return nil, b.pod, b.err
		}
		select {
		case b := <-status:
			if b.err != nil { // it was given up at the same time
				node.Close()
			}
			return node, b.pod, b.err
		default:
			return node, made.Pod, nil
		}
	case b := <-status:
		if b.err != nil {
			cancel()
		}
		node := <-asked // it is about to answer: what it has stored it knows itself
		if b.err != nil {
			node.Close()
			return nil, nil, b.err
		}
		return node, b.pod, nil
	}
}

// askStarted asks the node of a debug container for its streams as soon as this run of it has started. It returns nil
// if they were not granted, for whatever reason.
func (j *Joiner) askStarted(ctx context.Context, made *Made, c connect.Command, client *http.Request) *streams.Answer {
	path := wire.RouteAttachRun.Path(made.Pod.Namespace, made.Pod.Name, string(made.Pod.UID), c.Container,
		strconv.Itoa(int(made.Run)))
	location, transport, err := j.pods.Kubelet(ctx, made.Pod, path, c.Query())
	if err != nil {
		return nil
	}
	node, err := connect.AskForStreams(ctx, location, transport, client)
	if err != nil {
		return nil
	}
	if !node.Granted() {
		node.Close()
		return nil
	}
	return node
}
