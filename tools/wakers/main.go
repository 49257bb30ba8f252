// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "wakers:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	t, err := read(in)
	if err != nil {
		return err
	}
	if t.seconds <= 0 {
		return fmt.Errorf("standard input is not a trace: pipe the output of go tool trace -d=parsed into it")
	}
	counts := t.byPlace()
	total := 0
	for _, n := range counts {
		total += n
	}
	fmt.Fprintf(out, "%6.1f  a second, over %.1f s\n", float64(total)/t.seconds, t.seconds)
	for _, place := range slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(counts[b]-counts[a], strings.Compare(a, b))
	}) {
		fmt.Fprintf(out, "%6.1f  %s\n", float64(counts[place])/t.seconds, place)
	}
	return nil
}

// trace is what is counted of one.
type trace struct {
	seconds float64
	woken   map[string]int      // goroutines, and how often a timer or a socket has woken each
	waits   map[string][]string // goroutines, and in which functions each waited last, the innermost first
}

var (
	transition = regexp.MustCompile(`^M=\S+ P=\S+ G=(\S+) StateTransition Time=(\d+) GoID=(\d+) (\w+)->(\w+)`)
	frame      = regexp.MustCompile(`^\t(\S.*) @ 0x`)
)

// read reads a trace. A goroutine that becomes runnable by nobody's doing (G=-1) was woken by the scheduler, which had
// a timer or a socket for it.
func read(in io.Reader) (trace, error) {
	t := trace{woken: map[string]int{}, waits: map[string][]string{}}
	var first, last float64
	var waiting string // the goroutine whose stack comes next
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if m := transition.FindStringSubmatch(line); m != nil {
			at, err := strconv.ParseFloat(m[2], 64)
			if err != nil {
				return t, err
			}
			if first == 0 {
				first = at
			}
			last = at
			if m[1] == "-1" && m[4] == "Waiting" && m[5] == "Runnable" {
				t.woken[m[3]]++
			}
			if waiting = ""; m[5] == "Waiting" {
				waiting = m[3]
			}
			continue
		}
		switch {
		case strings.HasPrefix(line, "TransitionStack"):
			if waiting != "" {
				t.waits[waiting] = nil
			}
		case line == "":
			waiting = ""
		case waiting != "":
			if m := frame.FindStringSubmatch(line); m != nil {
				t.waits[waiting] = append(t.waits[waiting], m[1])
			}
		}
	}
	t.seconds = (last - first) / 1e9
	return t, lines.Err()
}

// byPlace adds up what waits in the same place: the innermost functions that are not of Go's own ways to wait.
func (t trace) byPlace() map[string]int {
	out := map[string]int{}
	for g, n := range t.woken {
		var place []string
		for _, f := range t.waits[g] {
			if strings.HasPrefix(f, "runtime.") || strings.HasPrefix(f, "sync.") ||
				strings.HasPrefix(f, "internal/poll") {
				continue
			}
			if place = append(place, f[strings.LastIndex(f, "/")+1:]); len(place) == 3 {
				break
			}
		}
		if len(place) == 0 {
			place = []string{"Go's runtime"}
		}
		out[strings.Join(place, " < ")] += n
	}
	return out
}
