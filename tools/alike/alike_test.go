// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// program prints what Go's runtime leaves to chance, and who ran while others were long at work.
const program = `package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"syscall"
	"time"
)

func main() {
	many := map[int]bool{}
	for i := range 100 {
		many[i] = true
	}
	for i := range many {
		fmt.Print(i, " ")
	}
	a, b := make(chan int, 64), make(chan int, 64)
	for i := range 64 {
		a <- i
		b <- -i
	}
	for range 64 {
		select {
		case i := <-a:
			fmt.Print(i, " ")
		case i := <-b:
			fmt.Print(i, " ")
		}
	}
	fmt.Println(rand.Uint64(), &many)
	fmt.Printf("%p\n", new(sync.Mutex))
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			fmt.Print("begin ", i)
			if i % 2 == 0 {
				for begin := time.Now(); time.Since(begin) < 40*time.Millisecond; {
				}
			} else if err := syscall.Nanosleep(&syscall.Timespec{Nsec: 40e6}, nil); err != nil {
				panic(err)
			}
			fmt.Print(" end ", i, "\n")
		})
	}
	all.Wait()
	if len(os.Args) > 1 {
		os.Exit(7)
	}
}
`

func here(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip(errElsewhere)
	}
}

// build builds a program of Go.
func build(t *testing.T, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "program")
	c := exec.CommandContext(t.Context(), "go", append(append([]string{"build", "-o", out}, flags...), "main.go")...)
	c.Dir, c.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if said, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	return out
}

// Runs of a program with one seed are the same, and others with another; nobody runs while another is at work.
func TestRunsAreAlike(t *testing.T) {
	here(t)
	out := build(t)
	alike := filepath.Join(t.TempDir(), "alike")
	if said, err := exec.CommandContext(t.Context(), "go", "build", "-o", alike, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	say := func(args ...string) string {
		var errs bytes.Buffer
		c := exec.CommandContext(t.Context(), args[0], args[1:]...)
		c.Stderr = &errs
		said, err := c.Output()
		if err != nil {
			t.Fatalf("%v: %s", err, errs.String())
		}
		return string(said)
	}
	first := say(alike, "-seed", "1", out)
	for range 3 {
		if again := say(alike, "-seed", "1", out); again != first {
			t.Fatalf("two runs:\n%s\n%s", first, again)
		}
	}
	if other := say(alike, "-seed", "2", out); other == first {
		t.Error("another seed makes no difference")
	}
	if plain := say(out); plain == say(out) {
		t.Error("runs are alike without it: this test proves nothing")
	}
	if n := strings.Count(first, "begin"); n != 8 {
		t.Errorf("%d goroutines began", n)
	}
	for line := range strings.Lines(first) {
		if strings.Count(line, "begin") > 1 || strings.Contains(line, "begin") != strings.Contains(line, "end") {
			t.Errorf("somebody ran while another was at work: %q", line)
		}
	}
	c := exec.CommandContext(t.Context(), alike, out, "fails")
	if err := c.Run(); c.ProcessState.ExitCode() != 7 {
		t.Errorf("a program that ended with 7: %v", err)
	}
}

// A program that is not of the kind that is known is refused, with the reason.
func TestOthersAreRefused(t *testing.T) {
	here(t)
	self, err := filepath.Abs("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	for name, of := range map[string]struct{ program, why string }{
		"no program": {self, "not a Go program"},
		"stripped":   {build(t, "-ldflags=-s"), "without -ldflags=-s"},
		"anywhere":   {build(t, "-buildmode=pie"), "-buildmode=exe"},
	} {
		if _, err := read(of.program); err == nil || !strings.Contains(err.Error(), of.why) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
