// SPDX-License-Identifier: Apache-2.0

package copying

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

// question is what a client of cp-look asks, a line of JSON. Paths are escaped as in a URL, part by part: a name may be
// any bytes, and JSON has only text.
type question struct {
	Do   string    `json:"do"`             // a key of [answers]
	Root string    `json:"root"`           // a folder below the base: a container, or with @image behind it its image
	Path string    `json:"path"`           // in the root
	With *other    `json:"with,omitempty"` // compare: what with
	From int64     `json:"from,omitempty"` // read: the first byte
	Most int64     `json:"most,omitempty"` // read: how many bytes at most
	Then time.Time `json:"since,omitzero"` // changed: since when; else since the container was made
	Name string    `json:"name,omitempty"` // put: the file's name in the folder at Path, escaped
	Size int64     `json:"size,omitempty"` // put: how many bytes come
	Over bool      `json:"over,omitempty"` // put: a file that is there may be replaced
	Data []byte    `json:"data,omitempty"` // put: the next bytes, in a line of their own
}

// other is the other side of a comparison.
type other struct {
	Root string `json:"root"`
	Path string `json:"path"`
}

// answer is a line of JSON. The last one to a question has End or Error.
type answer struct {
	Error string `json:"error,omitempty"`
	End   bool   `json:"end,omitempty"`
	Data  []byte `json:"data,omitempty"`

	File    *entry            `json:"file,omitempty"`    // read, send: the file that it is
	Files   []entry           `json:"files,omitempty"`   // list, changed
	Users   map[uint32]string `json:"users,omitempty"`   // list: names of owners, as the root's own files have them
	Groups  map[uint32]string `json:"groups,omitempty"`  // likewise
	Runs    map[string]run    `json:"runs,omitempty"`    // containers: what is known of them
	Differ  []difference      `json:"differ,omitempty"`  // compare
	More    string            `json:"more,omitempty"`    // why this is not all
	Notes   []string          `json:"notes,omitempty"`   // what could not be looked at
	Visited int               `json:"visited,omitempty"` // compare, changed: how many files were looked at
	Got     *int64            `json:"got,omitempty"`     // put: so many bytes have come; the next ones may
}

// looker serves one client.
type looker struct {
	base string
	in   *bufio.Reader
	out  *json.Encoder
	sent func() error // has what was written go out
}

// longestQuestion bounds a line, in bytes: a path, or a piece of a file in base64.
const longestQuestion = 2 << 20

func look(c *applet.Call) error {
	base := c.String(",base", "FOLDER", "/c", "the folder that has the roots")
	if err := c.Parse(0, 0); err != nil {
		return err
	}
	out := json.NewEncoder(c.Out)
	out.SetEscapeHTML(false)
	l := &looker{base: *base, in: bufio.NewReaderSize(c.In, 64<<10), out: out, sent: c.Out.Flush}
	return l.serve()
}

// serve answers until there are no more questions. What goes wrong with one is said in its answer.
func (l *looker) serve() error {
	for {
		q, err := l.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		last, err := l.answer(q)
		if err != nil {
			last = answer{Error: applet.Plain(err.Error())}
		}
		last.End = err == nil
		for i, note := range last.Notes {
			last.Notes[i] = strings.ReplaceAll(applet.Plain(note), "\n", "?")
		}
		if err := l.say(last); err != nil {
			return err
		}
	}
}

// next reads a question.
func (l *looker) next() (q question, err error) {
	var line []byte
	for {
		part, err := l.in.ReadSlice('\n')
		line = append(line, part...)
		if err == nil {
			break
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return q, err
		}
		if len(line) > longestQuestion {
			return q, applet.Fail(2, "a question is longer than %d bytes", longestQuestion)
		}
	}
	if err := json.Unmarshal(line, &q); err != nil {
		return q, applet.Fail(2, "a question is not JSON as cp-look has it: %v", err)
	}
	return q, nil
}

func (l *looker) say(a answer) error {
	if err := l.out.Encode(a); err != nil {
		return err
	}
	return l.sent()
}

// answers are what can be asked for.
func answers() map[string]func(*looker, question) (answer, error) {
	return map[string]func(*looker, question) (answer, error){
		"containers": (*looker).containers, "list": (*looker).list, "read": (*looker).read, "send": (*looker).send,
		"pack": (*looker).pack, "compare": (*looker).compare, "changed": (*looker).changed, "put": (*looker).put,
	}
}

func (l *looker) answer(q question) (answer, error) {
	f, ok := answers()[q.Do]
	if !ok {
		return answer{}, fmt.Errorf("%q is not known here: the program in the pod is older than who asks", q.Do)
	}
	return f(l, q)
}

// unescape reads a path whose parts are escaped. It is the root's, wherever it seems to lead.
func unescape(text string) (string, error) {
	plain, err := url.PathUnescape(text)
	if err != nil || strings.ContainsRune(plain, 0) {
		return "", fmt.Errorf("%q is not a path: each part is escaped as in a URL", text)
	}
	return "/" + strings.TrimPrefix(plain, "/"), nil
}

// escape is a name as [unescape] reads it.
func escape(name string) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return strings.Join(parts, "/")
}

// ofImage behind a container's name means the files of its image.
const ofImage = "@image"

// folderOf is where the files of a root are.
func (l *looker) folderOf(name string) string {
	if container, image := strings.CutSuffix(name, ofImage); image {
		return path.Join(l.base, ".wherry", container, "image")
	}
	return path.Join(l.base, name)
}

// within opens the root of a container and reads the path in it.
func (l *looker) within(name, at string) (*root, string, error) {
	if name == "" || name == ofImage || name != path.Base(name) || name == "." || name == ".." || name[0] == '.' {
		return nil, "", fmt.Errorf("%q is not the name of a container", name)
	}
	where, err := unescape(at)
	if err != nil {
		return nil, "", err
	}
	r, kept, err := openBeneath(l.folderOf(name))
	switch {
	case err != nil:
		return nil, "", fmt.Errorf("container %s: its files are not here: %w", name, err)
	case !kept: // to change the root has no way back, for the next question
		return nil, "",
			applet.Fail(1, "a path cannot be kept in a folder here: the kernel has no openat2 (Linux 5.6 has), "+
				"or a seccomp profile forbids it")
	}
	return r, where, nil
}
