// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/wherryproject/wherry/internal/exitcode"
	"github.com/wherryproject/wherry/internal/oneline"
)

// Box is a container as far as its end and its start can be explained from it, whichever engine runs it.
type Box struct {
	Label        string   // container web
	Image        string   // as its name was given
	Command      []string // that stands in for the image's; empty: the image's own
	MemoryLimit  string   // 32Mi; empty: it has none
	MemoryUsed   string   // by its present run; empty: not known
	ReadOnlyRoot bool
	Tail         []string // the last lines of the log of the run that is to be explained
	LimitField   string   // where a memory limit is set; empty: nowhere
	LogFrom      string   // where Tail is from
	Kills        []Kill   // of its processes, for want of memory, the latest last
}

// Ended is how a container's program ended.
type Ended struct {
	Code      int32
	Signal    int32 // if the engine reports one
	OOM       bool
	Reason    string // the engine's word
	Words     string // what the engine, or the program in its last message, reported
	Began, At time.Time
	From      string // where all of this is from
}

// lasted is how long the program ran, in words; empty if that is not known.
func (e Ended) lasted() string {
	if e.Began.IsZero() || e.At.Before(e.Began) {
		return ""
	}
	if d := e.At.Sub(e.Began); d >= time.Second {
		return about(d) + " after it began"
	}
	return "within a second of its beginning"
}

// End explains why a program ended.
func (b Box) End(e Ended) *Finding {
	f := &Finding{Where: b.Label}
	signal := e.Signal
	if signal == 0 {
		signal = signalOf(e.Code)
	}
	switch {
	case e.Reason == "ContainerStatusUnknown":
		f.What = "nobody knows how it ended: its node lost it"
		f.fact(e.From, "%s", join(": ", e.Reason, e.Words))
		return f.try("look whether its node was restarted or away at that time: kubectl describe node")
	case e.OOM:
		b.outOfMemory(f, e)
	case notStarted(e):
		return b.Start(e.Words, e.From)
	case e.Code == 0 && signal == 0:
		f.What = "its program ended by itself, with success, and is begun again each time"
		f.fact(e.From, "%s", endWords(e, 0))
		f.try("give it a command that keeps running, or run it as a Job, or set restartPolicy: OnFailure if its work is done then")
	case signal == 9:
		b.killed(f, e)
	case signal == 15:
		f.What = "its program was told to end (SIGTERM), and did"
		f.fact(e.From, "%s", endWords(e, 15))
	case signal != 0:
		f.What = fmt.Sprintf("its program was ended by signal %d%s", signal, b.meaning(signal))
		f.fact(e.From, "%s", endWords(e, signal))
		f.try("run the same image and command by itself, look for a core file, or try the version before: it is a fault of the program or its libraries")
	default:
		b.failed(f, e)
	}
	after := ": "
	if e.Code == exitcode.NotFound || e.Code == exitcode.CannotRun {
		after = "; its log says: "
	}
	b.heard(f, after)
	return f
}

func (b Box) meaning(number int32) string {
	if s, ok := signals()[number]; ok {
		return " (" + s.name + "): " + s.means
	}
	return ""
}

// endWords are the facts of an end on one line.
func endWords(e Ended, signal int32) string {
	text := fmt.Sprintf("exit code %d", e.Code)
	if e.Signal != 0 {
		text = fmt.Sprintf("signal %d", e.Signal)
	}
	if e.Reason != "" && e.Reason != "Error" && e.Reason != "Completed" {
		text = e.Reason + ", " + text
	}
	if signal == 0 && !e.OOM {
		text += " (" + CodeWords(e.Code) + ")"
	}
	if after := e.lasted(); after != "" {
		text += ", " + after
	}
	if e.Words != "" {
		text += ": " + oneline.Cut(e.Words, 200)
	}
	return text
}

// failed explains a program that has failed by its exit code.
func (b Box) failed(f *Finding, e Ended) {
	f.What = fmt.Sprintf("its program failed with exit code %d", e.Code)
	f.fact(e.From, "%s", endWords(e, 0))
	switch e.Code {
	case exitcode.NotFound:
		f.What = "a command that its script calls does not exist in the image (exit code 127)"
		if name := missingCommand(b.Tail); name != "" {
			f.What = fmt.Sprintf("its script calls %s, which does not exist in the image (exit code 127)", name)
			f.fact(b.LogFrom, "%s", lastLine(b.Tail))
		}
		f.try("use an image that has it, install it when the image is built, or correct its name or PATH")
	case exitcode.CannotRun:
		f.What = "a file that its script calls may not be run (exit code 126)"
		f.try("make the file executable: chmod +x in the image, defaultMode: 0755 for the volume of a ConfigMap or Secret; or run it with sh FILE")
	case 255:
		if !saidOf(ReadLog(b.Tail), ExecFormat) {
			f.try("read its log; exit code 255 says nothing by itself")
		}
	default:
		if last := lastLine(b.Tail); last != "" && len(ReadLog(b.Tail)) == 0 {
			f.What += "; its last words: " + oneline.Cut(last, 120)
			f.fact(b.LogFrom, "%s", last)
			f.try("do as its log says; exit code %d means only what the program says it means", e.Code)
		}
	}
	if len(b.Tail) == 0 {
		f.try("it has written nothing to its log: run it with more logging, or look whether it logs to a file")
	}
}

