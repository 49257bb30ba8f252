// SPDX-License-Identifier: Apache-2.0

package script

import (
	"reflect"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	for _, tc := range []struct {
		words []string
		want  Script
		bad   bool
	}{
		{words: nil, want: Script{StopCode: 143}},
		{words: []string{"/prog", "run_for=2s", "exit_code=3"}, want: Script{Ends: true, RunFor: 2 * time.Second, ExitCode: 3, StopCode: 143}},
		{words: []string{"stdout=a=b", "stdout=c", "stderr="}, want: Script{Stdout: []string{"a=b", "c"}, Stderr: []string{""}, StopCode: 143}},
		{words: []string{"ignore_sigterm=true", "stop_delay=1m", "stop_code=0"}, want: Script{IgnoreStop: true, StopDelay: time.Minute}},
		{words: []string{"--other=thing", "PATH=/bin"}, want: Script{StopCode: 143}},
		{words: []string{"run_for=soon"}, bad: true},
		{words: []string{"run_for=-1s"}, bad: true},
		{words: []string{"exit_code=256"}, bad: true},
	} {
		got, err := Parse(tc.words)
		if (err != nil) != tc.bad || !tc.bad && !reflect.DeepEqual(got, tc.want) {
			t.Errorf("Parse(%q) = %+v, %v; want %+v, bad %v", tc.words, got, err, tc.want, tc.bad)
		}
	}
}

func TestWithDoesNotShareLines(t *testing.T) {
	base, _ := Parse([]string{"stdout=1"})
	a, _ := base.With([]string{"stdout=a"})
	b, _ := base.With([]string{"stdout=b"})
	if a.Stdout[1] != "a" || b.Stdout[1] != "b" || len(base.Stdout) != 1 {
		t.Errorf("lines are shared: base %q, a %q, b %q", base.Stdout, a.Stdout, b.Stdout)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("run_for=2s", "exit_code=1")
	f.Add("stdout==", "=")
	f.Fuzz(func(t *testing.T, a, b string) {
		s, err := Parse([]string{a, b})
		if err == nil && (s.RunFor < 0 || s.StopDelay < 0 || s.ExitCode < 0 || s.ExitCode > 255) {
			t.Errorf("Parse(%q, %q) = %+v", a, b, s)
		}
	})
}
