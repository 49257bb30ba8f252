// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"fmt"
	"net/url"
	"time"
)

// Paths of an agent. Every request carries the [Pod] it is about, or the agent refuses it; refusals are a
// metav1.Status.
const (
	PathSession  = "/v1/session"  // GET, upgraded to WebSocket (v5.channel.k8s.io): a [Session] in the query
	PathEvidence = "/v1/evidence" // GET: an [EvidenceOf]
	PathSessions = "/v1/sessions" // GET: a [RunningList]; DELETE: a [Stop] in the query
	AgentPort    = 10770
)

// Names in certificates. An agent's is for serving only and has AgentPrefix and its node's name as its common name, and
// [ServerName] of the node among its DNS names; the API's, as the client of agents, has [APIName].
const (
	AgentPrefix  = "wherry-debug-agent:"
	APIName      = "wherry-debug-api"
	AgentOrg     = "wherry:debug-agents"
	AgentsDomain = ".node.agents." + Group
	SignerName   = Group + "/agent" // of the CertificateSigningRequests of agents
)

// ServerName is the name by which the certificate of a node's agent is asked for, whatever the agent's address is.
func ServerName(node string) string { return node + AgentsDomain }

// Pod is the pod that a request to an agent is about. The uid is compared with the one that the containers were made
// for.
type Pod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
}

// Session is a debugger that the API asks an agent for. What may be done is decided; an agent refuses only what cannot
// be.
type Session struct {
	Pod Pod    `json:"pod"`
	As  string `json:"as"` // [Shell], [Exec] or [Files]

	// Container is the one whose namespaces are joined. With [Exec] and [Files] it may be empty: the pod's network and
	// its files alone. It need not run: the session has its last files then, and no namespace of it.
	Container string `json:"container,omitempty"`
	// the pod's containers, for which files are shown, in the order of its spec
	Order    []string `json:"order,omitempty"`
	Image    string   `json:"image,omitempty"` // empty: the toolbox
	Command  []string `json:"command,omitempty"`
	Profile  string   `json:"profile,omitempty"`
	User     string   `json:"user,omitempty"`
	Writable bool     `json:"writable,omitempty"`

	Stdin  bool   `json:"stdin,omitempty"`
	Stdout bool   `json:"stdout,omitempty"`
	Stderr bool   `json:"stderr,omitempty"`
	TTY    bool   `json:"tty,omitempty"`
	Term   string `json:"term,omitempty"`

	Seconds int64   `json:"seconds"`          // its time limit; never 0
	Memory  int64   `json:"memory,omitempty"` // bytes
	CPUs    float64 `json:"cpus,omitempty"`

	By string `json:"by"` // who asked kube-apiserver, for lists and events
	ID string `json:"id"` // chosen by the API: 12 hexadecimal digits
}

// Running is a session that runs.
type Running struct {
	ID        string    `json:"id"`
	As        string    `json:"as"`
	Container string    `json:"container,omitempty"`
	Image     string    `json:"image,omitempty"`
	Command   []string  `json:"command,omitempty"`
	Profile   string    `json:"profile,omitempty"`
	By        string    `json:"by"`
	Since     time.Time `json:"since"`
	Until     time.Time `json:"until"`
}

// RunningList is the answer to a list of sessions.
type RunningList struct {
	Items []Running `json:"items"`
}

// Stop ends sessions of a pod.
type Stop struct {
	Pod Pod    `json:"pod"`
	ID  string `json:"id,omitempty"` // one alone; empty: all
	By  string `json:"by"`
}

// EvidenceOf is what a node knows of a pod's containers.
type EvidenceOf struct {
	Containers []ContainerEvidence `json:"containers"`
}

// ContainerEvidence is one container, also an earlier one of the same name that the kubelet still keeps.
type ContainerEvidence struct {
	Name       string     `json:"name"`
	ID         string     `json:"id"`
	Attempt    uint32     `json:"attempt"` // how often its name was restarted before
	Image      string     `json:"image,omitempty"`
	State      string     `json:"state"` // created, running, exited
	StartedAt  *time.Time `json:"startedAt,omitempty"`
	FinishedAt *time.Time `json:"finishedAt,omitempty"`
	ExitCode   *int32     `json:"exitCode,omitempty"`
	Signal     string     `json:"signal,omitempty"`
	OOMKilled  bool       `json:"oomKilled,omitempty"`
	Message    string     `json:"message,omitempty"`
	Log        string     `json:"log,omitempty"`   // its end
	Files      bool       `json:"files,omitempty"` // whether its files can be looked at
}

// paramRequest is the query parameter of the agent's API that has a request as JSON.
const paramRequest = "request"

// Query is a request to an agent as its query: a [Session], a [Pod] or a [Stop].
func Query(request any) (url.Values, error) {
	text, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	return url.Values{paramRequest: {string(text)}}, nil
}

// Parse reads a request from its query.
func Parse(q url.Values, request any) error {
	if err := json.Unmarshal([]byte(q.Get(paramRequest)), request); err != nil {
		return fmt.Errorf("%s: %w", paramRequest, err)
	}
	return nil
}
