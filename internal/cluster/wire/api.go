// SPDX-License-Identifier: Apache-2.0

package wire

// The aggregated API.
const (
	Group   = "debug.wherry.dev"
	Version = "v1alpha1"
	Base    = "/apis/" + Group + "/" + Version
)

// The subresources of pods. The streams of the first three are those of pods/exec: WebSocket, v5.channel.k8s.io.
const (
	Shell    = "shell"    // a debugger in the namespaces of one container
	Exec     = "exec"     // a command from an image, with the files of all containers
	Files    = "files"    // files in and out, as tar archives
	Evidence = "evidence" // what is known of the containers: GET, an [EvidenceOf]
	Sessions = "sessions" // GET lists those that run, DELETE ends them
)

// Profiles is the resource of which a role allows the verb [Use], in the pod's namespace: its names are those of the
// profiles (DC-14), and [ProfileHost], which a pod takes beside the others that shares namespaces with its machine or
// is privileged.
const (
	Profiles    = "profiles"
	Use         = "use"
	ProfileHost = "host"
)

// Query parameters of the streams, beside those of pods/exec (container, command, stdin, stdout, stderr, tty).
const (
	ParamImage    = "image"    // exec: needed; shell: none is the toolbox
	ParamProfile  = "profile"  // shell; default: general
	ParamUser     = "user"     // UID[:GID]
	ParamWritable = "writable" // of the containers' files; true or false
	ParamTerm     = "term"     // the client's terminal, as TERM says it; with tty
	ParamTTL      = "ttl"      // a duration, at most the API's own limit
	ParamMemory   = "memory"   // a quantity
	ParamCPUs     = "cpus"     // a quantity
	ParamOp       = "op"       // files: OpPack or OpUnpack
	ParamPath     = "path"     // files: in the container
	ParamTotal    = "total"    // files, OpPack: say "total N" (bytes) first on the error stream
	ParamFollow   = "follow"   // files, OpPack: what a link leads to under the link's name
	ParamAfter    = "after"    // files, OpPack: what comes after OFFSET:SIZE:NANOSECONDS:NAME of the archive
	ParamKeep     = "keep"     // files, OpUnpack: a token, by which a copy that was cut off is gone on with
	ParamSession  = "session"  // sessions, DELETE: one alone; default: all of the pod
)

// What is done to files.
const (
	OpPack   = "pack"   // a tar archive of the path comes out; verb get
	OpUnpack = "unpack" // a tar archive goes in; verb create
)

// Reasons of refusals, as metav1.Status has them, by which a client knows what to do.
const (
	// ReasonNoAgent: no agent is meant to run on the pod's node. The client may debug in another way (DA-10).
	ReasonNoAgent = "NoDebugAgent"
	// ReasonAgentUnreachable: one runs there, or is to, and cannot be asked now. It may be in a moment, so that nothing
	// is to be done to the pod because of it.
	ReasonAgentUnreachable = "DebugAgentUnreachable"
	// ReasonPodNotOnNode: the pod has no containers where it should run, or is another than the one that was meant.
	ReasonPodNotOnNode = "PodNotOnNode"
)
