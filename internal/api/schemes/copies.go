// SPDX-License-Identifier: Apache-2.0

package schemes

import (
	"fmt"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/wherryproject/wherry/internal/debug/options"
)

// addCopies registers the conversion of every type into itself. Admission converts what it is given, the hub's form, to
// the version a webhook or policy wants, and back; as both are one type here, that is a copy, which the library does
// not make by itself. It goes deep: a webhook must never see, nor a policy change, what the server works with.
func addCopies(scheme *runtime.Scheme) error {
	for _, g := range Groups() {
		for kind := range scheme.KnownTypes(g.GV) {
			if isMetaKind(kind) {
				continue
			}
			obj, err := scheme.New(g.GV.WithKind(kind))
			if err != nil {
				return err
			}
			if err := scheme.AddConversionFunc(obj, obj, copyInto); err != nil {
				return err
			}
		}
	}
	return addExecCopies(scheme)
}

func copyInto(in, out any, _ conversion.Scope) error {
	from, ok := in.(runtime.Object)
	if !ok || reflect.TypeOf(in) != reflect.TypeOf(out) {
		return fmt.Errorf("a %T cannot be copied into a %T", in, out)
	}
	reflect.ValueOf(out).Elem().Set(reflect.ValueOf(from.DeepCopyObject()).Elem())
	return nil
}

// addExecCopies: pods/exec has options of its own, of which admission is shown, and may change, what Kubernetes has.
func addExecCopies(scheme *runtime.Scheme) error {
	err := scheme.AddConversionFunc(&options.Exec{}, &corev1.PodExecOptions{},
		func(in, out any, _ conversion.Scope) error {
			o := in.(*options.Exec)
			*out.(*corev1.PodExecOptions) = corev1.PodExecOptions{Stdin: o.Stdin, Stdout: o.Stdout, Stderr: o.Stderr,
				TTY: o.TTY, Container: o.Container, Command: slices.Clone(o.Command)}
			return nil
		})
	if err != nil {
		return err
	}
	return scheme.AddConversionFunc(&corev1.PodExecOptions{}, &options.Exec{},
		func(in, out any, _ conversion.Scope) error {
			from, o := in.(*corev1.PodExecOptions), out.(*options.Exec)
			o.Stdin, o.Stdout, o.Stderr, o.TTY = from.Stdin, from.Stdout, from.Stderr, from.TTY
			o.Container, o.Command = from.Container, slices.Clone(from.Command)
			return nil
		})
}
