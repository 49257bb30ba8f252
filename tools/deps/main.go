// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/wherryproject/wherry/internal/check/deps"
)

func main() {
	binary := flag.String("binary", "bin/wherry", "the built program")
	out := flag.String("o", "docs/dependencies.txt", "file to write")
	flag.Parse()
	if err := run(*binary, *out); err != nil {
		fmt.Fprintln(os.Stderr, "deps:", err)
		os.Exit(1)
	}
}

func run(binary, out string) error {
	list, err := deps.List(context.Background(), ".", "./cmd/wherry")
	if err != nil {
		return err
	}
	info, err := os.Stat(binary)
	if err != nil {
		return err
	}
	if err := deps.Sizes(binary, list); err != nil {
		return err
	}
	var text bytes.Buffer
	if err := deps.Write(&text, list, info.Size()); err != nil {
		return err
	}
	if old, err := os.ReadFile(out); err == nil && deps.Essence(string(old)) == deps.Essence(text.String()) {
		return nil // only sizes differ
	}
	return os.WriteFile(out, text.Bytes(), 0o644)
}
