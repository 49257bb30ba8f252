// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"os"
)

// cannot is how alike ends if it cannot do what it is for.
const cannot = 3

func main() {
	seed := flag.Uint64("seed", 1, "what the program's random generators begin with")
	mounts := flag.String("mounts", "", "a file that it reads in place of its mountinfo")
	flag.Usage = func() { fmt.Fprintln(os.Stderr, "usage: alike [-seed N] [-mounts FILE] PROGRAM [ARGUMENT]...") }
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	code, err := run(*seed, *mounts, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "alike:", err)
		os.Exit(cannot)
	}
	os.Exit(code)
}
