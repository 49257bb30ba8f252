// SPDX-License-Identifier: Apache-2.0

package procs

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/toolbox/internal/accounts"
	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

// column is a column of ps.
type column struct {
	title string
	right bool
	value func(*Proc) string
}

// lister knows what columns need besides the process.
type lister struct {
	names accounts.Names
	now   time.Time
	total int64
}

func newLister() *lister {
	l := &lister{now: time.Now()}
	if m, err := memory(); err == nil {
		l.total = m["MemTotal"]
	}
	return l
}

func (l *lister) columns() map[string]column {
	num := func(title string, f func(*Proc) int64) column {
		return column{title, true, func(p *Proc) string { return strconv.FormatInt(f(p), 10) }}
	}
	return map[string]column{
		"user":   {"USER", false, func(p *Proc) string { return l.names.User(p.UID) }},
		"uid":    num("UID", func(p *Proc) int64 { return int64(p.UID) }),
		"gid":    num("GID", func(p *Proc) int64 { return int64(p.GID) }),
		"group":  {"GROUP", false, func(p *Proc) string { return l.names.Group(p.GID) }},
		"ruser":  {"RUSER", false, func(p *Proc) string { return l.names.User(p.RealUID) }},
		"rgroup": {"RGROUP", false, func(p *Proc) string { return l.names.Group(p.RealGID) }},
		"pgid":   num("PGID", func(p *Proc) int64 { return int64(p.Group) }),
		"sid":    num("SID", func(p *Proc) int64 { return int64(p.Session) }),
		"nice":   num("NI", func(p *Proc) int64 { return int64(p.Nice) }),
		"pid":    num("PID", func(p *Proc) int64 { return int64(p.PID) }),
		"ppid":   num("PPID", func(p *Proc) int64 { return int64(p.PPID) }),
		"nlwp":   num("NLWP", func(p *Proc) int64 { return int64(p.Threads) }),
		"vsz":    num("VSZ", func(p *Proc) int64 { return p.VSize / 1024 }),
		"rss":    num("RSS", func(p *Proc) int64 { return p.RSS / 1024 }),
		"stat":   {"STAT", false, func(p *Proc) string { return p.State }},
		"tty":    {"TT", false, func(p *Proc) string { return terminalName(p.TTY) }},
		"tname":  {"TTY", false, func(p *Proc) string { return terminalName(p.TTY) }},
		"time":   {"TIME", true, func(p *Proc) string { return clock(p.CPU) }},
		"etime":  {"ELAPSED", true, func(p *Proc) string { return clock(l.now.Sub(p.Start)) }},
		"start":  {"START", true, func(p *Proc) string { return l.since(p.Start) }},
		"lstart": {"STARTED", false, func(p *Proc) string { return p.Start.Format(time.ANSIC) }},
		"pcpu":   {"%CPU", true, func(p *Proc) string { return fmt.Sprintf("%.1f", l.percent(p)) }},
		"pmem": {"%MEM", true,
			func(p *Proc) string { return fmt.Sprintf("%.1f", 100*float64(p.RSS)/float64(max(l.total, 1))) }},
		"args": {"COMMAND", false, (*Proc).Command}, "comm": {"COMMAND", false,
			func(p *Proc) string { return p.Name }},
	}
}

func (l *lister) percent(p *Proc) float64 {
	return 100 * p.CPU.Seconds() / max(l.now.Sub(p.Start).Seconds(), 0.01)
}

func (l *lister) since(t time.Time) string {
	if l.now.Sub(t) < 24*time.Hour {
		return t.Format("15:04")
	}
	return t.Format("Jan02")
}

// clock words a time as [days-][hh:]mm:ss.
func clock(d time.Duration) string {
	s := int64(d.Seconds())
	text := fmt.Sprintf("%02d:%02d", s/60%60, s%60)
	if s >= 3600 {
		text = fmt.Sprintf("%02d:", s/3600%24) + text
	}
	if s >= 24*3600 {
		text = fmt.Sprintf("%d-", s/(24*3600)) + text
	}
	return text
}

