// SPDX-License-Identifier: Apache-2.0

package talk

import (
	"encoding/json"

	"github.com/wherryproject/wherry/internal/cluster/wire"
)

// Word is the argument that makes the program a session's process.
const Word = "cluster-session"

// KitWord is the argument that has it unpack a kit (package kit) into a folder, the next argument.
const KitWord = "cluster-kit"

// The descriptors by which an agent and the process of a session talk, beside the streams of the session.
const (
	AskFD    = 3 // the process reads an [Ask], and then nothing until its end, which is the session's
	ReportFD = 4 // the process writes a [Report], and another

	// Of an [Ask] that has a kit:
	KitFD   = 5 // the mount of the kit
	GuardFD = 6 // the program of the agent, which guards sessions too
)

// MostAsk bounds an [Ask] in bytes: a command may be long.
const MostAsk = 1 << 20

// MostReport bounds a [Report] in bytes: what is known of a pod's containers, with the ends of their logs.
const MostReport = 16 << 20

// Ask is what a process is to do: one of both.
type Ask struct {
	Session  *wire.Session `json:"session,omitempty"`
	Evidence *wire.Pod     `json:"evidence,omitempty"`

	CRISocket string `json:"criSocket,omitempty"` // empty: the usual places
	Kit       bool   `json:"kit,omitempty"`       // there are KitFD and GuardFD

	// Runtime asks, in place of both, whether the node's container runtime answers: Ready, or Refused, is all that is
	// reported.
	Runtime bool `json:"runtime,omitempty"`
}

// Report is what a process says, one of its fields. First comes Refused, Ready or Evidence, and after Ready comes
// Ended.
type Report struct {
	Refused  *Refusal        `json:"refused,omitempty"`
	Ready    *Ready          `json:"ready,omitempty"`
	Evidence json.RawMessage `json:"evidence,omitempty"` // a [wire.EvidenceOf], which the agent hands on as it is
	Ended    *Ended          `json:"ended,omitempty"`
}

// Refusal is why a request is not granted, as a metav1.Status has it.
type Refusal struct {
	Code    int    `json:"code"` // of HTTP
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Ready says that the pod, or the runtime, is there, and what a session's user should know.
type Ready struct {
	Notes []string `json:"notes,omitempty"`
}

// Ended is what a session has come to.
type Ended struct {
	Code  int    `json:"code"`            // of its command
	Error string `json:"error,omitempty"` // why there is no code
}
