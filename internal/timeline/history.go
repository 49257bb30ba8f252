// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/wherryproject/wherry/internal/names/asked"
	"github.com/wherryproject/wherry/internal/podspec"
)

// Container names a container of the pod.
type Container struct {
	Name string       `json:"name"`
	Kind podspec.Kind `json:"kind"`
}

// Label is the container as people call it: "init page", "sidecar proxy", "web".
func (c Container) Label() string {
	switch c.Kind {
	case podspec.Init, podspec.Sidecar:
		return c.Kind.String() + " " + c.Name
	case podspec.Ephemeral:
		if !strings.HasPrefix(c.Name, "debug") { // as most are called
			return "debug " + c.Name
		}
	}
	return c.Name
}

// Pod says whose history it is.
type Pod struct {
	Namespace  string      `json:"namespace"`
	Name       string      `json:"name"`
	UID        string      `json:"uid"`
	Node       string      `json:"node,omitempty"`
	Created    time.Time   `json:"created,omitzero"` // to the second, as the API server keeps it
	Containers []Container `json:"containers,omitempty"`
}

// History is all that a node noted of one pod. In a stream, a later History holds only what has changed; see
// [History.Merge].
type History struct {
	Pod
	Moments []Moment  `json:"moments"`
	Gone    bool      `json:"gone,omitempty"` // nothing more will come
	Now     time.Time `json:"now"`            // the node's clock when this was sent
	// Names are those that the pod has looked up last, for whoever asks for them; NoNames says why there are none.
	Names   []asked.Asked `json:"names,omitempty"`
	NoNames string        `json:"noNames,omitempty"`
}

// What is what happens at a moment.
type What string

// Operations: they have an edge, begin or end.
const (
	Volumes   What = "volumes"
	Sandbox   What = "sandbox"
	Pull      What = "pull"
	Start     What = "start" // create and start of a container; Created distinguishes the two
	PostStart What = "postStart"
	PreStop   What = "preStop"
	Stop      What = "stop"     // from the stop signal on
	TakeDown  What = "takeDown" // the sandbox is stopped
	CleanUp   What = "cleanUp"  // Text says of what
)

// Facts: they have no edge.
const (
	Seen        What = "seen"      // the node learnt of the pod
	Scheduled   What = "scheduled" // to the second
	Created     What = "created"   // of a container, as the runtime says
	Running     What = "running"   // its process was started
	Exited      What = "exited"    // with Code
	Started     What = "started"   // its startup probe has passed and its postStart hook is done
	Ready       What = "ready"     // of a container, or of the pod
	Unready     What = "unready"
	Probed      What = "probed"  // a probe's answer, when it is another one than before, and each failure
	Waiting     What = "waiting" // Text says for what
	SandboxLost What = "sandboxLost"
	Deleted     What = "deleted" // the deletion was asked for
	Phase       What = "phase"   // Text is the pod's new one
	Removed     What = "removed" // the API server has no such pod any more
	Left        What = "left"    // nothing of the pod is left on the node
	Agent       What = "agent"   // the agent was started anew; what it was doing was cut off
	Folded      What = "folded"  // Times moments of the container between At and Last were dropped
)

// Edge distinguishes the two ends of an operation.
type Edge string

// The edges.
const (
	Begin Edge = "begin"
	End   Edge = "end"
)

// Moment is one thing that happened.
type Moment struct {
	// Seq numbers the moments of a pod in the order they were noted. A moment replaces an earlier one of the same
	// number.
	Seq       int       `json:"seq"`
	At        time.Time `json:"at"`
	Last      time.Time `json:"last,omitzero"`   // when it happened again for the last time
	Times     int       `json:"times,omitempty"` // how often, if more than once
	What      What      `json:"what"`
	Edge      Edge      `json:"edge,omitempty"`
	Container string    `json:"container,omitempty"` // empty: of the pod
	Attempt   uint32    `json:"attempt,omitempty"`
	Probe     string    `json:"probe,omitempty"` // startup, readiness, liveness
	Failed    bool      `json:"failed,omitempty"`
	Code      int32     `json:"code,omitempty"`
	Text      string    `json:"text,omitempty"`
}

// Within reports whether a pod that is gone can have been of the namespace of its name that was created at a time, to
// the second. A pod of an earlier namespace was removed before this one came to be. Of one that was created in the same
// second, only its removal is recorded.
func (h *History) Within(created time.Time) bool {
	if !h.Created.Equal(created) {
		return h.Created.After(created)
	}
	return !slices.ContainsFunc(h.Moments,
		func(m Moment) bool { return m.What == Removed && m.At.Before(created.Add(time.Second)) })
}

// Merge takes a later part of the same history in.
func (h *History) Merge(part History) {
	if part.UID != "" {
		h.Pod = part.Pod
	}
	h.Gone = h.Gone || part.Gone
	if part.Now.After(h.Now) {
		h.Now = part.Now
	}
	at := make(map[int]int, len(h.Moments))
	for i := range h.Moments {
		at[h.Moments[i].Seq] = i
	}
	for _, m := range part.Moments {
		if i, ok := at[m.Seq]; ok {
			h.Moments[i] = m
			continue
		}
		at[m.Seq] = len(h.Moments)
		h.Moments = append(h.Moments, m)
	}
}

// sorted returns the moments in the order in which they happened; what was noted late stands where it belongs.
func (h *History) sorted() []Moment {
	out := slices.Clone(h.Moments)
	slices.SortStableFunc(out, func(a, b Moment) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Seq, b.Seq)) })
	return out
}

// Begin is the zero of the pod's timeline: when the node learnt of it, or the first moment there is.
func (h *History) Begin() time.Time {
	first := h.Now
	for i := range h.Moments {
		m := &h.Moments[i]
		if m.What == Seen {
			return m.At
		}
		if m.What != Scheduled && m.What != Agent && (first.IsZero() || m.At.Before(first)) {
			first = m.At
		}
	}
	return first
}

// containers returns the containers in the order of the spec. One that only its moments name counts as a main.
func (h *History) containers() []Container {
	out := slices.Clone(h.Containers)
	for i := range h.Moments {
		name := h.Moments[i].Container
		if name != "" && !slices.ContainsFunc(out, func(c Container) bool { return c.Name == name }) {
			out = append(out, Container{Name: name, Kind: podspec.Main})
		}
	}
	return out
}
