// SPDX-License-Identifier: Apache-2.0

package fields

import (
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// field is one field of a type, with the way to it.
type field struct {
	path string // by JSON names
	way  []int
}

// walk lists the fields of a type, those of the types within below them as far as into says. (Pure.)
func walk(of reflect.Type, prefix string, way []int, into func(path string) bool) (out []field) {
	for i := range of.NumField() {
		f := of.Field(i)
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		next := append(append([]int(nil), way...), i)
		if name == "" && (rest == "inline" || f.Anonymous) {
			out = append(out, walk(f.Type, prefix, next, into)...)
			continue
		}
		if name == "" || name == "-" {
			continue // of a number or a time
		}
		at, of := prefix+name, f.Type
		out = append(out, field{at, next})
		if of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		if of.Kind() == reflect.Slice {
			at, of = at+"[]", of.Elem()
		}
		if of.Kind() == reflect.Struct && into(at) {
			out = append(out, walk(of, at+".", next, into)...)
		}
	}
	return out
}

// reach returns the field of v at the end of a way, with all made that is on it.
func reach(v reflect.Value, way []int) reflect.Value {
	for _, i := range way {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		if v.Kind() == reflect.Slice {
			if v.Len() == 0 {
				v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			}
			v = v.Index(0)
		}
		v = v.Field(i)
	}
	return v
}

// fill gives a field some value, in which nothing is more than it must be.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		if k := v.Elem().Kind(); k != reflect.Struct && k != reflect.Bool {
			fill(v.Elem())
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		if v.Index(0).Kind() == reflect.String {
			v.Index(0).SetString("x")
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		if v.Type() == reflect.TypeFor[corev1.ResourceList]() {
			v.Set(reflect.ValueOf(corev1.ResourceList{"cpu": resource.MustParse("1")}))
		}
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	}
}
