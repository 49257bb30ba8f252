// SPDX-License-Identifier: Apache-2.0

package options

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/wherryproject/wherry/internal/api/query"
	"github.com/wherryproject/wherry/internal/cluster/wire"
)

// Register teaches a scheme the types of the group, and to read them from a query.
func Register(scheme *runtime.Scheme) error {
	gv := GroupVersion()
	scheme.AddKnownTypeWithName(gv.WithKind("ShellOptions"), &Shell{})
	scheme.AddKnownTypeWithName(gv.WithKind("ExecOptions"), &Exec{})
	scheme.AddKnownTypeWithName(gv.WithKind("FilesOptions"), &Files{})
	scheme.AddKnownTypeWithName(gv.WithKind("EvidenceOptions"), &Evidence{})
	scheme.AddKnownTypeWithName(gv.WithKind("SessionsOptions"), &Sessions{})
	scheme.AddKnownTypes(gv, &Pod{})
	metav1.AddToGroupVersion(scheme, gv)
	metav1.AddToGroupVersion(scheme, metav1.SchemeGroupVersion)
	metav1.AddToGroupVersion(scheme, metav1.Unversioned)
	return errors.Join(
		query.Reads((*Shell)(nil), readShell)(scheme), query.Reads((*Exec)(nil), readExec)(scheme),
		query.Reads((*Files)(nil), readFiles)(scheme), query.Reads((*Evidence)(nil), readEvidence)(scheme),
		query.Reads((*Sessions)(nil), readSessions)(scheme),
		// there is one version: admission converts to it what has it already
		same[Shell](scheme), same[Exec](scheme), same[Files](scheme), same[Evidence](scheme), same[Sessions](scheme),
	)
}

func same[T any](scheme *runtime.Scheme) error {
	return scheme.AddConversionFunc((*T)(nil), (*T)(nil), func(a, b any, _ conversion.Scope) error {
		*b.(*T) = *a.(*T)
		return nil
	})
}

// Names of parameters that pods/exec has too.
const (
	paramContainer = "container"
	paramCommand   = "command"
	paramStdin     = "stdin"
	paramStdout    = "stdout"
	paramStderr    = "stderr"
	paramTTY       = "tty"
)

func streamParams() []string {
	return []string{paramStdin, paramStdout, paramStderr, paramTTY, wire.ParamTerm}
}

func boundParams() []string { return []string{wire.ParamTTL, wire.ParamMemory, wire.ParamCPUs} }

// flag reads a truth value; unlike Kubernetes' own, nothing is one that does not say so.
func flag(q *query.Reader, name string, to *bool) {
	query.Into(q, name, to, func(in *[]string, out *bool, _ conversion.Scope) (err error) {
		if *out, err = strconv.ParseBool((*in)[0]); err != nil {
			return fmt.Errorf("%.100q is neither true nor false", (*in)[0])
		}
		return nil
	})
}

func readStreams(q *query.Reader, s *Streams) {
	flag(q, paramStdin, &s.Stdin)
	flag(q, paramStdout, &s.Stdout)
	flag(q, paramStderr, &s.Stderr)
	flag(q, paramTTY, &s.TTY)
	q.Text(wire.ParamTerm, &s.Term)
}

func readBounds(q *query.Reader, b *Bounds) {
	q.Text(wire.ParamTTL, &b.TTL)
	q.Text(wire.ParamMemory, &b.Memory)
	q.Text(wire.ParamCPUs, &b.CPUs)
}

func readShell(q *query.Reader, o *Shell) {
	q.Only(slices.Concat(streamParams(), boundParams(), []string{paramContainer, paramCommand, wire.ParamImage,
		wire.ParamProfile, wire.ParamUser, wire.ParamWritable})...)
	readStreams(q, &o.Streams)
	readBounds(q, &o.Bounds)
	q.Text(paramContainer, &o.Container)
	o.Command = q.Values(paramCommand)
	q.Text(wire.ParamImage, &o.Image)
	q.Text(wire.ParamProfile, &o.Profile)
	q.Text(wire.ParamUser, &o.User)
	flag(q, wire.ParamWritable, &o.Writable)
}

func readExec(q *query.Reader, o *Exec) {
	q.Only(slices.Concat(streamParams(), boundParams(), []string{paramContainer, paramCommand, wire.ParamImage,
		wire.ParamUser, wire.ParamWritable})...)
	readStreams(q, &o.Streams)
	readBounds(q, &o.Bounds)
	q.Text(paramContainer, &o.Container)
	o.Command = q.Values(paramCommand)
	q.Text(wire.ParamImage, &o.Image)
	q.Text(wire.ParamUser, &o.User)
	flag(q, wire.ParamWritable, &o.Writable)
}

func readFiles(q *query.Reader, o *Files) {
	// the streams follow from what is done; a client may name them all the same
	q.Only(slices.Concat(streamParams(), boundParams(), []string{paramContainer, wire.ParamOp, wire.ParamPath,
		wire.ParamTotal, wire.ParamFollow, wire.ParamAfter, wire.ParamKeep, wire.ParamUser})...)
	readBounds(q, &o.Bounds)
	q.Text(paramContainer, &o.Container)
	q.Text(wire.ParamOp, &o.Op)
	q.Text(wire.ParamPath, &o.Path)
	flag(q, wire.ParamTotal, &o.Total)
	flag(q, wire.ParamFollow, &o.Follow)
	q.Text(wire.ParamAfter, &o.After)
	q.Text(wire.ParamKeep, &o.Keep)
	q.Text(wire.ParamUser, &o.User)
}

func readEvidence(q *query.Reader, _ *Evidence) { q.Only() }

func readSessions(q *query.Reader, o *Sessions) {
	q.Only(wire.ParamSession)
	q.Text(wire.ParamSession, &o.Session)
}
