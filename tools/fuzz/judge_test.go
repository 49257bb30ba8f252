// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"testing"
)

// TestJudge goes through what Go's fuzzer prints: an input that fails is a finding, the end of the time and of the machine's memory are none.
func TestJudge(t *testing.T) {
	const begin = "fuzz: elapsed: 0s, gathering baseline coverage: 1/1 completed, now fuzzing with 1 workers\n" +
		"fuzz: elapsed: 3s, execs: 80927 (26964/sec), new interesting: 0 (total: 1)\n"
	exit1 := errors.New("exit status 1")
	for name, test := range map[string]struct {
		output string
		ended  error
		want   finding
	}{
		"passed": {begin + "PASS\n", nil, finding{verdict: passed}},
		"blind": {
			"warning: the test binary was not built with coverage instrumentation, so fuzzing will run without coverage guidance\n" + begin + "PASS\n", nil,
			finding{verdict: failed, why: "its coverage is not counted"},
		},
		"slow corpus": {
			"fuzz: elapsed: 3s, gathering baseline coverage: 3/90 completed\nPASS\n", nil,
			finding{verdict: passed, why: "its time went by with its corpus"},
		},
		"fails": {
			begin + "fuzz: minimizing 28-byte failing input file\n--- FAIL: FuzzBad (0.02s)\n    --- FAIL: FuzzBad (0.00s)\n        some_test.go:20: it is \"0\"\n    \n" +
				"    Failing input written to testdata/fuzz/FuzzBad/771e938e4458e983\n    To re-run:\n    go test -run=FuzzBad/771e938e4458e983\nFAIL\n", exit1,
			finding{failed, "an input fails", "testdata/fuzz/FuzzBad/771e938e4458e983"},
		},
		"fails with the words of the clock": {
			begin + "--- FAIL: FuzzBad (0.02s)\n    --- FAIL: FuzzBad (0.00s)\n        some_test.go:20: context deadline exceeded\n    \n" +
				"    Failing input written to testdata/fuzz/FuzzBad/77\n    To re-run:\n    go test -run=FuzzBad/77\nFAIL\n", exit1,
			finding{failed, "an input fails", "testdata/fuzz/FuzzBad/77"},
		},
		"seed of the source": {
			"failure while testing seed corpus entry: FuzzSeed/seed#0\n--- FAIL: FuzzSeed (0.01s)\n    --- FAIL: FuzzSeed (0.00s)\n        some_test.go:27: bad\nFAIL\n", exit1,
			finding{verdict: failed, why: "the seed FuzzSeed/seed#0 fails"},
		},
		"input of the corpus": {
			"failure while testing seed corpus entry: FuzzSeed/77\n--- FAIL: FuzzSeed (0.01s)\n    --- FAIL: FuzzSeed (0.00s)\nFAIL\n", exit1,
			finding{failed, "an input of the corpus fails", "testdata/fuzz/FuzzSeed/77"},
		},
		"time is up": {
			begin + "--- FAIL: FuzzGood (30.03s)\n    context deadline exceeded\nFAIL\n", exit1,
			finding{verdict: passed, why: "the time was up in the middle of an input"},
		},
		"time is up, and more": {
			begin + "--- FAIL: FuzzGood (30.03s)\n    context deadline exceeded\n    goroutine 7 [running]\nFAIL\n", exit1,
			finding{verdict: failed, why: "it ended with exit status 1"},
		},
		"hangs or dies": {
			begin + "--- FAIL: FuzzHung (10.09s)\n    fuzzing process hung or terminated unexpectedly: exit status 2\n" +
				"    Failing input written to testdata/fuzz/FuzzHung/e4\n    To re-run:\n    go test -run=FuzzHung/e4\nFAIL\n", exit1,
			finding{doubted, "an input took ten seconds, or ended the process", "testdata/fuzz/FuzzHung/e4"},
		},
		"no memory": {
			begin + "--- FAIL: FuzzKilled (0.01s)\n    fuzzing process terminated by unexpected signal; no crash will be recorded: signal: killed\nFAIL\n", exit1,
			finding{verdict: doubted, why: "the process was killed, perhaps for want of memory"},
		},
		"killed itself":  {begin, errors.New("signal: killed"), finding{verdict: failed, why: "it ended with signal: killed"}},
		"does not begin": {"panic: no port is free\n", errors.New("exit status 2"), finding{verdict: failed, why: "it ended with exit status 2"}},
	} {
		if got := judge(test.output, test.ended); got != test.want {
			t.Errorf("%s: %+v, wanted %+v", name, got, test.want)
		}
	}
}
