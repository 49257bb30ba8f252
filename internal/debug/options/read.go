// SPDX-License-Identifier: Apache-2.0

package options

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/wherryproject/wherry/internal/api/query"
	"github.com/wherryproject/wherry/internal/debug/debugask"
)

// Register makes the options known to a scheme, which Kubernetes has no type for, and teaches it to read them.
func Register(scheme *runtime.Scheme) error {
	scheme.AddKnownTypeWithName(corev1.SchemeGroupVersion.WithKind("PodExecDebugOptions"), &Exec{})
	return query.Reads((*Exec)(nil), readExec)(scheme)
}

func readExec(q *query.Reader, o *Exec) {
	q.Flag("stdin", &o.Stdin)
	q.Flag("stdout", &o.Stdout)
	q.Flag("stderr", &o.Stderr)
	q.Flag("tty", &o.TTY)
	q.Text("container", &o.Container)
	o.Command = q.Values("command")
	for name, to := range map[string]*string{
		debugask.ParamName: &o.DebugName, debugask.ParamImage: &o.DebugImage, debugask.ParamTarget: &o.DebugTarget,
		debugask.ParamProfile: &o.DebugProfile, debugask.ParamTTL: &o.DebugTTL,
		debugask.ParamPullPolicy: &o.DebugPullPolicy, debugask.ParamRequest: &o.DebugRequest,
		debugask.ParamUser: &o.DebugUser, debugask.ParamExecUser: &o.User, debugask.ParamExecUserOf: &o.UserOf,
		debugask.ParamExecImage: &o.Image, debugask.ParamExecPullPolicy: &o.PullPolicy,
	} {
		q.Text(name, to)
	}
	q.Flag(debugask.ParamExecWritable, &o.Writable)
	q.Flag(debugask.ParamUnlessDead, &o.UnlessDead)
	for _, name := range append(debugParams(), imageParams()...) {
		if q.Has(name) {
			o.Given = append(o.Given, name)
		}
	}
}

// debugParams are the parameters of exec++.
func debugParams() []string {
	return []string{
		debugask.ParamName, debugask.ParamImage, debugask.ParamTarget, debugask.ParamProfile, debugask.ParamTTL,
		debugask.ParamPullPolicy, debugask.ParamUnlessDead, debugask.ParamUser, debugask.ParamRequest,
	}
}

// imageParams are the parameters of image exec.
func imageParams() []string {
	return []string{debugask.ParamExecImage, debugask.ParamExecWritable, debugask.ParamExecPullPolicy,
		debugask.ParamExecUser, debugask.ParamExecUserOf}
}

// ForSession reports whether a request has one of the parameters of a debug session.
func (o *Exec) ForSession() bool { return o.wants(debugParams()) }

// ForImage reports whether a request has one of the parameters of an image exec.
func (o *Exec) ForImage() bool { return o.wants(imageParams()) }

func (o *Exec) wants(params []string) bool {
	return slices.ContainsFunc(o.Given, func(name string) bool { return slices.Contains(params, name) })
}
