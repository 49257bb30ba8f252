// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"

	"github.com/wherryproject/wherry/internal/check/fields"
)

func main() {
	page, err := fields.Page(os.DirFS("."))
	if err == nil {
		err = os.WriteFile("docs/fields.md", []byte(page), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "fields:", err)
		os.Exit(1)
	}
}
