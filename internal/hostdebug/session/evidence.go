// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/wherryproject/wherry/internal/debug/evidence"
	"github.com/wherryproject/wherry/internal/hostdebug/engines"
)

// knownState is what status.json says of a target.
type knownState struct {
	Target     string    `json:"target"`
	Name       string    `json:"name"`
	ID         string    `json:"id,omitempty"`
	Image      string    `json:"image,omitempty"`
	State      string    `json:"state"`
	PID        int       `json:"pid,omitempty"`
	Command    []string  `json:"command,omitempty"`
	User       string    `json:"user,omitempty"`
	CreatedAt  time.Time `json:"createdAt,omitzero"`
	StartedAt  time.Time `json:"startedAt,omitzero"`
	FinishedAt time.Time `json:"finishedAt,omitzero"`
	ExitCode   *int      `json:"exitCode,omitempty"`
	Signal     string    `json:"signal,omitempty"` // that ended it, as far as its exit code shows
	OOMKilled  bool      `json:"oomKilled,omitempty"`
	Error      string    `json:"error,omitempty"`
}

// StatusJSON makes status.json of a target: what its engine knows of it.
func StatusJSON(c *engines.Container) ([]byte, error) {
	e := knownState{Target: c.Target.String(), Name: c.Name, ID: c.ID, Image: c.Image, State: string(c.State),
		PID: c.PID, Command: c.Args, User: c.User, CreatedAt: c.Created.UTC(), StartedAt: known(c.Started)}
	if c.State == engines.Exited {
		e.FinishedAt, e.ExitCode, e.OOMKilled, e.Error = known(c.Finished), &c.ExitCode, c.OOMKilled, c.Error
		e.Signal = evidence.Signal(c.ExitCode)
	}
	return evidence.JSON(e)
}

// known is a time, or nothing for what engines write where there is none.
func known(t time.Time) time.Time {
	if t.Year() <= 1970 {
		return time.Time{}
	}
	return t.UTC()
}

const (
	logLines = 200
	logMost  = 1 << 20
	logWait  = 3 * time.Second // it is an extra, and an engine may take for ever
)

// keepEvidence writes what is known of a target into a folder. What cannot be had of its log comes back as a note.
func keepEvidence(ctx context.Context, c *engines.Container, dir string, uid, gid int) (note string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	status, err := StatusJSON(c)
	if err != nil {
		return "", err
	}
	files := map[string][]byte{"status.json": status, "env": evidence.EnvText(c.Env)}
	if !c.Alive() {
		log, err := lastLog(ctx, c)
		if none := (*engines.NoLog)(nil); err != nil && !errors.As(err, &none) {
			note = "its log cannot be read: " + err.Error()
		}
		files["log"] = log
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			return note, err
		}
		if err := os.Chown(path, uid, gid); err != nil {
			return note, err
		}
	}
	return note, nil
}

// lastLog is the end of a target's log.
func lastLog(ctx context.Context, c *engines.Container) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, logWait)
	defer cancel()
	r, err := c.Log(ctx, logLines)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	text, err := io.ReadAll(io.LimitReader(r, logMost))
	if len(text) > 0 {
		return text, nil // what there is of it says more than why the rest is not
	}
	return nil, err
}
