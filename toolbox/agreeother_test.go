// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// another names, in the environment, another program that is many commands, as AGREE_WITH=/bin/toybox.
const another = "AGREE_WITH"

// tally counts invocations of a command.
type tally struct{ all, ours, theirs, missing int }

// TestAgreementOfAnother measures how often the commands of another toolbox agree with busybox's or GNU's, beside this one's. It fails
// nothing: it prints the figures of decision 037. Exit codes agree when both are 0 or none is.
func TestAgreementOfAnother(t *testing.T) {
	program := os.Getenv(another)
	if program == "" {
		t.Skip("nothing to measure: " + another + " names no program")
	}
	busybox := findBusybox(t)
	fresh := untouched(t)
	counts := map[string]*tally{}
	for _, c := range readInvocations(t) {
		n := counts[c.args[0]]
		if n == nil {
			n = &tally{}
			counts[c.args[0]] = n
		}
		if err := c.measure(t, fresh, busybox, program, n); err != nil {
			t.Logf("%s: %v", c.line, err)
		}
	}
	sum := tally{}
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		n := counts[name]
		fmt.Printf("%-10s %4d, toolbox %5.1f %%, the other %5.1f %%%s\n", name, n.all, percent(n.ours, n.all), percent(n.theirs, n.all-n.missing),
			map[bool]string{true: " (it has none)"}[n.missing == n.all])
		sum.all, sum.ours, sum.theirs, sum.missing = sum.all+n.all, sum.ours+n.ours, sum.theirs+n.theirs, sum.missing+n.missing
	}
	fmt.Printf("together   %4d, toolbox %5.1f %%, the other %5.1f %% of the %d that it has\n", sum.all, percent(sum.ours, sum.all),
		percent(sum.theirs, sum.all-sum.missing), sum.all-sum.missing)
}

func percent(n, of int) float64 { return 100 * float64(n) / float64(max(1, of)) }

func (c invocation) measure(t *testing.T, fresh map[string]string, busybox, program string, n *tally) error {
	n.all++
	ours, err := c.run(t, fresh, filepath.Join(linkDir, c.args[0]), linkDir)
	if err != nil {
		return err
	}
	found, err := c.judge(t, fresh, busybox, ours, c.roughly)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		n.ours++
	}
	theirs, err := c.runIn(t, fresh, program)
	if err != nil {
		return err
	}
	if strings.Contains(theirs.stderr, "Unknown command "+c.args[0]) || strings.Contains(theirs.stderr, "command is not present") {
		n.missing++
		return nil
	}
	if found, err = c.judge(t, fresh, busybox, theirs, c.roughly); err == nil && len(found) == 0 {
		n.theirs++
	}
	return err
}

// roughly are the differences, if all exit codes but 0 are the same.
func (c invocation) roughly(theirs, ours outcome) []finding {
	theirs.code, ours.code = min(theirs.code, 1), min(ours.code, 1)
	return c.differences(theirs, ours)
}
