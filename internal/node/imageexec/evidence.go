// SPDX-License-Identifier: Apache-2.0

package imageexec

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// evidence is what status.json says of a container.
type evidence struct {
	Name      string    `json:"name"`
	Type      string    `json:"type"`
	ID        string    `json:"id"`
	Attempt   uint32    `json:"attempt"`
	State     string    `json:"state"` // running, exited, unknown
	Image     string    `json:"image"`
	ImageID   string    `json:"imageID,omitempty"`
	StartedAt time.Time `json:"startedAt,omitzero"`

	FinishedAt time.Time `json:"finishedAt,omitzero"`
	ExitCode   *int32    `json:"exitCode,omitempty"`
	Signal     string    `json:"signal,omitempty"` // that ended it, as far as its exit code tells
	OOMKilled  bool      `json:"oomKilled,omitempty"`
	Reason     string    `json:"reason,omitempty"`
	Message    string    `json:"message,omitempty"` // its termination message
}

// statusJSON makes status.json of a container.
func statusJSON(c shown) ([]byte, error) {
	e := evidence{Name: c.Name, Type: c.Kind.Label(), ID: c.ID, Attempt: c.Attempt, State: "running", Image: c.Image,
		ImageID: c.ImageID, StartedAt: c.StartedAt.UTC(), Reason: c.Reason, Message: c.Message}
	switch {
	case c.Lost:
		e.State = "unknown"
	case c.Exited():
		e.State, e.FinishedAt, e.ExitCode, e.OOMKilled = "exited", c.FinishedAt.UTC(), &c.ExitCode,
			c.Reason == "OOMKilled"
		if n := c.ExitCode - 128; n > 0 && n <= 64 {
			e.Signal = unix.SignalName(unix.Signal(n))
		}
	}
	text, err := json.MarshalIndent(e, "", "  ")
	return append(text, '\n'), err
}

// envText makes the file of a container's environment: a variable a line. In values, a newline is written \n and a
// backslash \\.
func envText(vars []string) []byte {
	var b bytes.Buffer
	for _, v := range vars {
		b.WriteString(strings.NewReplacer(`\`, `\\`, "\n", `\n`).Replace(v))
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// logMost is how much of a container's log is shown at most, in bytes of its file: the end.
const logMost = 1 << 20

// logEnd returns the end of a log file in CRI format, of so many bytes at most, without what the format adds.
func logEnd(file string, most int64) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	from := max(0, info.Size()-most)
	data, err := io.ReadAll(io.NewSectionReader(f, from, most))
	if err != nil {
		return nil, err
	}
	if from > 0 { // it begins in the middle of a line
		_, data, _ = bytes.Cut(data, []byte("\n"))
	}
	return logText(data), nil
}

// logText takes off what the CRI's format adds to each line: time, stream, and whether the line goes on.
func logText(data []byte) []byte {
	var b bytes.Buffer
	for line := range bytes.Lines(data) {
		f := bytes.SplitN(bytes.TrimSuffix(line, []byte("\n")), []byte(" "), 4)
		if len(f) < 4 {
			continue
		}
		b.Write(f[3])
		if string(f[2]) != "P" {
			b.WriteByte('\n')
		}
	}
	return b.Bytes()
}
