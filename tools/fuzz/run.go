// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// fuzzer runs targets. Its methods may be called from several goroutines.
type fuzzer struct {
	long     time.Duration // of one target
	jobs     int
	binaries string  // folder
	chosen   portion // of the packages
	out      io.Writer

	corpus string // folder of the inputs that widen the coverage, absolute; "" is Go's own
	built  time.Time

	temporary string     // folder for the targets' files
	lines     sync.Mutex // held while something is printed
}

// report is what came of a target.
type report struct {
	target target
	binary string
	output string
	finding
}

// overtime is how long a target may run on after its time, before it is killed: it may have an input to make smaller,
// and a machine that has other things to do.
const overtime = 3 * time.Minute

// repeats is how often an input must pass alone to be thought good, if the fuzzer lost it.
const repeats = 20

func (f *fuzzer) say(format string, args ...any) {
	f.lines.Lock()
	defer f.lines.Unlock()
	fmt.Fprintf(f.out, format+"\n", args...)
}

func (f *fuzzer) prepare(ctx context.Context) error {
	if f.corpus == "" {
		cache, err := exec.CommandContext(ctx, "go", "env", "GOCACHE").Output()
		if err != nil {
			return fmt.Errorf("go env: %w", err)
		}
		f.corpus = filepath.Join(strings.TrimSpace(string(cache)), "fuzz")
	}
	var err error
	if f.binaries, err = filepath.Abs(f.binaries); err != nil {
		return err
	}
	if err := os.RemoveAll(f.binaries); err != nil {
		return err
	}
	if err := os.MkdirAll(f.binaries, 0o755); err != nil {
		return err
	}
	const memory = "/dev/shm" // most of a target's time would go by with waiting for a disk
	if f.temporary, err = os.MkdirTemp(memory, "fuzz-"); err != nil {
		f.temporary, err = os.MkdirTemp("", "fuzz-")
	}
	return err
}

// together runs the targets of packages, several at a time, each as soon as it is built.
func (f *fuzzer) together(ctx context.Context, packages [][]target) []report {
	var reports []report
	var mu sync.Mutex
	done := func(r report) {
		f.tell(r)
		mu.Lock()
		defer mu.Unlock()
		reports = append(reports, r)
	}
	ready := make(chan report)
	var runners sync.WaitGroup
	for range f.jobs {
		runners.Go(func() {
			for r := range ready {
				done(f.fuzz(ctx, r))
			}
		})
	}
	for _, one := range packages {
		binary, err := f.build(ctx, one[0].folder)
		for _, t := range one {
			if err != nil {
				done(report{target: t, output: err.Error(), finding: finding{verdict: failed,
					why: "it cannot be built"}})
				continue
			}
			ready <- report{target: t, binary: binary}
		}
	}
	f.built = time.Now()
	close(ready)
	runners.Wait()
	return reports
}

// instrumented is for what a target's coverage is counted: the packages of its own module. `go test -fuzz` would count
// for all packages, which compiles the whole of Kubernetes once more, makes an input take three times as long, and
// calls an input interesting for what a library does with it.
const instrumented = "-gcflags=./...=-d=libfuzzer"

// build compiles a package's tests, once for all of its targets.
func (f *fuzzer) build(ctx context.Context, folder string) (string, error) {
	at, err := module(folder)
	if err != nil {
		return "", err
	}
	within, err := filepath.Rel(at, folder)
	if err != nil {
		return "", err
	}
	binary := filepath.Join(f.binaries, strings.ReplaceAll(folder, "/", "-")+".test")
	cmd := exec.CommandContext(ctx, "go", "test", "-vet=off", "-c", instrumented, "-ldflags=-s -w", "-o", binary,
		"./"+within)
	cmd.Dir = at
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, text)
	}
	return binary, nil
}

// fuzz runs one target.
func (f *fuzzer) fuzz(ctx context.Context, r report) report {
	var ended error
	r.output, ended = f.execute(ctx, r, f.long+overtime, "-test.run=^$", "-test.fuzz=^"+r.target.name+"$",
		"-test.fuzztime="+f.long.String(), "-test.fuzzminimizetime=3s", "-test.parallel=1",
		"-test.fuzzcachedir="+filepath.Join(f.corpus, r.target.folder))
	r.finding = judge(r.output, ended)
	return r
}

// again runs a target of which nobody knows whether it failed: only the input that was in doubt, if there is one.
func (f *fuzzer) again(ctx context.Context, r report) report {
	if r.input == "" {
		if r = f.fuzz(ctx, r); r.verdict == doubted {
			r.verdict = failed
		}
		return r
	}
	file := filepath.Join(r.target.folder, r.input)
	input, err := os.ReadFile(file)
	if err != nil {
		r.verdict, r.why = failed, err.Error()
		return r
	}
	output, ended := f.execute(ctx, r, overtime, "-test.run=^"+r.target.name+"$/^"+filepath.Base(r.input)+"$",
		fmt.Sprintf("-test.count=%d", repeats), "-test.timeout=1m")
	if ended != nil {
		r.verdict, r.output = failed, r.output+"\nAgain, alone:\n"+output
		return r
	}
	if err := os.Remove(file); err != nil { // it says nothing, and would be run for ever
		r.verdict, r.why = failed, err.Error()
		return r
	}
	r.verdict, r.why = passed, fmt.Sprintf("%s, and passes %d times alone: %s", r.why, repeats,
		strings.TrimSpace(string(input)))
	return r
}

// execute runs a compiled test in its package's folder, with the processes that it starts.
func (f *fuzzer) execute(ctx context.Context, r report, limit time.Duration, args ...string) (string, error) {
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(within, r.binary, args...)
	cmd.Dir = r.target.folder
	cmd.Env = append(os.Environ(), "TMPDIR="+f.temporary)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	err := cmd.Start()
	if err == nil {
		_ = syscall.Setpriority(syscall.PRIO_PGRP, cmd.Process.Pid, 10) // what is still to be built comes first
		err = cmd.Wait()
	}
	if errors.Is(within.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("killed after %s: %w", limit, err)
	}
	return output.String(), err
}