func ps(c *applet.Call) error {
	if len(c.Args) > 0 && c.Args[0] != "" && c.Args[0][0] != '-' && strings.Trim(c.Args[0], "auxwefT") == "" {
		// BSD's letters
		c.Args[0] = "-" + map[bool]string{true: "u"}[strings.Contains(c.Args[0], "u")] + strings.Trim(c.Args[0], "aue")
		c.Args[0] = strings.TrimSuffix(c.Args[0], "-")
		if c.Args[0] == "" {
			c.Args = c.Args[1:]
		}
	}
	layout := "user,pid,ppid,stat,time,args"
	for _, o := range []string{"e", "A", "a", "x", "w"} {
		c.Do(o, map[string]string{"e": "all processes (always)", "w": "long lines (always)"}[o], func() {})
	}
	c.Do("f", "full format", func() { layout = "user,pid,ppid,pcpu,start,tname,time,args" })
	c.Do("u", "user format", func() { layout = "user,pid,pcpu,pmem,vsz,rss,tname,stat,start,time,args" })
	c.Do("l", "long format", func() { layout = "stat,uid,pid,ppid,vsz,rss,tname,time,comm" })
	threads := c.Bool("T", "threads too")
	c.Do("L", "as -T", func() { *threads = true })
	given := c.Strings("o,format", "COLUMNS", "these columns, for example pid,user,args; NAME= is one without a title")
	only := c.Strings("p,pid", "PID[,PID]...", "these processes only")
	sortBy := c.String(",sort", "COLUMN", "pid", "pid, cpu (most first) or rss (most first)")
	if err := c.Parse(0, 0); err != nil {
		return err
	}
	if len(*given) > 0 {
		layout = strings.Join(*given, ",")
	}
	l := newLister()
	columns, err := l.choose(layout)
	if err != nil {
		return err
	}
	list, err := All()
	if err != nil {
		return err
	}
	if len(*only) > 0 {
		wanted := strings.FieldsFunc(strings.Join(*only, ","), func(r rune) bool { return r == ',' || r == ' ' })
		list = slices.DeleteFunc(list, func(p *Proc) bool { return !slices.Contains(wanted, strconv.Itoa(p.PID)) })
	}
	if *threads {
		list = withThreads(list)
	}
	switch strings.TrimLeft(*sortBy, "-+%") {
	case "pid":
	case "cpu", "pcpu":
		slices.SortStableFunc(list, func(a, b *Proc) int { return int(1000 * (l.percent(b) - l.percent(a))) })
	case "rss", "mem", "pmem":
		slices.SortStableFunc(list, func(a, b *Proc) int { return int((b.RSS - a.RSS) / 1024) })
	default:
		return applet.Usage("--sort %s: want pid, cpu or rss", *sortBy)
	}
	table(c, columns, list)
	if len(list) == 0 {
		return applet.Exit(1)
	}
	return nil
}

func (l *lister) choose(layout string) ([]column, error) {
	known := l.columns()
	alias := map[string]string{"cmd": "args", "command": "args", "state": "stat", "s": "stat", "%cpu": "pcpu",
		"%mem": "pmem", "cputime": "time", "ucmd": "comm", "euser": "user", "egroup": "group",
		"ni": "nice", "pgrp": "pgid", "sess": "sid", "session": "sid", "euid": "uid",
		"stime": "start", "start_time": "start", "tt": "tty", "thcount": "nlwp"}
	var out []column
	for name := range strings.SplitSeq(layout, ",") {
		name, title, own := strings.Cut(strings.TrimSpace(name), "=")
		if a, ok := alias[name]; ok {
			name = a
		}
		col, ok := known[name]
		if !ok {
			return nil, applet.Usage("column %q is not known", name)
		}
		if own {
			col.title = title
		}
		out = append(out, col)
	}
	return out, nil
}

// withThreads puts a line for each thread behind its process's.
func withThreads(list []*Proc) (out []*Proc) {
	for _, p := range list {
		dir := fmt.Sprintf("/proc/%d/task", p.PID)
		ids, _ := numbers(dir)
		for _, id := range ids {
			if t, err := read(filepath.Join(dir, strconv.Itoa(id)), bootTime()); err == nil {
				t.Args = append([]string{}, p.Args...)
				if id != p.PID {
					t.Args = []string{"{" + t.Name + "}", p.Command()}
				}
				out = append(out, t)
			}
		}
	}
	return out
}

// table prints the columns, each as wide as it needs, the last one cut at nothing.
func table(c *applet.Call, columns []column, list []*Proc) {
	titles := false
	width := make([]int, len(columns))
	for i, col := range columns {
		width[i] = len(col.title)
		titles = titles || col.title != ""
	}
	rows := make([][]string, len(list))
	for r, p := range list {
		for i, col := range columns {
			v := col.value(p)
			rows[r] = append(rows[r], v)
			width[i] = max(width[i], len(v))
		}
	}
	line := func(cells []string) {
		var b strings.Builder
		for i, v := range cells {
			switch {
			case columns[i].right:
				fmt.Fprintf(&b, "%*s ", width[i], v)
			case i == len(cells)-1:
				b.WriteString(v)
			default:
				fmt.Fprintf(&b, "%-*s ", width[i], v)
			}
		}
		c.Println(strings.TrimRight(b.String(), " "))
	}
	if titles {
		var cells []string
		for _, col := range columns {
			cells = append(cells, col.title)
		}
		line(cells)
	}
	for _, r := range rows {
		line(r)
	}
}

