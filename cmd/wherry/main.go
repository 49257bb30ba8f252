// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"

	"github.com/wherryproject/wherry/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args)) }
