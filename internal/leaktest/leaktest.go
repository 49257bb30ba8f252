// SPDX-License-Identifier: Apache-2.0

package leaktest

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// Patience is how long goroutines may take to end.
const Patience = 20 * time.Second

// None fails the test if there are goroutines of which the options know nothing, and that do not end.
func None(t testing.TB, options ...goleak.Option) {
	t.Helper()
	if err := find(Patience, options); err != nil {
		t.Error(err)
	}
}

// Main runs a package's tests and exits: with an error if they fail, or leave goroutines behind.
func Main(m *testing.M, options ...goleak.Option) {
	code := m.Run()
	if code == 0 {
		if err := find(Patience, options); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// find looks for goroutines until there are none left, which is at once most of the time, or the patience is over.
func find(patience time.Duration, options []goleak.Option) (err error) {
	for end := time.Now().Add(patience); ; {
		if err = goleak.Find(options...); err == nil || time.Now().After(end) {
			return err
		}
	}
}
