// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"

	"github.com/wherryproject/wherry/internal/cli/short"
)

func main() { os.Exit(short.Main(os.Args, os.Stdin, os.Stdout, os.Stderr)) }
