// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"gopkg.in/natefinch/lumberjack.v2"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/audit"
	pluginlog "k8s.io/apiserver/plugin/pkg/audit/log"

	"github.com/wherryproject/wherry/internal/audit/trail"
)

// What the log of strangers' refusals may take: it holds sums.
const (
	refusedSize    = 10 // MiB
	refusedBackups = 4
)

// openLog opens the log and the one of what strangers were refused, which may be the same.
func (r *Recorder) openLog(o LogOptions, dataDir string) (log, refused audit.Backend, err error) {
	path := o.Path
	switch path {
	case Off:
		return nil, nil, nil
	case Stdout:
		if o.Out == nil {
			return nil, nil, errors.New("standard output is closed")
		}
		log = o.wrap(pluginlog.NewBackend(&lines{to: o.Out}, o.Format, auditv1.SchemeGroupVersion))
		return log, log, nil
	case "":
		path = DefaultPath(dataDir)
	}
	if err := prepare(path); err != nil {
		return nil, nil, err
	}
	log = r.file(path, o)
	if o.MaxBackups > 0 { // else nothing is ever removed for room
		log = newFair(log, r.openBusy(path, o), o)
	}
	few := o
	few.MaxSize, few.MaxBackups = min(o.MaxSize, refusedSize), refusedBackups
	return log, r.file(trail.Refused(path), few), nil
}

// file is a log that is rotated. Nothing is made before the first event.
func (r *Recorder) file(path string, o LogOptions) audit.Backend {
	if _, err := os.Stat(path); err == nil {
		_ = prepare(path) // the first write says what is wrong
	}
	file := &lumberjack.Logger{Filename: path, MaxAge: o.MaxAge, MaxBackups: o.MaxBackups, MaxSize: o.MaxSize,
		Compress: o.Compress}
	r.files = append(r.files, file)
	return o.wrap(pluginlog.NewBackend(&lines{to: io.Writer(file)}, o.Format, auditv1.SchemeGroupVersion))
}

// prepare makes the log and its folder, readable by their owner alone, and ends a line that an earlier server did not
// come to end.
func prepare(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file: it cannot be rotated", path)
	}
	if info.Size() == 0 {
		return f.Close()
	}
	last := make([]byte, 1)
	if _, err := f.ReadAt(last, info.Size()-1); err != nil {
		return err
	}
	if last[0] != '\n' {
		if _, err := f.WriteString("\n"); err != nil {
			return err
		}
	}
	return f.Close()
}

// lines writes whole lines: after one that was cut off, as by a full disk, the next begins on a line of its own.
type lines struct {
	mu   sync.Mutex
	to   io.Writer
	torn bool
}

// Write implements io.Writer.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.torn {
		if _, err := l.to.Write([]byte("\n")); err != nil {
			return 0, err
		}
		l.torn = false
	}
	n, err := l.to.Write(p)
	l.torn = n > 0 && n < len(p)
	return n, err
}
