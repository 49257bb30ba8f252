// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/wherryproject/wherry/internal/debug/evidence"
	"github.com/wherryproject/wherry/internal/oneline"
	"github.com/wherryproject/wherry/internal/podspec"
)

// The names of what a bundle has, where it has it. Logs and what is below Containers have the container's name next.
const (
	PodFile    = "pod.yaml"
	StatusFile = "status.json" // of a container of the machine
	Logs       = "logs"
	Containers = "containers"
)

// Wanted returns which files of a bundle [Summary] is made of.
func Wanted(name string) bool {
	base := path.Base(name)
	return name == PodFile || name == StatusFile || strings.HasPrefix(name, Logs+"/") ||
		strings.Contains(name, "/proc/") && (base == "status" || base == "cmdline")
}

const (
	logLines      = 5
	processesMost = 30
	logsMost      = 200
	statesMost    = 200
	partsMost     = 200
	longest       = 300 // characters of what is shown on one line
)

// one puts what others have written on one line that controls no terminal.
func one(text string) string { return oneline.Cut(text, longest) }

// Summary says what a bundle has, on a screen or two.
func Summary(b *Bundle) string {
	var out strings.Builder
	m := &b.Manifest
	fmt.Fprintf(&out, "%s, captured %s in %s by wherry %s\n", one(m.Target), m.Began.Format(time.RFC3339),
		m.Ended.Sub(m.Began).Round(10*time.Millisecond), one(m.Version))
	if m.Node != "" {
		fmt.Fprintf(&out, "on node %s\n", one(m.Node))
	}
	var pod corev1.Pod
	if text := b.Files[PodFile]; text != nil && yaml.Unmarshal(text, &pod) == nil {
		out.WriteString(podText(&pod))
	}
	if text := b.Files[StatusFile]; text != nil {
		out.WriteString(statusText(text))
	}
	out.WriteString(logText(b))
	out.WriteString(processText(b))
	out.WriteString(partText(m))
	return out.String()
}

func podText(pod *corev1.Pod) string {
	var out strings.Builder
	fmt.Fprintf(&out, "phase %s", one(string(pod.Status.Phase)))
	if pod.Status.Reason != "" {
		fmt.Fprintf(&out, ", %s: %s", one(pod.Status.Reason), one(pod.Status.Message))
	}
	out.WriteString("\n")
	for _, c := range pod.Status.Conditions {
		if c.Status != corev1.ConditionTrue && c.Message != "" {
			fmt.Fprintf(&out, "not %s: %s\n", one(string(c.Type)), one(c.Message))
		}
	}
	out.WriteString("\nCONTAINERS\n")
	w := tabwriter.NewWriter(&out, 0, 8, 3, ' ', 0)
	for i, s := range podspec.Statuses(&pod.Status) {
		if i == statesMost {
			break
		}
		fmt.Fprintf(w, "  %s\t%s\t%d restarts\t%s\n", one(s.Name), one(stateText(&s.State)), s.RestartCount,
			one(lastText(s)))
	}
	_ = w.Flush() // a Builder takes everything
	return out.String()
}

func stateText(s *corev1.ContainerState) string {
	switch {
	case s.Running != nil:
		return "running since " + s.Running.StartedAt.UTC().Format(time.RFC3339)
	case s.Terminated != nil:
		return endText(s.Terminated)
	case s.Waiting != nil:
		return "waiting: " + s.Waiting.Reason
	}
	return "not known"
}

func lastText(s *corev1.ContainerStatus) string {
	if t := s.LastTerminationState.Terminated; t != nil {
		return "before: " + endText(t)
	}
	return ""
}

func endText(t *corev1.ContainerStateTerminated) string {
	text := fmt.Sprintf("ended with %d (%s)", t.ExitCode, t.Reason)
	if signal := evidence.Signal(int(t.ExitCode)); signal != "" && t.Reason != "OOMKilled" {
		text += ", " + signal
	}
	return text
}

// statusText is the state of a container of the machine.
func statusText(text []byte) string {
	var s struct {
		State, Image, Error, Signal string
		ExitCode                    *int
		OOMKilled                   bool
		StartedAt, FinishedAt       time.Time
	}
	if json.Unmarshal(text, &s) != nil {
		return ""
	}
	line := fmt.Sprintf("image %s, %s", s.Image, s.State)
	if s.ExitCode != nil {
		line += fmt.Sprintf(" with %d", *s.ExitCode)
	}
	for _, more := range []string{s.Signal, map[bool]string{true: "out of memory"}[s.OOMKilled], s.Error} {
		if more != "" {
			line += ", " + more
		}
	}
	return one(line) + "\n"
}

