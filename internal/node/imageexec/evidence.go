// SPDX-License-Identifier: Apache-2.0

package imageexec

import (
	"time"

	"github.com/wherryproject/wherry/internal/debug/evidence"
)

// knownState is what status.json says of a container.
type knownState struct {
	Name      string    `json:"name"`
	Type      string    `json:"type"`
	ID        string    `json:"id"`
	Attempt   uint32    `json:"attempt"`
	State     string    `json:"state"` // running, exited, unknown
	Image     string    `json:"image"`
	ImageID   string    `json:"imageID,omitempty"`
	CreatedAt time.Time `json:"createdAt,omitzero"`
	StartedAt time.Time `json:"startedAt,omitzero"`

	FinishedAt time.Time `json:"finishedAt,omitzero"`
	ExitCode   *int32    `json:"exitCode,omitempty"`
	Signal     string    `json:"signal,omitempty"` // that ended it, as far as its exit code shows
	OOMKilled  bool      `json:"oomKilled,omitempty"`
	Reason     string    `json:"reason,omitempty"`
	Message    string    `json:"message,omitempty"` // its termination message
}

// statusJSON makes status.json of a container.
func statusJSON(c shown) ([]byte, error) {
	e := knownState{Name: c.Name, Type: c.Kind.Label(), ID: c.ID, Attempt: c.Attempt, State: "running", Image: c.Image,
		ImageID: c.ImageID, CreatedAt: c.CreatedAt.UTC(), StartedAt: c.StartedAt.UTC(), Reason: c.Reason,
		Message: c.Message}
	switch {
	case c.Lost:
		e.State = "unknown"
	case c.Exited():
		e.State, e.FinishedAt, e.ExitCode, e.OOMKilled = "exited", c.FinishedAt.UTC(), &c.ExitCode,
			c.Reason == "OOMKilled"
		e.Signal = evidence.Signal(int(c.ExitCode))
	}
	return evidence.JSON(e)
}

// logMost is how much of a container's log is shown at most, in bytes of its file: the end.
const logMost = 1 << 20
