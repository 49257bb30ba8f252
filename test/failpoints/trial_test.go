// SPDX-License-Identifier: Apache-2.0

package failpoints

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wherryproject/wherry/test/e2e"
)

// never is how long a step may take without the server dying: it says "never", not "slow". Back-offs of the pod engine are in it.
const never = 100 * time.Second

// finding is an error that is no consequence of the server's death, and not to be tried again.
type finding string

func (f finding) Error() string { return string(f) }

// trial is a server with faults.
type trial struct {
	t      *testing.T
	srv    *e2e.Server
	ledger ledger

	hostPort int32 // on which the pods of all lives serve

	faults []fault         // that are still to happen
	armed  int             // how many of them at a time
	had    map[string]bool // those that have happened
	trail  []string        // what happened since the life began, and in which step
	lives  int
	strict bool // nothing may be started twice: only the server dies
	alone  bool // each life is left by its pod's shim, and begins without a resolver

	remote string // a folder of a file system that is somewhere else
}

// do does a step of a life, again and again while faults keep it from succeeding.
func (tr *trial) do(step string, f func(context.Context) error) {
	tr.t.Helper()
	failed, since := 0, time.Now()
	for {
		tr.up(step)
		err := tr.try(f)
		if err == nil {
			return
		}
		var bad finding
		died, hit := tr.ended(), tr.settle(step)
		switch {
		case errors.As(err, &bad):
			tr.fatal(step, err)
		case died && hit == 0:
			tr.fatal(step, fmt.Errorf("the server has ended by itself: %w", err))
		case !died && hit == 0 && !tr.alone:
			if failed++; failed >= 3 {
				tr.fatal(step, err)
			}
		case !died && hit == 0: // a pod whose shim has died is being started again, and nobody tells when
			if time.Since(since) > never {
				tr.fatal(step, err)
			}
			time.Sleep(100 * time.Millisecond)
		default:
			since = time.Now()
		}
	}
}

// try makes one attempt, which ends with the server.
func (tr *trial) try(f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(tr.t.Context(), never)
	defer cancel()
	go func() {
		select {
		case <-tr.srv.Done():
			cancel()
		case <-ctx.Done():
		}
	}()
	return f(ctx)
}

// ended tells whether the server has ended. Clients may know a moment earlier that it has.
func (tr *trial) ended() bool {
	select {
	case <-tr.srv.Done():
		return true
	case <-time.After(time.Second):
		return false
	}
}

// up starts the server, if it has died.
func (tr *trial) up(step string) {
	tr.t.Helper()
	select {
	case <-tr.srv.Done():
		tr.settle(step)
		tr.start()
	default:
	}
}

// start starts the server, as often as it dies of that.
func (tr *trial) start() {
	tr.t.Helper()
	for {
		tr.arm()
		err := tr.srv.Start(tr.t.Context())
		if err == nil {
			return
		}
		if !tr.ended() {
			tr.fatal("start", err)
		}
		if tr.settle("start") == 0 {
			tr.fatal("start", fmt.Errorf("the server does not start: %w", err))
		}
	}
}

// arm gives the next start some of the faults that are still to happen.
func (tr *trial) arm() {
	var terms []string
	places := map[string]bool{}
	for _, f := range tr.faults {
		if len(terms) == tr.armed {
			break
		}
		if !places[f.place] {
			places[f.place] = true
			terms = append(terms, f.term())
		}
	}
	// What was armed comes last the next time: what does not come any more must not keep others from it.
	tr.faults = slices.Concat(tr.faults[min(len(terms), len(tr.faults)):], tr.faults[:min(len(terms), len(tr.faults))])
	tr.srv.Setenv("FAILPOINTS_DIR="+string(tr.ledger), "GOFAIL_FAILPOINTS="+strings.Join(terms, ";"))
}

// settle notes which faults have happened meanwhile, and counts them.
func (tr *trial) settle(step string) (n int) {
	tr.t.Helper()
	done, err := tr.ledger.done()
	if err != nil {
		tr.t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(done)) {
		if !tr.had[name] {
			tr.had[name] = true
			tr.trail = append(tr.trail, step+": "+name)
			tr.t.Logf("%s: %s", step, name)
			n++
		}
	}
	tr.faults = slices.DeleteFunc(tr.faults, func(f fault) bool { return done[f.String()] })
	return n
}

func (tr *trial) fatal(step string, err error) {
	tr.t.Helper()
	tr.t.Fatalf("RS-07 %s of life-%d: %v\nafter:\n  %s\nthe end of the server's log:\n%s", step, tr.lives, err, strings.Join(tr.trail, "\n  "), tr.srv.LogTail(25))
}
