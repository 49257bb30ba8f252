// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"strings"
)

// verdict is what the end of a target's run means.
type verdict int

const (
	passed  verdict = iota
	failed          // something was found
	doubted         // it may be the machine's fault: to be run once more, alone
)

// finding is a verdict with its reason.
type finding struct {
	verdict verdict
	why     string
	// input is the file with the input that failed, "" if there is none. It is relative to the package's folder, or
	// only a name if it is in the corpus of the cache.
	input string
}

// judge decides what a run of a fuzz target has shown, from what it printed and whether it ended with an error.
func judge(output string, ended error) finding {
	if strings.Contains(output, "not built with coverage instrumentation") {
		return finding{verdict: failed, why: "its coverage is not counted"}
	}
	if ended == nil {
		if !strings.Contains(output, "now fuzzing with") {
			return finding{verdict: passed, why: "its time went by with its corpus"}
		}
		return finding{verdict: passed}
	}
	input := part(output, `(?m)^ +Failing input written to (\S+)`)
	switch {
	case input != "" && strings.Contains(output, "fuzzing process hung or terminated unexpectedly"):
		// the fuzzer does not say which
		return finding{doubted, "an input took ten seconds, or ended the process", input}
	case input != "":
		return finding{failed, "an input fails", input}
	case strings.Contains(output, "failure while testing seed corpus entry: "):
		seed := part(output, `failure while testing seed corpus entry: (\S+)`)
		if strings.Contains(seed, "/seed#") { // it is in the source
			return finding{verdict: failed, why: "the seed " + seed + " fails"}
		}
		return finding{failed, "an input of the corpus fails", "testdata/fuzz/" + seed}
	case strings.Contains(output, "fuzzing process terminated by unexpected signal"):
		return finding{verdict: doubted, why: "the process was killed, perhaps for want of memory"}
	case strings.Contains(output, "communicating with fuzzing process"):
		return finding{verdict: doubted, why: "the process was lost"}
	case onlyLate(output):
		return finding{verdict: passed, why: "the time was up in the middle of an input"}
	}
	return finding{verdict: failed, why: "it ended with " + ended.Error()}
}

// onlyLate reports whether a target failed for no other reason than that its time was up: before Go 1.27 its fuzzer
// does so now and then (https://go.dev/issue/75804).
func onlyLate(output string) bool {
	var said []string
	inside := false
	for line := range strings.Lines(output) {
		switch text := strings.TrimSpace(line); {
		case strings.HasPrefix(line, "--- FAIL: "):
			inside = true
		case !inside || text == "" || text == "FAIL" || strings.HasPrefix(text, "exit status "):
		default:
			said = append(said, text)
		}
	}
	return len(said) == 1 && said[0] == "context deadline exceeded"
}

func part(output, pattern string) string {
	if match := regexp.MustCompile(pattern).FindStringSubmatch(output); match != nil {
		return match[1]
	}
	return ""
}
