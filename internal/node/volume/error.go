// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"fmt"
)

// SetUpError says which volume of a pod could not be set up and why; its text is that of the kubelet's FailedMount
// event.
type SetUpError struct {
	Volume string
	Err    error // apierrors.IsNotFound holds for a missing ConfigMap or Secret
}

func (e *SetUpError) Error() string {
	return fmt.Sprintf("MountVolume.SetUp failed for volume %q : %v", e.Volume, e.Err)
}

// Unwrap gives the cause.
func (e *SetUpError) Unwrap() error { return e.Err }

// Reason is the event's reason: FailedMount.
func (e *SetUpError) Reason() string { return "FailedMount" }

// Failures takes an error of Prepare or Refresh apart into one SetUpError for each volume, for an event each.
// It is nil when the error is of another kind.
func Failures(err error) []*SetUpError {
	if one, ok := err.(*SetUpError); ok { // as it stands: a joined error is taken apart below
		return []*SetUpError{one}
	}
	var out []*SetUpError
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range many.Unwrap() {
			out = append(out, Failures(e)...)
		}
	}
	return out
}

// MountError says which mount of a container cannot be made; the container's waiting reason is
// CreateContainerConfigError.
type MountError struct {
	Container string
	Path      string // mountPath
	Err       error
}

func (e *MountError) Error() string {
	return fmt.Sprintf("failed to prepare the mount at %s of container %s: %v", e.Path, e.Container, e.Err)
}

// Unwrap gives the cause.
func (e *MountError) Unwrap() error { return e.Err }

// Reason is the container's waiting reason.
func (e *MountError) Reason() string { return "CreateContainerConfigError" }
