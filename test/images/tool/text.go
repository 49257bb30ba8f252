// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"
)

func lines(args []string) error {
	n, err := strconv.Atoi(arg(args, 0, "10"))
	if err != nil {
		return err
	}
	every, err := time.ParseDuration(arg(args, 1, "0s"))
	if err != nil {
		return err
	}
	for i := 1; i <= n; i++ {
		fmt.Println("line", i)
		time.Sleep(every)
	}
	return nil
}

func printEnv(args []string) error {
	if len(args) == 0 {
		all := os.Environ()
		slices.Sort(all)
		for _, e := range all {
			fmt.Println(e)
		}
		return nil
	}
	for _, name := range args {
		value, ok := os.LookupEnv(name)
		if !ok {
			value = "(not set)"
		}
		fmt.Printf("%s=%s\n", name, value)
	}
	return nil
}

func catFiles(args []string) error {
	for _, path := range args {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		os.Stdout.Write(data)
	}
	return nil
}

func write(args []string) error {
	if len(args) < 2 {
		return errors.New("write FILE TEXT [CODE]")
	}
	if err := os.WriteFile(args[0], []byte(args[1]), 0o644); err != nil {
		return err
	}
	return exit([]string{arg(args, 2, "0")})
}
