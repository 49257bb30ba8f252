// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/wherryproject/wherry/internal/podspec"
)

// Share is how much of a stretch of time one thing took, while nothing before it in the pod's order was still to come.
type Share struct {
	Of   string // "sandbox", "pull web", "init page", "web until ready", "other"
	Took time.Duration
}

// other is the share of the time in which the pod waited for nobody that the node knows of.
const other = "other"

// Summary says in one line where the time went, to readiness or to the end, and where that of the deletion went.
func Summary(h History) string {
	p := Draw(h)
	begin := h.Begin()
	parts := []string{}
	ready, end := h.firstOf(Ready, time.Time{}), h.firstEnd()
	switch {
	case !ready.IsZero():
		parts = append(parts, worded("Ready after", ready.Sub(begin), p.WayUp(ready)))
	case !end.IsZero():
		parts = append(parts, worded(h.phase()+" after", end.Sub(begin), p.WayUp(end)))
	default:
		until := p.To
		if at := h.firstOf(Deleted, time.Time{}); !at.IsZero() {
			until = at
		}
		parts = append(parts, worded("Not ready after", until.Sub(begin), p.WayUp(until)))
		if why := p.stuck(); why != "" && !h.Gone {
			parts = append(parts, "Waits for "+why)
		}
	}
	if !ready.IsZero() {
		if now := p.fallen(); now != "" {
			parts = append(parts, now)
		}
	}
	if !ready.IsZero() && end.After(ready) {
		parts = append(parts, fmt.Sprintf("%s after %s", h.phase(), Took(end.Sub(begin))))
	}
	if deleted := h.firstOf(Deleted, time.Time{}); !deleted.IsZero() {
		verb, to := "Deletion has taken", p.To
		if left := h.firstOf(Left, time.Time{}); left.After(deleted) {
			verb, to = "Deleted in", left
		}
		parts = append(parts, worded(verb, to.Sub(deleted), p.WayDown(deleted, to)))
	}
	return strings.Join(parts, ". ") + "."
}

// fallen says that a pod which was ready is so no more, and because of whom; "" if it is ready, or on its way out.
func (p *Picture) fallen() string {
	if p.Rows[0].State != notReady {
		return ""
	}
	var who []string
	for _, r := range p.Rows[1:] {
		if (r.Kind == podspec.Main || r.Kind == podspec.Sidecar) && r.State != "ready" {
			who = append(who, fmt.Sprintf("%s (%s)", r.Label, r.State))
		}
	}
	if len(who) == 0 {
		return "Not ready now"
	}
	return "Not ready now: " + strings.Join(who, ", ")
}

// firstEnd is when the pod ended, zero if it has not.
func (h *History) firstEnd() time.Time {
	for _, m := range h.sorted() {
		if m.What == Phase && (strings.HasPrefix(m.Text, "Succeeded") || strings.HasPrefix(m.Text, "Failed")) {
			return m.At
		}
	}
	return time.Time{}
}

func worded(what string, took time.Duration, shares []Share) string {
	text := fmt.Sprintf("%s %s", what, Took(took))
	var list []string
	for _, s := range shares {
		list = append(list, s.Of+" "+Took(s.Took))
	}
	if len(list) == 0 {
		return text
	}
	return text + ": " + strings.Join(list, ", ")
}

// WayUp shows what the time until readiness, or until another moment, was spent on.
func (p *Picture) WayUp(until time.Time) []Share {
	return p.shares(p.History.Begin(), until, p.blameUp)
}

// WayDown shows what the time of a deletion was spent on.
func (p *Picture) WayDown(from, to time.Time) []Share {
	return p.shares(from, to, p.blameDown)
}

// shares asks of each stretch between two changes who is to blame for it.
func (p *Picture) shares(from, to time.Time, blame func(time.Time) string) (out []Share) {
	edges := []time.Time{from, to}
	for _, r := range p.Rows {
		for _, b := range r.Bars {
			edges = append(edges, b.From, b.To)
		}
		for _, m := range r.Marks {
			edges = append(edges, m.At)
		}
	}
	slices.SortFunc(edges, time.Time.Compare)
	rest := time.Duration(0)
	for i := 1; i < len(edges); i++ {
		a, b := edges[i-1], edges[i]
		if a.Before(from) || b.After(to) || !b.After(a) {
			continue
		}
		of := blame(a.Add(b.Sub(a) / 2))
		if of == other {
			rest += b.Sub(a)
			continue
		}
		at := slices.IndexFunc(out, func(s Share) bool { return s.Of == of })
		if at < 0 {
			at = len(out)
			out = append(out, Share{Of: of})
		}
		out[at].Took += b.Sub(a)
	}
	least := max(to.Sub(from)/100, time.Millisecond) // what is not worth a word is shown together
	for _, s := range out {
		if s.Took < least {
			rest += s.Took
		}
	}
	out = slices.DeleteFunc(out, func(s Share) bool { return s.Took < least })
	if rest >= time.Millisecond {
		out = append(out, Share{other, rest})
	}
	return out
}

