// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func main() {
	args := os.Args[1:]
	if len(args) == 0 {
		args = []string{"wait"}
	}
	switch args[0] {
	case "wait": // until SIGTERM
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGTERM)
		fmt.Println("waiting")
		<-c
	case "exit":
		code, _ := strconv.Atoi(args[1])
		os.Exit(code)
	case "echo":
		fmt.Println(args[1])
	case "say": // words to stdout, others to stderr, without an end of line
		fmt.Print(args[1])
		if len(args) > 2 {
			fmt.Fprint(os.Stderr, args[2])
		}
	case "count": // numbered lines, each after a pause in microseconds, to both outputs in turn if asked to
		n, _ := strconv.Atoi(args[1])
		pause, _ := strconv.Atoi(args[2])
		out := []*os.File{os.Stdout, os.Stdout}
		if len(args) > 3 {
			out[1] = os.Stderr
		}
		for i := 1; i <= n; i++ {
			fmt.Fprintf(out[i%2], "line %d of many, with something to make it longer\n", i)
			time.Sleep(time.Duration(pause) * time.Microsecond)
		}
	case "size": // of the terminal, now and whenever it changes
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGWINCH)
		for {
			if w, err := unix.IoctlGetWinsize(0, unix.TIOCGWINSZ); err == nil {
				fmt.Printf("%dx%d\n", w.Col, w.Row)
			}
			<-c
		}
	case "cat":
		io.Copy(os.Stdout, os.Stdin)
		fmt.Fprintln(os.Stderr, "end of input")
	case "pids": // of the processes it sees
		entries, _ := os.ReadDir("/proc")
		for _, e := range entries {
			if _, err := strconv.Atoi(e.Name()); err == nil {
				name, _ := os.ReadFile("/proc/" + e.Name() + "/cmdline")
				fmt.Printf("%s %q\n", e.Name(), name)
			}
		}
	}
}
