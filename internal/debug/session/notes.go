// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	k8saudit "k8s.io/apiserver/pkg/audit"

	"github.com/wherryproject/wherry/internal/api/connect"
	"github.com/wherryproject/wherry/internal/debug/debugrun"
)

// asked is the container that a debug session asks for.
func asked(s connect.Session) []corev1.EphemeralContainer {
	c := corev1.EphemeralContainer{TargetContainerName: s.Target}
	c.Name, c.Image, c.Command = s.Name, s.Image, s.Command
	return []corev1.EphemeralContainer{c}
}

// noteAdding puts on the audit event what containers a request adds to a pod, whichever way it does (EC-22, DC-03).
func noteAdding(ctx context.Context, containers []corev1.EphemeralContainer) {
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
		noteAll(ctx, debugrun.AuditContainer, one.Name, debugrun.AuditImage, one.Image, debugrun.AuditTarget,
			one.Target)
		if len(one.Command) > 0 {
			noteJSON(ctx, debugrun.AuditCommand, one.Command)
		}
	}
}

// noteSession says that the container is made by a request that enters it.
func noteSession(ctx context.Context) {
	noteAll(ctx, debugrun.AuditKind, string(debugrun.EphemeralContainer))
}

func noteRun(ctx context.Context, run int) {
	if run > 0 {
		noteAll(ctx, debugrun.AuditRun, strconv.Itoa(run))
	}
}

// noteImageExec puts on the audit event what is run from which image (IX-07).
func noteImageExec(ctx context.Context, run connect.ImageRun) {
	noteAll(ctx, debugrun.AuditKind, string(debugrun.ImageExec), debugrun.AuditImage, run.Image,
		debugrun.AuditContainer, run.Container)
	if len(run.Command) > 0 {
		noteJSON(ctx, debugrun.AuditCommand, run.Command)
	}
	if run.Writable {
		noteAll(ctx, debugrun.AuditWritable, "true")
	}
}

// noteAll puts key and value pairs on the audit event, but for those without a value.
func noteAll(ctx context.Context, pairs ...string) {
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			k8saudit.AddAuditAnnotation(ctx, pairs[i], pairs[i+1])
		}
	}
}

func noteJSON(ctx context.Context, key string, value any) {
	if text, err := json.Marshal(value); err == nil { // strings always can be
		k8saudit.AddAuditAnnotation(ctx, key, string(text))
	}
}
