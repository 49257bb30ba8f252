// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestExtremeNumbers (RS-01): every number of a pod is tried at the ends of its type. What is accepted is listed here with why it does no harm;
// a new field has to be refused or get a reason.
// ATTACK C39.
func TestExtremeNumbers(t *testing.T) {
	harmless := map[string]string{
		"TerminationGracePeriodSeconds max": "Seconds saturates, and so does the deletion",
		"Priority max":                      "it is set by admission from the class, and only compared",
		"Priority min":                      "as the highest",
	}
	int32s := "32 bits of seconds are 68 years"
	for _, f := range []string{"InitialDelaySeconds", "TimeoutSeconds", "PeriodSeconds", "FailureThreshold"} {
		harmless["Containers.LivenessProbe."+f+" max"] = int32s
	}
	harmless["Containers.LivenessProbe.TerminationGracePeriodSeconds max"] = "Seconds saturates"
	harmless["Tolerations.TolerationSeconds max"] = "nothing here counts it: nobody is evicted for a taint"
	harmless["Tolerations.TolerationSeconds min"] = "as 0"
	pod := func() *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "n"}, Spec: corev1.PodSpec{
			Containers: []corev1.Container{{
				Name: "c", Image: "i", LivenessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"x"}}}},
				Ports:           []corev1.ContainerPort{{ContainerPort: 80}},
				SecurityContext: &corev1.SecurityContext{},
				Lifecycle:       &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 1}}},
			}},
			SecurityContext: &corev1.PodSecurityContext{SupplementalGroups: []int64{1}},
			Tolerations:     []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}},
		}}
		SetDefaults(p)
		return p
	}
	if faults := Validate(pod()); len(faults) > 0 {
		t.Fatal(faults)
	}
	tried := 0
	for i := range numbers(reflect.ValueOf(&pod().Spec).Elem(), "") {
		for _, end := range []string{"max", "min"} {
			p := pod()
			n := numbers(reflect.ValueOf(&p.Spec).Elem(), "")[i]
			tried++
			n.set(end == "max")
			name := n.path + " " + end
			if why := harmless[name]; len(Validate(p)) == 0 && why == "" {
				t.Errorf("%s is accepted", name)
			}
		}
	}
	if tried < 30 {
		t.Errorf("only %d numbers were tried", tried)
	}
}

type number struct {
	path string
	v    reflect.Value // of an integer, or of a pointer to one
}

func (n number) set(most bool) {
	v := n.v
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	ends := map[bool]int64{true: math.MaxInt64, false: math.MinInt64}
	if v.Kind() == reflect.Int32 {
		ends = map[bool]int64{true: math.MaxInt32, false: math.MinInt32}
	}
	v.SetInt(ends[most])
}

// numbers are those below v, without what is not there.
func numbers(v reflect.Value, path string) (out []number) {
	ints := []reflect.Kind{reflect.Int32, reflect.Int64}
	switch {
	case slices.Contains(ints, v.Kind()), v.Kind() == reflect.Pointer && slices.Contains(ints, v.Type().Elem().Kind()):
		return []number{{path, v}}
	case v.Kind() == reflect.Pointer && !v.IsNil():
		return numbers(v.Elem(), path)
	case v.Kind() == reflect.Slice && v.Len() > 0:
		return numbers(v.Index(0), path)
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if !f.IsExported() {
				continue
			}
			name := f.Name
			if path != "" {
				name = fmt.Sprint(path, ".", f.Name)
			}
			if f.Anonymous {
				name = path
			}
			out = append(out, numbers(v.Field(i), name)...)
		}
	}
	return out
}
