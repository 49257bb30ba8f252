// SPDX-License-Identifier: Apache-2.0

package script

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Script is how a process behaves. The zero value runs until a signal stops it, then exits with 143.
type Script struct {
	Ends     bool          // whether it ends by itself
	RunFor   time.Duration // when it ends by itself, after how long
	ExitCode int32         // with what code

	IgnoreStop bool          // it ignores its stop signal
	StopDelay  time.Duration // how long it takes to end after its stop signal
	StopCode   int32         // what it exits with then

	Stdout, Stderr []string // lines it writes as it starts
	Echo           bool     // it copies its standard input to its standard output
	Show           string   // "pidns": it writes what PID namespace it is in, as one line
	Listen         int      // TCP port it listens on, echoing what comes

	OOM         bool   // its end is an out-of-memory kill (fake only)
	StartError  string // the runtime cannot start it (fake only)
	CreateError string // the runtime cannot create it (fake only)
}

// DefaultStopCode is what a process exits with that SIGTERM ends.
const DefaultStopCode = 143

// Parse reads the script among words. A word of the language with a value it does not take is an error.
func Parse(words []string) (Script, error) { return Script{StopCode: DefaultStopCode}.With(words) }

// With is s with what words say changed.
func (s Script) With(words []string) (Script, error) {
	s.Stdout, s.Stderr = s.Stdout[:len(s.Stdout):len(s.Stdout)], s.Stderr[:len(s.Stderr):len(s.Stderr)]
	for _, w := range words {
		key, value, ok := strings.Cut(w, "=")
		if !ok {
			continue
		}
		if err := s.set(key, value); err != nil {
			return Script{}, fmt.Errorf("script word %q: %w", w, err)
		}
	}
	return s, nil
}

func (s *Script) set(key, value string) (err error) {
	switch key {
	case "run_for":
		s.Ends = true
		s.RunFor, err = duration(value)
	case "exit_code":
		s.ExitCode, err = code(value)
	case "ignore_sigterm":
		s.IgnoreStop, err = strconv.ParseBool(value)
	case "stop_delay":
		s.StopDelay, err = duration(value)
	case "stop_code":
		s.StopCode, err = code(value)
	case "stdout":
		s.Stdout = append(s.Stdout, value)
	case "stderr":
		s.Stderr = append(s.Stderr, value)
	case "echo":
		s.Echo, err = strconv.ParseBool(value)
	case "show":
		s.Show = value
	case "listen":
		var port uint64
		port, err = strconv.ParseUint(value, 10, 16)
		s.Listen = int(port)
	case "oom":
		s.OOM, err = strconv.ParseBool(value)
	case "start_error":
		s.StartError = value
	case "create_error":
		s.CreateError = value
	}
	return err
}

func duration(v string) (time.Duration, error) {
	d, err := time.ParseDuration(v)
	if err == nil && d < 0 {
		err = fmt.Errorf("time before now")
	}
	return d, err
}

func code(v string) (int32, error) {
	n, err := strconv.ParseUint(v, 10, 8)
	return int32(n), err
}
