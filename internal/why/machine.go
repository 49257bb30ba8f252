// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Machine is what could be learned of a container that an engine of this machine runs, without a pod.
type Machine struct {
	Now     time.Time
	Target  string // docker:web
	Program string // that asks its engine: docker
	Name    string
	Image   string
	Command []string
	State   string // created, running, paused, exited

	Began, Ended time.Time
	Code         int32
	OOM          bool
	Words        string // of the engine, about a container that it could not start

	MemoryLimit  string // empty: none
	ReadOnlyRoot bool
	Restarts     int
	Health       *Health
	Tail         []string // the last lines of its log
	Kills        []Kill   // of its processes, for want of memory
	Unseen       []Unseen
}

// Health is what a container's own check has found.
type Health struct {
	Status  string // starting, healthy, unhealthy
	Failing int    // checks in a row
	Output  string // of the last
	Code    int
}

// ExplainMachine makes an answer of what is known of a container without a pod.
func ExplainMachine(m Machine) Answer {
	label := "container " + m.Name
	from := m.Program + " inspect"
	box := Box{Label: label, Image: m.Image, Command: m.Command, MemoryLimit: m.MemoryLimit, LimitField: from,
		ReadOnlyRoot: m.ReadOnlyRoot, Tail: m.Tail, LogFrom: "log of " + m.Name, Kills: m.Kills}
	r := &report{}
	switch {
	case m.State == "created" && m.Words != "":
		r.add(box.Start(m.Words, from+", State.Error"))
	case m.State == "created":
		f := r.add(&Finding{Where: label, What: "it was made, and never started"})
		f.fact(from, "created, without a start").try("%s start %s", m.Program, m.Name)
	case m.State == "exited" && (m.Code != 0 || m.OOM):
		f := r.add(box.End(Ended{Code: m.Code, OOM: m.OOM, Words: m.Words, Began: m.Began, At: m.Ended,
			From: from + ", State"}))
		f.try("look at its last files: sudo wherry debug %s", m.Target)
		r.show(Log{Container: m.Name, Lines: m.Tail})
	case m.State == "paused":
		f := r.add(&Finding{Where: label, What: "it is paused: none of its processes is running"})
		f.fact(from+", State", "paused").try("%s unpause %s", m.Program, m.Name)
	}
	r.unhealthyMachine(m, label, from)
	for _, f := range r.findings {
		f.onMachine(m)
		if m.Restarts > 0 {
			f.fact(from+", RestartCount", "%s", restarts(m.Restarts))
		}
	}
	a := Answer{Kind: "Container", Name: m.Target, State: m.words(), Logs: r.logs, Unseen: m.Unseen}
	a.Summary = "nothing is wrong with it that its engine knows of"
	if m.State == "exited" {
		a.Summary = "it has ended by itself, with success"
	}
	r.finish(&a)
	return a
}

// words are its state in a few words.
func (m Machine) words() string {
	text := m.State
	switch {
	case m.State == "exited" && !m.Ended.IsZero():
		text += " with exit code " + fmt.Sprint(m.Code) + ", " + about(m.Now.Sub(m.Ended)) + " ago"
	case m.State == "running" && !m.Began.IsZero():
		text += " for " + about(m.Now.Sub(m.Began))
	}
	if m.Restarts > 0 {
		text += ", " + restarts(m.Restarts)
	}
	return text
}

// unhealthyMachine is about a container whose own check fails.
func (r *report) unhealthyMachine(m Machine, label, from string) {
	h := m.Health
	if h == nil || h.Status != "unhealthy" && (h.Status != "starting" || h.Failing == 0) || m.State != "running" {
		return
	}
	f := r.add(&Finding{Where: label, What: fmt.Sprintf("its health check fails, %d times in a row", h.Failing)})
	if h.Status == "starting" {
		f.What += ", while it starts"
	}
	f.fact(from+", State.Health", "exit code %d: %s", h.Code, h.Output)
	for _, s := range ReadLog(strings.Split(h.Output, "\n")) {
		f.What += ": " + s.Words()
		break
	}
	f.try("run the check by hand: sudo wherry debug %s", m.Target)
	r.show(Log{Container: m.Name, Lines: m.Tail})
}

// onMachine says what to try in the words of those who have no pods.
func (f *Finding) onMachine(m Machine) {
	f.Try = slices.DeleteFunc(f.Try, ofKubernetes)
	all := strings.ToLower(f.What)
	for _, row := range []struct{ words, try string }{
		{"more memory than its limit", "raise its limit: " + m.Program + " update --memory SIZE --memory-swap SIZE " +
			m.Name +
			", or have the program use less: caches, workers, heap"},
		{"because memory ran out", "give it a limit, so that others are not hit, or the machine more memory"},
		{"read-only", "mount a volume or a --tmpfs where it writes"},
		{"permission denied", "look as which user it runs (--user) and whose the file is"},
		{"has no program", "correct its command or --entrypoint, or use an image that has it"},
		{"may not be run", "make the file executable: chmod +x, when the image is built"},
	} {
		if strings.Contains(all, row.words) && !slices.Contains(f.Try, row.try) {
			f.Try = append([]string{row.try}, f.Try...)
		}
	}
}

// ofKubernetes reports whether an advice is about what containers without pods do not have.
func ofKubernetes(try string) bool {
	for _, word := range []string{"kubectl", "securityContext", "resources.", "ConfigMap", "Service", "restartPolicy",
		"emptyDir", "readOnly of", "workingDir", "command (or args", "mountPath", "its pods",
		"terminationGracePeriodSeconds", "hostNetwork"} {
		if strings.Contains(try, word) {
			return true
		}
	}
	return false
}
