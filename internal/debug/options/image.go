// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"strings"

	"github.com/distribution/reference"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/wherryproject/wherry/internal/debug/debugask"
)

// ImageRun is a command to be run from an image inside a pod.
type ImageRun struct {
	Image     string
	Command   []string // none: the image's own
	Container string   // whose processes it sees, if any
	Writable  bool
	// PullPolicy is when the node pulls the image; none: by the image's tag.
	PullPolicy string
	User       *debugask.User // nil: the node decides
	UserOf     string         // whose user the node takes where root may not be
}

// ImageRun reads what is asked for (IX-01).
func (o *Exec) ImageRun() (ImageRun, error) {
	run := ImageRun{Image: o.Image, Command: o.Command, Container: o.Container, Writable: o.Writable,
		PullPolicy: o.PullPolicy, UserOf: o.UserOf}
	if o.Image == "" {
		return run, apierrors.NewBadRequest(fmt.Sprintf("%s is missing: %s have no effect without it",
			debugask.ParamExecImage, strings.Join(imageParams()[1:], ", ")))
	}
	if err := imageLength(debugask.ParamExecImage, o.Image); err != nil {
		return run, err
	}
	var err error
	if run.User, err = user(debugask.ParamExecUser, o.User); err != nil {
		return run, err
	}
	if _, err := reference.ParseAnyReference(o.Image); err != nil {
		return run, apierrors.NewBadRequest(fmt.Sprintf("%q is not an image name: %v", o.Image, err))
	}
	return run, pullPolicy(debugask.ParamExecPullPolicy, o.PullPolicy)
}
