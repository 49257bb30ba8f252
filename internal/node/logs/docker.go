// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"bytes"
	"encoding/json"
	"time"
)

// parseDocker reads a line of a log of Docker's json-file driver, which a CRI runtime on top of Docker links to instead
// of writing a log of its own: {"log": "a line\n", "stream": "stdout", "time": "2026-11-20T10:00:00.1Z"}. A log without
// the line's end is a piece of a long line. https://docs.docker.com/engine/logging/drivers/json-file/
func parseDocker(line []byte) (e Entry, ok bool) {
	var entry struct {
		Log    *string   `json:"log"`
		Stream string    `json:"stream"`
		Time   time.Time `json:"time"`
	}
	if err := json.Unmarshal(line, &entry); err != nil || entry.Log == nil {
		return e, false
	}
	if e.Stream, ok = streamNamed([]byte(entry.Stream)); !ok {
		return e, false
	}
	e.Time = entry.Time
	e.Text, e.Full = bytes.CutSuffix([]byte(*entry.Log), []byte{'\n'})
	return e, true
}

func streamNamed(name []byte) (Stream, bool) {
	switch string(name) {
	case "stdout":
		return Stdout, true
	case "stderr":
		return Stderr, true
	}
	return 0, false
}
