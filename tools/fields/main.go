// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"

	"github.com/wherryproject/wherry/internal/check/fields"
)

func main() {
	if err := os.WriteFile("docs/fields.md", []byte(fields.Page()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "fields:", err)
		os.Exit(1)
	}
}
