// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

func main() {
	switch filepath.Base(os.Args[0]) {
	case "true":
		return
	case "end":
		if syscall.Kill(1, syscall.SIGTERM) != nil {
			os.Exit(1)
		}
		return
	case "there":
		if _, err := os.Stat(os.Args[1]); err != nil {
			os.Exit(1)
		}
		return
	case "print":
		if err := printMany(os.Args[1]); err != nil {
			os.Exit(1)
		}
		return
	case "connect":
		said(connectMany(os.Args[1], os.Args[2], os.Args[3]))
		return
	case "ask":
		said(askMany(os.Args[1], os.Args[2], os.Args[3]))
		return
	case "until":
		until(os.Args[1])
		return
	case "serve":
		go func() { said(serve(os.Args[1])) }()
	}
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM)
	<-end
}

// said ends the program with what was wrong.
func said(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// printMany prints so many bytes, in lines of 100, when a line was read.
func printMany(count string) error {
	n, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	if _, err := os.Stdin.Read(make([]byte, 100)); err != nil {
		return err
	}
	line := strings.Repeat("x", 99) + "\n"
	block := []byte(strings.Repeat(line, 655)) // nearly what a pipe holds
	for n > 0 {
		done, err := os.Stdout.Write(block[:min(n, len(block))])
		if err != nil {
			return err
		}
		n -= done
	}
	return nil
}
