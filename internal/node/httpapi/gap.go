// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bytes"
	"io"
	"sync/atomic"
	"time"

	"github.com/wherryproject/wherry/internal/node/logs"
)

const (
	// gapTime bounds the wait until the log has what was streamed: the runtime writes both at once, and one may be
	// later.
	gapTime = 200 * time.Millisecond
	gapTick = 5 * time.Millisecond
)

// joining is one of a container's streams, of which somebody has been shown the log: before the first bytes that the
// runtime streams it writes what was printed between the two, as the log has that by then.
type joining struct {
	to   io.Writer
	rest io.Writer // where what the log has goes to; on a terminal it ends lines as one does
	log  func(to io.Writer) error
	n    atomic.Int64 // bytes that were streamed
}

// Write implements io.Writer.
func (j *joining) Write(p []byte) (int, error) {
	if j.n.Load() == 0 && len(p) > 0 {
		if _, err := j.rest.Write(j.missed(p)); err != nil {
			return 0, err
		}
	}
	n, err := j.to.Write(p)
	j.n.Add(int64(n))
	return n, err
}

// Close implements io.Closer. The client's stream is closed by who has opened it.
func (j *joining) Close() error { return nil }

// missed is what was printed before the first bytes of the stream.
func (j *joining) missed(first []byte) []byte {
	tick := time.NewTicker(gapTick)
	defer tick.Stop()
	for until := time.Now().Add(gapTime); ; <-tick.C {
		var log bytes.Buffer
		if j.log(&log) != nil {
			return nil // the stream is what there is then
		}
		if before, found := before(log.Bytes(), first); found || time.Now().After(until) {
			return before
		}
	}
}

// before decides what of a log comes before the first bytes of a stream, both of one output, and whether the log has
// those already, as far as it ever will. It has whole lines only, and none of a terminal's carriage returns; what is
// printed again and again is taken for the last of its kind. (Pure.)
func before(log, first []byte) (gap []byte, found bool) {
	first = bytes.ReplaceAll(first, []byte("\r\n"), []byte("\n"))
	whole := first[:bytes.LastIndexByte(first, '\n')+1]
	if len(whole) == 0 { // a prompt, or a part of a line
		if at := bytes.LastIndex(log, first); at >= 0 {
			return log[:bytes.LastIndexByte(log[:at], '\n')+1], true
		}
		return log, true
	}
	if at := bytes.LastIndex(log, whole); at >= 0 {
		return log[:at], true
	}
	return nil, false
}

// joining is a stream that goes to whom: stdout, or stderr.
func (a *replayed) joining(to, rest io.Writer, at int64, isErr bool) *joining {
	return &joining{to: to, rest: rest, log: func(into io.Writer) error {
		out, errOut := into, io.Writer(nil)
		if isErr {
			out, errOut = nil, into
		}
		_, err := logs.Replay(a.path, at, replayMost, out, errOut)
		return err
	}}
}
