// SPDX-License-Identifier: Apache-2.0

package wire

import "encoding/json"

// Reasons of the events that the API writes on a pod, from which the history of its sessions is read.
const (
	EventStarted = "DebugSessionStarted"
	EventEnded   = "DebugSessionEnded"
)

// AnnotationNoted is the annotation of such an event that has a [Noted].
const AnnotationNoted = Group + "/session"

// MaxNoted bounds the command in a [Noted], in bytes.
const MaxNoted = 1 << 10

// Noted is a session as an event has it.
type Noted struct {
	ID        string   `json:"id"`
	As        string   `json:"as"`
	Container string   `json:"container,omitempty"`
	Image     string   `json:"image,omitempty"`
	Command   []string `json:"command,omitempty"`
	Profile   string   `json:"profile,omitempty"`
	Writable  bool     `json:"writable,omitempty"`
	By        string   `json:"by"`

	ExitCode *int32 `json:"exitCode,omitempty"` // with [EventEnded]
	Why      string `json:"why,omitempty"`      // it ended otherwise than by its command
}

// NotedOf is a session as the event of its start has it. A long command is cut.
func NotedOf(s Session) Noted {
	n := Noted{ID: s.ID, As: s.As, Container: s.Container, Image: s.Image, Profile: s.Profile, Writable: s.Writable,
		By: s.By}
	size := 0
	for _, word := range s.Command {
		if size += len(word); size > MaxNoted {
			n.Command = append(n.Command, "…")
			break
		}
		n.Command = append(n.Command, word)
	}
	return n
}

// Text is the note as an annotation has it.
func (n Noted) Text() string {
	text, err := json.Marshal(n)
	if err != nil {
		return "" // it has nothing that JSON cannot say
	}
	return string(text)
}

// ParseNoted reads an annotation. Anybody who may write events can have written it.
func ParseNoted(text string) (n Noted, ok bool) {
	return n, json.Unmarshal([]byte(text), &n) == nil && n.ID != ""
}
