// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"context"
	"encoding/json"
	"strconv"

	"k8s.io/apiserver/pkg/audit"

	"github.com/wherryproject/wherry/internal/debug/debugrun"
)

// note puts key and value pairs on the request's audit event, but for those without a value.
func note(ctx context.Context, pairs ...string) {
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			audit.AddAuditAnnotation(ctx, pairs[i], pairs[i+1])
		}
	}
}

// noteCommand is a command as audit events have it.
func noteCommand(argv []string) string {
	if len(argv) == 0 {
		return ""
	}
	text, err := json.Marshal(argv)
	if err != nil {
		return "" // strings always can be
	}
	return string(text)
}

// noteEntry puts on the audit event what a request for the streams of a container is about; an image or a session was
// noted before.
func noteEntry(ctx context.Context, c command, container string) {
	kinds := map[string]string{"exec": debugrun.AuditExec, "attach": debugrun.AuditAttach}
	if !c.session {
		note(ctx, debugrun.AuditKind, kinds[c.verb])
	}
	note(ctx, debugrun.AuditContainer, container, debugrun.AuditCommand, noteCommand(c.argv))
}

// End is how a command ended.
type End struct {
	ExitCode        *int32 // nil: not known
	Reason, Message string
}

// noteEnd puts on the audit event how a command ended.
func noteEnd(ctx context.Context, end End) {
	if end.ExitCode != nil {
		note(ctx, debugrun.AuditExitCode, strconv.Itoa(int(*end.ExitCode)))
		return
	}
	text := end.Reason
	if end.Message != "" && text != "" {
		text += ": "
	}
	note(ctx, debugrun.AuditEnd, text+end.Message)
}
