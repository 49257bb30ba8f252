// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"

	"github.com/wherryproject/wherry/internal/check/lines"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: lines FILE...")
		os.Exit(2)
	}
	for _, name := range os.Args[1:] {
		if err := rewrite(name); err != nil {
			fmt.Fprintf(os.Stderr, "error: %s: %v\n", name, err)
			os.Exit(1)
		}
	}
}

func rewrite(name string) error {
	old, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	text, err := lines.Broken(old)
	if err != nil || bytes.Equal(old, text) {
		return err
	}
	return os.WriteFile(name, text, 0o644)
}
