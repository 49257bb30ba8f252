// SPDX-License-Identifier: Apache-2.0

package procs

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

// longest is how many bytes the words of a run may have, each with the byte that ends it.
const longest = 128 << 10

// stopped ends the reading of words early.
type stopped struct{}

func (stopped) Error() string { return "the word that ends the arguments was read" }

// xargser is one run of xargs.
type xargser struct {
	runner
	*applet.Call
	most, lines, longest int
	replace, end         string
	skip, show           bool
	slots                chan struct{} // a run takes one
	results              chan int      // exit codes of runs
	stop                 atomic.Bool   // a run has said that no other is to follow

	batch      []string
	size, read int // of the batch: bytes, lines
	ran        bool
}

func (r runner) xargs(c *applet.Call) error {
	c.Posix()
	x := &xargser{runner: r, Call: c}
	most := c.Int("n,max-args", "N", 5000, "N arguments for a run")
	lines := c.Int("L,max-lines", "N", 0, "N lines for a run; one that ends with a blank goes on in the next")
	zero := c.Bool("0,null", "arguments end with zero bytes")
	replace := c.String("I,replace", "TEXT", "", "a run for each line, put where TEXT is")
	delim := c.String("d,delimiter", "CHAR", "", "what stands between arguments")
	skip := c.Bool("r,no-run-if-empty", "no run without arguments")
	parallel := c.Int("P,max-procs", "N", 1, "N runs at the same time")
	show := c.Bool("t,verbose", "show the commands")
	end := c.String("E", "TEXT", "", "stop at this argument")
	size := c.Int("s,max-chars", "N", longest, "the command and its arguments have N bytes at most")
	file := c.String("a,arg-file", "FILE", "-", "read this file, not standard input")
	c.Bool("x,exit", "end where an argument is too long (always so)")
	if err := c.Parse(0, -1); err != nil {
		return err
	}
	if *most < 1 || *parallel < 1 || *size < 1 {
		return applet.Usage("-n, -P and -s want 1 or more")
	}
	if len(c.Args) == 0 {
		c.Args = []string{"echo"}
	}
	x.most, x.lines, x.longest, x.replace, x.end, x.skip, x.show = *most, *lines, *size, *replace, *end, *skip, *show
	in, err := c.Open(*file)
	if err != nil {
		return err
	}
	defer in.Close()
	return x.run(in, separator(*zero, *delim, *replace != ""), *parallel)
}

// separator is what stands between arguments: ' ' for blanks and line ends, with quotes.
func separator(zero bool, delim string, lines bool) byte {
	switch {
	case zero, delim == `\0`:
		return 0
	case delim == `\n`, delim == "" && lines:
		return '\n'
	case delim != "":
		return delim[0]
	}
	return ' '
}

// run reads arguments and runs the command with them; it returns when all runs have ended.
func (x *xargser) run(in io.Reader, sep byte, parallel int) error {
	x.slots = make(chan struct{}, parallel)
	x.results = make(chan int, 1)
	worst := make(chan int, 1)
	go func() {
		code := 0
		for r := range x.results {
			code = max(code, r)
		}
		worst <- code
	}()
	err := words(in, sep, x.word, x.line)
	if errors.Is(err, stopped{}) {
		err = nil
	}
	if err == nil && !x.stop.Load() && (len(x.batch) > 0 || !x.ran && !x.skip && x.replace == "") {
		if err = x.flush(); errors.Is(err, stopped{}) {
			err = nil
		}
	}
	for range parallel {
		x.slots <- struct{}{} // all have ended
	}
	close(x.results)
	code := <-worst
	switch {
	case err != nil:
		return err
	case code == 255:
		return applet.Exit(124)
	case code != 0:
		return applet.Exit(123)
	}
	return nil
}

