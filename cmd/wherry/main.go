// SPDX-License-Identifier: Apache-2.0

// A socket of multipath TCP takes no filter, which internal/runtime gives the port that is nobody's; and nobody comes
// to ours by several paths.
//
//go:debug multipathtcp=0
package main

import (
	"os"

	"github.com/wherryproject/wherry/internal/cli"
	"github.com/wherryproject/wherry/internal/firstthread"            // before anything enters a pod's namespaces
	_ "github.com/wherryproject/wherry/internal/quickstart"           // works while packages are initialized
	_ "github.com/wherryproject/wherry/internal/quickstart/unmetered" // likewise
)

func main() { os.Exit(firstthread.Beside(func() int { return cli.Main(os.Args) })) }
