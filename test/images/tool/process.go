// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// arg gives args[i], or or.
func arg(args []string, i int, or string) string {
	if i < len(args) {
		return args[i]
	}
	return or
}

func sleep(args []string) error {
	d, err := time.ParseDuration(arg(args, 0, "24h"))
	if err != nil {
		return err
	}
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM, syscall.SIGINT)
	fmt.Println("sleeping", d)
	select {
	case s := <-term:
		fmt.Println("got", s)
	case <-time.After(d):
		fmt.Println("slept")
	}
	return nil
}

func stubborn([]string) error {
	got := make(chan os.Signal, 8)
	signal.Notify(got, syscall.SIGTERM, syscall.SIGINT)
	fmt.Println("ignoring signals")
	for s := range got {
		fmt.Println("ignored", s)
	}
	return nil
}

func exit(args []string) error {
	code, err := strconv.Atoi(arg(args, 0, "0"))
	if err != nil {
		return err
	}
	after, err := time.ParseDuration(arg(args, 1, "0s"))
	if err != nil {
		return err
	}
	time.Sleep(after)
	fmt.Println("exiting with", code)
	os.Exit(code)
	return nil
}

func once(args []string) error {
	if len(args) != 2 {
		return errors.New("once FILE CODE")
	}
	f, err := os.OpenFile(args[0], os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, os.ErrExist) {
		fmt.Println("been here before")
		return nil
	}
	if err != nil {
		return err
	}
	f.Close()
	return exit(args[1:])
}

func children(args []string) error {
	n, err := strconv.Atoi(arg(args, 0, "1"))
	if err != nil {
		return err
	}
	for range n {
		c := exec.Command("/proc/self/exe", "sleep")
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
		if err := c.Start(); err != nil {
			return err
		}
	}
	return sleep(nil)
}

func alloc(args []string) error {
	mib, err := strconv.Atoi(arg(args, 0, "1"))
	if err != nil {
		return err
	}
	var held [][]byte
	for range mib {
		held = append(held, slices.Repeat([]byte{1}, 1<<20))
	}
	fmt.Println("took", len(held), "MiB")
	return sleep(nil)
}
