// SPDX-License-Identifier: Apache-2.0

package debugrun

// Annotations on the audit events of requests that enter a pod or change what debugs it (EC-22, DC-03, IX-07). Commands
// are JSON arrays of strings.
const (
	AuditKind      = "debug.wherry.dev/kind" // AuditExec, AuditAttach, or a Kind of a DebugRun
	AuditContainer = "debug.wherry.dev/container"
	AuditImage     = "debug.wherry.dev/image"
	AuditCommand   = "debug.wherry.dev/command"
	AuditTarget    = "debug.wherry.dev/target"
	AuditRun       = "debug.wherry.dev/run"       // which run of the container's name it is, if it is not the first
	AuditWritable  = "debug.wherry.dev/writable"  // true: image exec may write to the containers' files
	AuditAdded     = "debug.wherry.dev/added"     // JSON array of AddedContainer
	AuditExitCode  = "debug.wherry.dev/exit-code" // of the command, where the server hears it (not over SPDY)
	AuditEnd       = "debug.wherry.dev/end"       // why there is no exit code
)

// Values of AuditKind that are no Kind of a DebugRun.
const (
	AuditExec   = "Exec"
	AuditAttach = "Attach"
)

// AddedContainer is an ephemeral container that a request adds to a pod.
//
// +k8s:openapi-gen=false
type AddedContainer struct {
	Name    string   `json:"name"`
	Image   string   `json:"image"`
	Command []string `json:"command,omitempty"` // with its arguments
	Target  string   `json:"target,omitempty"`
}
