// SPDX-License-Identifier: Apache-2.0

package history

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wherryproject/wherry/internal/timeline"
)

// suffix of the files' names; before it stands the pod's UID.
const suffix = ".jsonl"

// line is one of a file's: who the pod is, or a moment, or that nothing more comes.
type line struct {
	Pod    *timeline.Pod    `json:"pod,omitempty"`
	Moment *timeline.Moment `json:"moment,omitempty"`
	Gone   bool             `json:"gone,omitempty"`
}

// maxLine is the longest line that is read; the recorder writes far shorter ones.
const maxLine = 64 << 10

// Read reads a history. Lines that make no sense are left out: the last one may have been cut off when the machine went
// down, and a later version may write what this one does not know. Of two moments with one number the later counts.
func Read(r io.Reader) (timeline.History, error) {
	h := timeline.History{}
	at := map[int]int{}
	in := bufio.NewReaderSize(r, maxLine)
	for {
		text, err := in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			for errors.Is(err, bufio.ErrBufferFull) { // no line of ours
				_, err = in.ReadSlice('\n')
			}
			text = nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return h, err
		}
		var l line
		if len(bytes.TrimSpace(text)) > 0 && json.Unmarshal(text, &l) == nil {
			take(&h, at, l)
		}
		if err != nil {
			break
		}
	}
	slices.SortStableFunc(h.Moments, func(a, b timeline.Moment) int { return cmp.Compare(a.Seq, b.Seq) })
	return h, nil
}

func take(h *timeline.History, at map[int]int, l line) {
	if l.Pod != nil {
		h.Pod = *l.Pod
	}
	h.Gone = h.Gone || l.Gone
	m := l.Moment
	if m == nil || m.Seq < 0 || m.At.IsZero() {
		return
	}
	if i, ok := at[m.Seq]; ok {
		h.Moments[i] = *m
		return
	}
	at[m.Seq] = len(h.Moments)
	h.Moments = append(h.Moments, *m)
}

func encode(b *bytes.Buffer, l line) {
	data, err := json.Marshal(l)
	if err != nil {
		return // a time beyond year 9999: it is not drawn either
	}
	b.Write(data)
	b.WriteByte('\n')
}

// whole is a history's file, written anew.
func whole(h *timeline.History) []byte {
	var b bytes.Buffer
	encode(&b, line{Pod: &h.Pod, Gone: h.Gone})
	for i := range h.Moments {
		encode(&b, line{Moment: &h.Moments[i]})
	}
	return b.Bytes()
}

// folder is where the files are.
type folder string

func (f folder) path(uid string) string { return filepath.Join(string(f), uid+suffix) }

// add appends whole lines to a pod's file and returns its size then.
func (f folder) add(uid string, data []byte) (int64, error) {
	file, err := os.OpenFile(f.path(uid), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return 0, err
	}
	_, err = file.Write(data)
	size, serr := file.Seek(0, io.SeekEnd)
	return size, errors.Join(err, serr, file.Close())
}

// replace writes a pod's file anew, so that at any moment there is the old one or the new one.
func (f folder) replace(uid string, data []byte) error {
	next := f.path(uid) + ".next"
	if err := os.WriteFile(next, data, 0o600); err != nil {
		return err
	}
	return os.Rename(next, f.path(uid))
}

func (f folder) remove(uid string) error {
	err := os.Remove(f.path(uid))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// load reads all files. One that cannot be read is returned as an error and left out.
func (f folder) load() (all []timeline.History, err error) {
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(string(f))
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, e := range entries {
		name := filepath.Join(string(f), e.Name())
		uid, ours := strings.CutSuffix(e.Name(), suffix)
		if !ours {
			if strings.HasSuffix(e.Name(), suffix+".next") { // a replacement that was not finished
				errs = append(errs, os.Remove(name))
			}
			continue
		}
		h, err := readFile(name)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		case h.UID != uid || len(h.Moments) == 0:
			errs = append(errs, os.Remove(name)) // its beginning is lost; nobody could find it
		default:
			all = append(all, h)
		}
	}
	return all, errors.Join(errs...)
}

func readFile(name string) (timeline.History, error) {
	file, err := os.Open(name)
	if err != nil {
		return timeline.History{}, err
	}
	defer file.Close()
	return Read(io.LimitReader(file, 4*MaxBytes))
}
