// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"errors"
	"math"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// RS-01: a quantity that takes the library minutes to read, and whoever asked with it a processor, is refused at once.
func TestTinyQuantities(t *testing.T) {
	ns := namespace(t, client(t))
	for kind, body := range map[string]string{
		"application/json": `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i","resources":{"limits":{"cpu":"1e-2000000000"}}}]}}`,
		"application/yaml": "metadata: {name: p}\nspec: {containers: [{name: c, image: i, resources: {limits: {cpu: \"1\\x65-2000000000\"}}}]}",
	} {
		err := client(t).CoreV1().RESTClient().Post().Namespace(ns).Resource("pods").SetHeader("Content-Type", kind).
			Body([]byte(body)).Do(t.Context()).Error()
		if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "exponent") {
			t.Errorf("as %s: %v", kind, err)
		}
	}
}

// RS-01: every number that an object of any kind may have is tried at the ends of its type, and the API answers each in
// words: it is taken or refused, and nothing of it is an error of the server's.
// ATTACK C39.
func TestExtremeNumbersOfEveryKind(t *testing.T) {
	ns := namespace(t, client(t))
	dyn := dynamicClient(t)
	lists, err := client(t).Discovery().ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	namespaced := map[schema.GroupVersionResource]bool{}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list.APIResources {
			namespaced[gv.WithResource(r.Name)] = r.Namespaced
		}
	}
	tried := 0
	for gvr, object := range samples(ns) {
		if _, untyped := object.(*unstructured.Unstructured); untyped {
			continue
		}
		plain := toUnstructured(t, object)
		var to dynamic.ResourceInterface = dyn.Resource(gvr)
		if namespaced[gvr] {
			to = dyn.Resource(gvr).Namespace(ns)
		}
		for _, path := range numbersBelow(reflect.TypeOf(object).Elem(), nil, nil) {
			for _, end := range []int64{math.MaxInt64, math.MinInt64, math.MaxInt32, math.MinInt32} {
				o := plain.DeepCopy()
				putNumber(o.Object, path, end)
				tried++
				_, err := to.Create(t.Context(), o, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
				var status apierrors.APIStatus
				if err != nil && (!errors.As(err, &status) || status.Status().Code >= http.StatusInternalServerError) {
					t.Errorf("%s with %s = %d: %v", gvr.Resource, strings.Join(path, "."), end, err)
				}
			}
		}
	}
	t.Logf("%d numbers were tried", tried)
	if tried < 1000 {
		t.Errorf("only %d numbers were tried", tried)
	}
}

// numbersBelow are the paths of the integers of a type, as JSON names them; "0" is the first of a list.
func numbersBelow(of reflect.Type, path []string, within []reflect.Type) (out [][]string) {
	switch of.Kind() {
	case reflect.Int, reflect.Int32, reflect.Int64:
		return [][]string{path}
	case reflect.Pointer:
		return numbersBelow(of.Elem(), path, within)
	case reflect.Slice:
		if of.Elem().Kind() == reflect.Uint8 {
			return nil
		}
		return numbersBelow(of.Elem(), append(slices.Clone(path), "0"), within)
	case reflect.Struct:
		if slices.Contains(within, of) || strings.Contains(of.PkgPath(), "api/resource") ||
			strings.Contains(of.PkgPath(), "util/intstr") {
			return nil // a type within itself, and numbers that are texts
		}
		for i := range of.NumField() {
			f := of.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if !f.IsExported() || name == "-" || len(path) == 0 && name == "status" {
				continue
			}
			below := path
			if name != "" {
				below = append(slices.Clone(path), name)
			}
			out = append(out, numbersBelow(f.Type, below, append(slices.Clone(within), of))...)
		}
	}
	return out
}

// putNumber sets a number, making what it is in.
func putNumber(object map[string]any, path []string, n int64) {
	at := object
	for i := 0; i < len(path)-1; i++ {
		name := path[i]
		if path[i+1] != "0" {
			next, ok := at[name].(map[string]any)
			if !ok {
				next = map[string]any{}
				at[name] = next
			}
			at = next
			continue
		}
		list, _ := at[name].([]any)
		if i+2 == len(path) { // a list of numbers
			at[name] = []any{n}
			return
		}
		if len(list) == 0 {
			list = []any{map[string]any{}}
		}
		first, ok := list[0].(map[string]any)
		if !ok {
			first = map[string]any{}
			list[0] = first
		}
		at[name] = list
		at = first
		i++
	}
	at[path[len(path)-1]] = n
}
