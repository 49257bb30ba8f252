// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/node/allot"
)

// Verb names one kind of operation. Each runs to its end or fails; none of them decides anything.
type Verb uint8

// The operations. All are idempotent: done twice they have the effect of once.
const (
	// PrepareVolumes makes the pod's folders and volumes ready for its containers.
	PrepareVolumes Verb = iota + 1
	// RunSandbox makes the sandbox with the op's attempt, in the pod's cgroup.
	RunSandbox
	// PullImage makes the container's image present, by its pull policy.
	PullImage
	// StartContainer creates the container with the op's attempt, if it is not there, and starts it.
	StartContainer
	// StopContainer asks the container to stop and kills it at the op's Until.
	StopContainer
	// RemoveContainer removes a container that has exited, with its log file.
	RemoveContainer
	// StopSandbox stops the sandbox with the op's attempt and takes down its network.
	StopSandbox
	// RemoveSandbox removes the sandbox with the op's attempt and the containers in it.
	RemoveSandbox
	// ReleaseVolumes unmounts the pod's volumes and removes its folders and its cgroup.
	ReleaseVolumes
	// RemoveLogs removes the pod's log folder.
	RemoveLogs
	// PostStart runs a container's postStart hook.
	PostStart
	// PreStop runs a container's preStop hook, until the op's Until at the latest.
	PreStop
	// Probe makes one try of one of a container's probes.
	Probe
	// ResizePod sets what the pod's cgroup gives, by the op's Give. It makes none.
	ResizePod
	// ResizeContainer has the runtime give a container that runs what the op's Give says. Memory is not taken away that
	// is in use.
	ResizeContainer
)

var verbNames = [...]string{
	PrepareVolumes:  "PrepareVolumes",
	RunSandbox:      "RunSandbox",
	PullImage:       "PullImage",
	StartContainer:  "StartContainer",
	StopContainer:   "StopContainer",
	RemoveContainer: "RemoveContainer",
	StopSandbox:     "StopSandbox",
	RemoveSandbox:   "RemoveSandbox",
	ReleaseVolumes:  "ReleaseVolumes",
	RemoveLogs:      "RemoveLogs",
	PostStart:       "PostStart",
	PreStop:         "PreStop",
	Probe:           "Probe",
	ResizePod:       "ResizePod",
	ResizeContainer: "ResizeContainer",
}

// String returns the verb's name as logs and traces show it.
func (v Verb) String() string {
	if int(v) < len(verbNames) && verbNames[v] != "" {
		return verbNames[v]
	}
	return "Verb?"
}

// Op is one operation on the pod, or on one container or sandbox of it.
type Op struct {
	Verb      Verb
	Container string // empty for operations on the pod or its sandbox
	Attempt   uint32 // of the container, or of the sandbox when Container is empty
	// Until is when a StopContainer turns into a kill. A later decision may only bring it forward.
	Until time.Time
	// Streak is to be kept with the container that StartContainer makes; see [Container].
	Streak int
	Round  int       // of StartContainer, to be kept with the container; see [Container]
	Probe  ProbeKind // of a Probe
	Early  bool      // a Probe between ticks, which counts only if it succeeds
	// Verdict is set when a PreStop or StopContainer ends a container for a fault of its own. It is to be kept with the
	// container before anything else is done to it; see [Container].
	Verdict Verdict
	Give    allot.Amounts // by a ResizePod or ResizeContainer
}

// Verdict says that a container is killed because it failed a probe or its postStart hook: it has failed then, whatever
// exit code its program returns (PL-16).
type Verdict struct {
	Fault string    // "failed liveness probe"; empty for no verdict
	Until time.Time // when its grace ends
}

// Given tells whether there is a verdict.
func (v Verdict) Given() bool { return v.Fault != "" }

// Key identifies an operation: two ops with equal keys are the same operation, perhaps with another deadline.
type Key struct {
	Verb      Verb
	Container string
	Attempt   uint32
	Probe     ProbeKind
}

// Key returns the op's identity.
func (o Op) Key() Key { return Key{o.Verb, o.Container, o.Attempt, o.Probe} }

// Call is an operation that was started and has not returned. One that was cancelled is not undone: until it
// returns, its effect may still come.
type Call struct {
	Op
	Cancelled bool
}

// Sandbox is a pod sandbox as the runtime shows it.
type Sandbox struct {
	ID        string
	Attempt   uint32
	Ready     bool
	CreatedAt time.Time
	IPs       []string
}

// Container is one attempt of a container as the runtime shows it. What it is doing follows from its times:
// created, started, finished; the zero time means not yet.
type Container struct {
	ID, Name  string
	Attempt   uint32
	SandboxID string

	CreatedAt, StartedAt, FinishedAt time.Time

	ExitCode        int32
	Reason, Message string
	Image, ImageID  string

	// StopSignal is the signal that stops it, where the runtime says so.
	StopSignal string
	// User is whom its first process began as, where the runtime says so.
	User *corev1.LinuxContainerUser
	// Lost is set when the runtime itself cannot tell what became of the container (CONTAINER_UNKNOWN).
	Lost bool
	// SpecImage is the image the spec named when this attempt was created. From an annotation.
	SpecImage string
	// Streak is how many restarts in a row led to this attempt. From an annotation; see [Delay].
	Streak int
	// Round is how often all containers had been told to start again when this attempt was made. From an annotation.
	Round int
	// Condemned is the verdict it was stopped for, if it was. From a file that outlives the agent.
	Condemned Verdict
	// Made is the size it was made with, where known. From an annotation.
	Made *allot.Size
	// Given is what its cgroup gives it, where the runtime says so.
	Given *allot.Amounts
	// Held is set while somebody looks at its files: one that has ended is not removed then, unless its pod is.
	Held bool
}

