// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
)

func main() {
	dir := flag.String("dir", "",
		"keep the programs in this folder, and use those that are there; default: a temporary one")
	runs := flag.Int("runs", 20, "how often each program is started, in turn")
	all := flag.Bool("all", false, "the parts together as well")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage, in test/agree: go run ./cost [-dir DIR] [-runs N] [-all] [PART ...]")
		flag.PrintDefaults()
	}
	flag.Parse()
	if err := measure(*dir, *runs, *all, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "cost:", err)
		os.Exit(1)
	}
}

func measure(dir string, runs int, all bool, names []string) error {
	if dir == "" {
		temporary, err := os.MkdirTemp("", "cost-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(temporary)
		dir = temporary
	}
	chosen, err := choose(parts(), names, all)
	if err != nil {
		return err
	}
	var programs []*program
	for _, p := range chosen {
		file, packages, err := build(dir, p.name, p.theirs)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		info, err := os.Stat(file)
		if err != nil {
			return err
		}
		lines, err := codeLines("../..", p.ours)
		if err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "%s: built\n", p.name)
		programs = append(programs, &program{part: p, file: file, lines: lines, packages: packages, size: info.Size()})
	}
	for range runs {
		for _, p := range programs {
			if err := p.start(); err != nil {
				return err
			}
		}
	}
	write(os.Stdout, programs)
	return nil
}

// choose puts the program as it is before the parts that are named, or before all.
func choose(known []part, names []string, all bool) ([]part, error) {
	list := []part{{name: "as-it-is"}}
	union := part{name: "all"}
	for _, p := range known {
		union.ours, union.theirs = append(union.ours, p.ours...), append(union.theirs, p.theirs...)
		if len(names) == 0 || slices.Contains(names, p.name) {
			list = append(list, p)
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(known, func(p part) bool { return p.name == name }) {
			return nil, fmt.Errorf("%s: there is no such part", name)
		}
	}
	if all {
		list = append(list, union)
	}
	return list, nil
}
