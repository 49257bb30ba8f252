// SPDX-License-Identifier: Apache-2.0

package table

import (
	"strings"
	"time"

	"github.com/wherryproject/wherry/internal/debug/debugrun"
)

// debugRunPrinter prints who debugged which pod, with what, and how it ended.
func debugRunPrinter() Printer {
	return Printer{
		Columns: columns(
			nameColumn(),
			text("Pod", "The pod it was run in"),
			text("Kind", "A debug container, or a command from an image"),
			text("Container", "The debug container"),
			text("Image", "The image"),
			text("Target", "The container whose processes it saw"),
			text("User", "Who asked for it"),
			text("Started", "How long ago it started"),
			text("Exit", "Its exit code, or why it has none"),
			wideText("Command", "What was run"),
			wideText("Run", "How often the container's name was used before"),
			wideText("Lasted", "How long it ran"),
		),
		Row: rowOf(func(r *debugrun.DebugRun, now time.Time) []any {
			spec, status := &r.Spec, &r.Status
			return []any{
				r.Name, spec.Pod.Name, string(spec.Kind), orElse(spec.Container, none), spec.Image,
				orElse(spec.Target, none), spec.User, debugStarted(r, now), debugExit(status),
				orElse(strings.Join(append(append([]string{}, spec.Command...), spec.Args...), " "), none),
				int64(spec.Run), debugLasted(status, now),
			}
		}),
	}
}

func debugStarted(r *debugrun.DebugRun, now time.Time) string {
	if r.Status.StartedAt == nil {
		return none
	}
	return age(*r.Status.StartedAt, now)
}

// debugExit is the exit code, else the reason why there is none, else that it may still run.
func debugExit(s *debugrun.DebugRunStatus) any {
	switch {
	case s.ExitCode != nil:
		return int64(*s.ExitCode)
	case s.FinishedAt != nil:
		return orElse(s.Reason, unknown)
	case s.StartedAt != nil:
		return "Running"
	}
	return orElse(s.Reason, "Pending")
}

func debugLasted(s *debugrun.DebugRunStatus, now time.Time) string {
	if s.StartedAt == nil {
		return none
	}
	end := now
	if s.FinishedAt != nil {
		end = s.FinishedAt.Time
	}
	return since(s.StartedAt.Time, end)
}
