// SPDX-License-Identifier: Apache-2.0

package debugrun

// Query parameters of pods/exec that make and enter a debug container (DC-03). Name and image are given both or neither; the
// parameters of exec itself (command, stdin, stdout, stderr, tty) mean the new container's: without a command it is the image's
// own, and its terminal and its standard input are those the request asks for.
const (
	ParamName       = "ephemeralContainerName"
	ParamImage      = "ephemeralContainerImage"
	ParamTarget     = "ephemeralContainerTarget"     // container whose processes it sees; default: DC-15
	ParamProfile    = "ephemeralContainerProfile"    // default: general
	ParamTTL        = "ephemeralContainerTTL"        // a duration (30m), after which it is stopped
	ParamPullPolicy = "ephemeralContainerPullPolicy" // Always, IfNotPresent, Never; default: by the image's tag
	ParamUnlessDead = "ephemeralContainerUnlessDead" // true: refuse with [CauseDead] when what is to be looked at is over
)

// Query parameters of pods/exec that run a command from an image inside the pod (IX-01), besides those of exec. The parameter
// container names the container whose processes the command sees.
const (
	ParamExecImage      = "image"
	ParamExecWritable   = "writable"
	ParamExecPullPolicy = "pullPolicy"
)

// Subresource is the one of a pod that lists its debug runs (GET pods/NAME/debug) and stops a debug container
// (DELETE pods/NAME/debug/CONTAINER, DC-08).
const Subresource = "debug"

// Tainted is the condition of a pod that somebody entered by exec, image exec or a debug container (IX-08). Its message says who
// did so last, when and how.
const Tainted = "wherry.dev/Tainted"

// Reasons of the condition [Tainted].
const (
	TaintedByExec           = "Exec"
	TaintedByImageExec      = "ImageExec"
	TaintedByDebugContainer = "DebugContainer"
)

// Reasons of events on a pod that is debugged.
const (
	EventDebugContainerAdded = "DebugContainerAdded"
	EventImageExec           = "ImageExec"
)

// CauseDead is the type of the cause in a refusal that [ParamUnlessDead] asked for.
const CauseDead = "Dead"

// CauseExitCode is the type of the cause in a refusal's details that holds the exit code which a client should end with: 127 if
// the command was not found, 126 if it could not be run.
const CauseExitCode = "ExitCode"
