// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		name   string
		r      result
		target string
		says   string
	}{
		{"ratio met", result{Figure: 130 * time.Millisecond, Bare: 100 * time.Millisecond, MaxRatio: 1.3}, "≤ 1.3 × bare", "met"},
		{"ratio missed", result{Figure: 150 * time.Millisecond, Bare: 100 * time.Millisecond, MaxRatio: 1.3}, "≤ 1.3 × bare", "missed by 20 ms"},
		{"over missed", result{Figure: 95 * time.Millisecond, Bare: 20 * time.Millisecond, MaxOver: 70 * time.Millisecond}, "≤ bare + 70 ms", "missed by 5.0 ms"},
		{"limit met", result{Figure: time.Second, Limit: 2 * time.Second}, "≤ 2000 ms", "met"},
		{"bytes missed", result{Bytes: 230 << 20, MaxBytes: 220 << 20}, "≤ 220 MB", "missed by 10 MB"},
		{"share missed", result{Share: 0.01, MaxShare: 0.008}, "≤ 0.8 %", "missed by 0.20 %"},
		{"no target", result{Bytes: 1 << 20}, "–", "–"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if target, says := c.r.verdict(); target != c.target || says != c.says {
				t.Errorf("%q, %q; want %q, %q", target, says, c.target, c.says)
			}
		})
	}
}

func TestMedian(t *testing.T) {
	s := samples{"odd": {5, 1, 3}, "even": {4, 1, 2, 10}}
	if got := s.median("odd"); got != 3 {
		t.Errorf("odd: %d", got)
	}
	if got := s.median("even"); got != 3 {
		t.Errorf("even: %d", got)
	}
}

// A report is written anew, but for what people wrote into it.
func TestReportKeepsNotes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "docs", "benchmarks.md")
	write := func(table string) string {
		t.Helper()
		if err := writeReport(path, table, conditions{}); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if err := os.WriteFile(path, []byte(write("old\n")+"\nWhy it is so.\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	text := write("new\n")
	if !strings.Contains(text, "new\n") || strings.Contains(text, "old\n") || !strings.HasSuffix(text, notesMark+"\n\nWhy it is so.\n") {
		t.Errorf("report:\n%s", text)
	}
}
