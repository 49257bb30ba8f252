// SPDX-License-Identifier: Apache-2.0

package kernellog

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// Kill is an end for want of memory.
type Kill struct {
	At     time.Duration // since the machine began
	Group  string        // control group of who was killed
	Killed Process
	// Processes are those that counted for the limit that was reached, who had most first; the killed one is among
	// them.
	Processes []Process
}

// Process is one and what it had in memory.
type Process struct {
	PID   int
	Name  string // as the kernel has it, at most 15 bytes
	Bytes int64
}

// OutOfMemory finds in messages the ends for want of memory. Pages are of so many bytes.
func OutOfMemory(messages []Message, page int64) (kills []Kill) {
	var t table
	for _, m := range messages {
		switch {
		case strings.HasPrefix(m.Text, "[  pid  ]"):
			t = columns(m.Text)
		case t.open && strings.HasPrefix(m.Text, "["):
			t.row(m.Text, page)
		case strings.HasPrefix(m.Text, "oom-kill:"):
			k := Kill{At: m.At, Processes: t.processes}
			var pid int
			var ok bool
			if k.Group, k.Killed.Name, pid, ok = whose(m.Text); !ok {
				continue
			}
			k.Killed.PID = pid
			if i := slices.IndexFunc(k.Processes, func(p Process) bool { return p.PID == pid }); i >= 0 {
				k.Killed = k.Processes[i]
			}
			kills, t = append(kills, k), table{}
		}
	}
	return kills
}

// table is the list of processes in a report.
type table struct {
	open      bool
	pid, rss  int // columns; negative: there is none
	name      int
	processes []Process
}

// mostProcesses bounds what is kept of a table.
const mostProcesses = 10_000

// columns reads the head of a table. "[  pid  ]" is one of its words.
func columns(head string) table {
	words := strings.Fields(strings.Replace(head, "[  pid  ]", "[pid]", 1))
	t := table{pid: slices.Index(words, "[pid]"), rss: slices.Index(words, "rss"), name: slices.Index(words, "name")}
	t.open = t.pid == 0 && t.rss > 0 && t.name == len(words)-1
	return t
}

// row reads a line of the table.
func (t *table) row(line string, page int64) {
	pid, rest, ok := strings.Cut(strings.TrimPrefix(line, "["), "]")
	words := strings.Fields(rest)
	if !ok || len(words) < t.name || len(t.processes) >= mostProcesses {
		return
	}
	n, err := strconv.Atoi(strings.TrimSpace(pid))
	pages, perr := strconv.ParseInt(words[t.rss-1], 10, 64)
	if err != nil || perr != nil || pages < 0 || pages > 1<<40 {
		return
	}
	p := Process{PID: n, Name: strings.Join(words[t.name-1:], " "), Bytes: pages * page}
	at, _ := slices.BinarySearchFunc(t.processes, p, func(a, b Process) int {
		if a.Bytes != b.Bytes {
			return int(min(max(b.Bytes-a.Bytes, -1), 1))
		}
		return a.PID - b.PID
	})
	t.processes = slices.Insert(t.processes, at, p)
}

// whose reads the line about who was killed: ...,task_memcg=GROUP,task=NAME,pid=N,uid=N. The name is what a process
// calls itself, and may have all of that in it but its end.
func whose(line string) (group, name string, pid int, ok bool) {
	line, _, _ = cutLast(","+strings.TrimPrefix(line, "oom-kill:"), ",uid=")
	line, number, _ := cutLast(line, ",pid=")
	_, line, _ = strings.Cut(line, ",task_memcg=")
	group, name, named := strings.Cut(line, ",task=")
	pid, err := strconv.Atoi(number)
	return group, name, pid, named && group != "" && err == nil
}

// cutLast is strings.Cut, at the last of what divides.
func cutLast(text, at string) (before, after string, found bool) {
	if i := strings.LastIndex(text, at); i >= 0 {
		return text[:i], text[i+len(at):], true
	}
	return text, "", false
}