// lastLine is the last line of a log that says something.
func lastLine(lines []string) string {
	for _, line := range slices.Backward(lines) {
		if line = oneline.Cut(line, longestLine); line != "" {
			return line
		}
	}
	return ""
}

// killed explains a kill that nobody says to have been for want of memory.
func (b Box) killed(f *Finding, e Ended) {
	f.What = "its program was killed (SIGKILL), and nothing says by whom"
	f.fact(e.From, "%s", endWords(e, 9))
	f.fact(e.From, "the node does not say that memory was the reason")
	f.try("look for one of these: a process of its own that was out of memory, its node out of memory, " +
		"or a stop that took longer than terminationGracePeriodSeconds")
	if b.MemoryLimit != "" {
		f.fact(b.LimitField, "memory limit %s", b.MemoryLimit)
	}
}

// outOfMemory explains a kill for want of memory.
func (b Box) outOfMemory(f *Finding, e Ended) {
	f.fact(e.From, "%s", endWords(e, 9))
	if b.MemoryLimit == "" {
		f.What = "the kernel killed it because memory ran out; it has no limit of its own, so the node or the pod had too little"
		f.try("set resources.requests.memory to what it needs, so that it goes where there is room, and a limit, so that others are not hit")
	} else {
		f.What = fmt.Sprintf("the kernel killed it because it used more memory than its limit of %s", b.MemoryLimit)
		f.fact(b.LimitField, "memory limit %s", b.MemoryLimit)
		f.try("raise the limit, or have the program use less: sizes of caches, number of workers, heap (-Xmx, GOMEMLIMIT, --max-old-space-size)")
		f.try("files in /dev/shm, in emptyDirs with medium Memory, and page cache of dirty files count too")
	}
	if n := len(b.Kills); n > 0 {
		f.fact("messages of the node's kernel", "%s", b.Kills[n-1].words())
	}
	if b.MemoryUsed != "" {
		f.fact("metrics", "it uses %s at the moment", b.MemoryUsed)
	}
}

// mostNamed bounds how many of those are named who used memory beside the one that was killed.
const mostNamed = 3

// words is who was killed and who else had how much.
func (k Kill) words() string {
	text := fmt.Sprintf("process %d (%s) was killed", k.Killed.PID, oneline.Of(k.Killed.Name))
	if k.Killed.Bytes > 0 {
		text += ", which had " + bytesWords(k.Killed.Bytes)
	}
	var others []string
	for _, p := range k.Others[:min(len(k.Others), mostNamed)] {
		others = append(others, fmt.Sprintf("%s %s", oneline.Of(p.Name), bytesWords(p.Bytes)))
	}
	if more := len(k.Others) - len(others); more > 0 {
		others = append(others, fmt.Sprintf("%d more with less", more))
	}
	if len(others) > 0 {
		text += "; beside it: " + strings.Join(others, ", ")
	}
	return text
}

func bytesWords(n int64) string {
	const mib = 1 << 20
	if n < 10*mib {
		return fmt.Sprintf("%.1f MiB", float64(n)/mib)
	}
	return fmt.Sprintf("%d MiB", n/mib)
}

// heard adds what the log plainly says; the latest of it after these words.
func (b Box) heard(f *Finding, after string) {
	for i, s := range ReadLog(b.Tail) {
		if i == mostHeard {
			break
		}
		if i == 0 {
			f.What += after + s.Words()
		}
		f.fact(b.LogFrom, "%s", s.Line)
		for _, t := range s.tries(b) {
			if !slices.Contains(f.Try, t) {
				f.Try = append(f.Try, t)
			}
		}
	}
}

// mostHeard is how many lines of a log are explained.
const mostHeard = 3

func notStarted(e Ended) bool {
	return e.Reason == "StartError" || e.Reason == "ContainerCannotRun" || e.Code == 128 && e.Words != ""
}

// about is a span of time in two figures at most.
func about(d time.Duration) string {
	switch {
	case d < 100*time.Second:
		return fmt.Sprintf("%d s", int(d.Round(time.Second)/time.Second))
	case d < 100*time.Minute:
		return fmt.Sprintf("%d min", int(d.Round(time.Minute)/time.Minute))
	case d < 72*time.Hour:
		return fmt.Sprintf("%d h", int(d.Round(time.Hour)/time.Hour))
	}
	return fmt.Sprintf("%d days", int(d/(24*time.Hour)))
}

// join joins what is not empty.
func join(by string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), by)
}
