// SPDX-License-Identifier: Apache-2.0

package early

import (
	"context"
	"os"
)

// had is the session that was carried before main began; nil if there was none, or it has been taken. It is a variable because an
// initialization has nobody to return it to.
var had *outcome

// init, and not a function that main calls: when main begins, the time is spent.
func init() {
	w := world{args: os.Args, getenv: os.Getenv, in: os.Stdin, out: os.Stdout, err: os.Stderr}
	p, ok := w.plan()
	if !ok {
		return
	}
	had = w.carry(context.Background(), p)
	if p.whole && had != nil && had.Err == nil {
		os.Exit(had.Code)
	}
}
