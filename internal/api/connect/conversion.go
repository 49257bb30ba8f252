// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"fmt"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/wherryproject/wherry/internal/debug/debugask"
)

// RegisterConversions teaches a scheme to read the query parameters of the requests of this package.
func RegisterConversions(scheme *runtime.Scheme) error {
	for _, register := range []func(*runtime.Scheme) error{
		reads((*corev1.PodLogOptions)(nil), readLog),
		registersExec,
		reads((*ExecOptions)(nil), readExec),
		reads((*corev1.PodAttachOptions)(nil), readAttach),
		reads((*corev1.PodPortForwardOptions)(nil), readPortForward),
		reads((*corev1.PodProxyOptions)(nil), func(q *query, o *corev1.PodProxyOptions) { q.text("path", &o.Path) }),
		reads((*corev1.NodeProxyOptions)(nil), func(q *query, o *corev1.NodeProxyOptions) { q.text("path", &o.Path) }),
		reads((*corev1.ServiceProxyOptions)(nil), func(q *query,
			o *corev1.ServiceProxyOptions) {
			q.text("path", &o.Path)
		}),
	} {
		if err := register(scheme); err != nil {
			return err
		}
	}
	return nil
}

// reads makes a conversion of a function that fills T from a query.
func reads[T any](to *T, read func(*query, *T)) func(*runtime.Scheme) error {
	return func(scheme *runtime.Scheme) error {
		return scheme.AddConversionFunc((*url.Values)(nil), to, func(a, b any, s conversion.Scope) error {
			q := &query{values: *a.(*url.Values), scope: s}
			read(q, b.(*T))
			return q.err
		})
	}
}

func readLog(q *query, o *corev1.PodLogOptions) {
	q.text("container", &o.Container)
	q.flag("follow", &o.Follow)
	q.flag("previous", &o.Previous)
	readInto(q, "sinceSeconds", &o.SinceSeconds, runtime.Convert_Slice_string_To_Pointer_int64)
	readInto(q, "sinceTime", &o.SinceTime, metav1.Convert_Slice_string_To_Pointer_v1_Time)
	q.flag("timestamps", &o.Timestamps)
	readInto(q, "tailLines", &o.TailLines, runtime.Convert_Slice_string_To_Pointer_int64)
	readInto(q, "limitBytes", &o.LimitBytes, runtime.Convert_Slice_string_To_Pointer_int64)
	q.flag("insecureSkipTLSVerifyBackend", &o.InsecureSkipTLSVerifyBackend)
	if q.values.Has("stream") {
		stream := q.values.Get("stream")
		o.Stream = &stream
	}
}

// registersExec makes the options known: they are no type of Kubernetes.
func registersExec(scheme *runtime.Scheme) error {
	scheme.AddKnownTypeWithName(corev1.SchemeGroupVersion.WithKind("PodExecDebugOptions"), &ExecOptions{})
	return nil
}

func readExec(q *query, o *ExecOptions) {
	q.flag("stdin", &o.Stdin)
	q.flag("stdout", &o.Stdout)
	q.flag("stderr", &o.Stderr)
	q.flag("tty", &o.TTY)
	q.text("container", &o.Container)
	o.Command = q.values["command"]
	for name, to := range map[string]*string{
		debugask.ParamName: &o.DebugName, debugask.ParamImage: &o.DebugImage, debugask.ParamTarget: &o.DebugTarget,
		debugask.ParamProfile: &o.DebugProfile, debugask.ParamTTL: &o.DebugTTL,
		debugask.ParamPullPolicy: &o.DebugPullPolicy, debugask.ParamRequest: &o.DebugRequest,
		debugask.ParamUser: &o.DebugUser, debugask.ParamExecUser: &o.User, debugask.ParamExecUserOf: &o.UserOf,
		debugask.ParamExecImage: &o.Image, debugask.ParamExecPullPolicy: &o.PullPolicy,
	} {
		q.text(name, to)
	}
	q.flag(debugask.ParamExecWritable, &o.Writable)
	q.flag(debugask.ParamUnlessDead, &o.UnlessDead)
	for _, name := range append(debugParams(), imageParams()...) {
		if q.values.Has(name) {
			o.Given = append(o.Given, name)
		}
	}
}

func readAttach(q *query, o *corev1.PodAttachOptions) {
	q.flag("stdin", &o.Stdin)
	q.flag("stdout", &o.Stdout)
	q.flag("stderr", &o.Stderr)
	q.flag("tty", &o.TTY)
	q.text("container", &o.Container)
}

func readPortForward(q *query, o *corev1.PodPortForwardOptions) {
	readInto(q, "ports", &o.Ports, metav1.Convert_Slice_string_To_Slice_int32)
}

// query reads parameters one by one and keeps the first error.
type query struct {
	values url.Values
	scope  conversion.Scope
	err    error
}

func (q *query) text(name string, to *string) {
	readInto(q, name, to, runtime.Convert_Slice_string_To_string)
}

func (q *query) flag(name string, to *bool) {
	readInto(q, name, to, runtime.Convert_Slice_string_To_bool)
}

// readInto reads the parameter name, if it is there, by the conversion that the API types' own parameters use.
func readInto[T any](q *query, name string, to *T, convert func(*[]string, *T, conversion.Scope) error) {
	in, ok := q.values[name]
	if !ok || len(in) == 0 || q.err != nil {
		return
	}
	if err := convert(&in, to, q.scope); err != nil {
		q.err = fmt.Errorf("query parameter %s: %w", name, err)
	}
}