// logText are the last lines of each log.
func logText(b *Bundle) string {
	var out strings.Builder
	for i, name := range slices.Sorted(maps.Keys(b.Files)) {
		text := b.Files[name]
		if !strings.HasPrefix(name, Logs+"/") || i > logsMost {
			continue
		}
		fmt.Fprintf(&out, "\n%s, its last lines\n", one(name))
		for line := range strings.Lines(string(evidence.LastLines(text, logLines))) {
			out.WriteString("  " + one(line) + "\n")
		}
	}
	return out.String()
}

type process struct {
	container, pid, state, command string
	rss                            int // KiB
}

// processText are the processes that use most memory.
func processText(b *Bundle) string {
	var all []process
	for name, text := range b.Files {
		if path.Base(name) != "status" || !strings.Contains(name, "/proc/") {
			continue
		}
		dir := path.Dir(name)
		p := process{pid: path.Base(dir), container: strings.TrimPrefix(path.Dir(path.Dir(dir)), Containers+"/"),
			command: strings.TrimSpace(strings.ReplaceAll(string(b.Files[dir+"/cmdline"]), "\x00", " "))}
		for line := range strings.Lines(string(text)) {
			key, value, _ := strings.Cut(line, ":")
			switch f := strings.Fields(value); {
			case key == "State" && len(f) > 0:
				p.state = f[0]
			case key == "VmRSS" && len(f) > 0:
				p.rss, _ = strconv.Atoi(f[0])
			case key == "Name" && p.command == "" && len(f) > 0:
				p.command = "[" + f[0] + "]"
			}
		}
		all = append(all, p)
	}
	if len(all) == 0 {
		return ""
	}
	slices.SortFunc(all, func(x, y process) int {
		return cmp.Or(cmp.Compare(y.rss, x.rss), cmp.Compare(x.container, y.container), cmp.Compare(x.pid, y.pid))
	})
	var out strings.Builder
	fmt.Fprintf(&out, "\nPROCESSES (%d)\n", len(all))
	w := tabwriter.NewWriter(&out, 0, 8, 3, ' ', 0)
	for _, p := range all[:min(len(all), processesMost)] {
		fmt.Fprintf(w, "  %s\t%s\t%s\t%d KiB\t%s\n", one(p.container), one(p.pid), one(p.state), p.rss, one(p.command))
	}
	_ = w.Flush() // a Builder takes everything
	return out.String()
}

// partText lists what is in a bundle, with the files of processes as one, and what is not.
func partText(m *Manifest) string {
	type sum struct {
		files int
		bytes int64
		cut   bool
	}
	sums, names := map[string]*sum{}, []string{}
	for _, p := range m.Parts {
		name := p.Name
		if before, _, found := strings.Cut(name, "/proc/"); found && strings.HasPrefix(name, Containers+"/") {
			name = before + "/proc/"
		} else if before, _, found := strings.Cut(name, "/net/"); found && strings.HasPrefix(name, Containers+"/") {
			name = before + "/net/"
		}
		if sums[name] == nil {
			sums[name] = &sum{}
			names = append(names, name)
		}
		sums[name].files++
		sums[name].bytes += p.Bytes
		sums[name].cut = sums[name].cut || p.Cut
	}
	var out strings.Builder
	out.WriteString("\nPARTS\n")
	w := tabwriter.NewWriter(&out, 0, 8, 3, ' ', 0)
	for i, name := range names {
		if i == partsMost {
			fmt.Fprintf(w, "  and %d more, see --list\n", len(names)-i)
			break
		}
		more := ""
		if s := sums[name]; s.files > 1 {
			more = fmt.Sprintf("%d files", s.files)
		}
		if sums[name].cut {
			more = strings.TrimSpace(more + " cut")
		}
		fmt.Fprintf(w, "  %s\t%d B\t%s\n", one(name), sums[name].bytes, more)
	}
	_ = w.Flush() // a Builder takes everything
	if len(m.Missing) > 0 {
		out.WriteString("\nNOT IN IT\n")
		for _, miss := range m.Missing[:min(len(m.Missing), partsMost)] {
			fmt.Fprintf(&out, "  %s: %s\n", one(miss.What), one(miss.Why))
		}
		if n := len(m.Missing); n > partsMost {
			fmt.Fprintf(&out, "  and %d more, see -o json\n", n-partsMost)
		}
	}
	return out.String()
}
