// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"context"
	"net/http"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/wherryproject/wherry/internal/debug/wire"
	"github.com/wherryproject/wherry/internal/streams"
)

// debugSession makes a debug container and attaches to it: the node has kept what it said meanwhile (DC-03, EC-16).
func (e *Exec) debugSession(ctx context.Context, name string, o *ExecOptions, r rest.Responder,
	req *http.Request) (http.Handler, error) {
	session, err := o.session()
	if err != nil {
		return nil, err
	}
	if err := o.someStream(); err != nil {
		return nil, err
	}
	made, err := e.debugging.Debug(ctx, name, session)
	if err != nil {
		return nil, err
	}
	c := command{verb: "attach", pod: name, container: session.Name, streams: o.Streams(), session: true}
	joined, pod, err := e.enter(ctx, made, c, req)
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
		if h, err = e.hand(ctx, pod, c, r); err != nil {
			return nil, err
		}
	} else {
		noteEntry(ctx, c, c.container)
		if made.Note != "" {
			joined.Header.Set(wire.HeaderNote, made.Note)
		}
		h = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if err := joined.Join(w, earlyReader(req)); err != nil {
				nodeErrors{r, pod.Spec.NodeName}.Error(w, req, err)
			}
		})
	}
	return &recorded{next: h, finish: func(end End) {
		// attach says that the container has ended, and not how; a client that leaves hears nothing
		if end.ExitCode != nil || end == (End{}) {
			end = made.Ended(ctx)
		}
		noteEnd(ctx, end)
	}}, nil
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
func (e *Exec) enter(ctx context.Context, made *Made, c command,
	client *http.Request) (*streams.Answer, *corev1.Pod, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	asked, status := make(chan *streams.Answer, 1), make(chan begun, 1)
	go func() { asked <- e.askStarted(ctx, made, c, client) }()
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
		node := <-asked // it is about to answer: what it has told the store it knows itself
		if b.err != nil {
			node.Close()
			return nil, nil, b.err
		}
		return node, b.pod, nil
	}
}

// askStarted asks the node of a debug container for its streams as soon as this run of it has started. It returns nil
// if they were not granted, for whatever reason.
func (e *Exec) askStarted(ctx context.Context, made *Made, c command, client *http.Request) *streams.Answer {
	path := wire.RouteAttachRun.Path(made.Pod.Namespace, made.Pod.Name, string(made.Pod.UID), c.container,
		strconv.Itoa(int(made.Run)))
	location, transport, err := e.kubelet(ctx, made.Pod, path, c.query())
	if err != nil {
		return nil
	}
	node, err := askForStreams(ctx, location, transport, client)
	if err != nil {
		return nil
	}
	if !node.Granted() {
		node.Close()
		return nil
	}
	return node
}
