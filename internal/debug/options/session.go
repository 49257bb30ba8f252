// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/wherryproject/wherry/internal/debug/debugask"
	"github.com/wherryproject/wherry/internal/podspec"
)

// Session is a debug container to be made.
type Session struct {
	podspec.DebugContainer
	TTL        time.Duration // 0: it is not stopped
	UnlessDead bool          // refuse when what is to be looked at is over (podspec.IsDead)
	Request    string        // the client's own word for what it asks for
}

// Session reads what debug container is asked for (DC-03: name and image, or neither).
func (o *Exec) Session() (Session, error) {
	s := Session{DebugContainer: podspec.DebugContainer{
		Name: o.DebugName, Image: o.DebugImage, Command: o.Command, Target: o.DebugTarget, Profile: o.DebugProfile,
		PullPolicy: corev1.PullPolicy(o.DebugPullPolicy), Stdin: o.Stdin, TTY: o.TTY,
	}, UnlessDead: o.UnlessDead, Request: o.DebugRequest}
	switch {
	case o.ForImage():
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
	if err := imageLength(debugask.ParamImage, o.DebugImage); err != nil {
		return s, err
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

func imageLength(param, image string) error {
	if len(image) <= debugask.MaxImage {
		return nil
	}
	return apierrors.NewBadRequest(fmt.Sprintf("%s has %d bytes: the name of an image may have at most %d", param,
		len(image), debugask.MaxImage))
}

func pullPolicy(param, value string) error {
	switch corev1.PullPolicy(value) {
	case "", corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever:
		return nil
	}
	return apierrors.NewBadRequest(fmt.Sprintf("%s %q is unknown: choose one of Always, IfNotPresent, Never", param,
		value))
}