// word takes an argument.
func (x *xargser) word(word string) error {
	if x.end != "" && word == x.end {
		return stopped{}
	}
	if x.replace != "" {
		args := make([]string, len(x.Args))
		for i, a := range x.Args {
			args[i] = strings.ReplaceAll(a, x.replace, strings.TrimLeft(word, " \t"))
		}
		x.ran = true
		return x.start(args)
	}
	if len(x.batch) > 0 && x.size+len(word)+1 > x.longest {
		if err := x.flush(); err != nil {
			return err
		}
	}
	if len(x.batch) == 0 {
		for _, a := range x.Args {
			x.size += len(a) + 1
		}
	}
	if x.size += len(word) + 1; x.size > x.longest {
		return fmt.Errorf("argument %.40q is too long", word)
	}
	if x.batch = append(x.batch, word); x.lines == 0 && len(x.batch) >= x.most {
		return x.flush()
	}
	return nil
}

// line takes the end of a line that had arguments.
func (x *xargser) line() error {
	if x.read++; x.lines > 0 && x.read >= x.lines {
		return x.flush()
	}
	return nil
}

func (x *xargser) flush() error {
	x.ran = true
	args := append(slices.Clone(x.Args), x.batch...)
	x.batch, x.size, x.read = nil, 0, 0
	return x.start(args)
}

func (x *xargser) start(args []string) error {
	cmd, err := x.command(args)
	if err != nil {
		return err
	}
	cmd.Stdin = nil
	if x.show {
		fmt.Fprintln(x.Err, strings.Join(args, " "))
	}
	x.slots <- struct{}{}
	if x.stop.Load() {
		<-x.slots
		return stopped{}
	}
	if err := cmd.Start(); err != nil {
		<-x.slots
		return applet.Fail(126, "%w", err)
	}
	go func() {
		code := exitOf(cmd.Wait())
		if code == 255 {
			fmt.Fprintf(x.Err, "%s: %s ended with 255, so nothing else is run\n", x.Name, args[0])
			x.stop.Store(true)
		}
		x.results <- code
		<-x.slots
	}()
	return nil
}

// exitOf is what xargs makes of the end of a run: 0, 255 for that, or 1 for another failure.
func exitOf(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit) && exit.ExitCode() == 255:
		return 255
	}
	return 1
}

// words splits input; sep ' ' stands for blanks and line ends, with quotes and backslashes. There, line is called at
// the end of each line that had words and does not end with a blank.
func words(in io.Reader, sep byte, word func(string) error, line func() error) error {
	b := bufio.NewReaderSize(in, 64<<10)
	if sep == ' ' {
		s := splitter{in: b, word: word, line: line}
		return s.run()
	}
	for {
		part, err := b.ReadString(sep)
		if part = strings.TrimSuffix(part, string(sep)); part != "" || err == nil {
			if sep != '\n' || strings.TrimSpace(part) != "" {
				if e := word(part); e != nil {
					return e
				}
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// splitter reads words as the shell does.
type splitter struct {
	in    *bufio.Reader
	word  func(string) error
	line  func() error
	text  []byte
	began bool // a word has begun
	quote byte
	some  bool // the line has words
}

func (s *splitter) run() error {
	for {
		ch, err := s.in.ReadByte()
		switch {
		case err != nil || s.quote == 0 && strings.IndexByte(" \t\n", ch) >= 0:
			if e := s.end(ch == '\n' && err == nil); e != nil {
				return e
			}
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return err
			}
		case s.quote != 0 && ch == '\n':
			return fmt.Errorf("a %c is missing", s.quote)
		case s.quote != 0 && ch == s.quote:
			s.quote = 0
		case s.quote == 0 && (ch == '\'' || ch == '"'):
			s.quote, s.began = ch, true
		case s.quote == 0 && ch == '\\':
			if ch, err = s.in.ReadByte(); err != nil {
				return err
			}
			s.text, s.began = append(s.text, ch), true
		default:
			s.text, s.began = append(s.text, ch), true
		}
	}
}

// end ends a word, and at the end of a line, if no blank is in front of that, the line.
func (s *splitter) end(line bool) error {
	if s.quote != 0 {
		return fmt.Errorf("a %c is missing", s.quote)
	}
	had := s.began
	if had {
		if err := s.word(string(s.text)); err != nil {
			return err
		}
	}
	s.text, s.began, s.some = s.text[:0], false, s.some || had
	if line && s.some && had {
		s.some = false
		return s.line()
	}
	return nil
}
