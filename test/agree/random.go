// SPDX-License-Identifier: Apache-2.0

package agree

import (
	"encoding/base64"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// chooser makes random changes to objects of Go types. The same source makes the same ones.
type chooser struct {
	*rand.Rand
	words *words
}

// spot is a place in an object that may be changed.
type spot struct {
	path   []any
	field  string // its name, or that of the field it is in
	typ    reflect.Type
	value  any // nil: nothing is there
	weight int
}

// change picks a place and what to put there.
func (c *chooser) change(typ reflect.Type, tree any) change {
	var spots []spot
	c.spots(&spots, spot{typ: typ, value: tree}, 0)
	total := 0
	for _, s := range spots {
		total += s.weight
	}
	n := c.IntN(total)
	for _, s := range spots {
		if n -= s.weight; n < 0 {
			return c.at(s)
		}
	}
	return change{}
}

func (c *chooser) spots(all *[]spot, s spot, depth int) {
	if depth > 0 {
		*all = append(*all, s)
	}
	typ := s.typ
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	if c.leaf(typ) != nil {
		return
	}
	switch typ.Kind() {
	case reflect.Struct:
		m, ok := s.value.(map[string]any)
		if !ok {
			return
		}
		for _, f := range jsonFields(typ) {
			if depth == 0 && (f.name == "kind" || f.name == "apiVersion") || skipped(f.name) {
				continue
			}
			weight := 4
			if strings.HasPrefix(pathString(s.path), "metadata") {
				weight = 1
			}
			c.spots(all, spot{append(slices.Clone(s.path), f.name), f.name, f.typ, m[f.name], weight}, depth+1)
		}
	case reflect.Slice:
		list, _ := s.value.([]any)
		for i, v := range list {
			c.spots(all, spot{append(slices.Clone(s.path), i), s.field, typ.Elem(), v, s.weight}, depth+1)
		}
	case reflect.Map:
		m, _ := s.value.(map[string]any)
		for _, k := range sortedKeys(m) {
			c.spots(all, spot{append(slices.Clone(s.path), k), k, typ.Elem(), m[k], s.weight}, depth+1)
		}
	}
}

// skipped are fields that the library sets, or that neither side has rules for.
func skipped(name string) bool {
	switch name {
	case "managedFields", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation",
		"selfLink", "uid", "resourceVersion":
		return true
	}
	return false
}

// at makes the change of one place.
func (c *chooser) at(s spot) change {
	if s.value != nil && c.IntN(4) == 0 {
		return change{path: s.path}
	}
	if list, ok := s.value.([]any); ok && len(list) > 0 && c.IntN(2) == 0 {
		end := append(slices.Clone(s.path), len(list))
		if c.IntN(2) == 0 {
			return change{end, clone(list[c.IntN(len(list))])}
		}
		return change{end, c.fill(s.typ.Elem(), s.field, 1)}
	}
	if m, ok := s.value.(map[string]any); ok && s.typ.Kind() == reflect.Map && c.IntN(2) == 0 {
		if key := c.key(s.field); m[key] == nil {
			return change{append(slices.Clone(s.path), key), c.fill(s.typ.Elem(), key, 1)}
		}
	}
	return change{s.path, c.fill(s.typ, s.field, 0)}
}

// leaf says how a type is made that is no plain structure in JSON; nil: it is one.
func (c *chooser) leaf(typ reflect.Type) func() any {
	switch typ {
	case reflect.TypeFor[resource.Quantity]():
		return func() any { return c.one(quantities()) }
	case reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime]():
		return func() any { return c.one([]string{"2026-01-02T03:04:05Z", "2001-01-01T00:00:00Z"}) }
	case reflect.TypeFor[metav1.Duration]():
		return func() any { return c.one([]string{"0s", "1s", "10m", "-1s", "100000h"}) }
	case reflect.TypeFor[intstr.IntOrString]():
		return func() any {
			if c.IntN(2) == 0 {
				return c.number()
			}
			return c.one([]string{"http", "", "80", "50%", "a-b", "A", "-a", "this-is-far-too-long"})
		}
	case reflect.TypeFor[runtime.RawExtension](), reflect.TypeFor[metav1.FieldsV1]():
		return func() any { return map[string]any{"apiVersion": "v1", "kind": "ConfigMap"} }
	case reflect.TypeFor[[]byte]():
		return func() any { return base64.StdEncoding.EncodeToString([]byte(c.one(odd()))) }
	}
	return nil
}

// fill makes something of a type. Nothing is never made: that is a change of its own.
func (c *chooser) fill(typ reflect.Type, field string, depth int) any {
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	if leaf := c.leaf(typ); leaf != nil {
		return leaf()
	}
	switch typ.Kind() {
	case reflect.Struct:
		out := map[string]any{}
		for _, f := range jsonFields(typ) {
			often := 2 // of six
			if !f.optional {
				often = 5
			}
			if !skipped(f.name) && c.IntN(6) < often-min(depth/2, 2) {
				out[f.name] = c.fill(f.typ, f.name, depth+1)
			}
		}
		return out
	case reflect.Slice:
		list := []any{}
		for range c.IntN(3) {
			list = append(list, c.fill(typ.Elem(), field, depth+1))
		}
		return list
	case reflect.Map:
		out := map[string]any{}
		for range c.IntN(3) {
			key := c.key(field)
			out[key] = c.fill(typ.Elem(), key, depth+1)
		}
		return out
	case reflect.String:
		return c.text(typ, field)
	case reflect.Bool:
		return c.IntN(2) == 0
	case reflect.Float32, reflect.Float64:
		return float64(c.number()) / 2
	default:
		n := c.number()
		if typ.Kind() == reflect.Uint8 {
			n &= 0xff
		}
		return n
	}
}

func (c *chooser) text(typ reflect.Type, field string) string {
	if enum := c.words.enums[typ.PkgPath()+"."+typ.Name()]; len(enum) > 0 && c.IntN(5) > 0 {
		return c.one(enum)
	}
	if known := c.words.fields[field]; len(known) > 0 && c.IntN(2) == 0 {
		return c.one(known)
	}
	return c.one(odd())
}

func (c *chooser) key(field string) string {
	if known := c.words.keys[field]; len(known) > 0 && c.IntN(2) == 0 {
		return c.one(known)
	}
	return c.one(odd())
}

func (c *chooser) one(pool []string) string { return pool[c.IntN(len(pool))] }

func (c *chooser) number() int64 {
	pool := numbers()
	return pool[c.IntN(len(pool))]
}

// jsonField is one field of a structure as JSON has it.
type jsonField struct {
	name     string
	typ      reflect.Type
	optional bool
}

func jsonFields(typ reflect.Type) (all []jsonField) {
	for i := range typ.NumField() {
		f := typ.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported():
		case name == "" && f.Type.Kind() == reflect.Struct && f.Anonymous:
			all = append(all, jsonFields(f.Type)...)
		case name != "":
			all = append(all, jsonField{name, f.Type, strings.Contains(options, "omitempty")})
		}
	}
	return all
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
