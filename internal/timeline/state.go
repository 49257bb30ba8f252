// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"fmt"
	"strings"
	"time"

	"github.com/wherryproject/wherry/internal/exitcode"
	"github.com/wherryproject/wherry/internal/oneline"
	"github.com/wherryproject/wherry/internal/podspec"
)

// phase is the pod's last one, "" if none was noted.
func (h *History) phase() string {
	text := ""
	for _, m := range h.sorted() {
		if m.What == Phase {
			text = m.Text
		}
	}
	name, _, _ := strings.Cut(text, ":")
	return name
}

// ended reports whether the pod has come to its end.
func (h *History) ended() bool {
	p := h.phase()
	return p == "Failed" || p == "Succeeded"
}

func (h *History) podState(l *life) string {
	switch p := h.phase(); {
	case h.Gone:
		return "gone"
	case h.ended():
		return strings.ToLower(p)
	case !h.firstOf(Deleted, time.Time{}).IsZero():
		return "being deleted"
	case len(l.switches) > 0 && l.switches[len(l.switches)-1].What == Ready:
		return "ready"
	}
	return notReady
}

// notReady is the state of a pod, or of a container, that is up and not ready.
const notReady = "not ready"

// podNotes show what the pod itself cost.
func (h *History) podNotes(l *life) (out []string) {
	out = append(out, opNotes(l.spans, Volumes, Sandbox)...)
	if at := firstSwitch(l, Ready); !at.IsZero() {
		out = append(out, "ready after "+Took(at.Sub(h.Begin())))
	}
	moments := h.sorted()
	agents, lost := 0, 0
	for i := range moments {
		switch m := &moments[i]; m.What {
		case Agent:
			agents += max(m.Times, 1)
		case SandboxLost:
			lost++
		case Deleted:
			out = append(out, strings.TrimSpace("deleted "+m.Text))
		}
	}
	if lost > 0 {
		out = append(out, "lost its sandbox "+times(lost))
	}
	if agents > 0 {
		out = append(out, "agent restarted "+times(agents))
	}
	out = append(out, opNotes(l.spans, TakeDown, CleanUp)...)
	if wait := h.firstOf(Scheduled, h.Created).Sub(h.Created); !h.Created.IsZero() && wait >= 2*time.Second {
		out = append(out, "waited "+Took(wait)+" for a node")
	}
	return out
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

func firstSwitch(l *life, w What) time.Time {
	for i := range l.switches {
		if l.switches[i].What == w {
			return l.switches[i].At
		}
	}
	return time.Time{}
}

// opNotes say how long operations took, those of one kind together.
func opNotes(spans []span, kinds ...What) (out []string) {
	for _, w := range kinds {
		took, tries, failed := time.Duration(0), 0, ""
		for i := range spans {
			if s := &spans[i]; s.what == w {
				took += s.took()
				tries++
				if s.failed {
					failed = s.text
				}
			}
		}
		if tries == 0 {
			continue
		}
		text := opName(w) + " " + Took(took)
		if tries > 1 && w != CleanUp {
			text += fmt.Sprintf(" in %d tries", tries)
		}
		out = append(out, text)
		if failed != "" {
			out = append(out, opName(w)+" failed: "+oneline.Of(plainFailure(failed)))
		}
	}
	return out
}

func opName(w What) string {
	switch w {
	case TakeDown:
		return "take-down"
	case CleanUp:
		return "clean-up"
	}
	return string(w)
}

// newest returns the attempt that matters now, nil if none was made.
func (t *track) newest() *life {
	if len(t.lives) == 0 {
		return nil
	}
	return &t.lives[len(t.lives)-1]
}

// containerState says in a few words how a container is.
func containerState(t *track, h *History) string {
	l := t.newest()
	if l == nil {
		return "waiting"
	}
	text := ""
	switch {
	case !l.exited.IsZero():
		text = exitWords(l)
		if n := len(l.waits); n > 0 && !h.ended() && !h.Gone {
			text = l.waits[n-1].reason()
		}
	case !l.running.IsZero():
		text = runningState(t, l)
	default:
		text = madeState(l)
	}
	switch {
	case l.attempt == 0:
	case t.Kind == podspec.Ephemeral: // nothing starts it again but its user
		text += fmt.Sprintf(", %d runs", l.attempt+1)
	default:
		text += ", " + restarts(l.attempt)
	}
	return text
}

func restarts(n uint32) string {
	if n == 1 {
		return "1 restart"
	}
	return fmt.Sprintf("%d restarts", n)
}

func runningState(t *track, l *life) string {
	for i := range l.spans {
		if s := &l.spans[i]; s.open && (s.what == Stop || s.what == PreStop) {
			return map[What]string{Stop: "stopping", PreStop: "preStop hook"}[s.what]
		}
	}
	if t.Kind == podspec.Init || t.Kind == podspec.Ephemeral {
		return "running"
	}
	if firstSwitch(l, Started).IsZero() && firstSwitch(l, Ready).IsZero() {
		return "not started"
	}
	for i := len(l.switches) - 1; i >= 0; i-- {
		switch l.switches[i].What {
		case Ready:
			return "ready"
		case Unready:
			return notReady
		}
	}
	return notReady
}

// madeState is that of an attempt that does not run yet.
func madeState(l *life) string {
	for i := len(l.spans) - 1; i >= 0; i-- {
		switch s := &l.spans[i]; {
		case !s.open:
		case s.what == Pull:
			return "pulling"
		case s.what == Start:
			return "starting"
		}
	}
	if n := len(l.waits); n > 0 {
		return l.waits[n-1].reason()
	}
	return "waiting"
}

// reason is the first word of what is waited for: "CrashLoopBackOff".
func (m *Moment) reason() string {
	word, _, _ := strings.Cut(m.Text, ":")
	return word
}

func exitWords(l *life) string {
	text := fmt.Sprintf("exit %d", l.code)
	reason, _, _ := strings.Cut(l.reason, ":")
	if reason != "" && reason != "Completed" && reason != "Error" {
		text += " " + reason
	}
	return text
}

// noticed is from when on a wait is shown.
const noticed = 10 * time.Millisecond

// containerNotes show what the newest attempt cost, and how those before ended.
func containerNotes(t *track) (out []string) {
	l := t.newest()
	if l == nil {
		return nil
	}
	out = append(out, opNotes(l.spans, Pull)...)
	out = append(out, startNotes(l)...)
	out = append(out, opNotes(l.spans, PostStart)...)
	if !l.running.IsZero() {
		started, ready := firstSwitch(l, Started).Sub(l.running), firstSwitch(l, Ready).Sub(l.running)
		if t.Kind != podspec.Init && started >= noticed && (ready < 0 || ready-started >= noticed) {
			out = append(out, "started after "+Took(started))
		}
		if t.Kind != podspec.Init && ready >= noticed {
			out = append(out, "ready after "+Took(ready))
		}
		if !l.exited.IsZero() {
			out = append(out, "ran "+Took(l.exited.Sub(l.running)))
		}
	}
	out = append(out, probeNotes(l)...)
	out = append(out, opNotes(l.spans, PreStop, Stop)...)
	if ends := exits(t); ends != "" {
		out = append(out, ends)
	}
	if n := len(l.waits); n > 0 {
		out = append(out, oneline.Of(l.waits[n-1].Text))
	}
	left := 0
	for i := range t.lives {
		left += t.lives[i].folded
	}
	if left > 0 {
		out = append(out, fmt.Sprintf("%d moments omitted", left))
	}
	if _, more, ok := strings.Cut(l.reason, ": "); ok && !l.exited.IsZero() {
		out = append(out, oneline.Of(more))
	}
	return out
}

func startNotes(l *life) (out []string) {
	for i := len(l.spans) - 1; i >= 0; i-- {
		s := &l.spans[i]
		if s.what != Start {
			continue
		}
		if l.running.IsZero() || l.created.IsZero() || l.running.Before(s.from) {
			return opNotes(l.spans, Start)
		}
		if l.created.After(s.from) {
			out = append(out, "create "+Took(l.created.Sub(s.from)))
		}
		return append(out, "start "+Took(l.running.Sub(later(l.created, s.from))))
	}
	return nil
}

func probeNotes(l *life) (out []string) {
	for _, kind := range []string{"startup", "readiness", "liveness"} {
		failed := 0
		for i := range l.probes {
			if p := &l.probes[i]; p.Probe == kind && p.Failed {
				failed += max(p.Times, 1)
			}
		}
		if failed > 0 {
			out = append(out, kind+" probe failed "+times(failed))
		}
	}
	return out
}

// exits lists how the attempts before the newest ended.
func exits(t *track) string {
	var codes []string
	for i := range t.lives {
		if l := &t.lives[i]; !l.exited.IsZero() && i+1 < len(t.lives) {
			codes = append(codes, strings.TrimPrefix(exitWords(l), "exit "))
		}
	}
	const most = 6
	switch n := len(codes); {
	case n == 0:
		return ""
	case n > most:
		codes = append([]string{"…"}, codes[n-most:]...)
	}
	return "earlier exits " + strings.Join(codes, ", ")
}

// plainFailure is why an operation failed, "Reason: words", without the programs that the runtime's words came through.
func plainFailure(text string) string {
	reason, words, ok := strings.Cut(text, ": ")
	if !ok {
		return text
	}
	return reason + ": " + exitcode.Plain(words)
}
