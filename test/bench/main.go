// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// settings are the flags.
type settings struct {
	wherry string        // the program to measure
	dir    string        // below which everything is made
	rows   []string      // names of the rows to measure
	n      int           // measurements of each side
	pods   int           // of the rows with many
	idle   time.Duration // how long idleness is watched
	settle time.Duration // quiet time before idleness is watched
	out    string        // where to write; "" = only to the terminal
	logs   string        // log level of the server; "" = its default
}

func main() {
	if len(os.Args) > 2 && os.Args[1] == "call" { // from the shell loop
		if err := call(os.Args[2], os.Args[3:]); err != nil {
			fmt.Fprintln(os.Stderr, "bench call:", err)
			os.Exit(1)
		}
		return
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() error {
	s, err := parse(os.Args[1:])
	if err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		return errors.New("containers need root: run it with sudo")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	before := load()
	results, err := measure(ctx, s)
	text := table(results)
	fmt.Print(text)
	if err != nil || s.out == "" {
		return err
	}
	return writeReport(s.out, text, conditions{settings: s, machine: lookAtMachine(), before: before, after: load(),
		at: time.Now()})
}

func parse(args []string) (settings, error) {
	var s settings
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	names := rowNames()
	rows := f.String("rows", "", "rows to measure, separated by commas: "+strings.Join(names, ", ")+" (default all)")
	f.IntVar(&s.n, "n", 10, "measurements of each side")
	f.IntVar(&s.pods, "pods", 50, "pods of the rows with many")
	f.DurationVar(&s.idle, "idle", time.Minute, "how long an idle server is watched")
	f.DurationVar(&s.settle, "settle", 20*time.Second, "quiet time before that")
	f.StringVar(&s.wherry, "wherry", "bin/wherry", "program to measure")
	f.StringVar(&s.dir, "dir", "",
		"folder for everything the benchmarks make (default: a new one below /tmp, removed at the end)")
	f.StringVar(&s.out, "o", "", "write the table to this file (default: docs/benchmarks.md if all rows are measured)")
	f.StringVar(&s.logs, "log-level", "", "log level of the measured server; its log goes to the terminal")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	s.rows = names
	if *rows != "" {
		s.rows = strings.Split(*rows, ",")
	} else if s.out == "" {
		s.out = "docs/benchmarks.md"
	}
	for _, r := range s.rows {
		if !slices.Contains(names, r) {
			return s, fmt.Errorf("-rows: there is no row %q; there are %s", r, strings.Join(names, ", "))
		}
	}
	return s, nil
}

// row measures one line of the table, or several that belong together.
type row struct {
	name    string
	measure func(*bench, context.Context) ([]result, error)
	own     bool // it has servers of its own, and comes before the shared one is up
}

// allRows are in the order in which they are measured: a server is idle before it has worked and after.
func allRows() []row {
	return []row{
		{name: "start", measure: (*bench).coldStart, own: true},
		{name: "workload", measure: (*bench).smallWorkload, own: true},
		{name: "name", measure: (*bench).startToName, own: true},
		{name: "idle", measure: (*bench).idleEmpty},
		{name: "pod", measure: (*bench).onePod},
		{name: "sidecars", measure: (*bench).sidecars},
		{name: "restart", measure: (*bench).restarts},
		{name: "ready", measure: (*bench).readiness},
		{name: "exec", measure: (*bench).exec},
		{name: "attach", measure: (*bench).attachSessions},
		{name: "debug", measure: (*bench).debugSessions},
		{name: "copy", measure: (*bench).copies},
		{name: "trust", measure: (*bench).trust},
		{name: "many", measure: (*bench).manyPods},
		{name: "shims", measure: (*bench).shims, own: true},
		{name: "deployment", measure: (*bench).oneReplica},
		{name: "replicas", measure: (*bench).manyReplicas},
		{name: "services", measure: (*bench).services},
		{name: "idle-many", measure: (*bench).idleMany},
		{name: "agent", measure: (*bench).agentRestart},
	}
}

func rowNames() (names []string) {
	for _, r := range allRows() {
		names = append(names, r.name)
	}
	return names
}
