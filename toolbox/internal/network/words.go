// SPDX-License-Identifier: Apache-2.0

package network

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode"
)

// inLine writes controls as openssl writes those in names: \0A is the end of a line. Otherwise whoever is asked, or
// made a certificate, could write lines that look like ours.
func inLine(text string) string {
	if strings.IndexFunc(text, unicode.IsControl) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if unicode.IsControl(r) {
			fmt.Fprintf(&b, `\%02X`, r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// seconds is a time given as a number. What does not fit is the longest there is, not a negative one.
func seconds(n float64) time.Duration {
	switch ns := n * float64(time.Second); {
	case math.IsNaN(ns):
		return 0
	case ns >= math.MaxInt64:
		return math.MaxInt64
	case ns <= math.MinInt64:
		return math.MinInt64
	default:
		return time.Duration(ns)
	}
}
