// SPDX-License-Identifier: Apache-2.0

package record

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	k8saudit "k8s.io/apiserver/pkg/audit"

	"github.com/wherryproject/wherry/internal/debug/debugrun"
)

// NoteAdding puts on the audit event what containers a request adds to a pod, whichever way it does (EC-22, DC-03).
func NoteAdding(ctx context.Context, containers []corev1.EphemeralContainer) {
	if len(containers) == 0 {
		return
	}
	added := make([]debugrun.AddedContainer, 0, len(containers))
	for _, c := range containers {
		added = append(added, debugrun.AddedContainer{
			Name: c.Name, Image: c.Image, Command: slices.Concat(c.Command, c.Args), Target: c.TargetContainerName,
		})
	}
	noteJSON(ctx, debugrun.AuditAdded, added)
	if len(added) == 1 {
		one := added[0]
		Note(ctx, debugrun.AuditContainer, one.Name, debugrun.AuditImage, one.Image, debugrun.AuditTarget,
			one.Target)
		if len(one.Command) > 0 {
			noteJSON(ctx, debugrun.AuditCommand, one.Command)
		}
	}
}

// NoteSession says that the container is made by a request that enters it.
func NoteSession(ctx context.Context) {
	Note(ctx, debugrun.AuditKind, string(debugrun.EphemeralContainer))
}

// NoteRun says which run of its name the container is.
func NoteRun(ctx context.Context, run int) {
	if run > 0 {
		Note(ctx, debugrun.AuditRun, strconv.Itoa(run))
	}
}

func noteJSON(ctx context.Context, key string, value any) {
	if text, err := json.Marshal(value); err == nil { // strings always can be
		k8saudit.AddAuditAnnotation(ctx, key, string(text))
	}
}

// NoteImageExec puts on the audit event what is run from which image (IX-07).
func NoteImageExec(ctx context.Context, spec debugrun.DebugRunSpec) {
	Note(ctx, debugrun.AuditKind, string(debugrun.ImageExec), debugrun.AuditImage, spec.Image,
		debugrun.AuditContainer, spec.Target)
	if len(spec.Command) > 0 {
		noteJSON(ctx, debugrun.AuditCommand, spec.Command)
	}
	if spec.Writable {
		Note(ctx, debugrun.AuditWritable, "true")
	}
}

// NoteCommand puts a command and the container in which it runs on the audit event.
func NoteCommand(ctx context.Context, container string, argv []string) {
	Note(ctx, debugrun.AuditContainer, container)
	if len(argv) > 0 {
		noteJSON(ctx, debugrun.AuditCommand, argv)
	}
}

// Note puts key and value pairs on the audit event, but for those without a value.
func Note(ctx context.Context, pairs ...string) {
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			k8saudit.AddAuditAnnotation(ctx, pairs[i], pairs[i+1])
		}
	}
}

// End is how a command ended.
type End struct {
	ExitCode        *int32 // nil: not known
	Reason, Message string
}

// NoteEnd puts on the audit event how a command ended.
func NoteEnd(ctx context.Context, end End) {
	if end.ExitCode != nil {
		Note(ctx, debugrun.AuditExitCode, strconv.Itoa(int(*end.ExitCode)))
		return
	}
	text := end.Reason
	if end.Message != "" && text != "" {
		text += ": "
	}
	Note(ctx, debugrun.AuditEnd, text+end.Message)
}
