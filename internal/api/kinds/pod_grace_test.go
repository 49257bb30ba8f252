// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"math"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestPodGraceIsBounded (RS-01): the longest grace ends in the future; added to the time as it was it ended long ago, and the pod was killed.
// ATTACK B18.
func TestPodGraceIsBounded(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n", TerminationGracePeriodSeconds: new(int64(math.MaxInt64))}}
	for _, given := range []*int64{nil, new(int64(math.MaxInt64))} {
		options := &metav1.DeleteOptions{GracePeriodSeconds: given}
		if !podGrace(pod, options) {
			t.Fatal("no grace")
		}
		now := time.Now()
		if end := now.Add(time.Duration(*options.GracePeriodSeconds) * time.Second); !end.After(now.AddDate(50, 0, 0)) {
			t.Errorf("a grace of %d s ends at %v", *options.GracePeriodSeconds, end)
		}
	}
}