// top shows the busiest processes until q, Ctrl-C or the number of rounds is reached.
func top(c *applet.Call) error {
	batch := c.Bool("b", "print, do not draw: for files and pipes")
	rounds := c.Int("n", "N", 0, "end after N rounds")
	delay := c.Float("d", "SECONDS", 2, "time between rounds")
	byMemory := c.Bool("m", "sort by memory")
	if err := c.Parse(0, 0); err != nil {
		return err
	}
	rows, columns := 1<<30, 0
	if size, err := unix.IoctlGetWinsize(1, unix.TIOCGWINSZ); err != nil {
		*batch = true
	} else if columns = int(size.Col); !*batch {
		rows = max(int(size.Row)-5, 5)
	}
	keys := make(chan byte, 1)
	if !*batch {
		restore := rawKeys(keys)
		defer restore()
	}
	meter := cpuMeter{before: map[int]time.Duration{}}
	for round := 1; ; round++ {
		list, err := All()
		if err != nil {
			return err
		}
		used := meter.used(list, time.Now())
		slices.SortStableFunc(list, func(a, b *Proc) int {
			if *byMemory {
				return int((b.RSS - a.RSS) / 1024)
			}
			return int(1000 * (used[b.PID] - used[a.PID]))
		})
		drawTop(c, list[:min(len(list), rows)], used, len(list), columns, *batch)
		if err := c.Out.Flush(); err != nil {
			return err
		}
		if round == *rounds {
			return nil
		}
		select {
		case k := <-keys:
			switch k {
			case 'q', 3:
				return nil
			case 'm', 'M':
				*byMemory = true
			case 'c', 'C', 'P':
				*byMemory = false
			}
		case <-time.After(time.Duration(*delay * float64(time.Second))):
		}
	}
}

// cpuMeter computes how busy processes are from what they had used before.
type cpuMeter struct {
	before map[int]time.Duration // by process ID
	at     time.Time             // when that was; zero at first
}

// used is the percentage of a CPU that each process has used since the last time, or, the first time, since it started.
func (m *cpuMeter) used(list []*Proc, now time.Time) map[int]float64 {
	used := map[int]float64{}
	for _, p := range list {
		if old, ok := m.before[p.PID]; ok {
			used[p.PID] = 100 * (p.CPU - old).Seconds() / now.Sub(m.at).Seconds()
		} else if m.at.IsZero() {
			used[p.PID] = 100 * p.CPU.Seconds() / max(now.Sub(p.Start).Seconds(), 0.01)
		}
		m.before[p.PID] = p.CPU
	}
	m.at = now
	return used
}

func drawTop(c *applet.Call, list []*Proc, used map[int]float64, all, columns int, batch bool) {
	if !batch {
		c.Printf("\x1b[H\x1b[J")
	}
	l := newLister()
	m, _ := memory()
	load, _ := os.ReadFile("/proc/loadavg")
	c.Printf("%s  %d processes  load %s\n", time.Now().Format(time.TimeOnly), all,
		strings.Join(strings.Fields(string(load))[:min(3, len(strings.Fields(string(load))))], " "))
	c.Printf("memory %s, free %s, available %s\n\n", applet.Human(m["MemTotal"]), applet.Human(m["MemFree"]),
		applet.Human(m["MemAvailable"]))
	c.Printf("%7s %-10s %s %6s %6s %8s %9s %s\n", "PID", "USER", "S", "%CPU", "%MEM", "RSS", "TIME", "COMMAND")
	for _, p := range list {
		line := fmt.Sprintf("%7d %-10s %s %6.1f %6.1f %8s %9s %s", p.PID, l.names.User(p.UID), p.State, used[p.PID],
			100*float64(p.RSS)/float64(max(l.total, 1)), applet.Human(p.RSS), clock(p.CPU), applet.Plain(p.Command()))
		if columns > 0 && !batch {
			line = line[:min(len(line), columns)]
		}
		c.Println(line)
	}
}

// rawKeys sends what is typed; without a terminal there is nothing.
func rawKeys(keys chan<- byte) (restore func()) {
	old, err := unix.IoctlGetTermios(0, unix.TCGETS)
	if err != nil {
		return func() {}
	}
	raw := *old
	raw.Lflag &^= unix.ICANON | unix.ECHO | unix.ISIG
	if unix.IoctlSetTermios(0, unix.TCSETS, &raw) != nil {
		return func() {}
	}
	go func() {
		var b [1]byte
		for {
			if n, err := os.Stdin.Read(b[:]); err != nil || n == 0 {
				return
			}
			keys <- b[0]
		}
	}()
	return func() { _ = unix.IoctlSetTermios(0, unix.TCSETS, old) }
}
