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
			k := Kill{At: m.At, Group: field(m.Text, "task_memcg="), Processes: t.processes}
			pid, err := strconv.Atoi(field(m.Text, "pid="))
			if k.Group == "" || err != nil {
				continue
			}
			k.Killed = Process{PID: pid, Name: field(m.Text, "task=")}
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

// field is what follows a key of a line of keys and values that commas divide.
func field(text, key string) string {
	for part := range strings.SplitSeq(strings.TrimPrefix(text, "oom-kill:"), ",") {
		if value, is := strings.CutPrefix(part, key); is {
			return value
		}
	}
	return ""
}
