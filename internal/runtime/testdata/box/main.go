// SPDX-License-Identifier: Apache-2.0

// Box is the one program in the tests' images.
package main

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"
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
