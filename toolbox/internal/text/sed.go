// SPDX-License-Identifier: Apache-2.0

package text

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

// sedder is one run of sed: the program, and the state it works on.
type sedder struct {
	*applet.Call
	program []*sedCommand
	quiet   bool
	out     io.Writer

	space, hold []byte
	line        int
	next        func() ([]byte, bool) // the next line
	last        func() bool           // whether there is none
	open        bool                  // the last line of the input has no end
	owed        bool                  // the last line that was printed has none, so that the next one needs it
	after       []string              // what a and r print at the end of a cycle
	replaced    bool                  // since the last line or t
}

// sedCommand is one command with its addresses.
type sedCommand struct {
	from, to *sedAddress
	not      bool
	active   bool // inside from,to
	until    int  // line on which a range from,+N or from,N ends
	name     byte
	text     string // of a, i, c, y, r, w; label of b, t
	re       *regexp.Regexp
	with     string
	global   bool
	nth      int
	print    bool
	file     io.Writer
	jump     int // of b, t and {: where to go on
}

// sedAddress is a line, $, /re/, +N or FIRST~STEP.
type sedAddress struct {
	line, step int
	end, plus  bool
	re         *regexp.Regexp
}

func sed(c *applet.Call) error {
	s := &sedder{Call: c, out: c.Out}
	quiet := c.Bool("n,quiet", "print only what p says")
	c.Do(",silent", "as -n", func() { *quiet = true })
	extended := c.Bool("E,regexp-extended", "extended regular expressions")
	c.Do("r", "as -E", func() { *extended = true })
	scripts := c.Strings("e,expression", "SCRIPT", "commands; may be repeated")
	files := c.Strings("f,file", "FILE", "commands from a file")
	inPlace, suffix := false, ""
	separate := c.Bool("s,separate", "line numbers begin anew with each file")
	for i, a := range c.Args { // -i may have a suffix, and only in the same word
		if v, ok := strings.CutPrefix(a, "-i"); ok {
			inPlace, suffix, c.Args[i] = true, v, "-s"
		} else if v, ok := strings.CutPrefix(a, "--in-place"); ok {
			inPlace, suffix, c.Args[i] = true, strings.TrimPrefix(v, "="), "-s"
		}
	}
	c.Do("i,in-place", "[SUFFIX]: change files, keeping the old ones with SUFFIX", func() { inPlace = true })
	if err := c.Parse(0, -1); err != nil {
		return err
	}
	for _, name := range *files {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		*scripts = append(*scripts, string(text))
	}
	if len(*scripts) == 0 {
		if len(c.Args) == 0 {
			return applet.Usage("missing script")
		}
		*scripts, c.Args = c.Args[:1], c.Args[1:]
	}
	p := &sedParser{text: strings.Join(*scripts, "\n"), extended: *extended}
	var err error
	if s.program, err = p.parse(); err != nil {
		return applet.Usage("%v", err)
	}
	s.quiet = *quiet || p.quiet
	if !inPlace {
		return s.run(c.Args, *separate)
	}
	for _, name := range c.Args {
		if err := s.inPlace(name, suffix); err != nil {
			c.Warn(err)
		}
	}
	return nil
}

