// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) < 2 {
		return errors.New("usage: conformance KNOWN.txt REPORT.json…")
	}
	list, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	known, err := parseKnown(string(list))
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	var all []spec
	for _, name := range args[1:] {
		report, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		specs, err := parseReport(report)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, specs...)
	}
	return judge(all, known, out)
}

// spec is one that was run.
type spec struct {
	name    string
	failed  bool
	message string
}

// parseReport reads ginkgo's JSON report. Specs that were not chosen, or that skipped themselves, are left out.
func parseReport(report []byte) (all []spec, err error) {
	var suites []struct {
		SpecReports []struct {
			ContainerHierarchyTexts []string
			LeafNodeText            string
			LeafNodeType            string
			State                   string
			Failure                 struct{ Message string }
		}
	}
	if err := json.Unmarshal(report, &suites); err != nil {
		return nil, fmt.Errorf("not a report of ginkgo's: %w", err)
	}
	for _, s := range suites {
		for _, r := range s.SpecReports {
			if r.LeafNodeType != "It" || r.State == "skipped" || r.State == "pending" {
				continue
			}
			first, _, _ := strings.Cut(strings.TrimSpace(r.Failure.Message), "\n")
			all = append(all, spec{name: strings.Join(append(r.ContainerHierarchyTexts, r.LeafNodeText), " "),
				failed: r.State != "passed", message: first})
		}
	}
	return all, nil
}

// parseKnown reads the list of specs that are known to fail: name and reason.
func parseKnown(list string) (map[string]string, error) {
	known := map[string]string{}
	for i, line := range strings.Split(list, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, why, ok := strings.Cut(line, "\t")
		if why = strings.TrimSpace(why); !ok || why == "" {
			return nil, fmt.Errorf("line %d: want a spec's name, a tab and the reason", i+1)
		}
		known[strings.TrimSpace(name)] = why
	}
	return known, nil
}

// judge prints what failed, and fails at what was not to be expected.
func judge(specs []spec, known map[string]string, out io.Writer) error {
	passed, failed := 0, 0
	var surprises []string
	slices.SortFunc(specs, func(a, b spec) int { return strings.Compare(a.name, b.name) })
	for _, s := range specs {
		why, expected := known[s.name]
		switch {
		case s.failed && expected:
			failed++
			fmt.Fprintf(out, "known   %s\n        %s\n", s.name, why)
		case s.failed:
			failed++
			surprises = append(surprises, fmt.Sprintf("FAILED  %s\n        %s", s.name, s.message))
		case expected:
			passed++
			surprises = append(surprises, fmt.Sprintf("passed  %s\n        take it off the list", s.name))
		default:
			passed++
		}
	}
	for _, s := range surprises {
		fmt.Fprintln(out, s)
	}
	fmt.Fprintf(out, "%d specs passed, %d failed; %d not as expected\n", passed, failed, len(surprises))
	switch {
	case len(specs) == 0:
		return errors.New("no spec was run")
	case len(surprises) > 0:
		return fmt.Errorf("%d specs did not do what the list of known failures says", len(surprises))
	}
	return nil
}
