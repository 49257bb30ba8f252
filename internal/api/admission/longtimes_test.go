// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"math"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/kubernetes/pkg/apis/batch"
)

// RS-01: seconds that a controller's arithmetic would overflow with are refused, with where and what to do; what was
// stored before stays.
// ATTACK C39.
func TestLongTimes(t *testing.T) {
	job := func(n int64) *batch.Job {
		return &batch.Job{Spec: batch.JobSpec{ActiveDeadlineSeconds: &n}}
	}
	cron := func(starting, active int64) *batch.CronJob {
		c := &batch.CronJob{Spec: batch.CronJobSpec{StartingDeadlineSeconds: &starting}}
		c.Spec.JobTemplate.Spec.ActiveDeadlineSeconds = &active
		return c
	}
	for _, tt := range []struct {
		name, subresource string
		now, was          runtime.Object
		want              string
	}{
		{"the longest", "", job(longest), nil, ""},
		{"none", "", &batch.Job{}, nil, ""},
		{"longer", "", job(longest + 1), nil, "spec.activeDeadlineSeconds: Invalid value: 9223372037: must be at most 9223372036, which is 292 years; leave it out for no limit"},
		{"the end of the type", "", cron(math.MaxInt64, 1), nil, "spec.startingDeadlineSeconds"},
		{"in the template", "", cron(1, math.MaxInt64), nil, "spec.jobTemplate.spec.activeDeadlineSeconds"},
		{"as it was", "", job(math.MaxInt64), job(math.MaxInt64), ""},
		{"longer than it was", "", job(math.MaxInt64), job(1), "spec.activeDeadlineSeconds"},
		{"its status", "status", job(math.MaxInt64), job(1), ""},
	} {
		op := admission.Create
		if tt.was != nil {
			op = admission.Update
		}
		a := admission.NewAttributesRecord(tt.now, tt.was, schema.GroupVersionKind{Group: "batch", Kind: "Job"}, "n", "x",
			schema.GroupVersionResource{Group: "batch", Resource: "jobs"}, tt.subresource, op, nil, false, nil)
		err := longTimes{}.Validate(t.Context(), a, nil)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}
