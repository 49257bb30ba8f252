// SPDX-License-Identifier: Apache-2.0

package applet

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
)

// Applet is one command of the toolbox.
type Applet struct {
	Name  string
	Usage string // what follows the flags in the usage line, as "[FILE]..."
	Short string // one line: what it does
	Run   func(*Call) error
	// Names says that what the command prints are its own words and names that others chose (files, processes, hosts),
	// not the contents of files. On a terminal it is printed through Plain.
	Names bool
}

// Call is one run of a command.
type Call struct {
	Applet
	Args []string // what is left after Parse
	In   *os.File
	Out  *bufio.Writer // flushed at the end; a command that runs long flushes it itself
	Err  io.Writer

	options []option
	digits  string // the flag that -5 stands for
	posix   bool   // flags end at the first argument that is none
	failed  bool
}

// exitCode is how a command ends that has said all it had to say.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// Exit ends a command with a code and without a message. Exit(0) is a success that ends it early.
func Exit(code int) error { return exitCode(code) }

// coded is an error with an exit code of its own.
type coded struct {
	code int
	err  error
}

func (c coded) Error() string { return c.err.Error() }
func (c coded) Unwrap() error { return c.err }

// Fail ends a command with a code and a message.
func Fail(code int, format string, args ...any) error {
	return coded{code, fmt.Errorf(format, args...)}
}

// Usage says that a command was called in a wrong way: exit code 2.
func Usage(format string, args ...any) error {
	return coded{2, fmt.Errorf(format+" (see --help)", args...)}
}

// Main runs the command and returns its exit code.
func (a Applet) Main(args []string) int {
	c := &Call{Applet: a, Args: args, In: os.Stdin, Out: bufio.NewWriterSize(os.Stdout, 32<<10), Err: os.Stderr}
	if a.Names && isTerminal(os.Stdout) {
		c.Out = bufio.NewWriterSize(&plainWriter{to: os.Stdout}, 32<<10)
	}
	err := a.Run(c)
	if e := c.Out.Flush(); e != nil && err == nil {
		err = e
	}
	var code exitCode
	var with coded
	switch {
	case err == nil:
		if c.failed {
			return 1
		}
		return 0
	case errors.As(err, &code):
		return int(code)
	case errors.As(err, &with):
		c.say(err)
		return with.code
	}
	c.say(err)
	return 1
}

// Warn reports a failure after which the command goes on; it will end with 1.
func (c *Call) Warn(err error) {
	c.failed = true
	_ = c.Out.Flush() // so that the message stands where it belongs
	c.say(err)
}

// Failed makes the command end with 1.
func (c *Call) Failed() { c.failed = true }

func (c *Call) say(err error) { fmt.Fprintf(c.Err, "%s: %s\n", c.Name, Plain(err.Error())) }

// Printf writes to standard output.
func (c *Call) Printf(format string, args ...any) { fmt.Fprintf(c.Out, format, args...) }

// Println writes a line to standard output.
func (c *Call) Println(args ...any) { fmt.Fprintln(c.Out, args...) }

// Line writes a line, and its end if it has one.
func (c *Call) Line(line []byte, ended bool) {
	_, _ = c.Out.Write(line) // a failure shows when it is flushed
	if ended {
		_ = c.Out.WriteByte('\n')
	}
}

// Open opens a file to read; "-" is standard input.
func (c *Call) Open(name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(c.In), nil
	}
	return os.Open(name)
}

// Each calls f for every file named, or for standard input if there is none. Failures are reported and passed over.
func (c *Call) Each(names []string, f func(name string, r io.Reader) error) error {
	if len(names) == 0 {
		names = []string{"-"}
	}
	for _, name := range names {
		r, err := c.Open(name)
		if err == nil {
			err = f(name, r)
			r.Close()
		}
		var code exitCode
		if errors.As(err, &code) {
			return err
		}
		if err != nil {
			c.Warn(err)
		}
	}
	return nil
}

// Lines calls f for each line, without its end, of any length. f must not keep the line.
func Lines(r io.Reader, f func(line []byte) error) error {
	return Parts(r, '\n', func(line []byte, _ bool) error { return f(line) })
}

// Parts calls f for each part of a text, without the byte that ends it; ended is false for a last one that nothing
// ends. f must not keep it.
func Parts(r io.Reader, end byte, f func(part []byte, ended bool) error) error {
	b := bufio.NewReaderSize(r, 64<<10)
	var long []byte
	for {
		line, err := b.ReadSlice(end)
		if errors.Is(err, bufio.ErrBufferFull) {
			long = append(long, line...)
			continue
		}
		if len(long) > 0 {
			long = append(long, line...)
			line = long
		}
		if n := len(line); n > 0 {
			ended := line[n-1] == end
			if ended {
				line = line[:n-1]
			}
			if e := f(line, ended); e != nil {
				return e
			}
		}
		long = long[:0]
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// Amount registers a flag with a whole number, which may have a unit behind it: b for blocks of 512 bytes, k, m and g
// for 1024, 1024² and 1024³.
func (c *Call) Amount(names, meta string, value int64, help string) *int64 {
	c.add(names, meta, help, func(s string) (err error) {
		value, err = ParseAmount(s)
		return err
	})
	return &value
}

// ParseAmount reads a whole number that may have a unit behind it (see [Call.Amount]).
func ParseAmount(text string) (int64, error) {
	digits := strings.TrimRight(text, "bkKmMgG")
	unit := int64(1)
	if suffix := strings.ToLower(text[len(digits):]); suffix != "" {
		unit = map[string]int64{"b": 512, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}[suffix]
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || unit == 0 {
		return 0, fmt.Errorf("%q is not a whole number", text)
	}
	if n > math.MaxInt64/unit || n < math.MinInt64/unit {
		return 0, fmt.Errorf("%q is too large", text)
	}
	return n * unit, nil
}

// Human words a number of bytes as ls -h does: 512, 1.5K, 20M.
func Human(n int64) string {
	if n < 1024 {
		return fmt.Sprint(n)
	}
	v, i := float64(n), 0
	for v >= 1024 && i < 6 {
		v /= 1024
		i++
	}
	if v < 10 {
		return fmt.Sprintf("%.1f%c", v, " KMGTPE"[i])
	}
	return fmt.Sprintf("%.0f%c", v, " KMGTPE"[i])
}