// Running tells whether the container's process is there, as far as the runtime knows.
func (c *Container) Running() bool {
	return !c.StartedAt.IsZero() && c.FinishedAt.IsZero() && !c.Lost
}

// Exited tells whether the container is over.
func (c *Container) Exited() bool { return !c.FinishedAt.IsZero() && !c.Lost }

// Live tells whether something of the container may still run.
func (c *Container) Live() bool { return c.Running() || c.Lost }

// Seen is what the node shows of a pod. It is no older than the last operation that returned.
type Seen struct {
	Sandboxes  []Sandbox
	Containers []Container
	Group      *allot.Amounts // what the pod's cgroup gives, where it can be read
	Volumes    bool           // folders, mounts or a cgroup of the pod are there
	Logs       bool           // the pod's log folder is there
	// Devices that containers have by their resources, and how those are, by container.
	Devices map[string][]corev1.ResourceStatus
	// Unbound are the containers that have CPUs to themselves, and so no bound of CPU time; UnboundPod says that the
	// pod has or will have such ones (PL-33).
	Unbound    map[string]bool
	UnboundPod bool
}

// Failure is what remains of an operation that failed, until one with the same key succeeds.
type Failure struct {
	Times           int // in a row
	At              time.Time
	Reason, Message string // Reason as a container's or pod's status would show it
	Image           string // that could not be pulled, where it is another than the container's own
}

// Pulled is an image made present for one attempt of a container.
type Pulled struct {
	Attempt uint32
	Image   string // the spec's name of it
}

// Heard is what finished operations and informers told this agent since it started. It is volatile: the pod must
// live on correctly, if perhaps more slowly, when it is lost.
type Heard struct {
	Prepared bool              // PrepareVolumes has succeeded
	Pulled   map[string]Pulled // by container
	Failed   map[Key]Failure   // by operation
	Stopped  map[uint32]bool   // sandboxes, by attempt, that StopSandbox has succeeded on
	Done     map[Key]bool      // hooks that have completed
	Probes   map[ProbeKey]Probed
	Given    map[Key]allot.Amounts // by ResizePod and ResizeContainer that succeeded
	LeftAt   time.Time             // when the agent first knew of the pod's deletion
}

// Node is what every pod of the node shares.
type Node struct {
	HostIPs []string
	Runtime string // "containerd": the scheme of container ids in the status
	// Full is set while the node's disk is: what ended pods have left in the runtime goes then, and with it what could
	// still be seen of their containers' files.
	Full bool
	// NoHold is set where a pod that has failed is not held, whatever its annotation says (feature gate HoldOnFailure).
	NoHold bool
	// RecursiveReadOnly says that the runtime can make mounts read-only recursively.
	RecursiveReadOnly bool
}

// Refusal is why a node does not take a pod: its status ends as Failed with this reason and message (PL-15).
type Refusal struct {
	Reason, Message string
	// Begun extends it to a pod that runs already: what runs of it is stopped. Without it such a pod is left alone.
	Begun bool
}

// Input is everything a decision rests on.
type Input struct {
	// Pod holds the spec, with the resources that the node has set aside in the place of those asked for, and the
	// deletion mark as last received, and as its status the one last decided or, after a restart of the agent, the one
	// last stored: the durable memory.
	Pod *corev1.Pod
	// Removed is set when the API server has no such pod any more.
	Removed bool
	// Refused says why this node does not take the pod, or is nil. See [Refusal] for pods that run already.
	Refused *Refusal
	// Resize is set when the spec asks for resources that are not set aside (PL-14).
	Resize *Resize
	// Evicted is set when this node wants the pod gone for want of a resource.
	Evicted *Eviction
	// Saved is set when the API server holds Pod.Status as it is here.
	Saved bool
	Node  Node
	Seen  Seen
	Heard Heard
	Calls []Call
	Now   time.Time
}

// Reason says why something is not happening yet, or happens now. Container is empty for the whole pod.
type Reason struct {
	Container string
	Text      string
	// Event is what the user is told of it, or nil. It is told when it comes up: as long as decisions in a row have
	// events of one reason for one container, these are one event, the first.
	Event *Event
}

// Event is a Kubernetes event on the pod or, where its [Reason] names one, on a container.
type Event struct {
	Warning         bool
	Reason, Message string
}

// Decision is what ought to be so from now on, until a fact changes or Wake comes.
type Decision struct {
	// Ops are all operations that ought to be under way now, and nothing else: those missing are to be
	// started, calls not listed are to be cancelled.
	Ops []Op
	// Status is to be published.
	Status corev1.PodStatus
	// Why explains, for events, describe and logs.
	Why []Reason
	// Wake is when to decide again even if nothing is heard; zero for never.
	Wake time.Time
	// Ended is set when the pod is over and all that it held on the node is released, except what is kept to
	// be read: its containers' last state and logs.
	Ended bool
	// Gone is set when nothing of a deleted pod is left on the node, and its record can be removed.
	Gone bool
}
