// SPDX-License-Identifier: Apache-2.0

package query

import (
	"fmt"
	"net/url"

	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
)

// Reads makes a conversion of a function that fills T from a query.
func Reads[T any](to *T, read func(*Reader, *T)) func(*runtime.Scheme) error {
	return func(scheme *runtime.Scheme) error {
		return scheme.AddConversionFunc((*url.Values)(nil), to, func(a, b any, s conversion.Scope) error {
			q := &Reader{values: *a.(*url.Values), scope: s}
			read(q, b.(*T))
			return q.err
		})
	}
}

// Reader reads parameters one by one and keeps the first error.
type Reader struct {
	values url.Values
	scope  conversion.Scope
	err    error
}

// Has reports whether the request has a parameter.
func (q *Reader) Has(name string) bool { return q.values.Has(name) }

// Value is a parameter's first value.
func (q *Reader) Value(name string) string { return q.values.Get(name) }

// Values are all values of a parameter.
func (q *Reader) Values(name string) []string { return q.values[name] }

// Text reads a parameter that is a string.
func (q *Reader) Text(name string, to *string) {
	Into(q, name, to, runtime.Convert_Slice_string_To_string)
}

// Flag reads a parameter that is a truth value.
func (q *Reader) Flag(name string, to *bool) { Into(q, name, to, runtime.Convert_Slice_string_To_bool) }

// Into reads a parameter, if it is there, by a conversion.
func Into[T any](q *Reader, name string, to *T, convert func(*[]string, *T, conversion.Scope) error) {
	in, ok := q.values[name]
	if !ok || len(in) == 0 || q.err != nil {
		return
	}
	if err := convert(&in, to, q.scope); err != nil {
		q.err = fmt.Errorf("query parameter %s: %w", name, err)
	}
}
