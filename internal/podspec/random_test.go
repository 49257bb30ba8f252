// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestRandomPods fills Pods at random, field by field, where bytes of JSON would seldom get: nothing may
// panic or change its argument, and defaults are idempotent.
func TestRandomPods(t *testing.T) {
	for seed := range uint64(200) {
		fill := &filler{rand.New(rand.NewPCG(seed, 1))}
		pod, other := &corev1.Pod{}, &corev1.Pod{}
		fill.value(reflect.ValueOf(pod).Elem(), 0)
		fill.value(reflect.ValueOf(other).Elem(), 0)
		if fill.IntN(2) == 0 { // two that are nearly the same reach further
			other = pod.DeepCopy()
			fill.value(reflect.ValueOf(&other.Spec.Affinity).Elem(), 0)
		}
		before := pod.DeepCopy()
		use(pod)
		for _, validate := range updates() {
			validate(pod, other)
			validate(other, pod)
		}
		if !equality.Semantic.DeepEqual(pod, before) {
			t.Fatalf("seed %d: the pod was changed", seed)
		}
		SetDefaults(pod)
		again := pod.DeepCopy()
		SetDefaults(again)
		if !equality.Semantic.DeepEqual(pod, again) {
			a, _ := json.Marshal(pod)
			b, _ := json.Marshal(again)
			t.Fatalf("seed %d: defaults are not idempotent:\n%s\n%s", seed, a, b)
		}
		use(pod)
	}
}

type filler struct{ *rand.Rand }

func (f *filler) text() string {
	pool := []string{"", "", "a", "a", "b", "..", "/", "a/b", "../x", "latest", "Always", "Never", "Localhost", "In", "Exists", "Gt",
		"metadata.labels['a']", "']", "['", "limits.cpu", "1.2.3.4", "::1", "hugepages-2Mi", "hugepages-x", "é\x00", "iqn.x", "a:b"}
	return pool[f.IntN(len(pool))]
}

func (f *filler) value(v reflect.Value, depth int) {
	switch v.Type() {
	case reflect.TypeFor[resource.Quantity]():
		pool := []string{"0", "1", "-1", "1e18", "9223372036854775807", "1n", "100m", "2Mi", "1E", "12345678901234567890123"}
		v.Set(reflect.ValueOf(resource.MustParse(pool[f.IntN(len(pool))])))
		return
	case reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.FieldsV1]():
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if f.IntN(10) < 4+depth/2 {
			return
		}
		v.Set(reflect.New(v.Type().Elem()))
		f.value(v.Elem(), depth+1)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				f.value(v.Field(i), depth+1)
			}
		}
	case reflect.Slice:
		n := f.IntN(3)
		if depth > 9 {
			n = 0
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			f.value(v.Index(i), depth+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range f.IntN(3) {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			f.value(key, depth+1)
			f.value(value, depth+1)
			v.SetMapIndex(key, value)
		}
	case reflect.String:
		v.SetString(f.text())
	case reflect.Bool:
		v.SetBool(f.IntN(2) == 0)
	case reflect.Int, reflect.Int32, reflect.Int64:
		pool := []int64{0, 0, 1, -1, 80, 1 << 31 >> 1, -1 << 31}
		v.SetInt(pool[f.IntN(len(pool))])
	case reflect.Uint8:
		v.SetUint(uint64(f.IntN(256)))
	}
}
