// SPDX-License-Identifier: Apache-2.0

package quantities

import (
	"strings"
	"testing"
)

// RS-01: what is a quantity is read as the library reads it; what it would take minutes for is refused.
func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"500m": "500m", "64Mi": "64Mi", "1e3": "1e3", "1E": "1E", "5Ei": "5Ei", "1e-3": "1e-3", "-2": "-2", "+1E+2": "100",
		"": "", "e": "", "1e-10000000": "", "e1000": "", "1e-100": "", "e12": "0", "1E+10000000": "", "1x": "", strings.Repeat("1", longest+1): "", "0." + strings.Repeat("0", 1e6): "",
	} {
		q, err := Parse(text)
		if got := q.String(); (err != nil) != (want == "") || err == nil && got != want {
			t.Errorf("%.30s: %s, %v; want %s", text, got, err, want)
		}
	}
}

// FuzzParse: every text is read or refused, in no time (a fuzzing process that takes 10 s for an input fails).
func FuzzParse(f *testing.F) {
	for _, text := range []string{"1", "500m", "64Mi", "1e-9", "1E", "0.5e+3", "1e-9999", "123456789012345678901234567890.5Gi"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if q, err := Parse(text); err == nil && q.String() == "" {
			t.Errorf("%q is read as nothing", text)
		}
	})
}
