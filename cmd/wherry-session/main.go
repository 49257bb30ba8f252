// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"

	"github.com/wherryproject/wherry/internal/cluster/sessionchild"
	"github.com/wherryproject/wherry/internal/firstthread" // before anything enters a pod's namespaces
	"github.com/wherryproject/wherry/internal/hostdebug/guard"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == guard.Word {
		os.Exit(guard.Main(os.Args[2:], os.Stdin, os.Stderr))
	}
	os.Exit(firstthread.Beside(func() int { return sessionchild.Main(os.Stdin, os.Stdout, os.Stderr, nil) }))
}
