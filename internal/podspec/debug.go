// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	// DebugAnnotation holds what the API server wants of a pod's debug containers beyond their spec, as JSON of
	// [DebugRuns]. Only the API server writes it.
	DebugAnnotation = "wherry.dev/debug"
	// HoldAnnotation holds a duration (10m): for so long a container that failed is neither started again nor cleaned
	// up, so that somebody can look.
	HoldAnnotation = "wherry.dev/hold-on-failure"
)

// maxHold bounds [HoldAnnotation].
const maxHold = 24 * time.Hour

// DebugRun is what is wanted of one debug container.
type DebugRun struct {
	// Run counts how often its name was used before: it is the attempt that ought to run, once (DC-06).
	Run int `json:"run,omitempty"`
	// StopAt is when it is to be stopped at the latest, if ever (DC-08): when somebody has stopped it, or the latest
	// end that its time limit allows.
	StopAt *metav1.Time `json:"stopAt,omitempty"`
	// TTL is its time limit, which counts from when it runs (--ttl); StopAt is set then too. Who does not know of it,
	// as an agent of an older version, goes by StopAt.
	TTL *metav1.Duration `json:"ttl,omitempty"`
	// StoppedBy is who asked for it to be stopped (DC-08); empty where its time limit is what stops it.
	StoppedBy string `json:"stoppedBy,omitempty"`
	// Request is the word by which the client that asked for this run knows it, if it gave one.
	Request string `json:"request,omitempty"`
}

// startWithin is how long a debug container with a time limit may take to start: to pull its image, and to wait for its
// turn and its target. It is not started later, so that a pull without an end leaves nothing behind that runs one day.
const startWithin = 15 * time.Minute

// Limit gives a run that is asked for now a time limit (DC-08). What a client may ask for has no bound, times have: a
// limit beyond it is none.
func (r *DebugRun) Limit(ttl time.Duration, now time.Time) {
	if most := time.Duration(math.MaxInt64) - startWithin; ttl > most {
		ttl = most
	}
	r.TTL, r.StopAt = &metav1.Duration{Duration: ttl}, &metav1.Time{Time: now.Add(startWithin + ttl)}
}

// Stop has a run stopped at a time, whatever its limit.
func (r *DebugRun) Stop(at time.Time, by string) {
	r.TTL, r.StopAt, r.StoppedBy = nil, &metav1.Time{Time: at}, by
}

// Ends is when a run that runs since began is to be stopped, zero for never. Where began is zero, it has not started:
// then it is the time from when on it is not to start any more. (Pure.)
func (r DebugRun) Ends(began time.Time) time.Time {
	switch {
	case r.StopAt == nil:
		return time.Time{}
	case r.TTL == nil:
		return r.StopAt.Time
	case began.IsZero():
		return r.StopAt.Add(-r.TTL.Duration)
	}
	if end := began.Add(r.TTL.Duration); end.Before(r.StopAt.Time) {
		return end
	}
	return r.StopAt.Time
}

// DebugRuns is what is wanted of a pod's debug containers, by their names. One that is not in it runs once, as in
// Kubernetes.
type DebugRuns map[string]DebugRun

// DebugRunsOf reads a pod's [DebugAnnotation]. One that cannot be read is as none: it is refused before it is stored.
func DebugRunsOf(pod *corev1.Pod) DebugRuns {
	runs, err := parseDebugRuns(pod.Annotations[DebugAnnotation])
	if err != nil {
		return nil
	}
	return runs
}

func parseDebugRuns(text string) (DebugRuns, error) {
	if text == "" {
		return nil, nil
	}
	var runs DebugRuns
	if err := json.Unmarshal([]byte(text), &runs); err != nil {
		return nil, err
	}
	for name, run := range runs {
		if run.Run < 0 {
			return nil, fmt.Errorf("%s: run is %d, but must be 0 or more", name, run.Run)
		}
	}
	return runs, nil
}

// SetDebugRuns writes a pod's [DebugAnnotation].
func SetDebugRuns(pod *corev1.Pod, runs DebugRuns) error {
	if len(runs) == 0 {
		delete(pod.Annotations, DebugAnnotation)
		return nil
	}
	text, err := json.Marshal(runs)
	if err != nil {
		return err
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[DebugAnnotation] = string(text)
	return nil
}

// HoldOnFailure reads a pod's [HoldAnnotation]: 0 without one.
func HoldOnFailure(pod *corev1.Pod) time.Duration {
	d, err := parseHold(pod.Annotations[HoldAnnotation])
	if err != nil {
		return 0
	}
	return d
}

func parseHold(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, err
	}
	if d <= 0 || d > maxHold {
		return 0, fmt.Errorf("must be more than 0 and at most %s", maxHold)
	}
	return d, nil
}

// validateDebugAnnotations holds the rules of the annotations above.
func validateDebugAnnotations(pod *corev1.Pod, path *field.Path) (all errs) {
	if _, err := parseDebugRuns(pod.Annotations[DebugAnnotation]); err != nil {
		all = append(all, field.Invalid(path.Key(DebugAnnotation), pod.Annotations[DebugAnnotation], err.Error()))
	}
	if _, err := parseHold(pod.Annotations[HoldAnnotation]); err != nil {
		all = append(all, field.Invalid(path.Key(HoldAnnotation), pod.Annotations[HoldAnnotation], err.Error()))
	}
	return all
}