func (s *sedder) inPlace(name, suffix string) error {
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	s.out, s.line, s.owed = &out, 0, false
	if err := s.run([]string{name}, true); err != nil {
		return err
	}
	if suffix != "" {
		if err := backUp(name, name+suffix, info.Mode().Perm()); err != nil {
			return err
		}
	}
	tmp, err := os.CreateTemp(filepath.Dir(name), ".sed-*")
	if err != nil { // a folder that may not be written to
		return os.WriteFile(name, out.Bytes(), info.Mode().Perm())
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(out.Bytes())
	if err := errors.Join(err, tmp.Chmod(info.Mode().Perm()), tmp.Close()); err != nil {
		return err
	}
	if err := os.Rename(tmp.Name(), name); errors.Is(err, unix.EBUSY) { // a mounted file
		return os.WriteFile(name, out.Bytes(), info.Mode().Perm())
	} else if err != nil {
		return err
	}
	return nil
}

// backUp keeps a file under another name: as a link, so that it stays what it is.
func backUp(name, to string, mode os.FileMode) error {
	if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if info, err := os.Lstat(name); err == nil && info.Mode().IsRegular() && os.Link(name, to) == nil {
		return nil
	}
	old, err := os.ReadFile(name) // a file system without links, or a link to somewhere else
	if err != nil {
		return err
	}
	return os.WriteFile(to, old, mode)
}

// errQuit ends the program, and is no failure.
var errQuit = errors.New("quit")

// run works through files as one stream, or separately.
func (s *sedder) run(names []string, separate bool) error {
	if !separate || len(names) < 2 {
		return s.stream(names)
	}
	for _, n := range names {
		s.line = 0
		if err := s.stream([]string{n}); err != nil {
			return err
		}
	}
	return nil
}

// stream reads lines one ahead, so that $ is known.
func (s *sedder) stream(names []string) error {
	type part struct {
		text  []byte
		ended bool
	}
	lines := make(chan part, 64)
	stop := make(chan struct{})
	var failed error
	go func() {
		defer close(lines)
		failed = s.Each(names, func(_ string, r io.Reader) error {
			return applet.Parts(r, '\n', func(l []byte, ended bool) error {
				select {
				case lines <- part{bytes.Clone(l), ended}:
					return nil
				case <-stop:
					return applet.Exit(0)
				}
			})
		})
	}()
	defer close(stop)
	ahead, more := <-lines
	s.last = func() bool { return !more }
	s.next = func() ([]byte, bool) {
		l, ok := ahead, more
		if ok {
			ahead, more = <-lines
			s.open = !l.ended
			s.line++
		}
		return l.text, ok
	}
	for {
		line, ok := s.next()
		if !ok {
			return failed
		}
		s.space, s.replaced = line, false
		if err := s.cycle(); errors.Is(err, errQuit) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// flush prints what was kept for the end of the cycle.
func (s *sedder) flush() error {
	for _, a := range s.after {
		if _, err := io.WriteString(s.out, s.due()+a); err != nil {
			return err
		}
	}
	s.after = s.after[:0]
	return nil
}

func (s *sedder) print(b []byte) error {
	_, err := io.WriteString(s.out, s.due()+string(b)+"\n")
	return err
}

// due is the end of the line that was printed last, if it still wants one.
func (s *sedder) due() string {
	if !s.owed {
		return ""
	}
	s.owed = false
	return "\n"
}

// show prints the pattern space. What it ends with is what the line read last ended with.
func (s *sedder) show() error {
	if !s.open {
		return s.print(s.space)
	}
	_, err := io.WriteString(s.out, s.due()+string(s.space))
	s.owed = true
	return err
}

// end is the end of a cycle.
func (s *sedder) end() error {
	if !s.quiet {
		if err := s.show(); err != nil {
			return err
		}
	}
	return s.flush()
}

// selects decides whether a command is for this line.
func (s *sedder) selects(c *sedCommand) bool {
	return s.inRange(c) != c.not
}

func (s *sedder) inRange(c *sedCommand) bool {
	switch {
	case c.from == nil:
		return true
	case c.to == nil:
		return s.at(c.from)
	case c.active:
		switch {
		case c.to.re != nil || c.to.end:
			c.active = !s.at(c.to)
		default:
			c.active = s.line < c.until
			return s.line <= c.until
		}
		return true
	case !s.at(c.from):
		return false
	}
	c.active = true
	switch {
	case c.to.plus:
		c.until = s.line + c.to.line
		c.active = c.to.line > 0
	case c.to.re == nil && !c.to.end:
		c.until = c.to.line
		c.active = s.line < c.until
	case c.to.end:
		c.active = !s.last()
	}
	return true
}

func (s *sedder) at(a *sedAddress) bool {
	switch {
	case a.end:
		return s.last()
	case a.re != nil:
		return a.re.Match(s.space)
	case a.step > 0:
		return s.line >= a.line && (s.line-a.line)%a.step == 0
	}
	return s.line == a.line
}