// at returns the bar of a row that covers t: the shortest, for that one is drawn on top.
func (r *Row) at(t time.Time, shades ...Shade) *Bar {
	var best *Bar
	for i := range r.Bars {
		b := &r.Bars[i]
		if t.Before(b.From) || !t.Before(b.To) || len(shades) > 0 && !slices.Contains(shades, b.Shade) {
			continue
		}
		if best == nil || b.To.Sub(b.From) < best.To.Sub(best.From) {
			best = b
		}
	}
	return best
}

// blameUp says what the pod's readiness waits for at t.
func (p *Picture) blameUp(t time.Time) string {
	pod := &p.Rows[0]
	if boxed := pod.at(t, Up, Serving); boxed == nil {
		switch {
		case pod.at(t, Boxing) != nil:
			return "sandbox"
		case pod.at(t, Mounting) != nil:
			return "volumes"
		}
		for i := range p.Rows {
			if p.Rows[i].at(t, Pulling) != nil {
				return "pull " + p.Rows[i].Name
			}
		}
		return other
	}
	for i := range p.Rows[1:] {
		r := &p.Rows[i+1]
		if (r.Kind == podspec.Init || r.Kind == podspec.Sidecar) && r.opens().After(t) {
			return p.blame(r, t)
		}
	}
	var last *Row
	for i := range p.Rows[1:] {
		r := &p.Rows[i+1]
		if r.Kind == podspec.Main && (last == nil || r.serves().After(last.serves())) {
			last = r
		}
	}
	if last == nil || !last.serves().After(t) {
		return other
	}
	return p.blame(last, t)
}

// never stands for what has not come.
var never = time.Unix(1<<40, 0)

// opens is when the gate of an init container or sidecar opened for the first time.
func (r *Row) opens() time.Time {
	if r.Kind == podspec.Init {
		for _, m := range r.Marks {
			if m.Sign == Done {
				return m.At
			}
		}
		return never
	}
	return r.first(Up, Serving)
}

// serves is when a main was ready for the first time.
func (r *Row) serves() time.Time { return r.first(Serving) }

func (r *Row) first(shades ...Shade) time.Time {
	at := never
	for _, b := range r.Bars {
		if slices.Contains(shades, b.Shade) && b.From.Before(at) {
			at = b.From
		}
	}
	return at
}

// blame says what a container that is waited for does at t.
func (p *Picture) blame(r *Row, t time.Time) string {
	b := r.at(t)
	switch {
	case b == nil && p.Rows[0].at(t, Mounting) != nil:
		return "volumes"
	case b == nil:
		return other
	case b.Shade == Pulling:
		return "pull " + r.Name
	case b.Shade == Pause:
		return "back-off " + r.Name
	case b.Shade == HookStart:
		return "postStart " + r.Name
	case b.Shade == Quiet && r.Kind != podspec.Init:
		return r.Label + " until started"
	case b.Shade == Up && r.Kind != podspec.Init:
		return r.Label + " until ready"
	}
	return r.Label
}

// blameDown says what the end of a pod waits for at t: mains and inits before sidecars, the last sidecar first.
func (p *Picture) blameDown(t time.Time) string {
	for i := range p.Rows[1:] {
		if r := &p.Rows[i+1]; r.Kind != podspec.Sidecar && r.lives(t) {
			return r.blameEnd(t)
		}
	}
	for i := len(p.Rows) - 1; i > 0; i-- {
		if r := &p.Rows[i]; r.Kind == podspec.Sidecar && r.lives(t) {
			return r.blameEnd(t)
		}
	}
	if b := p.Rows[0].at(t, Leaving); b != nil {
		return "take-down"
	}
	return other
}

func (r *Row) lives(t time.Time) bool {
	return r.at(t, Quiet, Up, Serving, HookStop, HookStart, Stopping, Creating, Starting) != nil
}

func (r *Row) blameEnd(t time.Time) string {
	switch {
	case r.at(t, HookStop) != nil:
		return "preStop " + r.Name
	case r.at(t, Stopping) != nil:
		return "stop " + r.Name
	}
	return r.Label
}

// stuck names what a pod that is not ready waits for now, in words.
func (p *Picture) stuck() string {
	if p.History.ended() {
		return ""
	}
	of := p.blameUp(p.To.Add(-time.Nanosecond))
	for _, r := range p.Rows[1:] {
		if r.State != "" && (strings.HasSuffix(of, " "+r.Name) || of == r.Label ||
			strings.HasPrefix(of, r.Label+" until ")) {
			return fmt.Sprintf("%s (%s)", r.Label, r.State)
		}
	}
	if of == other {
		return ""
	}
	return of
}
