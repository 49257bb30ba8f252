// SPDX-License-Identifier: Apache-2.0

package failpoints

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// fault is one thing that can go wrong at one place.
type fault struct {
	place, what string
	skip        int // passes of a process before it
}

func (f fault) String() string { return f.place + "=" + f.what }

// term is the fault as gofail reads it.
func (f fault) term() string {
	if f.skip == 0 {
		return fmt.Sprintf("%s=1*return(%q)", f.place, f.what)
	}
	return fmt.Sprintf("%s=%d*off->1*return(%q)", f.place, f.skip, f.what)
}

// deadly tells whether the server, or the CNI plug-in that it runs, dies of it.
func (f fault) deadly() bool { return f.kills() && !f.beside() }

// failing tells whether it is a change in one of these that fails.
func (f fault) failing() bool { return !f.kills() && !f.beside() }

// beside tells whether it comes to a process that outlives the server: a pod's shim, or the resolver.
func (f fault) beside() bool {
	return strings.HasPrefix(f.place, "shim.") || strings.HasPrefix(f.place, "names/resolver.")
}

func (f fault) kills() bool { return f.what != "error" && f.what != "lost" }

// readOnly are calls of the runtime that change nothing: there is no death in the midst of them.
var readOnly = regexp.MustCompile(`^cri\.(List|.*Status$|.*Stats$|ImageFsInfo|Version|RuntimeConfig|GetContainerEvents)`)

// leftToStart are places where containerd removes a task's folder: it does not try again what fails there, but its next start does.
var leftToStart = regexp.MustCompile(`^containerd/core/runtime/v2\.(Bundle\.Delete|atomicDelete):`)

// ofKernel are places that write files of the kernel's: it takes a write whole, or not at all.
var ofKernel = regexp.MustCompile(`^(shim\.(cgroup\.\w+|watchControl)|node/cgroup\..*):os\.WriteFile`)

// faultsAt are all faults that a place can have.
func faultsAt(place string) []string {
	switch {
	case readOnly.MatchString(place):
		return []string{"error"}
	case leftToStart.MatchString(place):
		return []string{"die"}
	case strings.HasPrefix(place, "cri."):
		return []string{"before", "die", "error", "lost"}
	case strings.HasPrefix(place, "etcd/"), strings.HasPrefix(place, "bbolt."):
		return []string{"die"} // a store whose disk fails has to give up
	case strings.Contains(place, "os.WriteFile") && !ofKernel.MatchString(place):
		return []string{"torn", "die", "error"}
	}
	return []string{"die", "error"}
}

// ledger is the folder in which the failpoints keep what happened.
type ledger string

func newLedger(dir string) (ledger, error) {
	return ledger(dir), os.MkdirAll(filepath.Join(dir, "done"), 0o755)
}

// passed counts the passes of each place since record.
func (l ledger) passed() (map[string]int, error) {
	text, err := os.ReadFile(filepath.Join(string(l), "passed"))
	out := map[string]int{}
	for line := range strings.Lines(string(text)) {
		out[strings.TrimSpace(line)]++
	}
	return out, err
}

// record begins to record passes.
func (l ledger) record() error { return os.WriteFile(filepath.Join(string(l), "passed"), nil, 0o644) }

// stop ends recording.
func (l ledger) stop() error { return os.Remove(filepath.Join(string(l), "passed")) }

// done are the faults that have happened.
func (l ledger) done() (map[string]bool, error) {
	entries, err := os.ReadDir(filepath.Join(string(l), "done"))
	out := map[string]bool{}
	for _, e := range entries {
		out[strings.ReplaceAll(e.Name(), "|", "/")] = true
	}
	return out, err
}

// draw makes the faults of one kind in an order of fate's: that of a seed is the same in every run, for all places that both of them pass.
// What has once found something comes first.
func draw(passed map[string]int, kind func(fault) bool, only *regexp.Regexp, seed uint64) []fault {
	var out []fault
	rank := map[fault]uint64{}
	for place := range passed {
		for _, what := range faultsAt(place) {
			f := fault{place, what, 0}
			random := fate(seed, f.String())
			if n := min(passed[place], 4); n > 1 {
				f.skip = random.IntN(n)
			}
			if kind(f) && only.MatchString(f.String()) {
				out = append(out, f)
				rank[f] = random.Uint64()
			}
		}
	}
	slices.SortFunc(out, func(a, b fault) int {
		return cmp.Or(cmp.Compare(found(a), found(b)), cmp.Compare(rank[a], rank[b]), cmp.Compare(a.String(), b.String()))
	})
	return out
}

// fate is what a seed has in store for a fault.
func fate(seed uint64, name string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // a hash takes everything
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// found is 0 for faults that have once found something, and 1 for all others.
func found(f fault) int {
	if slices.Contains(findings(), f.String()) {
		return 0
	}
	return 1
}

// findings are the faults that have once found something: every run begins with them.
func findings() []string {
	return []string{
		"runtime.writeMark:os.WriteFile=torn",          // the state of running containers was thrown away
		"runtime.unmount:unix.Unmount=die",             // a purge was not repeated
		"node/imageexec.removeTree:unix.Unmount=error", // the pod's volumes stayed mounted until the next start
	}
}
