// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"strings"
	"time"

	"github.com/wherryproject/wherry/internal/oneline"
)

// Answer is what is to be answered about a pod.
type Answer struct {
	Kind      string    `json:"kind"` // Pod, or that of what was to make one
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	State     string    `json:"state"` // in a few words, with the node
	Wrong     bool      `json:"wrong"`
	Summary   string    `json:"summary"`
	Findings  []Finding `json:"findings"`
	Logs      []Log     `json:"logs,omitempty"`
	Changes   []Change  `json:"changes,omitempty"`
	Unseen    []Unseen  `json:"unseen,omitempty"`
}

// Finding is one thing that is wrong, or was.
type Finding struct {
	Where string   `json:"where"` // pod, container web, volume data
	What  string   `json:"what"`
	Past  bool     `json:"past,omitempty"` // it is over
	Facts []Fact   `json:"facts,omitempty"`
	Try   []string `json:"try,omitempty"`
}

// Fact is something that was seen, and where.
type Fact struct {
	Says string `json:"says"`
	From string `json:"from"` // a field, event, log, node or other object
}

// Change is something that was done to the pod or to what it rests on.
type Change struct {
	At   time.Time `json:"at"`
	What string    `json:"what"`
	By   string    `json:"by,omitempty"`
	From string    `json:"from"`
	// Sign marks the first sign that something was wrong: what is above it came before.
	Sign bool `json:"sign,omitempty"`
}

// fact adds a fact. One that was seen elsewhere too is shown once, with both places.
func (f *Finding) fact(from, format string, args ...any) *Finding {
	says := fmt.Sprintf(format, args...)
	for i := range f.Facts {
		if told := &f.Facts[i]; strings.TrimPrefix(told.Says, "Error: ") == strings.TrimPrefix(says, "Error: ") {
			if !strings.Contains(told.From, from) {
				told.From += "; " + from
			}
			return f
		}
	}
	f.Facts = append(f.Facts, Fact{Says: says, From: from})
	return f
}

// try adds what to try.
func (f *Finding) try(format string, args ...any) *Finding {
	f.Try = append(f.Try, fmt.Sprintf(format, args...))
	return f
}

const (
	longest     = 500 // characters of what is said in one place
	longestLine = 400 // of a line of a log
)

// tidy puts all text on single lines of bounded length, whoever has written it.
func (a *Answer) tidy() {
	line := func(texts ...*string) {
		for _, t := range texts {
			*t = oneline.Cut(*t, longest)
		}
	}
	line(&a.State, &a.Summary, &a.Name, &a.Namespace, &a.Kind)
	for i := range a.Findings {
		f := &a.Findings[i]
		line(&f.Where, &f.What)
		for j := range f.Facts {
			line(&f.Facts[j].Says, &f.Facts[j].From)
		}
		for j := range f.Try {
			line(&f.Try[j])
		}
	}
	for i := range a.Changes {
		line(&a.Changes[i].What, &a.Changes[i].By, &a.Changes[i].From)
	}
	for i := range a.Unseen {
		line(&a.Unseen[i].What, &a.Unseen[i].Right, &a.Unseen[i].Why)
	}
	for i := range a.Logs {
		for j, text := range a.Logs[i].Lines {
			a.Logs[i].Lines[j] = oneline.Cut(text, longestLine)
		}
	}
}
