// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"fmt"
	"time"

	"github.com/wherryproject/wherry/internal/oneline"
)

// Took words a duration as a person reads it: three digits or two units.
func Took(d time.Duration) string {
	switch {
	case d < 0:
		return "0ms"
	case d < 99500*time.Microsecond:
		return fmt.Sprintf("%dms", d.Round(time.Millisecond).Milliseconds())
	case d < 9995*time.Millisecond:
		return fmt.Sprintf("%.2fs", d.Seconds())
	case d < 59950*time.Millisecond:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Hour:
		d = d.Round(time.Second)
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		d = d.Round(time.Minute)
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	d = d.Round(time.Hour)
	return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
}

// doing is how an operation's edges read.
var doing = map[What][2]string{
	Volumes:   {"is preparing its volumes", "volumes are ready"},
	Sandbox:   {"is creating its sandbox", "sandbox is up"},
	Pull:      {"is pulling its image", "image pulled"},
	Start:     {"is being created and started", "start completed"},
	PostStart: {"is running its postStart hook", "postStart hook is done"},
	PreStop:   {"is running its preStop hook", "preStop hook is done"},
	Stop:      {"gets its stop signal", "has stopped"},
	TakeDown:  {"is removing its sandbox", "sandbox is removed"},
	CleanUp:   {"cleans up", "has cleaned up"},
}

// said is how a fact reads; its text, if it has one, follows.
var said = map[What]string{
	Seen:        "was seen by the node",
	Scheduled:   "was assigned a node",
	Created:     "created",
	Running:     "runs",
	Started:     "has started",
	Ready:       "ready",
	Unready:     "not ready",
	Waiting:     "waits",
	SandboxLost: "its sandbox has died",
	Deleted:     "is being deleted",
	Phase:       "is now",
	Removed:     "is gone from the API server",
	Left:        "has left the node",
	Agent:       "the node's agent was restarted",
	Folded:      "moments are omitted here",
}

// Describe puts a moment into words, without its time, container and attempt.
func Describe(m Moment) string {
	text := said[m.What]
	words, op := doing[m.What]
	switch {
	case op && m.Edge == Begin:
		text = words[0]
	case op && m.Failed:
		text = words[0] + ": failed"
	case op:
		text = words[1]
	case m.What == Exited:
		text = fmt.Sprintf("exit %d", m.Code)
	case m.What == Folded:
		return fmt.Sprintf("%d %s, up to %s later", m.Times, text, Took(m.Last.Sub(m.At)))
	case m.What == Probed && m.Failed:
		text = m.Probe + " probe failed"
	case m.What == Probed:
		text = m.Probe + " probe passed"
	case text == "":
		text = string(m.What)
	}
	if m.Times > 1 {
		text += fmt.Sprintf(" (%d times)", m.Times)
	}
	if m.Text != "" {
		text += ": " + oneline.Of(m.Text)
	}
	return text
}

// Subject names whom a moment is about: "pod", "web", "web/2".
func Subject(m Moment) string {
	switch {
	case m.Container == "":
		return "pod"
	case m.Attempt == 0:
		return m.Container
	}
	return fmt.Sprintf("%s/%d", m.Container, m.Attempt)
}
