// SPDX-License-Identifier: Apache-2.0

package plan

import "time"

// Restart back-off (PL-02): 10 s doubling to 300 s, forgotten after a run of 10 minutes.
const (
	restartBase  = 10 * time.Second
	restartMax   = 300 * time.Second
	restartReset = 10 * time.Minute
)

// Delay returns how long after the exit of an attempt the next one waits. streak is how many restarts in a row led
// to the attempt that exited: the first restart comes at once, the second 10 s after its exit, then 20 s, up to 300 s.
func Delay(streak int) time.Duration {
	if streak <= 0 {
		return 0
	}
	return doubled(restartBase, restartMax, streak)
}

// doubled returns base·2^(n-1), at most limit, for n ≥ 1.
func doubled(base, limit time.Duration, n int) time.Duration {
	d := base
	for i := 1; i < n && d < limit; i++ {
		d *= 2
	}
	return min(d, limit)
}

// retry returns when an operation that failed is tried again. Pulls use the kubelet's back-off (PL-03); the others
// start quicker, since a person is usually busy mending the cause. Where no registry is asked there is none to be
// spared: an image that a pod never pulls is looked for often enough that bringing it to the node shows.
func retry(v Verb, f Failure) time.Time {
	switch v {
	case PullImage:
		// what the node takes changes only with the node's agent, which forgets failures
		if f.Reason == reasonNotAllowed {
			return f.At.Add(time.Hour)
		}
		if final(f.Reason) {
			return f.At.Add(restartBase)
		}
		return f.At.Add(doubled(10*time.Second, 300*time.Second, f.Times))
	case StopContainer, StopSandbox, RemoveContainer, RemoveSandbox, ReleaseVolumes, RemoveLogs:
		return f.At.Add(doubled(250*time.Millisecond, 10*time.Second, f.Times))
	default:
		return f.At.Add(doubled(time.Second, time.Minute, f.Times))
	}
}
