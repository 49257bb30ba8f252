// SPDX-License-Identifier: Apache-2.0

package debugrun

// Subresource is the one of a pod that lists its debug runs (GET pods/NAME/debug) and stops a debug container
// (DELETE pods/NAME/debug/CONTAINER, DC-08).
const Subresource = "debug"

// Tainted is the condition of a pod that somebody entered by exec, image exec or a debug container (IX-08). Its message
// says who did so last, when and how.
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
