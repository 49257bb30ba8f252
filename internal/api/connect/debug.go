// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/wsstream"

	"github.com/wherryproject/wherry/internal/debug/debugask"
	"github.com/wherryproject/wherry/internal/podspec"
)

// Debugging is the API server's part in requests that enter a pod: it makes, checks and records, and this package hands
// the connection over. All its methods return errors for the client.
type Debugging interface {
	// Entered puts on record that somebody is about to enter a container by exec (IX-08).
	Entered(ctx context.Context, pod *corev1.Pod, container string, command []string) error
	// Debug makes a debug container (DC-03), which is on its way then.
	Debug(ctx context.Context, pod string, session Session) (*Made, error)
	// ImageAllowed says whether the client may run a command from an image in the pod (IX-07), and what is run:
	// admission may have changed the image.
	ImageAllowed(ctx context.Context, pod *corev1.Pod, run ImageRun) (ImageRun, error)
	// ImageExec puts on record that somebody is about to do so; finish, called once, that it is over.
	ImageExec(ctx context.Context, pod *corev1.Pod, run ImageRun) (finish func(End), err error)
}

// Session is a debug container to be made.
type Session struct {
	podspec.DebugContainer
	TTL        time.Duration // 0: it is not stopped
	UnlessDead bool          // refuse when what is to be looked at is over (podspec.IsDead)
	Request    string        // the client's own word for what it asks for
}

// Made is a debug container that was added to its pod.
type Made struct {
	Pod *corev1.Pod
	Run int // of its name (podspec.DebugRun)
	// Note tells the user what is not to be seen in it; "" for nothing.
	Note string
	// Recorded is closed when it is on record: nobody is let in before.
	Recorded <-chan struct{}
	// Begun returns when it runs or has ended, with the pod as it is stored then, or says why it cannot start; then it
	// does not start later either. It is called once. When ctx is done, nobody wants to know any more.
	Begun func(ctx context.Context) (*corev1.Pod, error)
	// Ended says how it has ended, or that it goes on, once the client's streams are over.
	Ended func(ctx context.Context) End
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

// wants tells whether a request has one of the parameters.
func (o *ExecOptions) wants(params []string) bool {
	return slices.ContainsFunc(o.Given, func(name string) bool { return slices.Contains(params, name) })
}

// session reads what debug container is asked for (DC-03: name and image, or neither).
func (o *ExecOptions) session() (Session, error) {
	s := Session{DebugContainer: podspec.DebugContainer{
		Name: o.DebugName, Image: o.DebugImage, Command: o.Command, Target: o.DebugTarget, Profile: o.DebugProfile,
		PullPolicy: corev1.PullPolicy(o.DebugPullPolicy), Stdin: o.Stdin, TTY: o.TTY,
	}, UnlessDead: o.UnlessDead, Request: o.DebugRequest}
	switch {
	case o.wants(imageParams()):
		return s, apierrors.NewBadRequest(fmt.Sprintf("%s and %s exclude each other: give one of them",
			debugask.ParamImage, debugask.ParamExecImage))
	case o.DebugName == "" || o.DebugImage == "":
		return s, apierrors.NewBadRequest(fmt.Sprintf("%s and %s must both be given, or neither", debugask.ParamName,
			debugask.ParamImage))
	case o.Container != "" && o.Container != o.DebugName:
		return s,
			apierrors.NewBadRequest(fmt.Sprintf("container %s is not the debug container %s: leave the parameter container out", o.Container, o.DebugName))
	}
	if o.DebugProfile != "" && !slices.Contains(debugask.Profiles(), o.DebugProfile) {
		return s, apierrors.NewBadRequest(fmt.Sprintf("%s %q is unknown: choose one of %s", debugask.ParamProfile,
			o.DebugProfile, strings.Join(debugask.Profiles(), ", ")))
	}
	if err := pullPolicy(debugask.ParamPullPolicy, o.DebugPullPolicy); err != nil {
		return s, err
	}
	if len(o.DebugRequest) > maxRequest {
		return s, apierrors.NewBadRequest(fmt.Sprintf("%s has %d bytes: at most %d are allowed", debugask.ParamRequest,
			len(o.DebugRequest), maxRequest))
	}
	var err error
	if s.User, err = user(debugask.ParamUser, o.DebugUser); err != nil {
		return s, err
	}
	if o.DebugTTL == "" {
		return s, nil
	}
	ttl, err := time.ParseDuration(o.DebugTTL)
	if err != nil || ttl <= 0 {
		return s, apierrors.NewBadRequest(fmt.Sprintf("%s %q is not a duration above zero, for example 30m",
			debugask.ParamTTL, o.DebugTTL))
	}
	s.TTL = ttl
	return s, nil
}

// maxRequest bounds a client's own word, which the pod keeps.
const maxRequest = 64

func user(param, text string) (*debugask.User, error) {
	u, err := debugask.ParseUser(text)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%s: %v", param, err))
	}
	return u, nil
}

func pullPolicy(param, value string) error {
	switch corev1.PullPolicy(value) {
	case "", corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever:
		return nil
	}
	return apierrors.NewBadRequest(fmt.Sprintf("%s %q is unknown: choose one of Always, IfNotPresent, Never", param,
		value))
}

// someStream refuses a request that could neither say nor hear anything.
func (o *ExecOptions) someStream() error {
	if !o.Stdin && !o.Stdout && !o.Stderr {
		return apierrors.NewBadRequest("you must specify at least 1 of stdin, stdout, stderr")
	}
	return nil
}

// upgradeFirst opens a stream for a client that asks for one. Whoever does not could not be given it, so nothing is
// made.
func upgradeFirst(r rest.Responder, open func(*http.Request) (http.Handler, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !asksForStreams(req) {
			r.Error(apierrors.NewBadRequest("Upgrade request required"))
			return
		}
		h, err := open(req)
		if err != nil {
			r.Error(err)
			return
		}
		h.ServeHTTP(w, req)
	})
}

func asksForStreams(req *http.Request) bool {
	return httpstream.IsUpgradeRequest(req) || wsstream.IsWebSocketRequest(req)
}
