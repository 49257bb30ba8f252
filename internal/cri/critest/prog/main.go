// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/wherryproject/wherry/internal/cri/critest/script"
)

func main() {
	s, err := script.Parse(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	os.Exit(run(s))
}

func run(s script.Script) int {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	for _, line := range s.Stdout {
		fmt.Println(line)
	}
	for _, line := range s.Stderr {
		fmt.Fprintln(os.Stderr, line)
	}
	if s.Show == "pidns" {
		ns, err := os.Readlink("/proc/self/ns/pid")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		fmt.Println(ns)
	}
	ended := make(chan struct{})
	if s.Echo {
		go func() {
			_, _ = io.Copy(os.Stdout, os.Stdin)
			if s.Ends && s.RunFor == 0 {
				close(ended) // with run_for=0s an echo ends with its input
			}
		}()
	}
	if s.Listen > 0 {
		if err := listen(s.Listen); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	var over <-chan time.Time
	if s.Ends && (s.RunFor > 0 || !s.Echo) {
		over = time.After(s.RunFor)
	}
	for {
		select {
		case <-over:
			return int(s.ExitCode)
		case <-ended:
			return int(s.ExitCode)
		case <-stop:
			if !s.IgnoreStop {
				time.Sleep(s.StopDelay)
				return int(s.StopCode)
			}
		}
	}
}

// listen echoes what comes on the port.
func listen(port int) error {
	l, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
	if err != nil {
		return err
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	return nil
}
