// SPDX-License-Identifier: Apache-2.0

package debugask

// Query parameters of pods/exec that make and enter a debug container (DC-03). Name and image are given both or
// neither; the parameters of exec itself (command, stdin, stdout, stderr, tty) mean the new container's: without a
// command it is the image's own, and its terminal and its standard input are those the request asks for.
const (
	ParamName       = "ephemeralContainerName"
	ParamImage      = "ephemeralContainerImage"
	ParamTarget     = "ephemeralContainerTarget"     // container whose processes it sees; default: DC-15
	ParamProfile    = "ephemeralContainerProfile"    // default: general
	ParamTTL        = "ephemeralContainerTTL"        // a duration (30m), after which it is stopped
	ParamPullPolicy = "ephemeralContainerPullPolicy" // Always, IfNotPresent, Never; default: by the image's tag
	// true: refuse with [CauseDead] when what is to be looked at is over
	ParamUnlessDead = "ephemeralContainerUnlessDead"
	// whom it runs as, UID[:GID]; default: the image's, or the target's where that may not be
	ParamUser = "ephemeralContainerUser"
	// a word of the client's own, by which it knows the run that this request made
	ParamRequest = "ephemeralContainerRequest"
)

// Query parameters of pods/exec that run a command from an image inside the pod (IX-01), besides those of exec. The
// parameter container names the container whose processes the command sees.
const (
	ParamExecImage      = "image"
	ParamExecWritable   = "writable"
	ParamExecPullPolicy = "pullPolicy"
	// whom it runs as, UID[:GID]; default: root, or in a pod that must run without root the user of userOf
	ParamExecUser = "user"
	// a container; default: the one whose processes the command sees, else the first main one that has a user
	ParamExecUserOf = "userOf"
)

// CauseDead is the type of the cause in a refusal that [ParamUnlessDead] asked for.
const CauseDead = "Dead"

// CauseExitCode is the type of the cause in a refusal's details that holds the exit code which a client should end
// with: 127 if the command was not found, 126 if it could not be run.
const CauseExitCode = "ExitCode"

// ToolboxImage is the built-in debug image; it is never fetched from a registry.
const ToolboxImage = "wherry.dev/toolbox"

// MaxImage bounds the name of an image to debug with, in bytes: the server keeps it on record. The longest name that a
// registry takes, with tag and digest, is about half of that.
const MaxImage = 1 << 10

// FirstName is the name of a debug container that nobody named (DC-01).
const FirstName = "debug"

// Profiles are the names of the profiles of debug containers, as kubectl has them (DC-14).
func Profiles() []string {
	return []string{"general", "baseline", "restricted", "netadmin", "sysadmin", "legacy"}
}
