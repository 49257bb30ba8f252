// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"

	"github.com/wherryproject/wherry/internal/cli"
	_ "github.com/wherryproject/wherry/internal/quickstart" // works while packages are initialized
)

func main() { os.Exit(cli.Main(os.Args)) }
