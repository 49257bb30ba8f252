// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

func main() {
	f := fuzzer{out: os.Stdout}
	flag.DurationVar(&f.long, "time", 0,
		"how long each target runs (default: its share of 150 seconds, 10 to 30 seconds)")
	flag.IntVar(&f.jobs, "jobs", 4*runtime.NumCPU(),
		"how many targets run at a time; they get their time, if not a whole core")
	parts := flag.Int("parts", 1,
		"run one of so many parts of the packages, another one each day: all that CI has time for")
	flag.StringVar(&f.binaries, "o", "bin/fuzz", "folder for the compiled tests")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(),
			"usage: fuzz [flags] [folder...]\nRuns the fuzz targets below the folders (default: internal, toolbox and tools).")
		flag.PrintDefaults()
	}
	flag.Parse()
	folders := flag.Args()
	if len(folders) == 0 {
		folders = []string{"internal", "toolbox", "tools"}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *parts > 1 {
		f.chosen = partOf(*parts, time.Now())
	}
	if err := f.run(ctx, folders); err != nil {
		fmt.Fprintln(os.Stderr, "fuzz:", err)
		os.Exit(1)
	}
}

// portion chooses packages: each of so many, beginning with one. The zero portion is all.
type portion struct{ each, first int }

// partOf is one of so many parts of all packages, the next one each day.
func partOf(parts int, now time.Time) portion {
	const day = 24 * 60 * 60
	return portion{parts, int(now.Unix() / day % int64(parts))}
}

func (p portion) of(packages [][]target) (chosen [][]target) {
	if p.each == 0 {
		return packages
	}
	for i := p.first; i < len(packages); i += p.each {
		chosen = append(chosen, packages[i])
	}
	return chosen
}

// run builds and runs all targets. The packages are built one after another, and a target starts as soon as its package
// is there.
func (f *fuzzer) run(ctx context.Context, folders []string) error {
	began := time.Now()
	packages, err := targets(folders)
	if err != nil {
		return err
	}
	packages = f.chosen.of(packages)
	if f.long == 0 {
		f.long = share(packages, f.jobs)
	}
	if err := f.prepare(ctx); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(f.temporary) }() // those that were killed leave something
	reports := f.together(ctx, packages)
	var failed []string
	for _, r := range reports {
		if r.verdict == doubted && ctx.Err() == nil {
			f.say("?    %s: %s; it runs once more, alone", r.target, r.why)
			r = f.again(ctx, r)
			f.tell(r)
		}
		if r.verdict != passed {
			failed = append(failed, r.target.String())
		}
	}
	if ctx.Err() != nil {
		return fmt.Errorf("stopped: %w", context.Cause(ctx))
	}
	if len(failed) > 0 {
		return fmt.Errorf("of %d targets %d failed: %s", len(reports), len(failed), strings.Join(failed, ", "))
	}
	f.say("ok   %d targets, %s each, in %s; everything was built after %s", len(reports), f.long, since(began),
		f.built.Sub(began).Round(time.Second))
	return nil
}

// share is how long each target runs so that all together take two and a half minutes, if jobs run at a time: between
// 10 and 30 seconds.
func share(packages [][]target, jobs int) time.Duration {
	n := 0
	for _, p := range packages {
		n += len(p)
	}
	const all, least, most = 150 * time.Second, 10 * time.Second, 30 * time.Second
	return min(max(all*time.Duration(jobs)/time.Duration(max(n, 1)), least), most).Truncate(time.Second)
}

func since(t time.Time) time.Duration { return time.Since(t).Round(time.Second) }

// tell prints what came of a target, and all that is needed to repeat a failure.
func (f *fuzzer) tell(r report) {
	switch r.verdict {
	case doubted: // it is told when it has run again
	case passed:
		line := fmt.Sprintf("ok   %s", r.target)
		if execs := part(r.output, `(?s).*(execs: \d+)`); execs != "" {
			line += " " + execs
		}
		if r.why != "" {
			line += " (" + r.why + ")"
		}
		f.say("%s", line)
	case failed:
		text := fmt.Sprintf("FAIL %s: %s\n%s", r.target, r.why, indented(r.output))
		if r.input != "" {
			file := filepath.Join(r.target.folder, r.input)
			if input, err := os.ReadFile(file); err == nil {
				text += fmt.Sprintf("\nThe input, %s; commit it together with the mending:\n%s", file,
					indented(string(input)))
			} else {
				text += fmt.Sprintf("\nThe input cannot be read: %v", err)
			}
		}
		f.say("%s", strings.TrimRight(text, "\n"))
	}
}

func indented(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    ")
}
