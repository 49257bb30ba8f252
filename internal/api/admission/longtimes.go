// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/kubernetes/pkg/apis/batch"
)

// longTimes refuses numbers of seconds that are longer than a duration can be, where a controller of Kubernetes' counts
// with them (RS-01): it would take them for times that have passed, and a Job with activeDeadlineSeconds:
// 9223372036854775807 fails as it begins. What is stored already may stay as it is.
type longTimes struct{}

var _ admission.ValidationInterface = longTimes{}

// longest is how many seconds a duration can be: 292 years.
const longest = int64(math.MaxInt64 / time.Second)

// Handles implements admission.Interface.
func (longTimes) Handles(op admission.Operation) bool {
	return op == admission.Create || op == admission.Update
}

// Validate implements admission.ValidationInterface.
func (longTimes) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetSubresource() != "" {
		return nil
	}
	was := secondsOf(a.GetOldObject())
	var faults field.ErrorList
	now := secondsOf(a.GetObject())
	for _, path := range slices.Sorted(maps.Keys(now)) {
		if had, ok := was[path]; now[path] > longest && (!ok || had != now[path]) {
			faults = append(faults, field.Invalid(field.NewPath(path), now[path],
				fmt.Sprintf("must be at most %d, which is 292 years; leave it out for no limit", longest)))
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return apierrors.NewInvalid(a.GetKind().GroupKind(), a.GetName(), faults)
}

// secondsOf are the seconds in an object that controllers count with, by path.
func secondsOf(object any) map[string]int64 {
	out := map[string]int64{}
	add := func(path string, n *int64) {
		if n != nil {
			out[path] = *n
		}
	}
	switch o := object.(type) {
	case *batch.Job:
		add("spec.activeDeadlineSeconds", o.Spec.ActiveDeadlineSeconds)
	case *batch.CronJob:
		add("spec.startingDeadlineSeconds", o.Spec.StartingDeadlineSeconds)
		add("spec.jobTemplate.spec.activeDeadlineSeconds", o.Spec.JobTemplate.Spec.ActiveDeadlineSeconds)
	}
	return out
}
