// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "elfjoin:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("elfjoin", flag.ContinueOnError)
	out := flags.String("o", "", "file to write")
	entry := flags.String("entry", "", "program that chooses")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *out == "" || *entry == "" || flags.NArg() != 2 {
		return errors.New("usage: elfjoin -o OUT -entry ENTRY MAIN SHORT")
	}
	var programs [3]*program
	for i, path := range []string{flags.Arg(0), flags.Arg(1), *entry} {
		data, err := os.ReadFile(path)
		if err == nil {
			programs[i], err = parse(data)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	joined, err := join(programs[0], programs[1], programs[2])
	if err != nil {
		return err
	}
	// Written aside and renamed: a program that runs cannot be written to.
	if err := write(*out+".new", joined); err != nil {
		return err
	}
	return os.Rename(*out+".new", *out)
}

// piece is how much is written at once. What is written in one go the kernel keeps in memory in one go too, up to 2 MB
// of it, and a program that uses any of it later is charged for all (Linux 6.18).
const piece = 64 << 10

func write(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	for p := range slices.Chunk(data, piece) {
		if _, err := f.Write(p); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	return f.Close()
}
